"""The comparison of two systems: whole scores, the sentences that differ most, and the command."""

from __future__ import annotations

import json
import math
import re
from argparse import Namespace
from pathlib import Path

import pytest
from sacrebleu.metrics import BLEU

from fairseq_plugins.analysis.compare import ComparisonReport, compare
from fairseq_plugins.errors import InputError
from fairseq_plugins.scoring.bleu import Bleu
from fairseq_plugins.scoring.metrics import Metric, Outputs, References, metric_named
from fairseq_plugins.scoring.rouge import corpus_rouge, sentence_rouge
from fairseq_plugins.scoring.significance import paired_bootstrap

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


def as_outputs(lines: dict[str, list[str]]) -> dict[str, Outputs]:
    return {name: Outputs(of_system, of_system) for name, of_system in lines.items()}


def as_references(references: list[list[str]] = REFERENCES, lowercase: bool = False) -> References:
    return References(references, references, lowercase)


def compared(
    outputs: dict[str, list[str]],
    source: list[str],
    references: list[list[str]],
    metric: str = "bleu",
    tokenize: str = "none",
    lowercase: bool = False,
    **options: int,
) -> ComparisonReport:
    """The comparison of lines by a metric with its options."""
    chosen = metric_named(metric).configured(Namespace(tokenize=tokenize))
    return compare(as_outputs(outputs), source, as_references(references, lowercase), chosen, **options)


def test_bleu() -> None:
    report = compared(OUTPUTS, SOURCE, REFERENCES)
    assert report.comparisons == {
        "BLEU": Bleu().compare(*as_outputs(OUTPUTS).values(), as_references())["bleu_tokenized"]
    }
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
    report = compared(OUTPUTS, SOURCE, REFERENCES, metric="rouge", seed=3)
    assert list(report.comparisons) == ["ROUGE-1", "ROUGE-2", "ROUGE-L"]
    scores = [sentence_rouge(lines, REFERENCES) for lines in OUTPUTS.values()]
    for index, comparison in enumerate(report.comparisons.values()):
        [expected] = paired_bootstrap(*(rows[:, [index]] for rows in scores), lambda summed: summed / 5, seed=3)
        assert comparison.baseline.score == pytest.approx(expected.baseline.score)
        assert comparison.p_value == expected.p_value
        assert comparison.signature == corpus_rouge(OUTPUTS["DPN"], REFERENCES, seed=3).signature
    # Longest common subsequences: 3 of 4 words and 4; 5 of 5 and 4; the same; 1 word of 1 and 4 and 3 of 4; the same.
    assert report.differences == pytest.approx([25, -20, 0, 75 - 40, 0])
    assert report.sentence_metric == "ROUGE-L"


def test_three_systems() -> None:
    """DPN-S2S, Table 6: where it is right and both of its paths are wrong."""
    san = ["a b c x", "a b c d e", "f g h i", "one two", "x y z q"]
    report = compared({"CNN": OUTPUTS["CNN"], "SAN": san, "DPN": OUTPUTS["DPN"]}, SOURCE, REFERENCES, metric="rouge")
    assert report.systems == ("CNN", "SAN", "DPN")
    assert list(report.comparisons) == [f"ROUGE-{n}, {name}" for name in ("CNN", "SAN") for n in ("1", "2", "L")]
    alone = compared({"SAN": san, "DPN": OUTPUTS["DPN"]}, SOURCE, REFERENCES, metric="rouge")
    assert report.comparisons["ROUGE-L, SAN"] == alone.comparisons["ROUGE-L"]
    # ROUGE-L of CNN, SAN, DPN: 75 75 100; 100 100 80; 67 100 67; 40 67 75; 100 75 100.
    assert report.differences == pytest.approx([25, -20, 0, 75 - 200 / 3, 0])
    assert [sentence.number for sentence in report.better] == [1, 4] and report.counts == (1, 2, 2)
    [worse] = report.worse
    assert worse.number == 2 and list(worse.outputs) == list(worse.scores) == ["CNN", "SAN", "DPN"]


def test_the_command_with_three_systems(
    tmp_path: Path, files: list[object], capsys: pytest.CaptureFixture[str]
) -> None:
    run("compare", *files, "--system", f"again={tmp_path}/CNN", "--sentences", 1, "--output", tmp_path / "it")
    printed = capsys.readouterr().out
    assert "BLEU, CNN" in printed and "BLEU, DPN" in printed
    assert "again is better in 0, all others in 0, neither in 5" in printed
    assert "neither in 5 (not drawn)" in (tmp_path / "it.svg").read_text(encoding="utf-8")
    with pytest.raises(InputError, match="--system: 1 given, but two or more are compared"):
        run("compare", *files[:-2], "--output", tmp_path / "one")


def test_as_many_sentences_as_asked() -> None:
    report = compared(OUTPUTS, SOURCE, REFERENCES, sentences=1)
    assert [sentence.number for sentence in report.better + report.worse] == [4, 2]
    report = compared(OUTPUTS, SOURCE, REFERENCES, sentences=0)
    assert report.better == report.worse == []
    # Of equals the first lines come first.
    same = compared({"a": ["x"] * 9, "b": ["y"] * 9}, ["s"] * 9, [["y"] * 9], sentences=3)
    assert [sentence.number for sentence in same.better] == [1, 2, 3]


def test_case_and_tokens() -> None:
    outputs = {"a": ["The man."], "b": ["the man ."]}
    differences = {
        (tokenize, lowercase): compared(
            outputs, ["s"], [["the man ."]], tokenize=tokenize, lowercase=lowercase
        ).differences[0]
        for tokenize in ("none", "13a")
        for lowercase in (False, True)
    }
    assert differences["13a", True] == 0
    assert differences["none", False] > differences["none", True] > 0
    assert differences["none", False] > differences["13a", False] > 0


def test_equal_systems() -> None:
    report = compared({"a": ["x"], "b": ["x"]}, ["s"], [["x"]])
    assert report.comparisons["BLEU"].p_value == 1
    assert report.counts == (0, 1, 0)


def test_a_metric_of_which_less_is_better(toy_perplexity: Metric) -> None:
    outputs = {
        name: Outputs(lines, lines, numbers)
        for name, lines, numbers in (
            ("sure", ["a", "b", "c"], [[-0.1, -0.1], [-2.0, -3.0], [-0.5]]),
            ("unsure", ["d", "e", "f"], [[-1.0, -1.0], [-0.1, -0.1], [-0.5]]),
        )
    }
    report = compare(outputs, ["s1", "s2", "s3"], References([["r"] * 3], [["r"] * 3]), toy_perplexity)
    assert report.sentence_metric == "toy perplexity" and not report.higher_is_better
    assert report.differences == pytest.approx([math.e - math.exp(0.1), math.exp(0.1) - math.exp(2.5), 0])
    assert report.counts == (1, 1, 1)
    assert [sentence.number for sentence in report.better] == [2], "where its perplexity is lower"
    assert [sentence.number for sentence in report.worse] == [1]
    comparison = report.comparisons["toy perplexity"]
    assert comparison.baseline.score == pytest.approx(math.exp(5.7 / 5))
    assert comparison.difference == pytest.approx(math.exp(2.7 / 5) - math.exp(5.7 / 5))
    assert comparison.signature == "nrefs:1|bs:1000|seed:12345|toy_perplexity"


def test_a_metric_that_is_made_of_questions() -> None:
    """Its rows are no lines of the files: none is shown."""
    outputs = {
        name: Outputs(scores, scores, [[]] * 4)
        for name, scores in (("A", ["0.1", "0.9", "0.1", "0.9"]), ("B", ["0.9", "0.1", "0.9", "0.1"]))
    }
    candidates = ["who 1", "who 0", "why 1", "why 0"]
    report = compare(outputs, ["c1", "c2", "c3", "c4"], References([candidates], [candidates]), metric_named("ranking"))
    assert report.differences == [50, 50] and report.counts == (0, 0, 2) and report.unit == "questions"
    assert report.better == report.worse == []


def test_what_does_not_fit_together() -> None:
    for outputs in {"a": ["x"]}, {"a": ["x"], "b": []}:
        with pytest.raises(ValueError, match="two systems or more and a source of their length are needed"):
            compared(outputs, ["s"], [["x"]])
    with pytest.raises(InputError, match="there is no metric 'bluu'; did you mean 'bleu'"):
        compared(OUTPUTS, SOURCE, REFERENCES, metric="bluu")


@pytest.fixture
def files(tmp_path: Path) -> list[object]:
    """The sentences above as files; as options."""
    texts = {"source": SOURCE, "ref0": REFERENCES[0], "ref1": REFERENCES[1], **OUTPUTS}
    for name, lines in texts.items():
        (tmp_path / name).write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    options = ["--source", tmp_path / "source", "--reference", tmp_path / "ref0", tmp_path / "ref1"]
    return [*options, "--system", f"CNN={tmp_path}/CNN", "--system", f"DPN={tmp_path}/DPN"]


@pytest.mark.system
def test_command(tmp_path: Path, files: list[object], capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("one", "two"):
        run("compare", *files, "--output", tmp_path / "new" / name, "--sentences", 1)
    written = tmp_path / "new"
    assert (written / "one.svg").read_bytes() == (written / "two.svg").read_bytes()
    assert (written / "one.json").read_bytes() == (written / "two.json").read_bytes()
    report = json.loads((written / "one.json").read_text(encoding="utf-8"))
    expected = compared(OUTPUTS, SOURCE, REFERENCES)
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


def test_every_file_counts(tmp_path: Path, files: list[object]) -> None:
    """Of --source, --reference and --system."""

    def report(*changed: object) -> dict[str, object]:
        run("compare", *files, *changed, "--output", tmp_path / "it")
        return json.loads((tmp_path / "it.json").read_text(encoding="utf-8"))

    whole = report()
    assert report() == whole
    (tmp_path / "other").write_text("f g h i\n" * 5, encoding="utf-8")
    other = str(tmp_path / "other")
    assert {line["source"] for line in report("--source", other)["better"]} == {"f g h i"}
    assert report("--reference", other)["differences"] != whole["differences"]
    del files[-4:]
    swapped = report("--system", f"DPN={tmp_path}/DPN", "--system", f"CNN={tmp_path}/CNN")
    assert swapped["differences"] == [-difference for difference in whole["differences"]]


def test_command_with_rouge(tmp_path: Path, files: list[object], capsys: pytest.CaptureFixture[str]) -> None:
    run("compare", *files, "--output", tmp_path / "it", "--metric", "rouge", "--format", "png")
    assert (tmp_path / "it.png").exists()
    printed = capsys.readouterr().out
    assert re.search(r"^ROUGE-2 .*\n^ROUGE-L ", printed, flags=re.MULTILINE)
    assert printed.count("rouge-score:") == 1, "one signature for all three"


def test_command_with_several_metrics(tmp_path: Path, files: list[object], capsys: pytest.CaptureFixture[str]) -> None:
    run("compare", *files, "--output", tmp_path / "it", "--metrics", "bleu,chrf,ter,rouge_lsum,cer")
    report = json.loads((tmp_path / "it.json").read_text(encoding="utf-8"))
    assert list(report["comparisons"]) == ["BLEU", "chrF++", "TER", "ROUGE-Lsum", "CER (%)"]
    assert report["sentence_metric"] == "sentence BLEU"
    differences = {name: comparison["difference"] for name, comparison in report["comparisons"].items()}
    assert differences["chrF++"] > 0 > differences["TER"], "the second has fewer edits, and is better by both"
    printed = capsys.readouterr().out
    assert printed.count("bs:1000|seed:12345") == 5 and "|nw:2|" in printed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--metrics", "bleu,accuracy"], "BLEU and accuracy do not score the same outputs; give each by itself"),
        (["--sentences", -1], "--sentences -1: give how many to show for either side, 0 or more"),
        (["--metric", "rouge", "--lowercase"], "--tokenize and --lowercase are BLEU's"),
        (["--metric", "rouge", "--tokenize", "none"], "--tokenize and --lowercase are BLEU's"),
        (["--metric", "rouge", "--sacrebleu-tokenize", "char"], "--sacrebleu-tokenize is BLEU's, and ROUGE has none"),
        (["--rouge-tokenize", "unicode"], "--rouge-tokenize is ROUGE's, and BLEU has none; leave it out"),
        (["--sacrebleu-tokenize", "chars"], "sacrebleu-tokenize chars: choose one of"),
    ],
)
def test_command_given_something_else(tmp_path: Path, files: list[object], options: list[object], message: str) -> None:
    given = [option.format(folder=tmp_path) if isinstance(option, str) else option for option in options]
    with pytest.raises(InputError, match=message):
        run("compare", *files, "--output", tmp_path / "new" / "it", *given)
    assert not (tmp_path / "new").exists()


@pytest.mark.system
@pytest.mark.parametrize(
    ("command", "ending", "options", "signature", "remark"),
    [
        ("compare", "zh", ["--tokenize", "13a"], "|tok:zh|", "sacreBLEU cuts text by zh, since the target language is"),
        ("length", "zh", ["--tokenize", "13a"], "|tok:zh|", "sacreBLEU cuts text by zh, since the target language is"),
        (
            "compare",
            "txt",
            ["--tokenize", "13a"],
            "|tok:13a|",
            "warning: sacreBLEU cuts text by 13a, which wants words",
        ),
        ("compare", "txt", [], "|tok:none|", "warning: tokenised BLEU is of what is between spaces"),
        ("compare", "txt", ["--sacrebleu-tokenize", "char"], "|tok:char|", ""),
        ("length", "txt", ["--metric", "rouge"], "|tok:nfc,lc,", "ROUGE counts words of all letters"),
        ("compare", "en", ["--metric", "rouge"], "|tok:lc,a-z0-9|", "ROUGE counts runs of a-z and 0-9"),
    ],
)
def test_the_language_of_the_references(
    command: str,
    ending: str,
    options: list[str],
    signature: str,
    remark: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    texts = {
        "source": "a b",
        f"test.{ending}": "我今天在学校学习中文",
        "A": "我今天在学校学汉语",
        "B": "他在学校学习中文",
    }
    for name, line in texts.items():
        (tmp_path / name).write_text(f"{line}\n" * 3, encoding="utf-8")
    files = ["--source", tmp_path / "source", "--reference", tmp_path / f"test.{ending}"]
    systems = ["--system", f"A={tmp_path}/A", f"B={tmp_path}/B"]
    run(command, *files, *systems, *options, "--output", tmp_path / "it")
    printed = capsys.readouterr().out
    assert signature in printed and remark in printed
    assert remark or "warning" not in printed
