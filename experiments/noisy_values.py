"""Does a search that averages stand errors better than one that takes maxima? Exact values, spoilt by known noise.

    python -m experiments.noisy_values [--budget smoke|full] [--seed 0] [--runs DIR] [--out DIR]

The claim (Silver et al., "Mastering Chess and Shogi by Self-Play with a General Reinforcement Learning Algorithm",
arXiv 1712.01815, Methods): Monte-Carlo tree search averages over a network's errors, which tend to cancel out in a
large subtree, while alpha-beta propagates the largest of them to the root. The paper did not test it.

Here the network's place is taken by exact values. Positions of Connect Four late enough that all that follows fits into
a table are solved (azjax/solver.py; budget full compares their values with bitbully's, where it is installed). The
evaluation of a position is then

    clip(SCALE z + sigma e, -0.999, 0.999)        z in {-1, 0, 1} exact, e a standard normal number

where e is a fixed number of each position, drawn anew for each of several draws, and the policy is uniform: every
search sees the same evaluations and may make the same number of them. Asked are positions in which some legal move
gives value away and no two moves end the game, because one ply shows the others' tactics; told is in which share of
them each search's move keeps the value, as sigma grows. e is independent from position to position, as no network's
errors are: the case in which averaging should help most.
"""

import dataclasses
import functools
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from jax.sharding import NamedSharding, PartitionSpec
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import envs
from azjax.arena import ask
from azjax.curves import COLORS, MARKERS, tidy
from azjax.expansion import expand, facts, in_chunks, random_positions, rows, size
from azjax.generations import share
from azjax.oracle import oracle
from azjax.players import ChooseFn, Player
from azjax.report import save_json, save_picture
from azjax.search import alphabeta_search, game_model, gumbel_policy, puct_policy
from azjax.search.model import mix_bits
from azjax.solver import Solution, action_values, hash_states, look_up, solve_from
from azjax.step import make_mesh
from azjax.train import use_devices
from envs.core import Game, State
from experiments.provenance import markdown, merged, publish, say, where

RESULTS = Path(__file__).parent / "results" / "noisy_values"
SCALE = 0.5
"""What a win is worth in an evaluation: room for noise on both sides. Noise is told in this unit, from draw to win."""
SURE = 0.999
SEARCHES = ("puct", "gumbel", "alphabeta")
ONE_PLY = "one ply"
"""The best evaluation among the positions after each move."""
TITLES = {"puct": "PUCT", "gumbel": "Gumbel", "alphabeta": "alpha-beta", ONE_PLY: ONE_PLY}
MOST_POSITIONS = 16_000_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class Study:
    """What is asked."""

    game: str
    ply: int  # of the positions
    positions: int
    noise: tuple[float, ...]  # standard deviations, in units of SCALE
    evaluations: tuple[int, ...]
    draws: int  # of the noise


STUDIES = {
    "smoke": Study(game="tic_tac_toe", ply=2, positions=8, noise=(0.0, 1.0), evaluations=(8, 64), draws=2),
    "full": Study(
        game="connect_four",
        ply=28,
        positions=100,
        noise=(0.0, 0.5, 1.0, 1.5, 2.0, 3.0),
        evaluations=(25, 100, 400),
        draws=8,
    ),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """Asks searches about exact values spoilt by noise."""

    budget: Literal["smoke", "full"] = "smoke"
    """smoke: a few positions of tic-tac-toe, the same way."""
    seed: int = 0
    """Of the positions."""
    runs: Path = Path("runs")
    """Where what was asked is kept, so that an interrupted study goes on."""
    out: Path | None = None
    """Where the results go; budget full: experiments/results/noisy_values, else into --runs."""


class Noisy(NamedTuple):
    """What an evaluation is made of."""

    solution: Solution
    sigma: jax.Array  # float32[], of the noise
    draw: jax.Array  # uint32[], which noise


def noise(states: State, draw: jax.Array) -> jax.Array:
    """Returns float32[B], standard normal numbers that depend on the position and the draw alone."""
    hashed = hash_states(states)
    bits = mix_bits(hashed[:, 0] ^ mix_bits(hashed[:, 1] ^ mix_bits(jnp.uint32(draw) + jnp.uint32(0x9E3779B9))))
    return jax.scipy.special.ndtri(((bits >> 9).astype(jnp.float32) + 0.5) / 2**23)


def noisy_evaluation(params: Noisy, rng_key: jax.Array, states: State, num_actions: int) -> tuple[jax.Array, jax.Array]:
    """Returns uniform logits float32[B, A] and the spoilt values float32[B]."""
    del rng_key
    value = SCALE * look_up(params.solution, states) + params.sigma * noise(states, params.draw)
    return jnp.zeros((value.shape[0], num_actions)), jnp.clip(value, -SURE, SURE)


@functools.lru_cache
def chooser(game: Game, search: str, evaluations: int) -> ChooseFn:
    """Returns the function that chooses moves by a search of so many spoilt evaluations."""
    model = game_model(game, functools.partial(noisy_evaluation, num_actions=game.num_actions))

    def choose(params: Any, rng_key: jax.Array, states: State) -> jax.Array:
        root = model.root(params, rng_key, states)
        if search == "puct":
            return puct_policy(params, rng_key, root, model.recurrent, evaluations, dirichlet_fraction=0.0).action
        if search == "gumbel":
            return gumbel_policy(params, rng_key, root, model.recurrent, evaluations, gumbel_scale=0.0).action
        depth = 1 if search == ONE_PLY else game.max_plies
        return alphabeta_search(params, rng_key, root, model.recurrent, evaluations, depth).action

    return choose


class Asked(NamedTuple):
    """Positions and what is known of them."""

    states: State  # numpy [N, ...]
    solution: Solution
    best: np.ndarray  # bool[N, A], moves that keep the value
    values: np.ndarray  # float32[N, A], what each move is worth, -inf where it is illegal


def quiet(game: Game, states: State) -> np.ndarray:
    """Returns bool[N]: no two moves end the game."""
    after = expand(game, states, facts(game, states).legal)
    seen = facts(game, after.states)
    over = seen.over.copy()
    going = np.flatnonzero(~over)
    beyond = expand(game, rows(after.states, going), seen.legal[going])
    np.logical_or.at(over, going[beyond.parent], facts(game, beyond.states).over)
    found = np.ones(size(states), bool)
    found[after.parent[over]] = False
    return found


def critical_positions(game: Game, study: Study, seed: int) -> Asked:
    """Returns different quiet positions of random games, after `study.ply` moves, in which a move gives value away.

    Raises:
      ValueError: random games gave too few, or they have too many positions after them.
    """
    found = random_positions(game, 300 * study.positions, seed)
    states = rows(found.states, found.ply == study.ply)
    # Of 1,000 random games of Connect Four some 10 are quiet after 28 plies, 45 in 100 of these are critical, and each
    # adds some 20,000 positions to the table.
    states = rows(states, np.flatnonzero(quiet(game, states))[: 12 * study.positions // 5])
    solution = solve_from(game, states, MOST_POSITIONS)
    look = jax.jit(lambda solution, states: action_values(game, solution, states)[0])
    values = in_chunks(functools.partial(look, jax.device_put(solution)), states)
    best = values == values.max(1, keepdims=True)
    critical = np.flatnonzero((np.isfinite(values) & ~best).any(1))[: study.positions]
    if len(critical) < study.positions:
        raise ValueError(f"positions: got {len(critical)} critical ones, expected {study.positions}; ask for fewer")
    return Asked(rows(states, critical), solution, best[critical], values[critical])


def ask_all(game: Game, study: Study, asked: Asked, kept: Path) -> list[dict[str, Any]]:
    """Asks every search; returns {"search", "evaluations", "noise", "hits"}, hits[d][n] of draw d and position n.

    Rows are kept in a file as they come: what was asked is not asked again.
    """
    done: list[dict[str, Any]] = json.loads(kept.read_text(encoding="utf-8")) if kept.is_file() else []
    known = {(row["search"], row["evaluations"], row["noise"]): row for row in done}
    mesh = make_mesh(0)
    solution = jax.device_put(asked.solution, NamedSharding(mesh, PartitionSpec()))
    cases = [(ONE_PLY, game.num_actions), *((s, n) for n in study.evaluations for s in SEARCHES)]
    for search, evaluations in cases:
        for level in study.noise:
            if (search, evaluations, level) in known:
                continue
            hits = []
            for draw in range(study.draws):
                params = Noisy(solution, jnp.float32(SCALE * level), jnp.uint32(draw))
                player = Player(search, chooser(game, search, evaluations), params)
                moves = ask(player, asked.states, mesh)
                hits.append(asked.best[np.arange(len(moves)), moves].astype(int).tolist())
            row = {"search": search, "evaluations": evaluations, "noise": level, "hits": hits}
            known[search, evaluations, level] = row
            save_json(kept, list(known.values()))
            say(f"{search}, {evaluations} evaluations, noise {level:g}: {np.array(hits).mean():.1%}")
    return [known[search, evaluations, level] for search, evaluations in cases for level in study.noise]


def shares(answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns a row for each search, number of evaluations and noise: the share of kept values.

    Intervals of 95 % take positions and not their draws for independent.
    """
    found = []
    for answer in answers:
        hits = np.array(answer["hits"], bool)
        value, low, high = share(hits, np.ones_like(hits))
        row = {name: answer[name] for name in ("search", "evaluations", "noise")}
        found.append(row | {"share": round(value, 4), "low": round(low, 4), "high": round(high, 4)})
    return found


def differences(answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns PUCT's share minus alpha-beta's at equal evaluations and noise, over the same positions and draws."""
    hits = {(a["search"], a["evaluations"], a["noise"]): np.array(a["hits"], float).mean(0) for a in answers}
    found = []
    for (search, evaluations, level), ours in hits.items():
        if search == "puct":
            by_position = ours - hits["alphabeta", evaluations, level]
            value = float(by_position.mean())
            width = 1.96 * float(by_position.std(ddof=1)) / len(by_position) ** 0.5
            ends = {"difference": value, "low": value - width, "high": value + width}
            found.append(
                {"evaluations": evaluations, "noise": level} | {name: round(end, 4) for name, end in ends.items()}
            )
    return found


def table(studies: dict[str, dict[str, Any]]) -> str:
    """Returns the shares and the differences of every study in Markdown."""
    return "# Exact values plus noise\n" + "".join(
        f"\n## {found['study']['game']}, {name}\n\n{_study(found)}" for name, found in studies.items()
    )


def _study(found: dict[str, Any]) -> str:
    study = found["study"]
    levels = study["noise"]
    lines = [["search", "evaluations", *(f"noise {level:g}" for level in levels)], ["---"] * (2 + len(levels))]
    of_case: dict[tuple[str, int], list[str]] = {}
    for row in found["shares"]:
        half = 100 * (row["high"] - row["low"]) / 2
        of_case.setdefault((row["search"], row["evaluations"]), []).append(f"{row['share']:.1%} ± {half:.1f}")
    lines += [[TITLES[search], str(number), *cells] for (search, number), cells in of_case.items()]
    for number in study["evaluations"]:
        those = [row for row in found["differences"] if row["evaluations"] == number]
        cells = [
            f"{100 * row['difference']:+.1f} ({100 * row['low']:+.1f} to {100 * row['high']:+.1f})" for row in those
        ]
        lines.append(["PUCT - alpha-beta, points", str(number), *cells])
    checked = found["compared_with_bitbully"]
    said = "bitbully was not asked" if checked is None else f"bitbully gives the same values of all moves in {checked}"
    return (
        markdown(lines)
        + f"\nShares of {study['positions']:,} quiet critical positions after {study['ply']} plies of random games in"
        f" which the move keeps the exact value, {study['draws']} draws of the noise each; 95 % intervals. Noise:"
        f" standard deviation in units of the difference between a draw and a win, which is"
        f" {SCALE} in the evaluations; uniform policy; at most so many evaluations a move, without the root's."
        f" {found['table']:,} positions were solved; {said}. {where([found])}.\n"
    )


def draw(path: Path, studies: dict[str, dict[str, Any]]) -> None:
    """Draws the shares over the noise, a row for each study and a panel for each number of evaluations."""
    width = max(len(found["study"]["evaluations"]) for found in studies.values())
    figure = Figure(figsize=(4 * width, 4 * len(studies)), dpi=120, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    panels = figure.subplots(len(studies), width, sharey="row", squeeze=False)
    for line, (name, found) in zip(panels, studies.items(), strict=True):
        numbers = found["study"]["evaluations"]
        for axes in line[len(numbers) :]:
            axes.set_axis_off()
        for axes, number in zip(line, numbers, strict=False):
            _panel(axes, found["shares"], number)
            axes.set(xlabel="noise, draw to win = 1", title=f"{name}: {number} evaluations")
        line[0].set(ylabel=f"{found['study']['game']}: moves that keep the exact value")
    panels[0, 0].legend(loc="best", frameon=False)
    figure.suptitle("Exact values plus noise, critical positions")
    save_picture(path, canvas)


def _panel(axes: Any, shares: list[dict[str, Any]], evaluations: int) -> None:
    for index, search in enumerate((*SEARCHES, ONE_PLY)):
        those = [
            row
            for row in shares
            if row["search"] == search and (search == ONE_PLY or row["evaluations"] == evaluations)
        ]
        value, low, high = (np.array([row[name] for row in those]) for name in ("share", "low", "high"))
        axes.errorbar(
            [row["noise"] for row in those],
            value,
            (value - low, high - value),
            color=COLORS[index],
            marker=MARKERS[index],
            capsize=3,
            linestyle=":" if search == ONE_PLY else "-",
            label=TITLES[search],
        )
    axes.yaxis.set_major_formatter(lambda x, _: f"{x:.0%}")
    tidy(axes)


def compare(game: Game, asked: Asked) -> int | None:
    """Returns in how many positions bitbully gives every move the table's value; None where it is not installed.

    Raises:
      RuntimeError: it gives another one.
    """
    if importlib.util.find_spec("bitbully") is None:
        return None
    with oracle(game) as values:
        if not np.array_equal(values(asked.states), asked.values):
            raise RuntimeError(f"solver: the table's values of {game.id} are not bitbully's")
    return size(asked.states)


def main(options: Options) -> int:
    """Asks (or goes on asking) and writes; returns the exit status."""
    use_devices(0)
    study = STUDIES[options.budget]
    game = envs.make(study.game)
    directory = options.runs / f"noisy_values-{options.budget}-{options.seed}"
    directory.mkdir(parents=True, exist_ok=True)
    asked = critical_positions(game, study, options.seed)
    say(f"{study.positions} critical positions; {len(asked.solution.values):,} positions solved")
    compared = compare(game, asked) if study.game == "connect_four" else None
    answers = ask_all(game, study, asked, directory / "asked.json")
    found = {
        "study": dataclasses.asdict(study),
        "table": len(asked.solution.values),
        "compared_with_bitbully": compared,
        "differences": differences(answers),
        "shares": shares(answers),
    }
    out = options.out or (RESULTS if options.budget == "full" else directory)
    studies = merged(out, "studies", {f"{options.budget}, seed {options.seed}": found})
    rows = [{"study": name} | row for name, known in studies.items() for row in known["shares"]]
    publish(out, {"studies": studies}, rows, table(studies), lambda path: draw(path, studies))
    return 0


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Options)))
