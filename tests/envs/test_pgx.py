"""Both ways between azjax's games and pgx; pgx's own games as an oracle for two of ours."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from envs.check import check_game
from envs.pgx import as_pgx_env, from_pgx

# pgx's games broadcast arrays of different ranks; ours and the adapters must not need this.
pgx_games = pytest.mark.usefixtures("allow_rank_promotion")


@jax.jit
def _act_randomly(rng_key, legal_action_mask):
    return jax.random.categorical(rng_key, jnp.log(legal_action_mask.astype(jnp.float32)), axis=-1)


@pgx_games
@pytest.mark.parametrize(
    "name",
    [
        "tic_tac_toe",
        "crosshair,size=3",
        pytest.param("black_hole,rows=2", marks=pytest.mark.slow),
        pytest.param("crosshair", marks=pytest.mark.slow),
        pytest.param("black_hole", marks=pytest.mark.slow),
        pytest.param("connect_four,max_plies=12", marks=pytest.mark.slow),
    ],
)
def test_games_pass_pgxs_api_test(name, monkeypatch):
    from pgx._src import api_test as module

    # pgx's random player cannot take a single state on this JAX (it asks for axis 1 of one axis), whatever the game.
    monkeypatch.setattr(module, "act_randomly", _act_randomly)
    module.api_test(as_pgx_env(envs.make(name)), num=2)


def test_game_as_a_pgx_environment():
    game = envs.make("tic_tac_toe")
    env = as_pgx_env(game)
    assert (env.id, env.num_players, env.num_actions, env.observation_shape) == ("tic_tac_toe", 2, 9, (3, 3, 2))
    init, step = jax.jit(jax.vmap(env.init)), jax.jit(jax.vmap(env.step))
    state = init(jax.random.split(jax.random.key(0), 64))
    starter = np.asarray(state.current_player)
    assert 16 < starter.sum() < 48  # who starts is drawn
    for action in (0, 3, 1, 4):
        state = step(state, jnp.full(64, action))
        assert not state.terminated.any()
        assert not state.rewards.any()
    assert state.current_player.tolist() == starter.tolist()
    state = step(state, jnp.full(64, 2))  # the starter's row
    assert state.terminated.all()
    assert not state.truncated.any()
    assert state.legal_action_mask.all()  # pgx's way of saying that the game is over
    lanes = np.arange(64)
    assert (np.asarray(state.rewards)[lanes, starter] == 1).all()
    assert (np.asarray(state.rewards)[lanes, 1 - starter] == -1).all()
    assert not step(state, jnp.full(64, 5)).rewards.any()


def test_truncated_game_ends_for_pgx_without_a_result():
    env = as_pgx_env(envs.make("tic_tac_toe", max_plies=2))
    state, step = env.init(jax.random.key(0)), jax.jit(env.step)
    for action in (0, 1):
        state = step(state, action)
    assert bool(state.terminated) and bool(state.truncated)
    assert state.rewards.tolist() == [0, 0]


def test_picture_shows_the_board(tmp_path):
    env = as_pgx_env(envs.make("connect_four"))
    state = jax.jit(lambda: env.step(env.init(jax.random.key(0)), 3))()
    state.save_svg(tmp_path / "board.svg")
    picture = (tmp_path / "board.svg").read_text()
    assert picture.startswith("<svg")
    assert ">. . . X . . .<" in picture
    two = jax.jit(jax.vmap(env.init))(jax.random.split(jax.random.key(0), 2))
    assert two.to_svg(color_theme="dark").count("1 2 3 4 5 6 7") == 2


def test_chance_is_drawn_inside_step(dice_game):
    env = as_pgx_env(dice_game)
    keys = jax.random.split(jax.random.key(1), 400)
    state, step = jax.jit(jax.vmap(env.init))(keys), jax.jit(jax.vmap(env.step))
    for move in range(4):
        assert not state.terminated.any()
        state = step(state, jnp.zeros(400, jnp.int32), jax.vmap(jax.random.fold_in, (0, None))(keys, move))
    assert state.terminated.all()
    rolled = np.asarray(state._position.scores)  # nobody moved up: two rolls each, 1 with probability .75
    assert abs(rolled.mean() - 1.5) < 0.1
    with pytest.raises(ValueError, match="dice: step without a key, expected one: the game has chance"):
        env.step(env.init(jax.random.key(0)), 0)


@pytest.mark.parametrize(
    "name",
    [
        "pgx:tic_tac_toe,max_plies=8",
        *(
            pytest.param(f"pgx:{name}", marks=pytest.mark.slow)
            for name in ("tic_tac_toe", "connect_four", "gardner_chess", "othello", "animal_shogi", "hex", "go_9x9")
        ),
    ],
)
def test_pgx_games_keep_the_contract(name):
    summary = check_game(envs.make(name), games=16, thorough=False)
    assert summary.id == name
    assert (summary.truncated > 0) == ("max_plies" in name)


@pgx_games
@pytest.mark.parametrize(
    ("name", "max_plies", "share"),
    [
        pytest.param("othello", 120, 0.65, marks=pytest.mark.slow),
        pytest.param("gardner_chess", 256, 0.25, marks=pytest.mark.slow),
    ],
)
def test_pgx_game_is_the_same_inside_and_outside(name, max_plies, share):
    """Random moves of 8 games: legal moves, observation, mover and rewards are pgx's own; the state is smaller."""
    import pgx

    env, game = pgx.make(name), from_pgx(name)
    keys = jax.random.split(jax.random.key(0), 8)
    state, theirs = jax.jit(jax.vmap(game.init))(keys), jax.jit(jax.vmap(env.init))(keys)
    assert game.num_actions == env.num_actions
    assert game.max_plies == max_plies
    first = np.asarray(theirs.current_player)
    assert set(first) == {0, 1}

    @jax.jit
    def step(state, theirs, noise):
        action = jnp.argmax(theirs.legal_action_mask * noise, axis=-1).astype(jnp.int32)
        state, theirs = jax.vmap(game.step)(state, action), jax.vmap(env.step)(theirs, action)
        seen = [jax.vmap(f)(state) for f in (game.legal_action_mask, game.observe, game.to_move, game.terminated)]
        return state, theirs, seen

    rng = np.random.default_rng(0)
    for _ in range(40):
        noise = rng.uniform(0.5, 1, (8, env.num_actions)).astype(np.float32)
        state, theirs, (mask, observation, to_move, over) = step(state, theirs, noise)
        playing = ~np.asarray(over)
        assert over.tolist() == theirs.terminated.tolist()
        assert (mask == theirs.legal_action_mask)[playing].all()
        assert (observation == theirs.observation)[playing].all()
        assert (to_move == (theirs.current_player != first))[playing].all()
    sizes = [sum(leaf.nbytes for leaf in jax.tree.leaves(tree)) for tree in (state, theirs)]
    assert sizes[0] < share * sizes[1]


@pgx_games
@pytest.mark.parametrize("name", ["tic_tac_toe", "connect_four"])
def test_our_games_are_pgxs(name, random_play):
    """Every position of 300 random games: same legal moves, observation, mover, end and returns."""
    ours, theirs = envs.make(name), from_pgx(name)
    play = random_play(ours, games=300)

    def seen(game, state):
        return game.legal_action_mask(state), game.observe(state), game.to_move(state), game.returns(state)

    def replay(actions):
        def body(state, action):
            return theirs.step(state, action), seen(theirs, state)

        return jax.lax.scan(body, theirs.init(jax.random.key(0)), actions)[1]

    expected = jax.jit(jax.vmap(replay, in_axes=1, out_axes=1))(play.actions)
    actual = jax.jit(jax.vmap(jax.vmap(lambda state: seen(ours, state))))(play.states)
    playing = play.masks[:-1].any(-1)
    for name, ours_seen, theirs_seen in zip(
        ("mask", "observation", "to_move", "returns"), actual, expected, strict=True
    ):
        same = np.asarray(ours_seen)[:-1] == np.asarray(theirs_seen)
        where = playing if name in ("observation", "to_move") else np.ones_like(playing)
        assert same[where].all(), name
    assert playing.sum() > 2000


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("pgx:gardner_ches", "game pgx:gardner_ches: got 'gardner_ches', expected one of .*did you mean gardner_chess"),
        ("pgx:kuhn_poker", "game pgx:kuhn_poker: its cards are hidden"),
        ("pgx:backgammon", "game pgx:backgammon: its dice are drawn inside step"),
        ("pgx:2048", "game pgx:2048: got a game of 1 players, expected 2"),
        ("pgx:sparrow_mahjong", "game pgx:sparrow_mahjong: got a game of 3 players, expected 2"),
        ("pgx:tic_tac_toe,size=4", "game pgx:tic_tac_toe,size=4: option: got 'size', expected one of max_plies"),
        ("pgx:tic_tac_toe,max_plies=0", "max_plies: got 0, expected a whole number"),
    ],
)
def test_unsuitable_environments_are_refused(name, message):
    with pytest.raises(ValueError, match=message) as caught:
        envs.make(name)
    assert "\n" not in str(caught.value)
