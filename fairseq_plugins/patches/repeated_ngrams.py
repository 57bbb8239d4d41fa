"""``--no-repeat-ngram-size``."""

from __future__ import annotations

from collections.abc import Callable

import torch
from fairseq.ngram_repeat_block import NGramRepeatBlock
from torch import Tensor

from .replacing import replace_once


def repair_repeated_ngrams() -> None:
    """Has beam search forbid n-grams that a hypothesis has already.

    fairseq compares with the end of its buffer, which is padding until a hypothesis has its greatest length: it forbids
    nothing.

    For fairseq 0.12.
    """

    def build(_: Callable) -> Callable:
        return forbid_repetitions

    replace_once(NGramRepeatBlock, "forward", build)


def forbid_repetitions(
    self: NGramRepeatBlock, tokens: Tensor, lprobs: Tensor, bsz: int, beam_size: int, step: int
) -> Tensor:
    """Makes impossible what would complete an n-gram for the second time, in each hypothesis by itself.

    A hypothesis for which nothing else is possible stays as it is: a prefix may repeat itself.

    Args:
        tokens: (B, L), the hypotheses of all sentences; what a sentence begins with comes before ``step`` words
        lprobs: (B, V), of the next word; changed in place, as fairseq's own does
        bsz: how many sentences, of ``beam_size`` hypotheses each; only B counts
        beam_size: see ``bsz``
        step: how many words each hypothesis has

    Returns:
        ``lprobs``, with -∞ for what would be a repetition. The end of a sentence never is one.
    """
    size = self.no_repeat_ngram_size
    if step < size:
        return lprobs
    written = tokens[:, 1 : step + 1]
    ngrams = written.unfold(1, size, 1)
    context = written[:, None, step + 1 - size :]
    is_repeated = (ngrams[..., :-1] == context).all(-1)
    last = ngrams[..., -1]
    before = lprobs.gather(1, last)
    # The lesser of two values: other n-grams end with the same word, and forbid nothing.
    lprobs.scatter_reduce_(1, last, before.masked_fill(is_repeated, -torch.inf), "amin")
    is_stuck = lprobs.amax(1, keepdim=True).eq(-torch.inf)
    return lprobs.scatter_(1, last, torch.where(is_stuck, before, lprobs.gather(1, last)))
