"""Tests of alignments."""

from __future__ import annotations

from fairseq_plugins.analysis.alignments import align

from .models import model_with_attention, pair


def test_the_alignment_of_a_model_that_copies_is_the_identity() -> None:
    model = model_with_attention("identity")
    pairs = [pair(model, length, length, length) for length in (4, 2, 6)]
    alignments = align(model, pairs)
    assert [alignment.source for alignment in alignments[:2]] == [
        ["w4", "w5", "w6", "w7", "</s>"],
        ["w2", "w3", "</s>"],
    ]
    for alignment in alignments:
        size = len(alignment.source)
        assert alignment.target == alignment.source
        assert alignment.flows == {"attention": [[float(i == j) for j in range(size)] for i in range(size)]}


def test_attention_of_the_ends_of_sentences() -> None:
    model = model_with_attention("uniform")
    [alignment] = align(model, [pair(model, 1, 0)])
    assert alignment.flows == {"attention": [[0.5, 0.5]]}
