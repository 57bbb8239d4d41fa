"""The figures of analyses show their numbers."""

from __future__ import annotations

from pathlib import Path

from fairseq_plugins.analysis.alignments import Alignment, align
from fairseq_plugins.analysis.channel_attention import channel_attention
from fairseq_plugins.analysis.compare import ComparisonReport
from fairseq_plugins.analysis.speed import speeds
from fairseq_plugins.decoding.attention import Focus
from fairseq_plugins.report.drawings import (
    draw_alignment,
    draw_channel_attention,
    draw_comparison,
    draw_focus,
    draw_speeds,
)
from tests.analysis.models import model_of_architecture, model_with_attention, pair
from tests.analysis.test_speed import work


def test_one_panel_for_each_flow() -> None:
    model = model_of_architecture("dpn_iwslt_de_en")
    [alignment] = align(model, [pair(model, 4, 3)])
    panels = [axis for axis in draw_alignment(alignment).axes if axis.get_title(loc="left")]
    assert [axis.get_title(loc="left") for axis in panels] == ["CNN to CNN", "CNN to SAN", "SAN to CNN", "SAN to SAN"]
    for axis, name in zip(panels, ("cc", "ca", "ac", "aa"), strict=True):
        assert [label.get_text() for label in axis.get_xticklabels()] == alignment.source
        assert [label.get_text() for label in axis.get_yticklabels()] == alignment.target
        assert axis.images[0].get_array().tolist() == alignment.flows[name]


def test_one_panel_alone() -> None:
    model = model_with_attention("uniform")
    [alignment] = align(model, [pair(model, 1, 0)])
    assert alignment.flows == {"attention": [[0.5, 0.5]]}
    assert len(draw_alignment(alignment).axes) == 2  # and the colour bar


def test_the_figure_shows_the_weights() -> None:
    model = model_of_architecture("mc_rnn_iwslt_de_en")
    [sentence] = channel_attention(model, [model.source("w1 w2 w3")])
    panels = [axis for axis in draw_channel_attention(sentence).axes if axis.get_title(loc="left")]
    for axis, layer in zip(panels, sentence.layers, strict=True):
        assert axis.images[0].get_array().T.tolist() == layer.attention
    assert [label.get_text() for label in panels[-1].get_xticklabels()] == ["w1", "w2", "w3", "</s>"]


def test_a_bar_for_each_flow() -> None:
    found = {"cc": 2.2, "ca": 1.9, "attention": 1.4}
    [axis] = draw_focus(Focus(found, {}, 3.0)).axes
    assert [bar.get_width() for bar in axis.patches] == list(found.values())
    assert [label.get_text() for label in axis.get_yticklabels()] == ["CNN to CNN", "CNN to SAN", "attention"]


def test_a_bar_for_each_gate_and_a_part_for_each_path() -> None:
    entropy = dict.fromkeys(["cc", "ca", "cr", "ac", "aa", "ar"], 1.5)
    gates = {
        "cnn.san": [0.25, 0.5],
        "cnn.rnn": [0.5, 0.25],
        "san.cnn": [0.125],
        "san.rnn": [0.25],
        "output.san": [0.75],
    }
    axis = draw_focus(Focus(entropy, gates, 2.0)).axes[1]
    assert [label.get_text() for label in axis.get_yticklabels()] == [
        "CNN, layer 1",
        "CNN, layer 2",
        "SAN, layer 1",
        "output",
    ]
    of_path = {container.get_label(): [bar.get_width() for bar in container] for container in axis.containers}
    assert of_path == {
        "CNN": [0.25, 0.25, 0.125, 0.25],
        "SAN": [0.25, 0.5, 0.625, 0.75],
        "RNN": [0.5, 0.25, 0.25, 0.0],
    }


def test_a_row_of_panels_for_each_path_of_the_decoder() -> None:
    flows = {name: [[1.0]] for name in ("cc", "ca", "cr", "ac", "aa", "ar")}
    panels = [axis for axis in draw_alignment(Alignment(["a"], ["b"], flows)).axes if axis.get_title(loc="left")]
    tops = [round(axis.get_position().y1, 3) for axis in panels]
    assert len(panels) == 6 and len(set(tops[:3])) == len(set(tops[3:])) == 1 and tops[0] > tops[3]


def test_speeds(tmp_path: Path) -> None:
    folders = [work(tmp_path / "a"), work(tmp_path / "b", train_tokens_per_second=None)]
    training, decoding = draw_speeds(speeds(folders)).axes
    assert [bar.get_width() for bar in training.patches] == [2000, 0]
    assert [bar.get_width() for bar in decoding.patches] == [50, 50]
    assert [text.get_text() for text in training.texts] == ["2,000, 1.00 x", "-"]
    assert [text.get_text() for text in decoding.texts] == ["50.0, 1.00 x", "50.0, 1.00 x"]
    assert [plot.get_title(loc="left") for plot in draw_speeds(speeds(folders[1:])).axes] == ["decoding, sentences/s"]


def comparison(
    differences: list[float], higher_is_better: bool = True, largest: float | None = 100
) -> ComparisonReport:
    return ComparisonReport(
        ("a", "b"), {}, "sentence BLEU", "sentences", higher_is_better, largest, differences, [], []
    )


def bars(report: ComparisonReport) -> dict[float, float]:
    """The heights of the histogram's bars, without empty ones, by their middle."""
    (plot,) = draw_comparison(report).axes
    heights = {round(bar.get_x() + bar.get_width() / 2, 3): bar.get_height() for bar in plot.patches}
    return {place: height for place, height in sorted(heights.items()) if height}


def test_bars_hold_every_sentence_that_differs() -> None:
    assert bars(comparison([100, 0, -100])) == {-97.5: 1, 97.5: 1}
    assert bars(comparison([5.0, -5.0, 5.1, -0.1])) == {-2.5: 2, 2.5: 1, 7.5: 1}
    assert not bars(comparison([0.0]))


def test_bars_of_a_metric_without_a_limit() -> None:
    found = bars(comparison([0.013, -0.002, 0.0], False, None))
    assert sum(found.values()) == 2 and -0.003 < min(found) < 0 < max(found) < 0.014


def test_the_better_system_has_its_side() -> None:
    for higher_is_better, side in (True, "b is better in 2"), (False, "a is better in 2"):
        figure = draw_comparison(comparison([3.0, 4.0, -1.0], higher_is_better))
        [legend] = figure.legends
        labels = [text.get_text() for text in legend.get_texts()]
        assert any(label.startswith(f"{side}, by 3.5") for label in labels)
