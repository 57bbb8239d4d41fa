"""``--diverse-beam-groups`` over several batches."""

from __future__ import annotations

from collections.abc import Callable

from fairseq.search import DiverseBeamSearch
from torch import Tensor

from .replacing import replace_once


def repair_diverse_beam_search() -> None:
    """Has diverse beam search remember how far groups overlap by a sentence's place in its batch.

    fairseq looks it up by the sentence's number in the whole set: in the wrong row where the batch is in another order,
    and beyond the last row in all batches but the first (IndexError).
    """

    def build(step: Callable) -> Callable:
        def step_by_place(
            self: DiverseBeamSearch,
            step_number: int,
            lprobs: Tensor,
            scores: Tensor | None,
            prev_output_tokens: Tensor | None = None,
            original_batch_idxs: Tensor | None = None,
        ) -> tuple[Tensor, Tensor, Tensor]:
            if original_batch_idxs is not None:
                if step_number == 0:
                    self._sentences = original_batch_idxs
                # Finished sentences leave the batch; those that are left are found among all of them.
                original_batch_idxs = (original_batch_idxs[:, None] == self._sentences).long().argmax(dim=1)
            return step(self, step_number, lprobs, scores, prev_output_tokens, original_batch_idxs)

        return step_by_place

    replace_once(DiverseBeamSearch, "step", build)
