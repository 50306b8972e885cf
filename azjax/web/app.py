"""The server: which address does what. State is in memory; nothing a request says becomes a path."""

import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

import envs
from azjax.boards import animate, draw_game, event_names, legend_of
from azjax.charts import Curve, draw_curves
from azjax.line import Line, has_notation, read_line
from azjax.web.fields import Fields, Refused
from azjax.web.guard import Guard
from azjax.web.lens import SHOWS, Lens
from azjax.web.prose import as_html
from azjax.web.roster import MOST_LOOKED_AT, Roster
from azjax.web.runs import AXES, MOST_RUNS, RunsView
from azjax.web.table import Table, Tables
from envs.core import Game, option_text, options_of
from envs.game_files import formats_of, games_text

_STATIC = Path(__file__).parent / "static"
_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
MOST_TEXT = 40_000

Answer = dict[str, Any]


class Page:
    """The page's answers. One request computes at a time: all share the device."""

    def __init__(self, roster: Roster):
        self.roster, self.tables = roster, Tables()
        self.runs = RunsView(roster.runs, roster.why_closed)
        self.lock = threading.Lock()

    def start(self, fields: Fields) -> Answer:
        """Says what there is: games, runs, kinds of agents."""
        del fields
        return self.roster.described()

    def new(self, fields: Fields) -> Answer:
        """Begins a game, perhaps at a position or after moves."""
        word = fields.text("game", 200)
        game = self.roster.game(word)
        text, seed = fields.text("text", MOST_TEXT, ""), fields.number("seed", 0, 2**31 - 1, 0)
        try:
            line = read_line(game, text, seed) if text.strip() else Line(game, seed)
        except ValueError as error:
            raise Refused(str(error)) from None
        return self.tables.add(Table(word, line)).view() | self._about(word, game)

    def view(self, fields: Fields) -> Answer:
        """Shows a position of a game."""
        table = self._table(fields)
        return table.view(fields.optional_number("ply", 0, 2**20))

    def move(self, fields: Fields) -> Answer:
        """Makes a move."""
        table = self._table(fields)
        table.play(fields.number("action", 0, 2**31 - 1))
        return table.view()

    def word(self, fields: Fields) -> Answer:
        """Makes a move that is written as people write it."""
        table = self._table(fields)
        try:
            action = table.line.parse(fields.text("move", 100))
        except ValueError as error:
            raise Refused(str(error)) from None
        table.play(action)
        return table.view()

    def reply(self, fields: Fields) -> Answer:
        """Lets an agent move."""
        table = self._table(fields)
        if table.over:
            raise Refused("agent: the game is over")
        agent = self.roster.agent(fields.inside("agent"), table.game)
        seed = fields.number("seed", 0, 2**31 - 1, 0) + table.line.plies
        answer = self.roster.choose(agent, table.line, seed)
        if answer.action is None:
            table.gave_up = table.line.mover, answer.reason
        else:
            table.play(answer.action)
        return table.view()

    def back(self, fields: Fields) -> Answer:
        """Takes moves back."""
        table = self._table(fields)
        table.back(fields.number("plies", 1, 2**20, 1))
        return table.view()

    def search(self, fields: Fields) -> Answer:
        """Looks into the search of the position now: begins it, or adds simulations."""
        table = self._table(fields)
        if table.over:
            raise Refused("search: the game is over")
        agent = self.roster.agent(fields.inside("agent"), table.game)
        simulations = fields.number("simulations", 1, MOST_LOOKED_AT, 1)
        shows = fields.one_of("show", SHOWS, "all")
        if table.look is None or fields.number("again", 0, 1, 0) or not table.look.fits(agent, table.line):
            table.look = Lens(agent, self.roster.search(table.game, agent), table.line)
        table.look.grow(simulations)
        table.values[table.line.plies] = round(table.look.value(), 4)
        return table.look.view(shows) | {"values": sorted(table.values.items())}

    def curve(self, fields: Fields) -> Answer:
        """Draws the values of the positions that were searched."""
        table = self._table(fields)
        plies = sorted(table.values)
        drawn = Curve(name="value", x=plies, y=[table.values[ply] for ply in plies], dots=True)
        svg = draw_curves(
            [drawn],
            title="Value for the first player",
            x_label="ply",
            y_range=(-1, 1),
            marker=table.line.plies,
            height=170,
        )
        return {"svg": svg}

    def record(self, fields: Fields) -> Answer:
        """Returns the game in each format that it has, and as an animated picture."""
        table = self._table(fields)
        names = fields.texts("players", 2, 200)
        if len(names) != 2:
            raise Refused(f"players: got {len(names)} names, expected two")
        try:
            record = table.line.record((names[0], names[1]), None if table.gave_up is None else table.gave_up[0])
            files = [[suffix, games_text(table.game, [record], suffix)] for suffix in formats_of(table.game)]
        except ValueError as error:
            raise Refused(str(error)) from None
        drawings = draw_game(table.game, record)
        return {"files": files, "svg": animate(drawings, names=event_names(table.game, record))}

    def list_runs(self, fields: Fields) -> Answer:
        """Lists the runs."""
        del fields
        return {"runs": self.runs.listed()}

    def curves(self, fields: Fields) -> Answer:
        """Draws runs side by side."""
        return self.runs.curves(fields.texts("runs", MOST_RUNS, 200), fields.one_of("axis", AXES, "games"))

    def games(self, fields: Fields) -> Answer:
        """Lists the files of games that a run kept, or the games of one."""
        name, file = fields.text("run", 200), fields.text("file", 300, "")
        if not file:
            return {"files": self.runs.games(name)}
        records = self.runs.records(name, file)
        return {
            "games": [
                {"players": record.players, "plies": len(record.actions), "returns": record.returns}
                for record in records[:500]
            ]
        }

    def replay(self, fields: Fields) -> Answer:
        """Puts a recorded game on a table."""
        name, file = fields.text("run", 200), fields.text("file", 300)
        records = self.runs.records(name, file)
        number = fields.number("number", 0, max(len(records) - 1, 0))
        word = self.runs.config(name).game
        game = self.roster.game(word)
        if records[number].game != game.id:
            raise Refused(f"record: got one of {records[number].game}, expected one of {game.id}")
        view = self.tables.add(Table(word, self.runs.replay(game, records[number]))).view(0)
        return view | {"seated": records[number].players} | self._about(word, game)

    def _about(self, word: str, game: Game) -> Answer:
        """Returns what the page says of a game besides its positions."""
        options = {name: value for name, value in options_of(game).items() if name not in envs.fixed_options(word)}
        return {
            "notation": has_notation(game),
            "legend": legend_of(game),
            "rules": as_html(game.rules_text),
            "options": [f"{name}={option_text(value)}" for name, value in options.items()],
            "players": self.roster.guests.words(game),
        }

    def _table(self, fields: Fields) -> Table:
        return self.tables.get(fields.text("table", 40))


def make_app(roster: Roster) -> ASGIApp:
    """Returns the whole server as an ASGI application."""
    page = Page(roster)
    answers: dict[str, Callable[[Fields], Answer]] = {
        "start": page.start,
        "new": page.new,
        "view": page.view,
        "move": page.move,
        "word": page.word,
        "reply": page.reply,
        "back": page.back,
        "search": page.search,
        "curve": page.curve,
        "record": page.record,
        "runs": page.list_runs,
        "curves": page.curves,
        "games": page.games,
        "replay": page.replay,
    }
    routes = [Route(f"/api/{name}", _answering(page, answer), methods=["POST"]) for name, answer in answers.items()]
    files = {path.name: path for path in _STATIC.iterdir() if path.suffix in _TYPES}
    routes.append(Route("/", _file(files["index.html"])))
    routes += [Route(f"/{name}", _file(path)) for name, path in files.items()]
    return Guard(Starlette(routes=routes))


def _answering(page: Page, answer: Callable[[Fields], Answer]) -> Callable[[Request], Awaitable[Response]]:
    def compute(body: bytes) -> Answer:
        fields = Fields.read(body or b"{}")
        with page.lock:
            return answer(fields)

    async def endpoint(request: Request) -> Response:
        try:
            return JSONResponse(await run_in_threadpool(compute, await request.body()))
        except Refused as refused:
            return JSONResponse({"error": " ".join(str(refused).split())}, 400)

    return endpoint


def _file(path: Path) -> Callable[[Request], Awaitable[Response]]:
    content, media_type = path.read_bytes(), _TYPES[path.suffix]

    async def endpoint(request: Request) -> Response:
        del request
        return Response(content, media_type=media_type)

    return endpoint
