"""BLEU by length against corpus BLEU of the same sentences, and the command."""

from __future__ import annotations

import io
import json
import random
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from sacrebleu.metrics import BLEU

from fairseq_plugins import startup
from fairseq_plugins.analysis.length import BOUNDS, LengthReport, scores_by_length
from fairseq_plugins.errors import InputError
from fairseq_plugins.scoring.metrics import Metric, Outputs, References, metric_named
from fairseq_plugins.scoring.significance import Interval

from .commands import run

WORDS = ["the", "The", "a", "man,", "U.S."]


def corpus(lengths: list[int], rate: float, seed: int = 1) -> tuple[list[str], list[str]]:
    """References of some lengths, and what a system makes of them."""
    generator = random.Random(seed)
    references = [generator.choices(WORDS, k=length) for length in lengths]
    corrupted = [[word if generator.random() > rate else "x" for word in words] for words in references]
    return [" ".join(words) for words in references], [" ".join(words) for words in corrupted]


def by_length(
    systems: dict[str, list[str]],
    references: list[list[str]],
    lengths: list[int],
    bounds: Sequence[int] = BOUNDS,
    tokenize: str = "none",
    lowercase: bool = False,
    **options: int,
) -> LengthReport:
    """BLEU of lines by length."""
    outputs = {name: Outputs(lines, lines) for name, lines in systems.items()}
    metric = metric_named("bleu").configured(Namespace(tokenize=tokenize))
    return scores_by_length(outputs, References(references, references, lowercase), lengths, metric, bounds, **options)


def test_buckets() -> None:
    lengths = [1, 10, 11, 20, 21, 60, 61, 200]
    report = by_length({"a": ["x"] * 8}, [["x"] * 8], lengths)
    assert [(bucket.label, bucket.sentences) for bucket in report.buckets] == [
        ("1–10", 2),
        ("11–20", 2),
        ("21–30", 1),
        ("51–60", 1),
        ("61 and more", 2),
    ]
    report = by_length({"a": ["x"] * 8}, [["x"] * 8], lengths, (1, 60))
    assert [(b.shortest, b.longest, b.sentences) for b in report.buckets] == [(1, 1, 1), (2, 60, 5), (61, None, 2)]


@pytest.mark.parametrize(("tokenize", "lowercase"), [("none", False), ("13a", True)])
def test_scores_are_corpus_bleu(tokenize: str, lowercase: bool) -> None:
    lengths = [4 + index % 30 for index in range(120)]
    references, good = corpus(lengths, 0.1)
    bad = corpus(lengths, 0.2)[1]
    systems = {"bad": [line.lower() for line in bad], "good": good}
    options = {"tokenize": tokenize, "lowercase": lowercase, "samples": 200}
    report = by_length(systems, [references], lengths, **options)
    metric = BLEU(tokenize=tokenize, lowercase=lowercase, smooth_method="none" if tokenize == "none" else "exp")
    assert [bucket.sentences for bucket in report.buckets] == [28, 40, 40, 12]
    for bucket in report.buckets:
        own = [i for i, n in enumerate(lengths) if bucket.shortest <= n and n <= (bucket.longest or n)]
        for name, lines in systems.items():
            expected = metric.corpus_score([lines[i] for i in own], [[references[i] for i in own]]).score
            assert bucket.scores[name].score == pytest.approx(expected)
            assert bucket.scores[name].low < expected < bucket.scores[name].high
        assert list(bucket.differences) == ["good"]
        gain = bucket.differences["good"]
        assert gain.score == pytest.approx(bucket.scores["good"].score - bucket.scores["bad"].score)
        assert 0 < gain.low < gain.score < gain.high
    assert report == by_length(systems, [references], lengths, **options), "seeded"
    assert report != by_length(systems, [references], lengths, **options, seed=1)
    assert report.signature.startswith("nrefs:1|bs:200|seed:12345|case:")


@pytest.mark.system
def test_interval_by_drawing_sentences() -> None:
    lengths = [12] * 40
    references, system = corpus(lengths, 0.2)
    found = by_length({"a": system}, [references], lengths, samples=2000).buckets[0].scores["a"]
    metric, generator = BLEU(tokenize="none", smooth_method="none"), random.Random(1)
    scores = []
    for _ in range(400):
        own = generator.choices(range(40), k=40)
        scores.append(metric.corpus_score([system[i] for i in own], [[references[i] for i in own]]).score)
    # Two independent samplings of one distribution: its ends differ by a fraction of its width.
    low, high = np.percentile(scores, [2.5, 97.5])
    assert found.low == pytest.approx(low, abs=0.15 * (high - low))
    assert found.high == pytest.approx(high, abs=0.15 * (high - low))


def test_pairs_of_samples() -> None:
    # The second system's sentences are the first's: whatever is drawn, there is no difference.
    lengths = [8] * 20
    references, system = corpus(lengths, 0.2)
    gain = by_length({"a": system, "b": system}, [references], lengths).buckets[0].differences["b"]
    assert (gain.score, gain.low, gain.high) == (0, 0, 0)


def test_small_buckets() -> None:
    report = by_length({"a": ["x y z", "", "a b"]}, [["x y z", "b", "c"]], [3, 11, 12])
    single, empty = report.buckets
    assert single.scores["a"] == Interval(0.0, None, None), "no 4-gram, and no interval of one sentence"
    assert empty.scores["a"] == Interval(0.0, 0.0, 0.0)


def test_what_does_not_fit_together() -> None:
    with pytest.raises(ValueError, match=r"one entry for each sentence, but have \[2, 1, 2\]"):
        by_length({"a": ["x"]}, [["x", "y"]], [1, 2])
    with pytest.raises(ValueError, match=r"have \[0, 0, 0\]"):
        by_length({"a": []}, [[]], [])
    with pytest.raises(ValueError, match="a source sentence has no token"):
        by_length({"a": ["x"]}, [["x"]], [0])
    for bounds in ([], [10, 10], [20, 10], [0, 10]):
        with pytest.raises(ValueError, match="bounds must rise"):
            by_length({"a": ["x"]}, [["x"]], [1], bounds)


def test_any_metric_that_is_made_of_sentences(toy_perplexity: Metric) -> None:
    lines = ["x"] * 3
    outputs = {"a": Outputs(lines, lines, [[-1.0], [-1.0, -2.0], [-4.0]])}
    report = scores_by_length(outputs, References([lines], [lines]), [3, 4, 30], toy_perplexity)
    assert report.metric == "toy perplexity"
    scores = [bucket.scores["a"].score for bucket in report.buckets]
    assert scores == pytest.approx(np.exp([4 / 3, 4]).tolist())
    outputs = {"a": Outputs(lines, lines, [[-1.0]])}
    with pytest.raises(InputError, match="toy perplexity is not made of sentences"):
        scores_by_length(outputs, References([lines], [lines]), [3, 4, 30], toy_perplexity)


@pytest.fixture
def files(tmp_path: Path) -> list[object]:
    """A test set of 30 sentences of 5 to 34 words, and two systems; as options."""
    lengths = list(range(5, 35))
    references, good = corpus(lengths, 0.1)
    for name, lines in (("source", references), ("reference", references), ("good", good)):
        (tmp_path / name).write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    (tmp_path / "bad").write_text("".join(line + "\n" for line in corpus(lengths, 0.3)[1]), encoding="utf-8")
    options = ["--source", tmp_path / "source", "--reference", tmp_path / "reference"]
    return [*options, "--system", f"bad={tmp_path}/bad", f"good $x$={tmp_path}/good"]


@pytest.mark.system
def test_command(tmp_path: Path, files: list[object], capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("one", "two"):
        run("length", *files, "--output", tmp_path / "new" / name, "--bounds", 10, 20)
    written = tmp_path / "new"
    assert (written / "one.svg").read_bytes() == (written / "two.svg").read_bytes()
    assert (written / "one.json").read_bytes() == (written / "two.json").read_bytes()
    report = json.loads((written / "one.json").read_text(encoding="utf-8"))
    assert [bucket["sentences"] for bucket in report["buckets"]] == [6, 10, 14]
    assert report["buckets"][2]["longest"] is None
    score = report["buckets"][0]["scores"]["bad"]["score"]
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split("  ")[0] == "tokens" and "good $x$ - bad" in lines[0]
    assert lines[1].startswith("1–10") and f" {score:.2f} (" in lines[1]
    assert lines[4].startswith("BLEU with 95 % intervals: nrefs:1|bs:1000|seed:12345|")
    svg = (written / "one.svg").read_text(encoding="utf-8")
    for text in ("good $x$", "21 and more", "n = 14"):
        assert f">{text}<" in svg


def test_lengths_of_text_without_spaces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sources = ["今天天气很好。", "他在学校学习中文和数学，也学习音乐。", "好！", "…"]
    for name, lines in {"source": sources, "test.en": ["a b c d"] * 4, "system": ["a b c e"] * 4}.items():
        (tmp_path / name).write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    files = ["--source", tmp_path / "source", "--reference", tmp_path / "test.en", "--system", f"x={tmp_path}/system"]
    run("length", *files, "--output", tmp_path / "it", "--bounds", 1, 6)
    report = json.loads((tmp_path / "it.json").read_text(encoding="utf-8"))
    assert [bucket["sentences"] for bucket in report["buckets"]] == [2, 1, 1]
    assert "lengths are in characters, since the source has hardly a space" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["length", "compare"])
def test_what_is_printed_is_utf_8_where_the_locale_is_not(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, last in {"source": "שלום", "test.en": "שלום", "first": "ja", "second": "nein"}.items():
        (tmp_path / name).write_text(f"今 天 好\nשלום לך\n{last}\n", encoding="utf-8")
    output = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(output, encoding="latin-1", write_through=True))
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(io.BytesIO(), encoding="latin-1"))
    startup._open_streams()
    files = ["--source", tmp_path / "source", "--reference", tmp_path / "test.en"]
    systems = [f"--system=一={tmp_path}/first", f"--system=二={tmp_path}/second"]
    run(command, *files, *systems, "--output", tmp_path / "it")
    assert "二" in output.getvalue().decode("utf-8")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--bounds", 20, 10], r"--bounds 20 10: give numbers that rise, from 1 or more"),
        (["--seed", 0], "--seed 0: the bootstrap takes seeds from 1 on"),
        (["--system", "bad=x"], "--system bad=x: bad is .*/bad already"),
        (["--system", "file"], "--system file: not NAME=FILE"),
        (["--system", "=file"], "--system =file: not NAME=FILE"),
        (["--system", "third=missing"], "missing: no such file"),
        (["--system", "third={folder}/short"], "short has 1 lines, but .*/source has 30; each line must belong"),
        (["--reference", "{folder}/reference", "{folder}/short"], "short has 1 lines, but .*/source has 30"),
        (["--system", "third={folder}/long"], "long has 31 lines, but .*/source has 30"),
        (["--source", "{folder}/empty"], "empty: empty; give the sentences of a test set"),
        (["--source", "{folder}/gap"], "gap, line 3: empty, so it belongs to no length; leave this line out"),
    ],
)
def test_command_given_something_else(tmp_path: Path, files: list[object], options: list[object], message: str) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "short").write_text("a\n")
    (tmp_path / "long").write_text("a\n" * 31)
    (tmp_path / "gap").write_text("a\na\n \n" + "a\n" * 27)
    given = [option.format(folder=tmp_path) if isinstance(option, str) else option for option in options]
    with pytest.raises(InputError, match=message):
        run("length", *files, "--output", tmp_path / "new" / "it", *given)
    assert not (tmp_path / "new").exists()
