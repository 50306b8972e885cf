"""azjax games: the list; a game's rules, options and sizes; and whether a game keeps the contract."""

import dataclasses
import inspect
import json
from typing import Any

import envs
from azjax.cli.options import Games


def list_games(options: Games) -> int:
    """Does what the options ask for.

    Raises:
      ValueError: the game is to be checked and breaks the contract; one line says where.
    """
    if options.game is None:
        _print_names(options.json)
        return 0
    from envs.core import Game, option_text, options_of, state_bytes

    game: Game = envs.make(options.game)
    facts: dict[str, Any] = {
        "game": game.id,
        "actions": game.num_actions,
        "max_legal_actions": game.max_legal_actions,
        "max_plies": game.max_plies,
        "observation_shape": list(game.observation_shape),
        "symmetries": len(game.symmetries),
        "has_chance": game.has_chance,
        "state_bytes": state_bytes(game),
        "options": options_of(game),
    }
    if options.check:
        facts["check"] = checked(game)
    if options.json:
        print(json.dumps(facts | {"rules": game.rules_text, "legend": game.legend}))
        return 0
    legend = f"In azjax play: {game.legend}" if game.legend else ""
    # Without rules of its own, the class's text is among them.
    for paragraph in filter(None, (game.rules_text, legend, game.class_text if game.rules else "")):
        print(f"{paragraph}\n")
    _print_facts(
        facts | {"options": ", ".join(f"{name}={option_text(value)}" for name, value in facts["options"].items())}
    )
    return 0


def checked(game: Any) -> dict[str, Any]:
    """Returns what `envs.check.check_game` saw of a game that keeps the contract.

    Raises:
      ValueError: one line: the rule that it breaks and where, or how its code fails.
    """
    from envs.check import check_game
    from envs.own import fault

    try:
        return dataclasses.asdict(check_game(game))
    except Exception as error:  # its code may raise anything
        if isinstance(error, AssertionError) and str(error).startswith(f"{game.id}: "):
            raise ValueError(str(error)) from error
        where = inspect.getsourcefile(type(game)) or ""
        raise ValueError(f"{game.id}: its code fails: {fault(error, where)}") from error


def _print_names(as_json: bool) -> None:
    names = envs.available()
    if as_json:
        print(json.dumps({"games": names}))
        return
    print("\n".join(names))
    print()
    for word, meaning in envs.FAMILIES.items():
        print(f"{word:<14}{meaning}")
    print("\nazjax games GAME tells a game's rules, options and sizes.")


def _print_facts(facts: dict[str, Any]) -> None:
    checked = facts.pop("check", None)
    width = max(map(len, facts))
    for name, value in facts.items():
        print(f"{name:<{width}}  {value}")
    if checked is not None:
        print(
            f"{'check':<{width}}  keeps the contract in {checked['games']} random games of "
            f"{checked['mean_plies']:.1f} plies on average, {checked['longest']} at most; "
            f"{checked['mean_legal_actions']:.1f} legal actions; the first player scores "
            f"{checked['first_player_share']:.0%}, {checked['draws']} drawn, {checked['truncated']} cut off"
        )
