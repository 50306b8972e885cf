"""Makes the agents that come with azjax out of runs: rates each, and writes its file with all figures inside.

    python -m experiments.shipped_agents NAME=RUN ... [--games 400] [--out azjax/agents] [--note "other work beside it"]

Each run's newest checkpoint plays `random` and `uct:400` with 400 simulations a move, both seats of random openings of
two plies; `--opponents random uct:400 gtp:gnugo,level=10` adds others. Matches are kept in the run's directory and not
played again. What was measured and how the run was trained is kept in the file; docs/export.md shows it as a table,
whose rows this prints and a test compares with the files.
"""

import dataclasses
import math
import sys
from pathlib import Path
from typing import Annotated, Any

import tyro

import envs
from azjax.agents.file import AgentHeader, read_header
from azjax.export import SUFFIXES, describe, export
from azjax.opponents import any_player
from azjax.outside import AnyPlayer
from azjax.players import run_player
from azjax.rundir import RunDirectory, load_run
from azjax.step import make_mesh
from azjax.train import use_devices
from experiments.ledger import Ledger, Roster
from experiments.provenance import provenance, say

OPPONENTS = ("random", "uct:400")
SIMULATIONS = 400
SEED = 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """Rates and exports runs."""

    runs: tyro.conf.Positional[Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=RUN ...")]]
    """Names of the agents, and the directories of their runs."""
    games: int = 400
    """Of each match."""
    simulations: int = SIMULATIONS
    """Of the agent's searches."""
    opponents: tuple[str, ...] = OPPONENTS
    """Players' words; docs/export.md has a column for each of the default's."""
    out: Path = Path("azjax/agents")
    """Where the files go."""
    note: str = ""
    """What else the machine did meanwhile."""


def make(name: str, run: RunDirectory, options: Options) -> AgentHeader:
    """Rates a run's newest checkpoint and writes its file."""
    agent = load_run(str(run.path), None)
    game, mesh = envs.make(agent.config.game), make_mesh(0)
    ours = f"step {agent.step}, {options.simulations} simulations"
    ledger = Ledger(run.path / "shipped_agents.jsonl")

    def player(word: str) -> AnyPlayer:
        if word == ours:
            return run_player(game, agent, f"agent:{name}", {"simulations": str(options.simulations)})
        return any_player(game, word, load_run)

    kept = ("b", "games", "wins", "draws", "losses", "score", "ci95", "distinct", "seconds", "truncated")
    measured = []
    with Roster(player) as roster:
        for word in options.opponents:
            row = ledger.play(game, ours, word, roster, games=options.games, mesh=mesh, seed=SEED)["match"]
            measured.append({key: row[key] for key in kept} | {"simulations": options.simulations, "seed": SEED})
    about: dict[str, Any] = describe(run, agent.config, agent.step) | {"measured": measured}
    about["measured_on"] = provenance() | ({"note": options.note} if options.note else {})
    made = export(game, agent, options.out / f"{name}{SUFFIXES['safetensors']}", "safetensors", about)
    say(f"wrote {made.path}: {made.bytes:,} bytes, sha256 {made.sha256}")
    return read_header(made.path)


def table_row(name: str, header: AgentHeader) -> str:
    """Returns the agent's row of the table in docs/export.md."""
    about, numbers = header.about, sum(math.prod(shape) for _, shape in header.tensors.values())
    scores = [
        f"{row['score']:.1%} ({row['ci95'][0]:.1%} to {row['ci95'][1]:.1%})"
        for row in about["measured"]
        if row["b"] in OPPONENTS
    ]
    cells = [f"`{name}`", f"`{header.config.game}`", f"{numbers:,}", f"{about['steps']}", f"{about['games']:,}"]
    return "| " + " | ".join([*cells, f"{about['seconds']:.0f} s", *scores]) + " |"


def main(options: Options) -> int:
    """Makes the agents; returns the exit status."""
    use_devices(0)
    rows = []
    for word in options.runs:
        name, _, directory = word.partition("=")
        rows.append(table_row(name, make(name, RunDirectory(directory), options)))
    print("\n".join(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Options)))
