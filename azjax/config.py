"""The configuration of a run: one frozen dataclass per stage, composed in RunConfig. Importing it imports no JAX."""

import dataclasses
import typing
from dataclasses import dataclass, field
from typing import Any, Literal

from azjax.fields import ABOVE_0, FROM_0, FROM_1, SHARE, Range, check_fields

ValueHead = Literal["expected_outcome", "win_draw_loss", "binary"]
SymmetryUse = Literal["none", "training", "training_and_search"]
Algorithm = Literal["puct", "gumbel"]
Implementation = Literal["azjax", "mctx"]
Optimizer = Literal["sgd", "adamw"]
Schedule = Literal["stepwise", "cosine", "constant"]
Fused = Literal["auto", "true", "false"]
Actor = Literal["latest", "best"]


@dataclass(frozen=True, kw_only=True)
class NetworkConfig:
    """The policy and value network."""

    kind: str = "mlp"
    """mlp, equivariant_mlp (alike on mirror images), resnet, or module:CLASS of a Flax Linen module of one's own."""
    width: int = 128
    """mlp, equivariant_mlp: units of each hidden layer."""
    blocks: int = 2
    """Residual blocks (two layers each)."""
    channels: int = 64
    """resnet: filters of each convolution."""
    value_width: int = 32
    """Hidden units of the value head (the paper's resnet: 256)."""
    value_head: ValueHead = "expected_outcome"
    """expected_outcome: tanh and squared error; win_draw_loss: three classes and cross-entropy; binary: draw = 1/2."""
    policy_planes: bool = False
    """resnet: the policy head is one plane of the board per kind of move instead of a dense layer over all actions."""
    sync_statistics: bool = False
    """resnet: average batch-norm statistics over devices in every layer (equal to one device, at more traffic)."""

    def __post_init__(self):
        check_fields(self, "network.", width=FROM_1, blocks=Range(0, 1000), channels=FROM_1, value_width=FROM_1)
        if self.kind not in ("mlp", "equivariant_mlp", "resnet") and ":" not in self.kind:
            raise ValueError(f"network.kind: got {self.kind!r}, expected mlp, equivariant_mlp, resnet or module:CLASS")


@dataclass(frozen=True, kw_only=True)
class SearchConfig:
    """The tree search, in self-play and in evaluation."""

    algorithm: Algorithm = "puct"
    """puct: AlphaZero; gumbel: Gumbel AlphaZero."""
    implementation: Implementation = "azjax"
    """mctx: grow the tree with the original library's loop (slower; for comparison)."""
    simulations: int = 64
    """Of each search: in self-play, and in evaluation where `evaluation.simulations` is None."""
    max_depth: int | None = None
    """Longest walk down the tree in moves; None: no limit."""
    c_init: float = 1.25
    """Of the exploration schedule c(N), see c_puct."""
    c_base: float = 19652.0
    """Of the exploration schedule c(N), see c_puct."""
    c_puct: float | None = None
    """A constant in place of the schedule c(N) = log((1 + N + c_base) / c_base) + c_init."""
    dirichlet_fraction: float = 0.25
    """Share of noise in the prior at the root, in self-play alone."""
    dirichlet_alpha: float | None = None
    """None: 10 / the game's mean number of legal moves under random play."""
    considered_actions: int = 16
    """gumbel: actions sampled at the root."""
    c_visit: float = 50.0
    """gumbel: of sigma(Q) = (c_visit + most visits) c_scale Q, by which the values of moves change the policy."""
    c_scale: float = 0.1
    """gumbel: see c_visit; its paper has 1 on Go and chess, with rescale_values off."""
    rescale_values: bool = True
    """gumbel: Q in sigma(Q) from 0 for the node's worst move to 1 for its best; off: from [-1, 1] to [0, 1]."""
    slots: int | None = None
    """Legal moves that a node of the tree has room for, those with the highest priors; None: for all."""
    parallel: bool = False
    """gumbel: search the actions of a phase of sequential halving side by side: faster for one game or a few."""

    def __post_init__(self):
        check_fields(
            self,
            "search.",
            simulations=FROM_1,
            max_depth=FROM_1,
            c_init=FROM_0,
            c_base=ABOVE_0,
            c_puct=ABOVE_0,
            dirichlet_fraction=SHARE,
            dirichlet_alpha=ABOVE_0,
            considered_actions=FROM_1,
            c_visit=FROM_0,
            c_scale=ABOVE_0,
            slots=FROM_1,
        )
        if self.parallel and (self.algorithm, self.implementation) != ("gumbel", "azjax"):
            raise ValueError(
                f"search.parallel: got true with {self.algorithm} of {self.implementation}, expected gumbel of azjax"
            )


@dataclass(frozen=True, kw_only=True)
class SelfPlayConfig:
    """How games are made."""

    lanes: int = 256
    """Games played side by side, over all devices."""
    plies: int = 8
    """Moves made in every lane in one step."""
    temperature: float = 1.0
    """Of the moves drawn, see temperature_plies."""
    temperature_plies: int = 30
    """Moves up to this ply are drawn by visit count ^ (1 / temperature); later ones are the most visited."""
    opening_plies: int = 0
    """A game begins with a random number of random moves, up to this many: openings the agent would not choose."""
    resign_value: float = -1.0
    """A player gives up where the search's value and its best move's are below this; -1: nobody ever does."""
    no_resign_share: float = 0.1
    """Share of games that are played on all the same: they tell how often giving up was wrong (`false_resign`)."""
    actor: Actor = "latest"
    """latest: the newest parameters play (AlphaZero); best: the last that passed the gate (AlphaGo Zero)."""

    def __post_init__(self):
        check_fields(
            self,
            "selfplay.",
            lanes=FROM_1,
            plies=FROM_1,
            temperature=FROM_0,
            temperature_plies=FROM_0,
            opening_plies=FROM_0,
            resign_value=Range(-1, 0, below=True),
            no_resign_share=SHARE,
        )


@dataclass(frozen=True, kw_only=True)
class ReplayConfig:
    """What is kept of the games."""

    plies: int = 256
    """L: the last L positions of every lane are kept; more than the longest game."""

    def __post_init__(self):
        check_fields(self, "replay.", plies=Range(2))


@dataclass(frozen=True, kw_only=True)
class LearnerConfig:
    """How parameters are improved."""

    batch: int = 1024
    """M: positions of one update, over all devices."""
    updates: int = 4
    """U: updates of one step."""
    optimizer: Optimizer = "adamw"
    """sgd: with momentum; adamw."""
    learning_rate: float = 2e-3
    """The highest of the schedule."""
    schedule: Schedule = "cosine"
    """cosine: to `final_fraction` over the whole run; stepwise: times `decay` at each boundary; counts updates."""
    warmup: int = 0
    """Updates over which the rate rises from 0."""
    boundaries: tuple[int, ...] = ()
    """stepwise: updates at which the rate changes."""
    decay: float = 0.1
    """stepwise: factor at each boundary."""
    final_fraction: float = 0.01
    """cosine: share of the rate that is left at the end."""
    momentum: float = 0.9
    """sgd: share of the last change that is kept."""
    weight_decay: float = 1e-4
    """c of c |theta|^2: in the loss (sgd), decoupled (adamw)."""
    value_weight: float = 1.0
    """Of the value's loss, beside the policy's."""
    outcome_weight: float = 1.0
    """The value target is this share of the game's outcome z plus the rest of the search's root value."""
    symmetry: SymmetryUse = "training"
    """Where positions are looked at through a symmetry of the game, drawn at random."""
    clip: float = 0.0
    """Largest norm of a gradient, 0 for no limit."""
    fused: Fused = "auto"
    """Updates inside the compiled step (true), or calls of one compiled update (false); auto: as suits the device."""

    def __post_init__(self):
        check_fields(
            self,
            "learner.",
            batch=FROM_1,
            updates=FROM_0,
            learning_rate=ABOVE_0,
            warmup=FROM_0,
            decay=ABOVE_0,
            final_fraction=SHARE,
            momentum=SHARE,
            weight_decay=FROM_0,
            value_weight=FROM_0,
            outcome_weight=SHARE,
            clip=FROM_0,
        )
        if list(self.boundaries) != sorted(set(self.boundaries)) or any(b < 1 for b in self.boundaries):
            raise ValueError(f"learner.boundaries: got {self.boundaries}, expected rising whole numbers above 0")


@dataclass(frozen=True, kw_only=True)
class GateConfig:
    """The evaluation opponent: a former self that is replaced when beaten."""

    every: int = 0
    """Steps between gate matches, 0 for none."""
    games: int = 200
    """Games of a gate match."""
    score: float = 0.55
    """Score needed (wins + half of the draws, by games)."""
    streak: int = 1
    """Matches running in which it is needed."""

    def __post_init__(self):
        check_fields(self, "gate.", every=FROM_0, games=Range(2), score=SHARE, streak=FROM_1)


@dataclass(frozen=True, kw_only=True)
class EvaluationConfig:
    """How strength is measured, during the run and at its end."""

    every: int = 0
    """Steps between evaluations; 0: at the end alone."""
    games: int = 40
    """Games of an evaluation during the run, against each anchor."""
    final_games: int = 200
    """Games of each pairing of the rating at the end."""
    simulations: int | None = None
    """Of the agent; None: search.simulations."""
    anchors: tuple[str, ...] = ("random", "uct:400")
    """Players of known strength; the first has rating 0."""
    checkpoints: int = 3
    """Checkpoints rated at the end, the newest among them."""
    opening_plies: int = 2
    """Random plies before a game; each opening is played twice, with seats exchanged."""

    def __post_init__(self):
        check_fields(
            self,
            "evaluation.",
            every=FROM_0,
            games=Range(2),
            final_games=Range(2),
            simulations=FROM_1,
            checkpoints=FROM_1,
            opening_plies=FROM_0,
        )
        for name in ("games", "final_games"):
            if (value := getattr(self, name)) % 2:
                raise ValueError(f"evaluation.{name}: got {value}, expected an even number (both seats of an opening)")
        if not self.anchors:
            raise ValueError("evaluation.anchors: got none, expected at least one player, such as random")
        for word in self.anchors:
            if self.anchors.count(word) > 1:
                raise ValueError(f"evaluation.anchors: got {word} twice, expected different players")


@dataclass(frozen=True, kw_only=True)
class CheckpointConfig:
    """When the whole state is kept."""

    every: int = 20
    """Steps between checkpoints; the last step is always one."""
    keep: int = 2
    """Newest checkpoints kept."""
    keep_every: int = 0
    """Also keep those whose step is a multiple of this; 0: none."""

    def __post_init__(self):
        check_fields(self, "checkpoint.", every=FROM_1, keep=FROM_1, keep_every=FROM_0)


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """Everything that decides what a run does."""

    game: str
    """A word of envs.make: a name with options ("crosshair,size=5"), or file.py:GAME or module:GAME."""
    preset: str = "quick"
    """Which preset this configuration started from."""
    seed: int = 0
    """Of the first parameters and of every random choice: the same seed and devices give the same run."""
    steps: int = 100
    """Length of the run; a step is `selfplay.plies` moves in every lane, then `learner.updates` updates."""
    devices: int = 0
    """Devices the step runs on; 0: all accelerators, or one virtual CPU device for each core, as far as lanes and batch
    divide by them."""
    network: NetworkConfig = field(default_factory=NetworkConfig)
    search: SearchConfig = field(default_factory=SearchConfig)
    selfplay: SelfPlayConfig = field(default_factory=SelfPlayConfig)
    replay: ReplayConfig = field(default_factory=ReplayConfig)
    learner: LearnerConfig = field(default_factory=LearnerConfig)
    gate: GateConfig = field(default_factory=GateConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)

    def __post_init__(self):
        check_fields(self, "", seed=Range(0, 2**32 - 1), steps=FROM_1, devices=FROM_0)
        if self.selfplay.actor == "best" and not self.gate.every:
            raise ValueError("selfplay.actor: got best without a gate, expected gate.every above 0 (or actor latest)")

    @property
    def rated_simulations(self) -> int:
        """Of each search of the agent, in the games that rate it."""
        return self.evaluation.simulations or self.search.simulations


def to_json(config: RunConfig) -> dict[str, Any]:
    """Returns the configuration as JSON-able dicts and lists."""
    return dataclasses.asdict(config, dict_factory=lambda items: {k: _listed(v) for k, v in items})


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def from_json(fields: dict[str, Any]) -> RunConfig:
    """Rebuilds a configuration from `to_json`'s dicts.

    Raises:
      ValueError: a field is unknown, missing or has a wrong value.
    """
    return _build(RunConfig, fields, "")


def _build(cls: Any, fields: Any, prefix: str) -> Any:
    if not isinstance(fields, dict):
        raise ValueError(f"{prefix.rstrip('.') or 'configuration'}: got {fields!r}, expected an object of fields")
    known = {f.name: f for f in dataclasses.fields(cls)}
    for name in fields:
        if name not in known:
            raise ValueError(f"got unknown field {prefix}{name}, expected one of {', '.join(sorted(known))}")
    needed = [f.name for f in known.values() if f.default is f.default_factory is dataclasses.MISSING]
    if missing := [name for name in needed if name not in fields]:
        raise ValueError(f"got no field {prefix}{missing[0]}, expected it")
    values = {}
    for name, value in fields.items():
        kind = known[name].type
        if dataclasses.is_dataclass(kind):
            value = _build(kind, value, f"{prefix}{name}.")
        is_listed = typing.get_origin(kind) is tuple and isinstance(value, list)
        values[name] = tuple(value) if is_listed else value
    return cls(**values)


def differences(old: RunConfig, new: RunConfig) -> dict[str, tuple[Any, Any]]:
    """Returns the fields that differ, by dotted name: (old value, new value)."""

    def flat(fields: dict[str, Any], prefix: str = "") -> dict[str, Any]:
        leaves: dict[str, Any] = {}
        for name, value in fields.items():
            leaves |= flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
        return leaves

    before, after = flat(to_json(old)), flat(to_json(new))
    return {name: (before[name], after[name]) for name in before if before[name] != after[name]}
