"""Policy and value networks."""

from azjax.network.apply import VALUE_LOGITS, apply, init, num_parameters, value_of
from azjax.network.evaluate import evaluate, transform

__all__ = ["VALUE_LOGITS", "apply", "evaluate", "init", "num_parameters", "transform", "value_of"]
