"""Tests of alignments."""

from __future__ import annotations

from fairseq_plugins.analysis.alignments import align, draw

from .models import model_of_architecture, model_with_attention, pair


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


def test_one_panel_for_each_flow() -> None:
    model = model_of_architecture("dpn_iwslt_de_en")
    [alignment] = align(model, [pair(model, 4, 3)])
    panels = [axis for axis in draw(alignment).axes if axis.get_title(loc="left")]
    assert [axis.get_title(loc="left") for axis in panels] == ["CNN to CNN", "CNN to SAN", "SAN to CNN", "SAN to SAN"]
    for axis, name in zip(panels, ("cc", "ca", "ac", "aa"), strict=True):
        assert [label.get_text() for label in axis.get_xticklabels()] == alignment.source
        assert [label.get_text() for label in axis.get_yticklabels()] == alignment.target
        assert axis.images[0].get_array().tolist() == alignment.flows[name]


def test_one_panel_alone() -> None:
    model = model_with_attention("uniform")
    [alignment] = align(model, [pair(model, 1, 0)])
    assert alignment.flows == {"attention": [[0.5, 0.5]]}
    assert len(draw(alignment).axes) == 2  # and the colour bar
