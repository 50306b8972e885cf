"""Options of the commands that measure and examine strength: match, rate, analyze."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from azjax.cli.fields import (
    MOST_GAMES,
    MOST_LANES,
    MOST_PLIES,
    MOST_SIMULATIONS,
    Agent,
    Directory,
    Game,
    Json,
    Optional,
    Player,
    check_between,
    check_even,
    check_file,
    check_folder,
    check_opening,
    check_seed,
)


@dataclass(frozen=True, kw_only=True)
class Match:
    """Play a match between two players: random, uct:400, run:runs/NAME@STEP,simulations=400."""

    game: Game
    """The game's name."""
    a: Player
    """The player whose result is told."""
    b: Player
    """Its opponent."""
    games: int = 200
    """An even number: each opening is played twice, with seats exchanged."""
    seed: int = 0
    """Of openings and random choices: the same command gives the same games."""
    opening_plies: Optional = None
    """Random plies before the players take over; 2 when left out."""
    openings: Annotated[Path | None, arg(metavar="FILE")] = None
    """Openings to play in turn in place of random ones: a line each, MOVE MOVE ... or NAME: MOVE MOVE ..."""
    lanes: Optional = None
    """Games side by side, at most; 512 when left out, and 64 with --sprt, which looks after so many."""
    sprt: Annotated[str | None, arg(metavar="ELO0,ELO1")] = None
    """Stop as soon as it is decided whether A is ELO0 or ELO1 stronger (errors of 5 %), at the latest after GAMES."""
    out: Directory = None
    """Write match.json and the games, games.jsonl and in the formats that the game has (.sgf, .pgn, .kif, .usi), into
    this directory."""
    json: Json = False
    """Print one JSON object."""

    def __post_init__(self):
        check_even(self.games)
        check_seed(self.seed)
        check_opening(self.opening_plies, self.openings)
        check_between("lanes", self.lanes, 1, MOST_LANES)
        _ = self.elos  # which checks it
        check_folder("out", self.out)

    @property
    def elos(self) -> tuple[float, float] | None:
        """The two differences of --sprt, None without it.

        Raises:
          ValueError: they are not two numbers.
        """
        if self.sprt is None:
            return None
        try:
            elo0, elo1 = map(float, self.sprt.split(","))
        except ValueError:
            raise ValueError(f"--sprt: got {self.sprt!r}, expected two Elo differences such as 0,10") from None
        if not -2000 <= elo0 < elo1 <= 2000:
            raise ValueError(f"--sprt: got {self.sprt}, expected two Elo differences, the lower first")
        return elo0, elo1


@dataclass(frozen=True, kw_only=True)
class Rate:
    """Rate players by a round robin, a run's checkpoints against random and uct:400, or stored games."""

    game: Positional[Annotated[str | None, arg(metavar="GAME")]] = None
    """The game's name; may be left out before --run and --games FILE, which say it, but for a game of one's own, whose
    file is run only where the command names it."""
    players: Positional[Annotated[tuple[str, ...], arg(metavar="PLAYER ...")]] = ()
    """At least two players; or none, with --run."""
    run: Directory = None
    """Rate this run's checkpoints, against random and uct:400 (and PLAYERS)."""
    games: Annotated[tuple[str, ...], arg(metavar="N|FILE ...")] = ("100",)
    """Games of each pairing, an even number; or files of recorded games to rate instead of playing any."""
    seed: int = 0
    """Of openings and random choices."""
    opening_plies: Optional = None
    """Random plies before the players take over; 2 when left out."""
    openings: Annotated[Path | None, arg(metavar="FILE")] = None
    """Openings to play in turn in place of random ones: a line each, MOVE MOVE ... or NAME: MOVE MOVE ..."""
    lanes: Optional = None
    """Games side by side, at most; 512 when left out."""
    anchors: Annotated[tuple[str, ...], arg(metavar="PLAYER=ELO ...")] = ()
    """Players whose Elo is held; random=0 when left out, and without random the players' mean is 0."""
    prior_draws: float = 2.0
    """Virtual draws that each player brings, so that one who won every game has a finite rating; 0: none."""
    simulations: Annotated[tuple[int, ...], arg(metavar="N ...")] = ()
    """Rate every searching player at each of these numbers; with --out also scaling.png and scaling.json: Elo against
    simulations and against the time of a move."""
    out: Directory = None
    """Write ratings.json and elo.png into this directory; of a run also training.png and training.json."""
    json: Json = False
    """Print one JSON object."""

    def __post_init__(self):
        check_seed(self.seed)
        check_opening(self.opening_plies, self.openings)
        check_between("lanes", self.lanes, 1, MOST_LANES)
        _ = self.anchor_elos  # which checks them
        check_folder("out", self.out)
        if not 0 <= self.prior_draws < 1e6:
            raise ValueError(f"--prior-draws: got {self.prior_draws}, expected a number of at least 0")
        if self.files:
            if self.run is not None or self.players or self.simulations:
                raise ValueError(
                    "--games FILE: got it with players, --run or --simulations, expected it alone: files say who played"
                )
            return
        check_even(self.games_a_pair)
        for number in self.simulations:
            check_between("simulations", number, 1, MOST_SIMULATIONS)
        if len(set(self.simulations)) < len(self.simulations):
            raise ValueError(f"--simulations: got {self.simulations}, expected different whole numbers")
        if self.simulations and self.run is not None:
            raise ValueError(f"--simulations: got it with --run {self.run}, expected players, such as run:{self.run}")
        if self.run is None and self.game is None:
            raise ValueError("got no GAME, expected GAME PLAYER PLAYER ..., or --run DIR, or --games FILE")
        if self.run is None and len(self.players) < (1 if len(self.simulations) > 1 else 2):
            raise ValueError(f"players: got {len(self.players)}, expected at least 2, or --run DIR, or --games FILE")

    @property
    def anchor_elos(self) -> dict[str, float]:
        """The players and numbers of --anchors.

        Raises:
          ValueError: an entry has no number.
        """
        anchors = {}
        for text in self.anchors:
            name, _, elo = text.rpartition("=")
            try:
                anchors[name] = float(elo)
            except ValueError:
                name = ""
            if not name or not abs(anchors[name]) < 1e5:
                raise ValueError(f"--anchors: got {text!r}, expected PLAYER=ELO, such as uct:400=1000")
        return anchors

    @property
    def games_a_pair(self) -> int:
        """The number that --games gives."""
        return int(self.games[0])

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that --games names; none if it is a number."""
        is_number = len(self.games) == 1 and _is_whole(self.games[0].removeprefix("-"))
        return () if is_number else tuple(map(Path, self.games))


@dataclass(frozen=True, kw_only=True)
class Analyze:
    """Show what a run's agent thinks of a position, of every ply of a game, of openings, and what it finds or knows."""

    game: Game
    """The game's name."""
    run: Directory = None
    """Whose agent looks."""
    agent: Agent = None
    """Who looks in the place of a run: a file that azjax export wrote, or the name of an agent of azjax's own."""
    player: Annotated[str | None, arg(metavar="PLAYER")] = None
    """--wins and --perfect: another player in the place of a run: uct:400, random."""
    moves: Annotated[tuple[str, ...], arg(metavar="MOVE ...")] = ()
    """The position after these moves, from the start or from --position."""
    position: Annotated[str | None, arg(metavar="TEXT")] = None
    """A position in the game's own notation, where it has one (FEN, SFEN)."""
    record: Annotated[Path | None, arg(metavar="FILE")] = None
    """Review a recorded game (.jsonl, .sgf, .pgn, .kif, .usi): value and mistakes, ply by ply."""
    number: int = 1
    """Which game of the file, from 1."""
    wins: Optional = None
    """Positions that are won by force, so many in one move and so many in two: which share does it find?"""
    perfect: Optional = None
    """So many positions whose exact value is known: in which share of them, by ply, does its move keep the value?"""
    generations: Optional = None
    """So many games of the last checkpoint: how much of them does each checkpoint of the run know?"""
    book: Annotated[str | None, arg(metavar="FILE|PLIES")] = None
    """Openings (a line each, MOVE MOVE ... or NAME: MOVE MOVE ...), or the most frequent ones of so many plies: how
    often does each checkpoint's self-play begin so, and what does the agent prefer?"""
    games: int = 400
    """--book: games of self-play of each checkpoint."""
    seed: int = 0
    """Of positions and games drawn."""
    simulations: int = 400
    """Of each search."""
    seconds: float | None = None
    """Stop a position's search after this time."""
    most: int = 10
    """Moves of a position, or mistakes of a game, to list at most."""
    out: Annotated[Path | None, arg(metavar="FILE.png|DIR")] = None
    """--record: draw the game's values. --book, --generations: write a picture and a JSON file into this directory."""
    json: Json = False
    """Print one JSON object."""

    def __post_init__(self):
        check_between("simulations", self.simulations, 1, MOST_SIMULATIONS)
        check_between("number", self.number, 1, MOST_GAMES)
        check_between("most", self.most, 1, MOST_GAMES)
        if self.seconds is not None and not 0 < self.seconds < 1e6:
            raise ValueError(f"--seconds: got {self.seconds}, expected a number above 0")
        for name in ("wins", "perfect", "generations", "games"):
            check_between(name, getattr(self, name), 1, MOST_GAMES)
        check_seed(self.seed)
        asked = [
            name for name in ("record", "wins", "perfect", "generations", "book") if getattr(self, name) is not None
        ]
        if len(asked) > 1:
            raise ValueError(f"--{asked[0]} and --{asked[1]}: got both, expected one of them")
        if asked and (self.moves or self.position is not None or self.seconds is not None):
            raise ValueError(f"--{asked[0]}: got it with --moves, --position or --seconds, expected it alone")
        if self.out is not None and asked not in (["record"], ["book"], ["generations"]):
            raise ValueError(
                f"--out: got {self.out} without --record, --book or --generations, of which there are pictures"
            )
        if self.player is not None and asked not in (["wins"], ["perfect"]):
            raise ValueError(
                f"--player: got {self.player} without --wins or --perfect, expected --run DIR or --agent FILE"
            )
        check_between("book", self.book_plies, 1, MOST_PLIES)
        (check_file if asked == ["record"] else check_folder)("out", self.out)
        if self.run is None and asked in (["book"], ["generations"]):
            raise ValueError(f"--{asked[0]}: got no --run, expected the one whose checkpoints are compared")
        looking = {"--run": self.run, "--agent": self.agent, "--player": self.player}
        given = [f"{name} {value}" for name, value in looking.items() if value is not None]
        if len(given) != 1:
            raise ValueError(f"got {' and '.join(given) or 'nobody to look'}, expected one of {', '.join(looking)}")

    @property
    def book_plies(self) -> int | None:
        """The number that --book gives, None if it names a file."""
        return int(self.book) if self.book is not None and _is_whole(self.book) else None


def _is_whole(word: str) -> bool:
    """Returns whether a word is a number and not a file's name."""
    return re.fullmatch("[0-9]{1,20}", word) is not None
