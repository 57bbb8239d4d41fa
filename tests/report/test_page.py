"""The HTML page: nothing in it can leave its place."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest

from fairseq_plugins.report import page as pages
from fairseq_plugins.report.page import Drawing, Experiment, Report, ReportTable, Sample, WordAttention

from .html import Page

EMPTY = Report("a title", "a line", None, [], [], [], [])
EMPTY = Report("a title", "a line", None, [], [], [], [])
NASTY = "<unk> \"quoted\" 'single' & </script><script>alert(1)</script> <!-- {{ 7 * 7 }}"


def test_a_page_that_cannot_be_made_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old", encoding="utf-8")
    alignment = WordAttention(["a"], ["b"], {"mean": [[float("nan")]]})
    broken = dataclasses.replace(EMPTY, samples=[Sample("a", "b", {"x": "b"}, {"x": alignment})])
    with pytest.raises(ValueError):
        pages.write(broken, path)
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def everything_nasty() -> Report:
    alignment = WordAttention([NASTY, "x"], [NASTY], {"mean": [[0.25, 0.75]], NASTY: [[0.5, 0.5]]})
    return Report(
        title=NASTY,
        subtitle=NASTY,
        notice=NASTY,
        tables=[ReportTable(NASTY, [NASTY], [[NASTY]], [NASTY])],
        figures=[Drawing(NASTY, NASTY, '<svg viewBox="0 0 1 1"></svg>')],
        samples=[Sample(NASTY, NASTY, {NASTY: NASTY, "plain": NASTY}, {NASTY: alignment})],
        experiments=[Experiment(NASTY, NASTY, {NASTY: NASTY}, {NASTY: NASTY})],
    )


def test_text_stays_text() -> None:
    page = Page(pages.render(everything_nasty()))
    scripts = [attributes for name, attributes, _ in page.elements if name == "script"]
    assert scripts == [{"type": "application/json", "id": "weights"}, {}]
    assert "unk" not in {name for name, _, _ in page.elements}
    assert page.texts("h1") == [NASTY]
    assert page.texts("p", role="note") == [NASTY]
    assert page.texts("span") == [NASTY, "x", NASTY]
    assert page.texts("pre") == [NASTY, NASTY]
    assert page.texts("li") == [NASTY]
    assert page.texts("dd", dir="auto") == [NASTY, NASTY]
    assert json.loads(page.texts("script", id="weights")[0]) == [[{"mean": [[0.25, 0.75]], NASTY: [[0.5, 0.5]]}]]


@pytest.mark.parametrize("text", ["הכלב ישן.", "الكلب نائم."])
def test_text_from_right_to_left_stands_as_it_is_read(text: str) -> None:
    """Blocks of its words too, or they would stand in the order of English."""
    words = text.split()
    alignment = WordAttention(words, words, {"mean": [[0.5, 0.5], [0.5, 0.5]]})
    sample = Sample(text, text, {"aligned": text, "plain": text}, {"aligned": alignment})
    html = pages.render(dataclasses.replace(EMPTY, samples=[sample, Sample(text, text, {"plain": text}, {})]))
    page = Page(html)
    assert page.texts("dd", dir="auto") == [text] * 5
    assert len(re.findall('<div class="words" dir="auto"', html)) == html.count('<div class="words"') == 2
    assert page.texts("span") == words * 2


def test_the_page_needs_nothing_else() -> None:
    html = pages.render(everything_nasty())
    page = Page(html)
    loading = {"src", "srcset", "href", "data", "poster", "action", "xlink:href"}
    found = [attributes[key] for _, attributes, _ in page.elements for key in loading & set(attributes)]
    assert found == ["data:,"]
    assert not re.search(r"@import|url\(", html)


def test_columns_of_numbers_stand_to_the_right() -> None:
    columns = {
        "System": ["1", "2", "3"],
        "BLEU": ["31.03", "not run yet", "30.1 ± 0.2"],
        "Difference": ["−0.16", "+1.00", "–"],
        "Parameters": ["25M / 24.4M", "29M / 26.6M", "25M / –"],
        "ROUGE": ["35.50 (35.00–36.00)", "1", ""],
        "Significance": ["p = 0.003", "–", "p < 0.01"],
        "Device": ["1 x NVIDIA H100", "CPU, 1 thread", "2 x NVIDIA A100"],
        "Nothing": ["–", "", "-"],
        "Words": ["not run yet", "3", "never"],
    }
    table = ReportTable("t", list(columns), [list(row) for row in zip(*columns.values(), strict=True)], [])
    page = Page(pages.render(dataclasses.replace(EMPTY, tables=[table])))
    assert page.texts("th", **{"class": "number"}) == ["BLEU", "Difference", "Parameters", "ROUGE", "Significance"]
    assert page.texts("td", **{"class": "number"})[:5] == [
        "31.03",
        "−0.16",
        "25M / 24.4M",
        "35.50 (35.00–36.00)",
        "p = 0.003",
    ]
    assert page.texts("th", scope="row") == ["1", "2", "3"]


def test_systems_that_cut_the_source_differently_have_a_line_of_it_each() -> None:
    def of(*source: str) -> WordAttention:
        return WordAttention(list(source), ["t"], {"mean": [[1 / len(source)] * len(source)]})

    alignments = {"words": of("ab", "c"), "pieces": of("a", "b", "c"), "also words": of("ab", "c")}
    hypotheses = {"words": "1", "none": "2", "pieces": "3", "also words": "4"}
    page = Page(pages.render(dataclasses.replace(EMPTY, samples=[Sample("ab c", "r", hypotheses, alignments)])))
    assert page.texts("dt") == [
        "Source of words, also words",
        "Reference",
        "words",
        "also words",
        "Source of pieces",
        "pieces",
        "none",
    ]
    assert page.texts("span") == ["ab", "c", "t", "t", "a", "b", "c", "t"]
    [of_sample] = json.loads(page.texts("script", id="weights")[0])
    assert [flows["mean"] for flows in of_sample] == [[[0.5, 0.5]], [[0.5, 0.5]], [[0.3333, 0.3333, 0.3333]]]


def test_flows_can_be_chosen_where_there_are_several() -> None:
    names = ("mean", "cc", "ca", "ac", "aa")
    alignments = {
        "DPN-S2S": WordAttention(["a"], ["b"], {name: [[1.0]] for name in names}),
        "MC-RNN-3": WordAttention(["a"], ["b"], {"mean": [[1.0]]}),
    }
    sample = Sample("a", "b", {"DPN-S2S": "b", "MC-RNN-3": "b"}, alignments)
    page = Page(pages.render(dataclasses.replace(EMPTY, samples=[sample])))
    inputs = [attributes for name, attributes, _ in page.elements if name == "input"]
    assert [attributes["value"] for attributes in inputs] == list(names)
    assert ["checked" in attributes for attributes in inputs] == [True, False, False, False, False]
    assert page.texts("label") == ["mean", "CNN to CNN", "CNN to SAN", "SAN to CNN", "SAN to SAN"]
    assert page.texts("legend") == ["Flow of attention of DPN-S2S"]


@pytest.mark.parametrize("flows", [{}, {"mean": [[1.0, 0.0]]}, {"mean": [[1.0], [0.5]]}, {"mean": [[1.0, 0.0], [1.0]]}])
def test_an_alignment_has_a_weight_for_each_pair_of_words(flows: dict[str, list[list[float]]]) -> None:
    with pytest.raises(ValueError, match="flow"):
        WordAttention(["a", "b"], ["c", "d"], flows)


def test_several_experiments_are_folded_away() -> None:
    experiments = [Experiment(name, "train: {}", {}, {"Seed": "1"}) for name in ("one", "two")]
    page = Page(pages.render(dataclasses.replace(EMPTY, experiments=experiments)))
    assert page.texts("summary") == ["one", "two"]
    assert not Page(pages.render(dataclasses.replace(EMPTY, experiments=experiments[:1]))).texts("summary")
