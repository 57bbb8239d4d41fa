"""The comparison of two systems: whole scores, the sentences that differ most, and the command."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from sacrebleu.metrics import BLEU

from fairseq_plugins.analysis import compare as command
from fairseq_plugins.analysis.compare import ComparisonReport, compare, draw
from fairseq_plugins.analysis.significance import paired_bootstrap, paired_bootstrap_bleu
from fairseq_plugins.errors import InputError
from fairseq_plugins.scoring.rouge import corpus_rouge, sentence_rouge

from .commands import run

SOURCE = ["eins", "zwei", "drei", "vier", "fünf"]
REFERENCES = [
    ["a b c d", "a b c d e", "f g h i", "one two three four", "x y z u"],
    ["a b c e", "", "", "four three two one", "x y z v"],
]
# The second is better in lines 1 and 4, the first in line 2, both are equal in lines 3 and 5.
OUTPUTS = {
    "CNN": ["a b c x", "a b c d e", "f g", "one", "x y z v"],
    "DPN": ["a b c d", "a b x d e", "f g", "one two three five", "x y z u"],
}


def test_bleu() -> None:
    report = compare(OUTPUTS, SOURCE, REFERENCES)
    assert report.comparisons == {"BLEU": paired_bootstrap_bleu(*OUTPUTS.values(), REFERENCES)}
    metric = BLEU(tokenize="none", effective_order=True)
    for index, difference in enumerate(report.differences):
        own = [stream[index] for stream in REFERENCES]
        first, second = (metric.sentence_score(lines[index], own).score for lines in OUTPUTS.values())
        assert difference == pytest.approx(second - first)
    assert report.counts == (1, 2, 2)
    assert [sentence.number for sentence in report.better] == [4, 1]
    (worse,) = report.worse
    assert (worse.number, worse.source, worse.references) == (2, "zwei", ["a b c d e", ""])
    assert worse.outputs == {"CNN": "a b c d e", "DPN": "a b x d e"}
    assert worse.scores["CNN"] == pytest.approx(100) and worse.difference == worse.scores["DPN"] - worse.scores["CNN"]


def test_rouge() -> None:
    report = compare(OUTPUTS, SOURCE, REFERENCES, metric="rouge", seed=3)
    assert list(report.comparisons) == ["ROUGE-1", "ROUGE-2", "ROUGE-L"]
    scores = [sentence_rouge(lines, REFERENCES) for lines in OUTPUTS.values()]
    for index, comparison in enumerate(report.comparisons.values()):
        expected = paired_bootstrap(scores[0][:, index], scores[1][:, index], seed=3)
        assert (comparison.baseline, comparison.p_value) == (expected.baseline, expected.p_value)
        assert comparison.signature == corpus_rouge(OUTPUTS["DPN"], REFERENCES, seed=3).signature
    # Longest common subsequences: 3 of 4 words and 4; 5 of 5 and 4; the same; 1 word of 1 and 4 and 3 of 4; the same.
    assert report.differences == pytest.approx([25, -20, 0, 75 - 40, 0])
    assert report.sentence_metric == "ROUGE-L"


def test_as_many_sentences_as_asked() -> None:
    report = compare(OUTPUTS, SOURCE, REFERENCES, sentences=1)
    assert [sentence.number for sentence in report.better + report.worse] == [4, 2]
    report = compare(OUTPUTS, SOURCE, REFERENCES, sentences=0)
    assert report.better == report.worse == []
    # Of equals the first lines come first.
    same = compare({"a": ["x"] * 9, "b": ["y"] * 9}, ["s"] * 9, [["y"] * 9], sentences=3)
    assert [sentence.number for sentence in same.better] == [1, 2, 3]


def test_case_and_tokens() -> None:
    outputs = {"a": ["The man."], "b": ["the man ."]}
    differences = {
        (tokenize, lowercase): compare(
            outputs, ["s"], [["the man ."]], tokenize=tokenize, lowercase=lowercase
        ).differences[0]
        for tokenize in ("none", "13a")
        for lowercase in (False, True)
    }
    assert differences["13a", True] == 0
    assert differences["none", False] > differences["none", True] > 0
    assert differences["none", False] > differences["13a", False] > 0


def test_bars_hold_every_sentence_that_differs() -> None:
    report = compare({"a": ["x", "y", "z"], "b": ["w", "y", "v"]}, ["s"] * 3, [["w", "y", "z"]])
    assert report.differences == [100, 0, -100]
    assert bars(report) == {-97.5: 1, 97.5: 1}
    assert bars(replace(report, differences=[5.0, -5.0, 5.1, -0.1])) == {-2.5: 2, 2.5: 1, 7.5: 1}


def bars(report: ComparisonReport) -> dict[float, float]:
    """The heights of the histogram's bars, without empty ones, by their middle."""
    (plot,) = draw(report).axes
    heights = {round(bar.get_x() + bar.get_width() / 2, 3): bar.get_height() for bar in plot.patches}
    return {place: height for place, height in sorted(heights.items()) if height}


def test_equal_systems_are_drawn() -> None:
    report = compare({"a": ["x"], "b": ["x"]}, ["s"], [["x"]])
    assert report.comparisons["BLEU"].p_value == 1
    assert report.counts == (0, 1, 0)
    assert draw(report).axes


def test_what_does_not_fit_together() -> None:
    for outputs, metric in ({"a": ["x"]}, "bleu"), ({"a": ["x"], "b": ["x"]}, "meteor"), ({"a": [], "b": []}, "bleu"):
        with pytest.raises(ValueError, match="two systems, one of .* and a source of their length are needed"):
            compare(outputs, ["s"], [["x"]], metric=metric)


@pytest.fixture
def files(tmp_path: Path) -> list[object]:
    """The sentences above as files; as options."""
    texts = {"source": SOURCE, "ref0": REFERENCES[0], "ref1": REFERENCES[1], **OUTPUTS}
    for name, lines in texts.items():
        (tmp_path / name).write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    options = ["--source", tmp_path / "source", "--reference", tmp_path / "ref0", tmp_path / "ref1"]
    return [*options, "--system", f"CNN={tmp_path}/CNN", "--system", f"DPN={tmp_path}/DPN"]


def test_command(tmp_path: Path, files: list[object], capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("one", "two"):
        run(command, *files, "--output", tmp_path / "new" / name, "--sentences", 1)
    written = tmp_path / "new"
    assert (written / "one.svg").read_bytes() == (written / "two.svg").read_bytes()
    assert (written / "one.json").read_bytes() == (written / "two.json").read_bytes()
    report = json.loads((written / "one.json").read_text(encoding="utf-8"))
    expected = compare(OUTPUTS, SOURCE, REFERENCES)
    assert report["differences"] == expected.differences
    assert report["comparisons"]["BLEU"]["p_value"] == expected.comparisons["BLEU"].p_value
    assert report["better"][0]["outputs"] == {"CNN": "one", "DPN": "one two three five"}
    printed = capsys.readouterr().out
    assert f"p\nBLEU    {expected.comparisons['BLEU'].baseline.score:.2f}" in printed
    assert "sentence BLEU of 5 sentences: DPN is better in 2, CNN in 1, both are equal in 2" in printed
    worse = expected.worse[0].scores["DPN"]
    assert (
        "== Where CNN is furthest ahead ==\n\n"
        "    line 2  zwei\n reference  a b c d e\n reference\n"
        f"CNN, 100.0  a b c d e\n {f'DPN, {worse:.1f}'}  a b x d e\n"
    ) in printed
    assert "line 1" not in printed
    assert ">DPN is better in 2, by " in (written / "one.svg").read_text(encoding="utf-8")


def test_command_with_rouge(tmp_path: Path, files: list[object], capsys: pytest.CaptureFixture[str]) -> None:
    run(command, *files, "--output", tmp_path / "it", "--metric", "rouge", "--format", "png")
    assert (tmp_path / "it.png").exists()
    printed = capsys.readouterr().out
    assert re.search(r"^ROUGE-2 .*\n^ROUGE-L ", printed, flags=re.MULTILINE)
    assert printed.count("rouge-score:") == 1, "one signature for all three"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--sentences", -1], "--sentences -1: give how many to show for either side, 0 or more"),
        (["--metric", "rouge", "--lowercase"], "--tokenize and --lowercase are BLEU's"),
        (["--metric", "rouge", "--tokenize", "none"], "--tokenize and --lowercase are BLEU's"),
        (["--system", "third={folder}/CNN"], "--system: 3 given, but two are compared"),
    ],
)
def test_command_given_something_else(tmp_path: Path, files: list[object], options: list[object], message: str) -> None:
    given = [option.format(folder=tmp_path) if isinstance(option, str) else option for option in options]
    with pytest.raises(InputError, match=message):
        run(command, *files, "--output", tmp_path / "new" / "it", *given)
    assert not (tmp_path / "new").exists()
