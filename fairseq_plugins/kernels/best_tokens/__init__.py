"""The log-probabilities of the tokens that beam search may go on with, on the fastest backend that takes it."""

from __future__ import annotations

from torch import Tensor

from .. import dispatch
from ..checks import check_tensor

__all__ = ["best_tokens"]


def best_tokens(logits: Tensor, first: int, count: int) -> tuple[Tensor, Tensor]:
    """log-softmax of each row, of its first tokens and of the best of the others alone. Without gradients.

    Args:
        logits: (B, V).
        first: F, how many tokens are always among them: those before the first word of a dictionary.
        count: K, how many of the V - F others, at most V - F.

    Returns:
        log-probabilities (B, F + K) in float32, and which tokens these are (B, F + K): 0 ... F - 1, then the best of
        the others, the best one first. A row with NaN has nothing but NaN, of tokens that differ.

    Raises:
        ValueError: there are not so many tokens.
    """
    check_tensor("logits", logits, ("B", "V"), logits)
    if first < 0 or not 0 <= count <= logits.size(1) - first:
        raise ValueError(f"there are no {first} + {count} tokens among {logits.size(1)}")
    result: tuple[Tensor, Tensor] = dispatch.choose("best_tokens", logits).module.best_tokens(logits, first, count)
    return result
