"""Who can play: the games, the runs found on disk, and the agents built from them."""

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax

import envs
from azjax.agents.shipped import shipped
from azjax.checkpoint import Checkpoints
from azjax.config import RunConfig
from azjax.line import Line
from azjax.outside import Answer
from azjax.players import UCT_EXPLORATION, LoadedRun, Player, make_player, run_of_player, run_player
from azjax.rundir import RunDirectory, load_run
from azjax.search import TreeSearch, gumbel_rule, num_slots, puct_rule, rollout_model, ucb1_rule
from azjax.selfplay import gumbel_qtransform, network_model
from azjax.web.fields import Fields, Refused
from azjax.web.guests import Guests, chooser
from envs.core import Game

KINDS = ("puct", "gumbel", "policy", "uct", "random")
"""Of agents; the first three need a run."""
GUEST = "player"
"""The kind of those whom the command line names by their words."""
MOST_SIMULATIONS = 10_000
MOST_LOOKED_AT = 1_000
"""Simulations of a search that is shown."""
SHIPPED = "agent:"
"""Before the names of the agents that come with azjax; they are offered beside the runs, by their player's word."""
_MOST_SEARCHES = 8


@dataclass(frozen=True)
class Agent:
    """An agent as a request names it."""

    kind: str
    run: str | None  # a name of the roster; the word of a player of the command line
    step: int | None  # of a run's checkpoint; an agent that comes with azjax has no other
    simulations: int

    def title(self) -> str:
        """Returns what people call it."""
        at = f"{self.run}@{self.step}" if self.run and self.step is not None else self.run or ""
        match self.kind:
            case "random":
                return "random"
            case "player":
                return at
            case "uct":
                return f"uct:{self.simulations}"
            case "policy":
                return f"{at}, policy alone"
            case _:
                return f"{at}, {self.kind} {self.simulations}"


class Shared:
    """A search that tables take turns with."""

    def __init__(self, search: TreeSearch):
        self.search = search
        self.holder: object = None  # whose position is in it


class Roster:
    """Games and agents."""

    def __init__(
        self,
        folder: Path,
        runs: tuple[Path, ...] = (),
        games: tuple[str, ...] = (),
        players: tuple[str, ...] = (),
    ):
        """Looks for nothing yet.

        Args:
          folder: whose subdirectories may be runs.
          runs: directories of more runs.
          games: more games than those of `envs.available()`, such as FILE.py:NAME. Only of these is code run: a run
            may be a stranger's.
          players: words of more players. Only these are ever read: a visitor's word may start any program.

        Raises:
          ValueError: a word names no player.
        """
        self._folder, self._runs, self._games = folder, runs, games
        self.guests = Guests(players)
        self._trusted = {_code(word) for word in games}
        self._searches: dict[tuple[str, str, str | None, int], Shared] = {}  # the one used last is the last

    def runs(self) -> dict[str, RunDirectory]:
        """Returns the runs by name, found anew each time: runs may begin while the page is open."""
        inside = sorted(path for path in self._folder.iterdir() if path.is_dir()) if self._folder.is_dir() else []
        found: dict[str, RunDirectory] = {}
        for path in [*self._runs, *inside]:
            run = RunDirectory(path)
            if run.exists() and run.name not in found:
                found[run.name] = run
        return found

    def run(self, name: str) -> RunDirectory:
        """Returns a run by its name; no part of the name is used as a path.

        Raises:
          Refused: there is none of this name.
        """
        run = self.runs().get(name)
        if run is None:
            raise Refused(f"run: got {name[:80]!r}, which is not one of those found")
        return run

    def why_closed(self, run: RunDirectory, config: RunConfig) -> str:
        """Returns why a run's agents are not loaded: it names code, and nobody else did; "" for all others."""
        if (code := _code(config.game)) and code not in self._trusted:
            return f"not opened: its game runs code; azjax serve --game {config.game} if you trust it"
        if ":" in config.network.kind and run.path not in self._runs:
            kind = config.network.kind
            return f"not opened: its network runs code, {kind}; azjax serve --run {run.path} if you trust it"
        return ""

    def closed(self) -> dict[str, str]:
        """Returns the runs that are not opened, and why."""
        why = {}
        for name, run in self.runs().items():
            try:
                why[name] = self.why_closed(run, run.read_config())
            except ValueError as error:
                why[name] = str(error)
        return {name: text for name, text in why.items() if text}

    def described(self) -> dict[str, Any]:
        """Returns the games, and the runs with their checkpoints, for the page."""
        runs = []
        for name, run in self.runs().items():
            try:
                config = run.read_config()
            except ValueError:
                continue  # a run of another version, or one being written
            if self.why_closed(run, config):
                continue
            steps = Checkpoints(run.checkpoints_path).saved_steps()
            runs.append({"name": name, "game": config.game, "steps": steps, "simulations": config.search.simulations})
        for name, header in shipped().items():
            config, steps = header.config, [header.step]
            word = f"{SHIPPED}{name}"
            runs.append({"name": word, "game": config.game, "steps": steps, "simulations": config.search.simulations})
        games = list(dict.fromkeys([*envs.available(), *self._games, *(run["game"] for run in runs)]))
        return {"games": games, "runs": runs, "kinds": list(KINDS)}

    def game(self, word: str) -> Game:
        """Returns the game of a name. Code of one's own is run only where the command line named it.

        Raises:
          Refused: there is no such game.
        """
        word = word.strip()
        if ":" in word and word not in self.described()["games"]:
            raise Refused(
                f"game: got {word[:80]!r}, expected one of azjax's games, one that a run here was trained for, "
                "or one of your own: azjax serve --game FILE.py:NAME"
            )
        try:
            return _game(word)
        except ValueError as error:
            raise Refused(str(error)) from None

    def agent(self, fields: Fields, game: Game) -> Agent:
        """Reads which agent a request means.

        Raises:
          Refused: it is none.
        """
        kind = fields.one_of("kind", (*KINDS, GUEST))
        if kind == GUEST:
            return Agent(GUEST, fields.text("word", 400), None, 0)
        simulations = fields.number("simulations", 1, MOST_SIMULATIONS, default=64)
        if kind in ("random", "uct"):
            return Agent(kind, None, None, simulations)
        name = fields.text("run", 200)
        header = shipped().get(name.removeprefix(SHIPPED)) if name.startswith(SHIPPED) else None
        if header is not None:
            if not envs.is_named(game, header.config.game):
                raise Refused(f"run: {name} plays {header.config.game}, expected one of {game.id}")
            return Agent(kind, name, None, simulations)
        run = self.run(name)
        try:
            config = run.read_config()
            if why := self.why_closed(run, config):
                raise Refused(f"run: {name} is {why}")
            fits = envs.is_named(game, config.game)
        except ValueError as error:
            raise Refused(str(error)) from None
        if not fits:
            raise Refused(f"run: {name} plays {config.game}, expected one of {game.id}")
        step = fields.optional_number("step", 0, 2**40)
        if step is None:
            steps = Checkpoints(run.checkpoints_path).saved_steps()
            if not steps:
                raise Refused(f"run: {name} has no checkpoint yet")
            step = steps[-1]
        return Agent(kind, name, step, simulations)

    def choose(self, agent: Agent, line: Line, seed: int) -> Answer:
        """Returns the agent's move, or that it gives up; the same seed gives the same one.

        Raises:
          Refused: the agent is not there, or fails.
        """
        if agent.kind == GUEST:
            return self.guests.answer(agent.run or "", line, seed)
        player = self._player(line.game, agent)
        states = jax.tree.map(lambda leaf: leaf[None], line.state)
        return Answer(int(chooser(player.choose)(player.params, jax.random.key(seed), states)[0]))

    def search(self, game: Game, agent: Agent) -> "Shared":
        """Returns the search of this kind, to look into; a policy alone is looked at as PUCT.

        One for all tables: its programs take seconds to compile. Who starts it has it until another does.

        Raises:
          Refused: the agent does not search.
        """
        if agent.kind in ("random", GUEST):
            raise Refused(f"search: {agent.title()} shows none; choose another agent to look with")
        simulations = min(agent.simulations, MOST_LOOKED_AT) if agent.kind == "gumbel" else MOST_LOOKED_AT
        kind = "puct" if agent.kind == "policy" else agent.kind
        loaded = None if kind == "uct" else self._loaded(game, agent)
        key = game.id, kind, agent.run, simulations
        shared = self._searches.pop(key, None) or Shared(_new_search(game, kind, loaded, simulations))
        self._searches[key] = shared
        while len(self._searches) > _MOST_SEARCHES:
            self._searches.pop(next(iter(self._searches)))
        if loaded is not None:
            shared.search.use(loaded.variables)
        return shared

    def _loaded(self, game: Game, agent: Agent) -> LoadedRun:
        try:
            if agent.step is None:
                return _load_shipped(game, agent.run or "")
            return _load(str(self.run(agent.run or "").path.absolute()), agent.step)
        except ValueError as error:
            raise Refused(str(error)) from None

    def _player(self, game: Game, agent: Agent) -> Player:
        if agent.run is None:
            word = "random" if agent.kind == "random" else f"uct:{agent.simulations}"
            return make_player(game, word, load_run)
        options = {"search": agent.kind}
        if agent.kind != "policy":
            options["simulations"] = str(agent.simulations)
        return run_player(game, self._loaded(game, agent), agent.title(), options)


def _code(word: str) -> tuple[str, str] | None:
    """Returns the file, by its whole path, or the module that a game's word runs code of, and the game's name there."""
    found = envs.reference(word)
    if found is None or not found[0].endswith(".py"):
        return found
    return str(Path(found[0]).expanduser().resolve()), found[1]


@functools.lru_cache(maxsize=64)
def _game(word: str) -> Game:
    return envs.make(word)


@functools.lru_cache(maxsize=16)
def _load(directory: str, step: int | None) -> LoadedRun:
    return load_run(directory, step)


@functools.lru_cache(maxsize=16)
def _load_shipped(game: Game, word: str) -> LoadedRun:
    return run_of_player(game, word, load_run)


def _new_search(game: Game, kind: str, loaded: LoadedRun | None, simulations: int) -> TreeSearch:
    if loaded is None:
        model, params, slots = rollout_model(game, masked=num_slots(game) is None), (), None
        rule = ucb1_rule(UCT_EXPLORATION)
    else:
        search = loaded.config.search
        model, params, slots = network_model(loaded.config, game), loaded.variables, search.slots
        rule = puct_rule(search.c_init, search.c_base, search.c_puct)
        if kind == "gumbel":
            rule = gumbel_rule(simulations, search.considered_actions, gumbel_qtransform(search))
    return TreeSearch(game, model, params, capacity=simulations, chunk=min(32, simulations), rule=rule, slots=slots)
