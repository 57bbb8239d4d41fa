"""Alignments of models that pad the source on the other side than the data."""

from __future__ import annotations

from collections.abc import Callable

from fairseq import utils

from .replacing import replace_once


def repair_alignments() -> None:
    """Undoes the shift of alignments where a model pads the source on the other side than the data (fairseq #3625).

    fairseq's ``lstm`` turns left-padded sources to right-padded ones and returns its attention so. A model never
    attends to padding, so attention there tells that it is shifted by the length of the padding.
    """

    def build(extract: Callable) -> Callable:
        def extract_unshifted(attn, src_sent, tgt_sent, pad, eos):
            padding = src_sent.eq(pad)
            length = int(padding.sum())
            if length > 0 and attn[:, padding].any():
                attn = attn.roll(length if padding[0] else -length, dims=1)
            return extract(attn, src_sent, tgt_sent, pad, eos)

        return extract_unshifted

    replace_once(utils, "extract_hard_alignment", build)
    replace_once(utils, "extract_soft_alignment", build)
