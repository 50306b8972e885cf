"""Throughput beside a reference that runs in the same process, in turns with what is measured."""

from azjax.bench.games import bench_games
from azjax.bench.report import bench_table, programs_table
from azjax.bench.search import bench_search
from azjax.bench.selfplay import bench_selfplay
from azjax.bench.train import bench_train

__all__ = ["bench_games", "bench_search", "bench_selfplay", "bench_table", "bench_train", "programs_table"]
