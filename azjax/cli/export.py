"""azjax export."""

import dataclasses
import json

import envs
from azjax.cli.options import Export


def export_run(options: Export) -> int:
    """Writes a run's network to a file and says how it compares."""
    from azjax.export import SUFFIXES, describe, export, missing_packages
    from azjax.players import check_run_game
    from azjax.rundir import RunDirectory, load_run
    from azjax.train import use_devices

    if problem := missing_packages(options.format):
        raise ValueError(problem)
    use_devices(1)
    run = RunDirectory(options.run)
    word = run.read_config().game
    if options.game is None and ":" in word and not word.startswith("pgx:"):
        raise ValueError(f"--run {run.path}: got {word}, which runs code: say azjax export {word} ... if you trust it")
    game = envs.make(options.game or word)
    check_run_game(run.read_config(), game, f"--run {run.path}")
    agent = load_run(str(run.path), options.step)
    path = options.out or run.path / f"network{SUFFIXES[options.format]}"
    made = export(game, agent, path, options.format, describe(run, agent.config, agent.step))
    if options.json:
        print(json.dumps(dataclasses.asdict(made) | {"path": str(made.path), "game": game.id}))
        return 0
    print(f"wrote {made.path}: {made.bytes:,} bytes, step {made.step}, sha256 {made.sha256}")
    print(
        f"read back and compared on {made.positions} positions: largest difference of a policy logit "
        f"{made.policy_difference:.2g}, of a value {made.value_difference:.2g}"
    )
    if options.format == "safetensors":
        print(f"play against it: azjax play {agent.config.game} --opponent agent:{made.path}")
    return 0
