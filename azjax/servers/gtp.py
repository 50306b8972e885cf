"""A server of GTP, the Go Text Protocol, version 2 (Farneback 2002), with the analysis of Leela Zero and KataGo.

An agent has one board size. The rules are ours (envs/go.py): nothing is dead by agreement, so final_score counts the
board as it stands. GTP lets one colour play twice in a row: then the other has passed in between.
"""

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from azjax import __version__
from azjax.servers.go_words import (
    COLOURS,
    Refused,
    alternating,
    colour,
    fixed_handicap,
    kata_line,
    leela_line,
    most_handicap,
    number,
    vertex,
)
from azjax.servers.server import LoadFn, Say, Server
from azjax.servers.turn import Limits, Turn, seconds_for_move

if TYPE_CHECKING:
    from azjax.thinker import Thinker
    from envs.go import Go, GoState

_MOST_LINES = 10  # of an analysis
_MOST_SECONDS = 1e6


class GtpServer(Server):
    """An agent that plays Go."""

    def __init__(
        self,
        load: LoadFn,
        say: Say,
        clock: Callable[[], float] = time.perf_counter,
        simulations: int | None = None,
        resign: float | None = None,
    ):
        super().__init__(load, say, clock, simulations, resign)
        self._number = ""  # of the command that is being answered
        self._quit_number: str | None = None  # of the `quit` that came while it thought
        self._komi: float | None = None  # None: the agent's own
        self._handicap: list[tuple[int, str]] = []
        self._plays: list[tuple[int, str]] = []  # colour and vertex, after the handicap
        self._time: tuple[float, float, int] | None = None  # main time, period, stones in the period
        self._left: list[tuple[float, int]] = [(0.0, 0), (0.0, 0)]  # each colour's seconds, and stones if in a period
        self._colour = 0  # who is thought for
        self._interval = 1.0  # seconds between the lines of an analysis
        self._commands: dict[str, Callable[[list[str]], str | None]] = {
            "protocol_version": lambda words: "2",
            "name": lambda words: "azjax",
            "version": lambda words: __version__,
            "known_command": lambda words: "true" if words and words[0] in self._commands else "false",
            "list_commands": lambda words: "\n".join(self._commands),
            "quit": self._do_quit,
            "boardsize": self._do_boardsize,
            "query_boardsize": lambda words: str(self._game.size),
            "clear_board": self._do_clear_board,
            "komi": self._do_komi,
            "get_komi": lambda words: f"{self._current_komi:g}",
            "play": self._do_play,
            "genmove": lambda words: self._think("genmove", words),
            "reg_genmove": lambda words: self._think("reg_genmove", words),
            "undo": self._do_undo,
            "time_settings": self._do_time_settings,
            "time_left": self._do_time_left,
            "fixed_handicap": self._do_fixed_handicap,
            "place_free_handicap": self._do_place_free_handicap,
            "set_free_handicap": self._do_set_free_handicap,
            "final_score": self._do_final_score,
            "final_status_list": self._do_final_status_list,
            "showboard": lambda words: "\n" + self._game.render(self._placed().state),
            "stop": lambda words: "",
            "lz-analyze": lambda words: self._analyze("lz", words),
            "lz-genmove_analyze": lambda words: self._think("lz", words),
            "kata-analyze": lambda words: self._analyze("kata", words),
            "kata-genmove_analyze": lambda words: self._think("kata", words),
        }

    def last_words(self, line: str) -> str | None:
        name, number, _ = _split(line)
        return f"={number}\n\n" if name == "quit" else None

    def _take(self, line: str) -> None:
        name, number, words = _split(line)
        if self._turn is not None:
            if self._turn.limits.infinite or (name == "stop" and not self._later):  # any line ends an analysis
                self._finish()
            elif name == "quit" and not self._later:
                self._quit_number = number
                self._quit()
                return
            else:
                self._postpone(line)
                return
        if not name:
            return
        self._number = number
        command = self._commands.get(name)
        try:
            if command is None:
                raise Refused("unknown command")
            answer = command(words)
        except (Refused, ValueError) as refused:  # a ValueError is about the moves played
            self._respond("?", str(refused))
        else:
            if answer is not None:
                self._respond("=", answer)

    def _respond(self, sign: str, text: str) -> None:
        self._say(f"{sign}{self._number} {text}".rstrip())
        self._say("")

    @property
    def _game(self) -> "Go":
        game = self._agent().game
        assert type(game).__name__ == "Go"
        return game  # ty: ignore[invalid-explicit-return]

    @property
    def _current_komi(self) -> float:
        return self._game.komi if self._komi is None else self._komi

    def _placed(self, to_move: int | None = None) -> "Thinker":
        """Returns the agent at the position, where it is this colour's move."""
        agent = self._agent()
        agent.place(None, alternating([*self._handicap, *self._plays], to_move))
        return agent

    def _placed_to_think(self, to_move: int) -> "Thinker":
        """Returns the agent at the position, its search begun there."""
        moves = [*self._handicap, *self._plays]
        agent = self._placed(to_move)
        # A pass put in for the other colour is not one that a second ends the game with.
        put_in = not agent.over and len(alternating(moves, to_move)) > len(alternating(moves))
        stones = [word for word in agent.legal_words() if word != "pass"] if put_in else []
        agent.think_about(stones or None)
        return agent

    def _do_quit(self, words: list[str]) -> str:
        self._quit()
        return ""

    def _do_boardsize(self, words: list[str]) -> str:
        if number(words, 0, int, 1, 1000) != self._game.size:
            raise Refused("unacceptable size")
        return self._do_clear_board([])

    def _do_clear_board(self, words: list[str]) -> str:
        self._handicap, self._plays = [], []
        self._agent().forget()
        if self._time is not None:
            self._left = [(self._time[0], 0)] * 2
        return ""

    def _do_komi(self, words: list[str]) -> str:
        self._komi = number(words, 0, float, -1e4, 1e4) + 0.0  # -0 is 0
        self._agent().use_komi(self._current_komi)
        return ""

    def _do_play(self, words: list[str]) -> str:
        if len(words) != 2:
            raise Refused("syntax error")
        self._plays.append((colour(words[0]), vertex(words[1], self._game.size)))
        try:
            self._placed()
        except ValueError:
            self._plays.pop()
            raise Refused("illegal move") from None
        return ""

    def _do_undo(self, words: list[str]) -> str:
        if not self._plays:
            raise Refused("cannot undo")
        self._plays.pop()
        return ""

    def _do_time_settings(self, words: list[str]) -> str:
        main, period = (number(words, index, float, 0, _MOST_SECONDS) for index in (0, 1))
        stones = number(words, 2, int, 0, 1000)
        # A period without stones is GTP's word for no limit; some programs say three times 0.
        unlimited = stones == 0 and (period > 0 or main == 0)
        self._time = None if unlimited else (main, period, stones)
        self._left = [(main, 0)] * 2
        return ""

    def _do_time_left(self, words: list[str]) -> str:
        player = colour(words[0] if words else "")
        self._left[player] = number(words, 1, float, 0, _MOST_SECONDS), number(words, 2, int, 0, 1000)
        return ""

    def _do_fixed_handicap(self, words: list[str]) -> str:
        return self._place_handicap(fixed_handicap(self._game.size, number(words, 0, int, 2, 9)))

    def _do_place_free_handicap(self, words: list[str]) -> str:
        # The engine may place fewer than it is asked to.
        stones, most = number(words, 0, int, 2, 1000), most_handicap(self._game.size)
        return self._place_handicap(fixed_handicap(self._game.size, min(stones, most)))

    def _do_set_free_handicap(self, words: list[str]) -> str:
        stones = [vertex(word, self._game.size) for word in words]
        if "pass" in stones or len(set(stones)) < len(stones) or not 2 <= len(stones) < self._game.size**2:
            raise Refused("bad vertex list")
        self._place_handicap(stones)
        return ""

    def _place_handicap(self, stones: Sequence[str]) -> str:
        if self._plays or self._handicap:
            raise Refused("board not empty")
        self._handicap = [(0, stone) for stone in stones]
        try:
            self._placed()
        except ValueError:
            self._handicap = []
            raise Refused("bad vertex list") from None
        return " ".join(stones)

    def _do_final_score(self, words: list[str]) -> str:
        lead = self._placed().area() - self._current_komi
        return "0" if lead == 0 else f"{'BW'[lead < 0]}+{abs(lead):g}"

    def _do_final_status_list(self, words: list[str]) -> str:
        status = words[0] if words else ""
        if status not in ("alive", "seki", "dead"):
            raise Refused("invalid status")
        state: GoState = self._placed().state
        game = self._game
        stones = game.board.on_board(state.chains).tolist()
        # Every stone that stands counts.
        return "\n".join(game.action_name(point) for point, stone in enumerate(stones) if stone and status == "alive")

    def _think(self, kind: str, words: list[str]) -> str | None:
        self._colour = colour(words[0] if words else "")
        agent = self._placed_to_think(self._colour)
        if kind in ("lz", "kata"):
            self._read_analysis(words[1:])
            self._say(f"={self._number}")
        if agent.over:
            self._said(kind, "pass")
            return None
        self._begin(self._limits(), kind)
        return None

    def _analyze(self, kind: str, words: list[str]) -> str | None:
        self._colour = len(alternating([*self._handicap, *self._plays])) % 2
        if words and words[0].lower() in COLOURS:
            self._colour = colour(words.pop(0))
        agent = self._placed_to_think(self._colour)
        self._read_analysis(words)
        if agent.over:
            return ""
        self._say(f"={self._number}")
        self._begin(Limits(infinite=True), f"{kind}-analyze")
        return None

    def _read_analysis(self, words: list[str]) -> None:
        """Reads the interval in hundredths of a second, "50" or "interval 50"; passes over what it does not know."""
        self._interval = 1.0
        for before, word in zip(["interval", *words], words, strict=False):
            if before.lower() == "interval" and word.isdigit() and len(word) < 7:
                self._interval = int(word) / 100

    def _limits(self) -> Limits:
        if self._time is None:
            return self._default_limits()
        (left, stones), (_, period, stones_of_period) = self._left[self._colour], self._time
        if stones:
            return Limits(seconds=seconds_for_move(left, moves_to_go=stones))
        per_move = period / stones_of_period if stones_of_period else 0.0
        return Limits(seconds=seconds_for_move(left, per_move=per_move))

    def _report(self, turn: Turn) -> None:
        if turn.kind.startswith(("lz", "kata")) and turn.since_said() >= self._interval:
            self._say_lines(turn)

    def _say_lines(self, turn: Turn) -> None:
        thought = turn.thinker.thought(_MOST_LINES)
        turn.spoke()
        describe = leela_line if turn.kind.startswith("lz") else kata_line
        self._say(" ".join(describe(order, line) for order, line in enumerate(thought.lines)))

    def _answer(self, turn: Turn) -> None:
        if turn.kind.startswith(("lz", "kata")):
            self._say_lines(turn)
        if turn.kind.endswith("analyze"):
            self._say("")
            return
        if self._time is not None:
            left, stones = self._left[self._colour]
            self._left[self._colour] = max(left - turn.seconds, 0.0), max(stones - 1, 0)
        best = turn.thinker.thought().lines[0]
        self._said(turn.kind, "resign" if self._gives_up(turn, best.q) else best.moves[0])

    def _said(self, kind: str, move: str) -> None:
        """Answers with a move, and makes it unless it is only asked for."""
        if kind != "reg_genmove" and move != "resign":
            self._plays.append((self._colour, move))
        if kind in ("lz", "kata"):
            self._say(f"play {move}")
            self._say("")
        else:
            self._respond("=", move)
        if self._quit_number is not None:
            self._number, self._quit_number = self._quit_number, None
            self._respond("=", "")


def _split(line: str) -> tuple[str, str, list[str]]:
    """Returns a command's name ("" for a line without one), its number ("" without one) and its words."""
    words = line.partition("#")[0].split()
    number = words.pop(0) if words and words[0].isdecimal() and words[0].isascii() and len(words[0]) < 10 else ""
    return (words[0], number, words[1:]) if words else ("", number, [])
