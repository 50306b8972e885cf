"""What each command takes: one frozen dataclass a command, whose fields are its words and options."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import FlagCreatePairsOff, Positional, arg

from azjax.accelerators import parse_devices
from azjax.cli.fields import (
    MOST_LANES,
    MOST_SIMULATIONS,
    MOST_STEP,
    Agent,
    Directory,
    Game,
    Json,
    Optional,
    Preset,
    Seat,
    check_between,
    check_file,
    check_folder,
    check_seed,
)
from azjax.cli.strength import Analyze, Match, Rate
from azjax.launch import parse_hosts
from azjax.presets import PRESETS
from azjax.servers.server import MOST_WAVE
from envs import expected_names


@dataclass(frozen=True, kw_only=True)
class Games:
    """List the games; or tell one game's rules, options and sizes."""

    game: Positional[Annotated[str | None, arg(metavar="[GAME]")]] = None
    """A game's name, options after commas: crosshair,size=5; or FILE.py:NAME. All names when left out."""
    check: Annotated[bool, FlagCreatePairsOff] = False
    """Play random games to see that the game keeps the contract; says in one line what does not hold."""
    json: Json = False
    """Print one JSON object."""

    def __post_init__(self):
        if self.check and self.game is None:
            raise ValueError("--check: got no GAME, expected the one to check")


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Which run: every field of its configuration can be set, by --SECTION.FIELD VALUE."""

    game: Game
    """A game's name (azjax games), options after commas: crosshair,size=5; or FILE.py:NAME."""
    preset: Preset = None
    """What the configuration starts from; quick when left out."""
    out: Directory = None
    """The run's directory; runs/GAME-PRESET when left out."""
    resume: Directory = None
    """A run's directory to go on with; its configuration is kept."""
    fork: Annotated[str | None, arg(metavar="NAME")] = None
    """Start a new run of this name beside the given one, from its configuration and the fields given here."""

    def __post_init__(self):
        if self.preset is not None and self.preset not in PRESETS:
            raise ValueError(f"--preset: got {self.preset!r}, expected {expected_names(self.preset, PRESETS)}")
        if self.out is not None and self.resume is not None:
            raise ValueError(f"--out and --resume: got both ({self.out}, {self.resume}), expected one of them")
        check_folder("out", self.out)


@dataclass(frozen=True, kw_only=True)
class Train(RunOptions):
    """Train an agent; the same command again goes on where the run stopped."""

    hosts: Annotated[str | None, arg(metavar="WORD")] = None
    """One run over several processes: auto (the cluster says who the others are); ADDRESS:PORT,INDEX/COUNT, given to
    each (process 0 listens there); or local:N, which starts N processes on this machine's CPU."""

    def __post_init__(self):
        super().__post_init__()
        if self.hosts is not None:
            parse_hosts(self.hosts)


@dataclass(frozen=True, kw_only=True)
class Plan(RunOptions):
    """Show what a run needs, in memory and in work, without starting it."""

    on: Annotated[str | None, arg(metavar="DEVICES")] = None
    """Devices to plan for: v4-8, v5e-8 or another type of TPU, or such as 2x80GB; this machine's when left out."""
    json: Json = False
    """Print one JSON object."""

    def __post_init__(self):
        super().__post_init__()
        if self.on is not None:
            parse_devices(self.on)


@dataclass(frozen=True, kw_only=True)
class Play:
    """Play against an agent in the terminal."""

    game: Game
    """The game's name; its rules: azjax games GAME."""
    run: Directory = None
    """The agent's run; when left out runs/GAME-quick, and where there is none the agent that comes with azjax."""
    opponent: Annotated[str | None, arg(metavar="PLAYER")] = None
    """Any player in the place of a run: random, uct:400, run:runs/NAME@STEP, agent:crosshair."""
    seat: Seat = "first"
    """Yours."""
    simulations: Optional = None
    """Of the agent's search, and of hints; the run's own when left out."""
    record: Annotated[Path | None, arg(metavar="FILE")] = None
    """Add the game to this file, .jsonl, .sgf (Go, Hex, Othello), .pgn (chess), .kif or .usi (shogi), even when it
    is left early."""
    seed: int = 0
    """Of the opponent's random choices."""

    def __post_init__(self):
        check_seed(self.seed)
        check_between("simulations", self.simulations, 1, MOST_SIMULATIONS)
        if self.run is not None and self.opponent is not None:
            raise ValueError(f"--run and --opponent: got both ({self.run}, {self.opponent}), expected one of them")


@dataclass(frozen=True, kw_only=True)
class Serve:
    """Open a page to play, to look into the search and to watch runs, on 127.0.0.1."""

    run: Directory = None
    """A run to offer besides those in runs/."""
    game: Annotated[str | None, arg(metavar="GAME")] = None
    """A game of one's own to offer, with the runs trained for it: FILE.py:NAME, whose code is run."""
    player: Annotated[tuple[str, ...], arg(metavar="PLAYER ...")] = ()
    """More opponents to offer, by their words: gtp:gnugo,level=1, uci:stockfish,nodes=100, solver,
    alphabeta:runs/NAME. The page starts no program that is not named here."""
    port: int = 8765
    """Of the server; 0: any that is free."""

    def __post_init__(self):
        if not 0 <= self.port < 2**16:
            raise ValueError(f"--port: got {self.port}, expected a number from 0 to 65535")


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Measure throughput beside a reference, both in this process."""

    cases: Positional[
        Annotated[
            tuple[Literal["games", "search", "selfplay", "train"], ...], arg(metavar="{games,search,selfplay,train}...")
        ]
    ] = ()
    """What to measure. games: the rules, beside pgx's; search: the tree alone, beside mctx's; selfplay: beside the
    network alone and mctx; train: whole steps of the quick preset, or of the run's, beside the same with mctx."""
    games: Annotated[tuple[str, ...], arg(metavar="GAME ...")] = ()
    """games: those to measure; all when left out."""
    game: str = "crosshair"
    """selfplay, train: the game's name."""
    run: Directory = None
    """selfplay, train: play with this run's configuration and network; else the quick preset's and a fresh one."""
    seconds: float = 60.0
    """selfplay, train: time of the measurement."""
    lanes: int = 256
    """selfplay: games side by side."""
    simulations: int = 64
    """selfplay: of each search."""
    algorithm: Literal["puct", "gumbel"] | None = None
    """selfplay: of the search; the run's own when left out."""
    json: Json = False
    """Print one JSON object."""

    def __post_init__(self):
        if not self.cases:
            raise ValueError("got nothing to measure, expected games, search, selfplay or train")
        if not 0 < self.seconds < 1e6:
            raise ValueError(f"--seconds: got {self.seconds}, expected a number above 0")
        check_between("lanes", self.lanes, 1, MOST_LANES)
        check_between("simulations", self.simulations, 1, MOST_SIMULATIONS)


@dataclass(frozen=True, kw_only=True)
class Engine:
    """Speak an engine protocol on stdin and stdout, for programs that show games and let engines play."""

    protocol: Positional[Annotated[Literal["uci", "usi", "gtp"], arg(metavar="{uci,usi,gtp}")]]
    """uci: chess; usi: shogi; gtp: Go."""
    run: Directory = None
    """Whose agent plays; when left out with --agent, the one that comes with azjax for the protocol's game, if any."""
    step: Optional = None
    """Which checkpoint of the run; the newest when left out."""
    agent: Agent = None
    """Who plays in the place of a run: a file that azjax export wrote, or the name of an agent of azjax's own."""
    simulations: Optional = None
    """Of a search for which no limit is given; the run's own when left out."""
    resign: Annotated[float | None, arg(metavar="POINTS")] = None
    """Give up (GTP, USI) where fewer points of the game are expected, such as 0.05; never when left out."""
    wave: int = 1
    """Positions evaluated at a time: more are quicker, mostly on accelerators, and each simulation knows less."""
    megabytes: int = 64
    """Memory of the search tree, which sets how many simulations it holds."""
    seed: int = 0
    """Of random evaluations, which only agents trained with search symmetries make."""

    def __post_init__(self):
        check_seed(self.seed)
        check_between("step", self.step, 0, MOST_STEP)
        check_between("megabytes", self.megabytes, 1, 2**20)
        check_between("simulations", self.simulations, 1, MOST_SIMULATIONS)
        check_between("wave", self.wave, 1, MOST_WAVE)
        if self.resign is not None and not 0 < self.resign < 0.5:
            raise ValueError(f"--resign: got {self.resign}, expected points of a game below 0.5, such as 0.05")
        if self.resign is not None and self.protocol == "uci":
            raise ValueError(
                "--resign: got it for uci, which has no word for that; expected gtp or usi (the program that holds the "
                "match can end a game by the engines' scores)"
            )
        if self.run is not None and self.agent is not None:
            raise ValueError(f"--run and --agent: got both ({self.run}, {self.agent}), expected one of them")
        if self.step is not None and self.run is None:
            raise ValueError(f"--step: got {self.step} without --run, whose checkpoint it would be")


@dataclass(frozen=True, kw_only=True)
class Export:
    """Write a run's network to a file, for azjax elsewhere (safetensors) or for other programs (stablehlo, onnx)."""

    game: Positional[Annotated[str | None, arg(metavar="GAME")]] = None
    """The run's game; only a game of one's own must be named, because its code is run."""
    run: Annotated[Path, arg(metavar="DIR")]
    """Whose network."""
    step: Optional = None
    """Which checkpoint; the newest when left out."""
    format: Literal["safetensors", "stablehlo", "onnx"] = "safetensors"
    """safetensors: what `agent:FILE` plays; stablehlo: needs flatbuffers; onnx: needs jax2onnx and onnxruntime."""
    out: Annotated[Path | None, arg(metavar="FILE")] = None
    """Where to; DIR/network.safetensors (.stablehlo, .onnx) when left out."""
    json: Json = False
    """Print one JSON object."""

    def __post_init__(self):
        check_between("step", self.step, 0, MOST_STEP)
        suffix = f".{self.format}"
        if self.out is not None and self.out.suffix != suffix:
            raise ValueError(f"--out: got {self.out}, expected a name that ends in {suffix}")
        check_file("out", self.out)


Command = Games | Train | Plan | Match | Rate | Play | Serve | Analyze | Bench | Engine | Export

COMMANDS: dict[str, type[Command]] = {
    "train": Train,
    "play": Play,
    "serve": Serve,
    "match": Match,
    "rate": Rate,
    "analyze": Analyze,
    "games": Games,
    "plan": Plan,
    "bench": Bench,
    "engine": Engine,
    "export": Export,
}
