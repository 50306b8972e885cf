"""Alpha-beta search with the network's values at the leaves and its policy as the order of moves.

Negamax with iterative deepening, batched over games: every game walks its own tree by a stack of nodes, and all games
make one evaluation in each turn of one loop.

    stack   level 0  root      alpha beta best   moves left: [c5 d4 ...]
            level 1  after d4  alpha beta best   moves left: [...]
            level 2  to be evaluated: at the depth limit its value counts, above it its policy orders the moves
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mctx

from azjax.search.selection import first_argmax, is_illegal

_WORST = -2.0
"""Below every value, which lie in [-1, 1]."""
_SURE = 0.999


class AlphaBeta(NamedTuple):
    """What a search found for B positions."""

    action: jax.Array  # int32[B], the best of the deepest finished depth (of the first, if none was finished)
    value: jax.Array  # float32[B], of that action, the mover's view
    depth: jax.Array  # int32[B], plies of the deepest finished depth, 0 if none
    solved: jax.Array  # bool[B], the value is exact: no line was cut off at the depth limit
    evaluations: jax.Array  # int32[B], positions evaluated


class _Stack(NamedTuple):
    """D + 1 levels of B games; entries above `level` are left over."""

    embeddings: Any  # [D + 1, B, ...]
    order: jax.Array  # float32[D + 1, B, A], logits of the moves not yet tried; -inf for the others
    alpha: jax.Array  # float32[D + 1, B], view of the player to move at the level
    beta: jax.Array  # float32[D + 1, B]
    best: jax.Array  # float32[D + 1, B]
    reward: jax.Array  # float32[D + 1, B], of the edge into the level, the parent's view
    discount: jax.Array  # float32[D + 1, B], -1 where the other player moves, +1 where the same, 0 at the end


class _Search(NamedTuple):
    """The loop's carry."""

    stack: _Stack
    level: jax.Array  # int32[B], of the node to be evaluated next
    limit: jax.Array  # int32[B], depth of this pass
    cut: jax.Array  # bool[B], this pass met the limit
    trying: jax.Array  # int32[B], the root's move under way
    leading: jax.Array  # int32[B], the root's best move in this pass
    found: AlphaBeta
    over: jax.Array  # bool[B]


def alphabeta_search(
    params: Any,
    rng_key: jax.Array,
    root: mctx.RootFnOutput,
    recurrent_fn: mctx.RecurrentFn,
    num_evaluations: int,
    max_depth: int,
) -> AlphaBeta:
    """Searches depth 1, 2, ... until the evaluations are used up, the position is solved, or max_depth was searched.

    Each pass begins at the root with the move that led in the pass before. A terminal node has its exact value and
    costs no evaluation; the root's own is not counted. Values of evaluations are cut to [-0.999, 0.999], so that only
    proven results reach 1.

    Args:
      params, recurrent_fn: as `search`.
      rng_key: consumed.
      root: prior_logits float32[B, A], illegal entries masked; embedding [B, ...], not terminated.
      num_evaluations: of each game.
      max_depth: plies.
    """
    batch_size, num_actions = root.prior_logits.shape
    lanes = jnp.arange(batch_size, dtype=jnp.int32)
    legal = ~is_illegal(root.prior_logits)
    logits = jnp.where(legal, root.prior_logits, -jnp.inf)

    def levels(fill: float, *shape: int) -> jax.Array:
        return jnp.full((max_depth + 1, batch_size, *shape), fill, jnp.float32)

    def begin(stack: _Stack, where: jax.Array, first: jax.Array) -> _Stack:
        """Puts the root of a new pass on the stack, `first` int32[B] before all other moves."""
        ahead = jnp.where(jnp.arange(num_actions)[None] == first[:, None], jnp.inf, logits)
        return stack._replace(
            order=stack.order.at[0].set(jnp.where(where[:, None], ahead, stack.order[0])),
            alpha=stack.alpha.at[0].set(jnp.where(where, -1.0, stack.alpha[0])),
            beta=stack.beta.at[0].set(jnp.where(where, 1.0, stack.beta[0])),
            best=stack.best.at[0].set(jnp.where(where, _WORST, stack.best[0])),
        )

    def descend(search: _Search, where: jax.Array, rng_key: jax.Array) -> tuple[_Search, mctx.RecurrentFnOutput]:
        """Makes the next move of the node at `level` and stands on its child."""
        stack, at = search.stack, search.level
        order = stack.order[at, lanes]
        action = jax.vmap(first_argmax)(order)
        embedding = jax.tree.map(lambda leaf: leaf[at, lanes], stack.embeddings)
        output, child = recurrent_fn(params, rng_key, action, embedding)
        below = jnp.where(where, at + 1, max_depth + 1)  # out of range: dropped
        here = jnp.where(where, at, max_depth + 1)
        swaps = output.discount < 0
        alpha = jnp.maximum(stack.alpha[at, lanes], stack.best[at, lanes])
        beta = stack.beta[at, lanes]
        stack = stack._replace(
            order=stack.order.at[here, lanes, action].set(-jnp.inf, mode="drop"),
            embeddings=jax.tree.map(
                lambda leaf, new: leaf.at[below, lanes].set(new, mode="drop"), stack.embeddings, child
            ),
            alpha=stack.alpha.at[below, lanes].set(jnp.where(swaps, -beta, alpha), mode="drop"),
            beta=stack.beta.at[below, lanes].set(jnp.where(swaps, -alpha, beta), mode="drop"),
            best=stack.best.at[below, lanes].set(_WORST, mode="drop"),
            reward=stack.reward.at[below, lanes].set(output.reward, mode="drop"),
            discount=stack.discount.at[below, lanes].set(output.discount, mode="drop"),
        )
        trying = jnp.where(where & (at == 0), action, search.trying)
        return search._replace(stack=stack, level=jnp.where(where, at + 1, at), trying=trying), output

    def ascend(search: _Search, value: jax.Array, rising: jax.Array) -> _Search:
        """Takes the value float32[B] of the node at `level` up, as far as nodes are finished by it."""

        def up(carry: tuple[_Search, jax.Array, jax.Array]) -> tuple[_Search, jax.Array, jax.Array]:
            search, value, rising = carry
            stack, at = search.stack, search.level
            parent = jnp.where(rising, at - 1, max_depth + 1)
            of_edge = stack.reward[at, lanes] + stack.discount[at, lanes] * value
            before = stack.best.at[parent, lanes].get(mode="fill", fill_value=0.0)
            better = rising & (of_edge > before)
            best = jnp.where(better, of_edge, before)
            stack = stack._replace(best=stack.best.at[parent, lanes].set(best, mode="drop"))
            leading = jnp.where(better & (at == 1), search.trying, search.leading)
            level = jnp.where(rising, at - 1, at)
            beta = stack.beta[level, lanes]
            done = (best >= beta) | ~jnp.isfinite(jnp.max(stack.order[level, lanes], axis=-1))
            search = search._replace(stack=stack, level=level, leading=leading)
            return search, best, rising & done & (level > 0)

        return jax.lax.while_loop(lambda carry: carry[2].any(), up, (search, value, rising))[0]

    def turn(carry: tuple[jax.Array, _Search]) -> tuple[jax.Array, _Search]:
        rng_key, search = carry
        rng_key, key = jax.random.split(rng_key)
        active = ~search.over
        search, output = descend(search, active, key)
        at, found = search.level, search.found
        terminal = output.discount == 0
        at_limit = at >= search.limit
        is_leaf = terminal | at_limit
        # An inner node takes its moves in the order of its policy.
        place = jnp.where(active & ~is_leaf, at, max_depth + 1)
        order = jnp.where(is_illegal(output.prior_logits), -jnp.inf, output.prior_logits)
        search = search._replace(
            stack=search.stack._replace(order=search.stack.order.at[place, lanes].set(order, mode="drop")),
            cut=search.cut | (active & at_limit & ~terminal),
            found=found._replace(evaluations=found.evaluations + (active & ~terminal)),
        )
        value = jnp.where(terminal, 0.0, jnp.clip(output.value, -_SURE, _SURE))
        search = ascend(search, value, active & is_leaf)
        return rng_key, finish_pass(search)

    def finish_pass(search: _Search) -> _Search:
        """Where the root is finished: keeps what the pass found, and begins a deeper one or ends."""
        stack, found = search.stack, search.found
        no_moves = ~jnp.isfinite(jnp.max(stack.order[0], axis=-1))
        finished = ~search.over & (search.level == 0) & (no_moves | (stack.best[0] >= stack.beta[0]))
        spent = found.evaluations >= num_evaluations
        # A first pass cut short is better than nothing.
        keep = finished | (spent & ~search.over & (found.depth == 0) & (stack.best[0] > _WORST))
        exact = finished & (~search.cut | (stack.best[0] >= 1.0))
        found = found._replace(
            action=jnp.where(keep, search.leading, found.action),
            value=jnp.where(keep, stack.best[0], found.value),
            depth=jnp.where(finished, search.limit, found.depth),
            solved=found.solved | exact,
        )
        over = search.over | spent | exact | (finished & (search.limit >= max_depth))
        again = finished & ~over
        return search._replace(
            stack=begin(stack, again, search.leading),
            limit=search.limit + again,
            cut=search.cut & ~again,
            found=found,
            over=over,
        )

    stack = _Stack(
        embeddings=jax.tree.map(
            lambda leaf: jnp.zeros((max_depth + 1, *leaf.shape), leaf.dtype).at[0].set(leaf), root.embedding
        ),
        order=levels(0.0, num_actions),
        alpha=levels(-1.0),
        beta=levels(1.0),
        best=levels(_WORST),
        reward=levels(0.0),
        discount=levels(-1.0),
    )
    likeliest = jax.vmap(first_argmax)(logits)
    nothing = jnp.zeros((batch_size,), jnp.int32)
    start = _Search(
        stack=begin(stack, jnp.ones((batch_size,), jnp.bool_), likeliest),
        level=nothing,
        limit=nothing + 1,
        cut=nothing > 0,
        trying=nothing,
        leading=likeliest,
        found=AlphaBeta(likeliest, root.value.astype(jnp.float32), nothing, nothing > 0, nothing),
        over=~legal.any(axis=-1),
    )
    return jax.lax.while_loop(lambda carry: ~carry[1].over.all(), turn, (rng_key, start))[1].found
