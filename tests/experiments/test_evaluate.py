"""Evaluations side by side, and of what does not belong together; the decoding itself is played."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from fairseq_plugins.corpora.pairs import PairsPreparation
from fairseq_plugins.decoding.prepared_data import PreparedData
from fairseq_plugins.errors import InputError
from fairseq_plugins.experiments import evaluate
from fairseq_plugins.experiments.decoding import Decoded, Generation, Request
from fairseq_plugins.experiments.run import Run
from fairseq_plugins.scoring.bleu import Bleu

from .test_configuration import write

SENTENCES = 3


@pytest.fixture
def arguments(tmp_path: Path, data: PreparedData, tiny_checkpoint: Path) -> list[str]:
    """Of evaluate.sh, with a model that has 32 words on each side and does not say which, and data with as many."""
    for language in "de", "en":
        words = "".join(f"{language}{number} 1\n" for number in range(28))
        (data.folder / "bin" / f"dict.{language}.txt").write_text(words, encoding="utf-8")
        for name in "test", "test1":
            for folder in "raw", "tokens":
                (data.folder / folder).mkdir(exist_ok=True)
                (data.folder / folder / f"{name}.{language}").write_text(f"{language}1\n" * SENTENCES, encoding="utf-8")
    PairsPreparation("de", "en", bpe="none", splits={"test": {}, "test1": {"name": "nist05"}}).save(data.folder)
    work = tmp_path / "work"
    (work / "checkpoints").mkdir(parents=True)
    checkpoint = torch.load(tiny_checkpoint, weights_only=True)
    del checkpoint["dictionaries"]
    torch.save(checkpoint, work / "checkpoints" / "checkpoint_best.pt")
    configuration = write(tmp_path, model="train: {arch: rnnsearch_iwslt_de_en}")
    return [str(configuration), "--work", str(work), "--data", str(data.folder), "--gpus", "0"]


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], None]]:
    """What else is to be done while a set is decoded."""
    others: list[Callable[[], None]] = []

    def decode(self: Generation, request: Request, number: int, count: int, progress: Callable) -> Decoded:
        assert request.decoding == "generate"
        decoded = Decoded(seconds=1.0)
        for sentence in range(SENTENCES):
            decoded.hypotheses[sentence] = (f"en{sentence}", [-1.0, -1.0])
            progress()
            while others:
                others.pop()()
        return decoded

    monkeypatch.setattr(Generation, "decode", decode)
    return others


def test_two_evaluations_at_once(
    arguments: list[str], meanwhile: list[Callable[[], None]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused: list[InputError] = []

    def again() -> None:
        with pytest.raises(InputError, match="another evaluation of this set is at work; wait for it") as raised:
            evaluate.main(arguments)
        refused.append(raised.value)

    meanwhile += [again, lambda: evaluate.main([*arguments, "--subset", "nist05"])]
    evaluate.main(arguments)
    assert refused
    results = json.loads((tmp_path / "work" / "results.json").read_text(encoding="utf-8"))
    assert "bleu_tokenized" in results and set(results["subsets"]) == {"nist05"}
    for name in "test", "test1":
        tokens = (tmp_path / "work" / "generate" / f"{name}.tok.en").read_text(encoding="utf-8")
        assert tokens == "en0\nen1\nen2\n", "each file is of one evaluation"


def test_unknown_words_that_stay_are_said_on_the_screen(
    arguments: list[str],
    meanwhile: list[Callable[[], None]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = "--replace-unk: 2 unknown words stay, because nobody knows them"
    decode = Generation.decode

    def warn(self: Generation, *arguments: Any) -> Decoded:
        decoded = decode(self, *arguments)
        decoded.warnings.append(said)
        return decoded

    evaluate.main(arguments)
    assert "warning" not in capsys.readouterr().out
    monkeypatch.setattr(Generation, "decode", warn)
    evaluate.main(arguments)
    assert f"\nwarning: {said}\n" in capsys.readouterr().out


def test_an_ensemble(
    arguments: list[str], meanwhile: list[Callable[[], None]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    best, other = tmp_path / "work/checkpoints/checkpoint_best.pt", tmp_path / "other.pt"
    shutil.copy(best, other)
    decode, asked = Generation.decode, []

    def ask(self: Generation, request: Request, *more: Any) -> Decoded:
        asked.append(request.checkpoints)
        return decode(self, request, *more)

    monkeypatch.setattr(Generation, "decode", ask)
    evaluate.main([*arguments, "--checkpoint", f"{best}:{other}"])
    assert asked == [(str(best), str(other))]
    results = json.loads((tmp_path / "work" / "results.json").read_text(encoding="utf-8"))
    assert results["checkpoint"] == f"{best}:{other}"


@pytest.mark.parametrize("content", ["[]", "{", "\0"])
def test_damaged_results_are_noticed_before_the_decoding(
    arguments: list[str], meanwhile: list[Callable[[], None]], tmp_path: Path, content: str
) -> None:
    (tmp_path / "work" / "results.json").write_text(content, encoding="utf-8")
    meanwhile.append(lambda: pytest.fail("it was decoded"))
    with pytest.raises(InputError, match="results.json: not .*; delete it: training and evaluation write it anew"):
        evaluate.main(arguments)


def test_other_dictionaries_are_refused(
    arguments: list[str], meanwhile: list[Callable[[], None]], data: PreparedData
) -> None:
    meanwhile.append(lambda: pytest.fail("it was decoded"))
    (data.folder / "bin" / "dict.en.txt").write_text("one 1\n", encoding="utf-8")
    with pytest.raises(InputError, match="dict.en.txt: 5 words .* the dictionaries are of another size"):
        evaluate.main(arguments)


def refuse(message: str) -> None:
    raise InputError(message)


def test_a_failed_decoding_keeps_what_was_there(
    arguments: list[str], meanwhile: list[Callable[[], None]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate.main(arguments)
    before = {path: path.read_bytes() for path in (tmp_path / "work").rglob("*") if path.is_file()}

    meanwhile.append(lambda: refuse("sentence 1 of 'test' has 2,000 tokens"))
    with pytest.raises(InputError, match="^sentence 1 of 'test' has 2,000 tokens$"):
        evaluate.main(arguments)
    assert {path: path.read_bytes() for path in before} == before


def test_a_training_that_goes_on_meanwhile(
    arguments: list[str], meanwhile: list[Callable[[], None]], tmp_path: Path
) -> None:
    evaluate.main(arguments)
    before = {path: path.read_bytes() for path in (tmp_path / "work" / "generate").iterdir()}
    meanwhile.append(lambda: Run(tmp_path / "work").write({"updates": 60_000}))
    with pytest.raises(InputError, match="work: the training has gone on meanwhile; evaluate again"):
        evaluate.main(arguments)
    assert Run(tmp_path / "work").results == {"updates": 60_000}
    assert {path: path.read_bytes() for path in before} == before


def test_where_the_model_looks_is_shown_beside_the_scores_of_the_same_checkpoint(
    arguments: list[str], meanwhile: list[Callable[[], None]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for subset, checkpoint, kept in (
        ("test1", "checkpoint_best.pt", "checkpoint_best.pt"),
        ("test", "checkpoint_best.pt", "checkpoint_best.pt"),
        ("test1", "other.pt", "checkpoint_best.pt"),
        ("test", "other.pt", "other.pt"),
        ("test", "other.pt:checkpoint_best.pt", None),
    ):
        folder = tmp_path / "work" / "checkpoints"
        shutil.copy(folder / "checkpoint_best.pt", folder / "other.pt")

        def attention(checkpoint: str, data: PreparedData) -> dict[str, Any] | None:
            return None if ":" in checkpoint else {"checkpoint": Path(checkpoint).name, "warnings": []}

        monkeypatch.setattr(evaluate, "attention_over_development_set", attention)
        paths = ":".join(str(folder / name) for name in checkpoint.split(":"))
        evaluate.main([*arguments, "--subset", subset, "--checkpoint", paths])
        assert Run(tmp_path / "work").results.get("attention", {}).get("checkpoint") == kept


def test_what_cannot_be_scored_replaces_nothing(
    arguments: list[str], meanwhile: list[Callable[[], None]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate.main(arguments)
    before = {path: path.read_bytes() for path in (tmp_path / "work").rglob("*") if path.is_file()}

    def scores(*_: object) -> dict[str, float]:
        raise InputError("no score")

    monkeypatch.setattr(Bleu, "scores", scores)
    with pytest.raises(InputError, match="no score"):
        evaluate.main([*arguments, "--beam", "2"])
    assert {path: path.read_bytes() for path in before} == before


def test_a_crash_while_outputs_are_replaced_leaves_no_scores_of_others(
    arguments: list[str], meanwhile: list[Callable[[], None]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate.main(arguments)
    assert Run(tmp_path / "work").is_evaluated

    def full(*_: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(Generation, "write", full)
    with pytest.raises(OSError, match="No space left"):
        evaluate.main(arguments)
    assert not Run(tmp_path / "work").is_evaluated


def prepared_for(arguments: list[str], metric: str, *lines: str) -> None:
    """The test set's references, in a language that has no spaces, under the name of none."""
    folder = Path(arguments[arguments.index("--data") + 1])
    for name in ("raw", "tokens"):
        (folder / name / "test.en").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    PairsPreparation("de", "en", bpe="none", splits={"test": {}}, metric=metric).save(folder)


THAI = ("ฉันเรียนภาษาไทยที่โรงเรียนในวันนี้", "พรุ่งนี้เราจะไปตลาดกับเพื่อน", "en2")


def test_the_tokenizer_of_sacrebleu(
    arguments: list[str], meanwhile: list[Callable[[], None]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prepared_for(arguments, "bleu", *THAI)
    evaluate.main(arguments)
    written = capsys.readouterr().out
    assert "warning: sacreBLEU cuts text by 13a" in written and "--sacrebleu-tokenize" in written
    evaluate.main([*arguments, "--sacrebleu-tokenize", "char"])
    written = capsys.readouterr().out
    assert "|tok:char|" in written and "warning: sacreBLEU" not in written
    found = Run(tmp_path / "work").results
    assert "|tok:char|" in found["sacrebleu_signature"] and found["tokenizer"] == "char"
    # Not given any more, it is not kept.
    evaluate.main(arguments)
    assert Run(tmp_path / "work").results["tokenizer"] is None
    Path(arguments[0]).write_text("train: {arch: rnnsearch_iwslt_de_en}\nevaluate: {sacrebleu-tokenize: char}\n")
    evaluate.main(arguments)
    assert Run(tmp_path / "work").results["tokenizer"] == "char"
    with pytest.raises(InputError, match="rouge-tokenize is not for BLEU, which the scores are of: leave it out"):
        evaluate.main([*arguments, "--rouge-tokenize", "unicode"])
    Path(arguments[0]).write_text("train: {arch: rnnsearch_iwslt_de_en}\nevaluate: {sacrebleu-tokenize: chars}\n")
    with pytest.raises(InputError, match="model.yaml, line 2: sacrebleu-tokenize chars: choose one of"):
        evaluate.main(arguments)


def test_what_rouge_counts(
    arguments: list[str], meanwhile: list[Callable[[], None]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prepared_for(arguments, "rouge", "en0", "x", "en2")
    evaluate.main(arguments)
    written = capsys.readouterr().out
    assert "ROUGE counts runs of a-z and 0-9, as rouge-score does, since the target language is 'en'" in written
    assert "|tok:lc,a-z0-9|" in Run(tmp_path / "work").results["rouge_signature"]
    evaluate.main([*arguments, "--rouge-tokenize", "unicode"])
    assert "since --rouge-tokenize says so" in capsys.readouterr().out
    assert "|tok:nfc,lc,unicode-words" in Run(tmp_path / "work").results["rouge_signature"]
    Path(arguments[0]).write_text("train: {arch: rnnsearch_iwslt_de_en}\nevaluate: {rouge-tokenize: unicode}\n")
    evaluate.main(arguments)
    assert "|tok:nfc,lc,unicode-words" in Run(tmp_path / "work").results["rouge_signature"]


def test_several_metrics(
    arguments: list[str], meanwhile: list[Callable[[], None]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluate.main([*arguments, "--metrics", "bleu,chrf,ter,exact_match,cer"])
    heading = capsys.readouterr().out.splitlines()
    columns = "sacreBLEU +chrF\\+\\+ +TER +exact match .* +CER"
    assert any(re.search(columns, line) for line in heading)
    assert any(re.match("95 % intervals: TER [0-9.]+-[0-9.]+", line) for line in heading)
    results = Run(tmp_path / "work").results
    # Of en0, en1, en2 the second is right.
    assert results["exact_match"] == pytest.approx(100 / 3, abs=0.005) and results["ter"] > results["cer"] > 0
    assert "|nw:2|" in results["chrf_signature"] and "|seed:12345|" in results["ter_signature"]
    evaluate.main([*arguments, "--metrics", "chrf,rouge,rouge_lsum"])
    assert "ROUGE-Lsum" in capsys.readouterr().out
    results = Run(tmp_path / "work").results
    assert {"chrf", "rouge1", "rougeL", "rougeLsum", "rougeLsum_signature"} < set(results)
    assert results["rougeLsum"] == results["rougeL"], "each target is one sentence"
    assert not {"ter", "ter_signature", "ter_intervals", "bleu_sacrebleu"} & set(results), "they are of other outputs"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--metrics", "bleu,accuracy"], "BLEU and accuracy do not score the same outputs; give each by itself"),
        (["--metrics", "chrff"], "there is no metric 'chrff'; did you mean 'chrf'"),
        (["--metrics", "accuracy"], "a corpus of pairs of texts, but the metric 'accuracy' scores what is made of"),
        (["--metrics", ","], "--metrics ,: give one name or several, such as bleu,chrf,ter"),
        (["--metrics", "chrf", "--sacrebleu-tokenize", "char"], "sacrebleu-tokenize is not for chrF"),
        (["--metrics", "chrf", "--record"], "--metrics with --record: .* leave one of them out"),
    ],
)
def test_metrics_that_cannot_be(
    options: list[str], sentence: str, arguments: list[str], meanwhile: list[Callable[[], None]]
) -> None:
    meanwhile.append(lambda: pytest.fail("it was decoded"))
    with pytest.raises(InputError, match=sentence):
        evaluate.main([*arguments, *options])
