"""A run's network for other programs and other machines: safetensors, StableHLO, ONNX; each read back and compared.

StableHLO and ONNX hold the function observation float32[B, H, W, F] -> (policy logits float32[B, A] in the network's
frame, value float32[B] of the player to move), B as large as wanted.
"""

import contextlib
import dataclasses
import datetime
import importlib
import importlib.util
import json
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
from safetensors.numpy import save

from azjax import network
from azjax.agents.file import DTYPES, FORMAT, METADATA, SUFFIX, read_header
from azjax.agents.load import by_path, load_variables
from azjax.config import RunConfig, differences, to_json
from azjax.manifest import MANIFEST, hash_file, sync
from azjax.players import LoadedRun
from azjax.presets import preset
from azjax.rundir import RunDirectory
from envs.core import Game
from envs.random_games import random_games

Format = Literal["safetensors", "stablehlo", "onnx"]
SUFFIXES = {"safetensors": SUFFIX, "stablehlo": ".stablehlo", "onnx": ".onnx"}
PACKAGES = {"stablehlo": ("flatbuffers",), "onnx": ("jax2onnx", "onnxruntime")}
"""What a format needs beside azjax."""
INSTALL = {"stablehlo": "pip install flatbuffers", "onnx": "pip install 'jax2onnx>=0.13,<0.14' onnxruntime"}
POSITIONS = 64
PLATFORMS = ("cpu", "cuda", "tpu")
TOLERANCE = 1e-3
"""Largest difference of an output between our network and the file's; they add in another order."""

Outputs = tuple[np.ndarray, np.ndarray]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Exported:
    """What was written, and how it compares with the network."""

    path: Path
    format: Format
    bytes: int
    sha256: str
    step: int
    positions: int  # of random games, on which both were evaluated
    policy_difference: float  # largest absolute difference of a logit
    value_difference: float


def missing_packages(kind: Format) -> str | None:
    """Returns one line that says what to install, None where nothing is missing."""
    for package in PACKAGES.get(kind, ()):
        if importlib.util.find_spec(package) is None:
            return f"--format {kind}: needs {package}, which is not installed: {INSTALL[kind]}"
    return None


def export(
    game: Game, agent: LoadedRun, path: Path, kind: Format = "safetensors", about: dict[str, Any] | None = None
) -> Exported:
    """Writes a network, whole or not at all, and compares the file with it on positions of random games.

    Args:
      game: what the agent plays.
      agent: whose network.
      path: of the file; one that is there is replaced.
      kind: the format.
      about: safetensors: facts to keep in the file (`describe`).

    Raises:
      ValueError: a package is missing, or the file's outputs are not the network's; then nothing is written.
    """
    if problem := missing_packages(kind):
        raise ValueError(problem)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.new")
    observations = sample(game, POSITIONS)
    try:
        forward = _WRITERS[kind](game, agent, partial, about or {})
        policy, value = (
            float(np.max(np.abs(ours - theirs)))
            for ours, theirs in zip(_outputs(game, agent, observations), forward(observations), strict=True)
        )
        most = max(policy, value)
        if not most <= TOLERANCE:
            raise ValueError(f"--format {kind}: read back, outputs differ by {most:g}, expected {TOLERANCE:g} at most")
        sync(partial)
        partial.rename(path)
        sync(path.parent)
    finally:
        partial.unlink(missing_ok=True)
    return Exported(
        path=path,
        format=kind,
        **hash_file(path),
        step=agent.step,
        positions=len(observations),
        policy_difference=policy,
        value_difference=value,
    )


def sample(game: Game, number: int) -> np.ndarray:
    """Returns observations float32[number, H, W, F] of positions from random games, no finished one among them."""
    kept: list[np.ndarray] = []
    turns = random_games(game, jax.random.split(jax.random.key(0), 16), np.random.default_rng(0))
    for turn in turns:
        going_on = ~turn.position.terminated & ~turn.position.is_chance
        kept += list(turn.position.observation[going_on])
        if len(kept) >= 8 * number or turn.position.terminated.all():
            break
    spread = np.linspace(0, len(kept) - 1, min(number, len(kept))).astype(int)
    return np.stack([kept[index] for index in spread]).astype(np.float32)


def describe(run: RunDirectory, config: RunConfig, step: int) -> dict[str, Any]:
    """Returns how a run's agent was made, from the run's own files: command, seed, totals, date, versions, ratings."""
    manifest_path = run.checkpoints_path / str(step) / MANIFEST
    manifest = json.loads(manifest_path.read_text(encoding="utf-8"))
    saved = datetime.datetime.fromtimestamp(manifest_path.stat().st_mtime, datetime.UTC)
    about: dict[str, Any] = {
        "command": train_command(config),
        "seed": config.seed,
        "steps": step,
        "date": saved.date().isoformat(),
        "versions": manifest["versions"],
        **{name: manifest["metadata"].get("totals", {}).get(name) for name in ("games", "plies", "simulations")},
        "seconds": round(manifest["metadata"].get("totals", {}).get("seconds", 0.0), 1),
    }
    if run.ratings_path.is_file():
        players = json.loads(run.ratings_path.read_text(encoding="utf-8"))["players"]
        about["ratings"] = [
            {name: player[name] for name in ("name", "elo", "ci95", "games", "score")}
            for player in players
            if player["name"] == f"step {step}" or not player["name"].startswith("step ")
        ]
    return about


def train_command(config: RunConfig) -> str:
    """Returns the command that trains by this configuration: its preset, and the fields that differ from it."""
    words = ["azjax", "train", config.game, "--preset", config.preset]
    for name, (_, value) in differences(preset(config.preset, config.game), config).items():
        if name not in ("game", "preset"):
            words += [f"--{name.replace('_', '-')}", *_words(value)]
    return shlex.join(words)


def _words(value: Any) -> Sequence[str]:
    if isinstance(value, list):
        return [str(item) for item in value]
    return [str(value).lower() if isinstance(value, bool) else str(value)]


def _outputs(game: Game, agent: LoadedRun, observations: np.ndarray) -> Outputs:
    policy, value = jax.jit(_function(game, agent))(observations)
    return np.asarray(policy), np.asarray(value)


def _function(game: Game, agent: LoadedRun) -> Callable[[Any], tuple[jax.Array, jax.Array]]:
    settings = agent.config.network

    def forward(observation: Any) -> tuple[jax.Array, jax.Array]:
        (policy_logits, value_logits), _ = network.apply(settings, game, agent.variables, observation, False)
        return policy_logits, network.value_of(settings, value_logits)

    return forward


def _safetensors(game: Game, agent: LoadedRun, path: Path, about: dict[str, Any]) -> Callable[[np.ndarray], Outputs]:
    arrays = {name: np.ascontiguousarray(leaf) for name, leaf in by_path(agent.variables).items()}
    for name, array in arrays.items():
        if str(array.dtype) not in DTYPES.values():
            raise ValueError(f"{name}: got {array.dtype}, expected one of {', '.join(DTYPES.values())}")
    fields = {"format": FORMAT, "config": to_json(agent.config), "step": agent.step, "about": about}
    path.write_bytes(save(arrays, {METADATA: json.dumps(fields)}))
    header = read_header(path)
    variables = load_variables(header, game, own_network=True)
    read = LoadedRun(config=header.config, variables=variables, step=header.step)
    return lambda observations: _outputs(game, read, observations)


def _stablehlo(game: Game, agent: LoadedRun, path: Path, about: dict[str, Any]) -> Callable[[np.ndarray], Outputs]:
    del about
    from jax import export as jax_export

    (batch,) = jax_export.symbolic_shape("B")
    shape = jax.ShapeDtypeStruct((batch, *game.observation_shape), jnp.float32)
    exported = jax_export.export(jax.jit(_function(game, agent)), platforms=PLATFORMS)(shape)
    path.write_bytes(exported.serialize())
    # What is read here was written by this process; such a file of a stranger's is a program.
    read = jax_export.deserialize(bytearray(path.read_bytes()))

    def forward(observations: np.ndarray) -> Outputs:
        policy, value = read.call(observations)
        return np.asarray(policy), np.asarray(value)

    return forward


def _onnx(game: Game, agent: LoadedRun, path: Path, about: dict[str, Any]) -> Callable[[np.ndarray], Outputs]:
    del about
    jax2onnx, onnxruntime = map(importlib.import_module, PACKAGES["onnx"])
    with contextlib.redirect_stdout(sys.stderr):  # it tells much of what it does
        model = jax2onnx.to_onnx(_function(game, agent), [("B", *game.observation_shape)], model_name="azjax")
    path.write_bytes(model.SerializeToString())
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()

    def forward(observations: np.ndarray) -> Outputs:
        policy, value = session.run(None, {given.name: observations})
        return policy, value

    return forward


_WRITERS = {"safetensors": _safetensors, "stablehlo": _stablehlo, "onnx": _onnx}
assert set(_WRITERS) == set(get_args(Format)) == set(SUFFIXES)
