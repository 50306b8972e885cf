"""Throughput beside a reference that runs in the same process, in turns with what is measured."""

from azjax.bench.games import bench_games
from azjax.bench.report import bench_table, programs_table
from azjax.bench.search import bench_search
from azjax.bench.selfplay import bench_selfplay

__all__ = ["bench_games", "bench_search", "bench_selfplay", "bench_table", "programs_table"]
