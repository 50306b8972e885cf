"""Tree search, batched over games: `search` and the policies built on it, with mctx's types and results."""

from azjax.search.alphabeta import AlphaBeta, alphabeta_search
from azjax.search.gumbel import QTransform, completed_qvalues
from azjax.search.loop import search
from azjax.search.model import Model, game_model, random_action, rollout_model
from azjax.search.policy import (
    dirichlet_noise,
    gumbel_policy,
    puct_policy,
    sample_move,
    temperature_weights,
    uct_policy,
)
from azjax.search.rule import Rule, gumbel_rule, puct_rule, ucb1_rule
from azjax.search.selection import first_argmax, is_illegal, mask_logits, puct_scores, select_puct, select_ucb1
from azjax.search.single import Look, TreeSearch, Variation
from azjax.search.slots import Slotted, action_of, begin_search, num_slots, slotted
from azjax.search.trace import Nodes, Simulation

__all__ = [
    "AlphaBeta",
    "Look",
    "Model",
    "Nodes",
    "QTransform",
    "Rule",
    "Simulation",
    "Slotted",
    "TreeSearch",
    "Variation",
    "action_of",
    "alphabeta_search",
    "begin_search",
    "completed_qvalues",
    "dirichlet_noise",
    "first_argmax",
    "game_model",
    "gumbel_policy",
    "gumbel_rule",
    "is_illegal",
    "mask_logits",
    "num_slots",
    "puct_policy",
    "puct_rule",
    "puct_scores",
    "random_action",
    "rollout_model",
    "sample_move",
    "search",
    "select_puct",
    "select_ucb1",
    "slotted",
    "temperature_weights",
    "ucb1_rule",
    "uct_policy",
]
