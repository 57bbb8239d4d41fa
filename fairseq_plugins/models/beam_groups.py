"""Hypotheses of a beam share what the encoder knows of their sentence.

Beam search repeats the encoder's output for each hypothesis and reorders it at every step. Here it stays as it is, one
row for each sentence, and ``sentences`` (B,) says which one each of the decoder's B rows belongs to: 0 0 … 1 1 …, the
hypotheses of a sentence one after the other. A decoder then attends with all hypotheses of a sentence at once.
"""

import torch
from torch import Tensor


def regroup(sentences: Tensor, new_order: Tensor) -> tuple[Tensor, Tensor | None]:
    """Takes rows in a new order, and as few sentences as they need.

    Args:
        sentences: (B,), as above.
        new_order: (B',), rows.

    Returns:
        the same for the rows of ``new_order``, and which of the sentences these are, None where they are all of them in
        their order. Where consecutive rows share their sentence but not all equally, every row gets a sentence of its
        own: only equal groups can attend together.
    """
    rows = sentences.index_select(0, new_order)
    # Nearly always. One number to wait for, where there is a GPU; the others are asked when a sentence has left.
    if rows.shape == sentences.shape and rows.equal(sentences):
        return sentences, None
    kept, grouped, sizes = torch.unique_consecutive(rows, return_inverse=True, return_counts=True)
    if sizes.min() != sizes.max():
        kept, grouped = rows, torch.arange(rows.size(0), device=rows.device)
    unchanged = torch.arange(int(sentences[-1]) + 1, device=rows.device)
    return grouped, None if kept.equal(unchanged) else kept


def reorder_encoder_out(encoder_out: dict[str, list[Tensor]], new_order: Tensor) -> dict[str, list[Tensor]]:
    """The encoder's output, lists of tensors with the sentences first and ``sentences`` among them, for the rows of
    ``new_order``."""
    rows, kept = regroup(encoder_out["sentences"][0], new_order)
    if kept is not None:
        encoder_out = {name: [x.index_select(0, kept) for x in tensors] for name, tensors in encoder_out.items()}
    return {**encoder_out, "sentences": [rows]}
