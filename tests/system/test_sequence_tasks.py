"""Sequence tasks from text to predictions by the scripts, on a handful of built-in examples."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from fairseq_plugins.analysis.picked_words import picked_words
from fairseq_plugins.corpora import builtin
from fairseq_plugins.decoding.prepared_data import PreparedData
from fairseq_plugins.experiments import evaluate, predict, train
from fairseq_plugins.files import read_lines
from fairseq_plugins.report import command as report
from fairseq_plugins.scoring.metrics import Outputs, References, metric_named
from tests.commands import CHECKOUT, run_in_process, run_script

SIZES = {"train": 60, "valid": 10, "test": 13}
CANDIDATES = 6
"""Of each question in the ranking."""
SMALL = ["--embed-dim", "8", "--hidden-size", "8", "--max-update", "6", "--num-workers", "0"]


def prepared(folder: Path, task: str, *options: str) -> Path:
    """The first built-in texts of a task, prepared."""
    for split, size in SIZES.items():
        number = 1 + size * (CANDIDATES if task == "ranking" else 1)
        rows = builtin.read(task)[f"{split}.tsv"].splitlines(keepends=True)[:number]
        (folder / f"{split}.tsv").write_text("".join(rows), encoding="utf-8")
    files = [part for split in SIZES for part in (f"--{split}", folder / f"{split}.tsv")]
    run_script("prepare_labelled_texts", *files, *options, "--workers", 1, "--output", folder / "data")
    return folder / "data"


def trained(configuration: str, data: Path, work: Path, *options: object) -> dict:
    """Trains and evaluates; returns ``results.json``."""
    place = [CHECKOUT / "configs" / configuration, "--work", work, "--data", data, "--gpus", 0]
    run_in_process(train.main, *place, *options)
    run_in_process(evaluate.main, *place)
    return json.loads((work / "results.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The prepared data and the work folder of a classifier."""
    folder = tmp_path_factory.mktemp("classification")
    data = prepared(folder, "classification", "--text", "text", "--label", "label", "--lowercase")
    place = [CHECKOUT / "configs/trec/rcrn.yaml", "--work", folder / "work", "--data", data, "--gpus", 0]
    run_script("train", *place, *SMALL)
    run_script("evaluate", *place)
    return data, folder / "work"


def lines(path: Path) -> list[str]:
    return list(read_lines(path))


def test_a_classifier_is_scored_over_every_text(classifier: tuple[Path, Path]) -> None:
    data, work = classifier
    results = json.loads((work / "results.json").read_text(encoding="utf-8"))
    predicted = [line.split("\t")[0] for line in lines(work / "generate" / "test.predicted.tsv")[1:]]
    labels = lines(data / "raw" / "test.label")
    assert len(predicted) == SIZES["test"]
    right = sum(a == b for a, b in zip(predicted, labels, strict=True))
    assert results["accuracy"] == pytest.approx(100 * right / len(labels), abs=0.005)
    assert results["updates"] == 6 and results["parameters"] > 0


def test_text_in_classes_out(classifier: tuple[Path, Path], tmp_path: Path) -> None:
    data, work = classifier
    checkpoint = work / "checkpoints" / "checkpoint_best.pt"
    texts = lines(data / "raw" / "test.input0")
    finished = run_script(
        "predict", checkpoint, "--gpus", 0, stdin="\n".join([*texts[:4], "", "  An unseen WORD "]) + "\n"
    )
    shown = finished.stdout.splitlines()
    assert len(shown) == 6 and shown[4] == "", "as many predictions out as lines in"
    expected = [line.split("\t")[0] for line in lines(work / "generate" / "test.predicted.tsv")[1:5]]
    assert [line.split("\t")[0] for line in shown[:4]] == expected
    shares = dict(pair.split("=") for pair in shown[5].split("\t")[1].split())
    assert sum(map(float, shares.values())) == pytest.approx(1, abs=0.001)
    assert max(shares, key=lambda label: float(shares[label])) == shown[5].split("\t")[0]
    error = run_script("predict", checkpoint, status=1, stdin="one\ttwo\n").stderr.splitlines()[-1]
    assert error == "error: standard input, line 1: 2 texts, but the model reads text"


def test_predictions_that_fail_are_one_sentence(classifier: tuple[Path, Path], tmp_path: Path) -> None:
    data, work = classifier
    finished = run_script("predict", work, "--gpus", 0, "--max-tokens", 2, status=1, stdin="The doctor paid a visit.\n")
    started, sentence = finished.stderr.splitlines()
    assert started.endswith("checkpoint_best.pt: starting PyTorch and fairseq")
    assert sentence == "error: --max-tokens 2: an example has 6 tokens, which no batch can hold; say at least 6"
    other = tmp_path / "data"
    shutil.copytree(data, other)
    with open(other / "bin" / "input0" / "dict.txt", "a", encoding="utf-8") as dictionary:
        dictionary.write("unheard 1\n")
    for options, message in (
        (["--data", other], f"error: {other}/bin/input0/dict.txt: missing, or not what was prepared"),
        (["--data", of_other_words(tmp_path / "other words")], "error: .* not the dictionary that .* was trained with"),
    ):
        _, sentence = run_in_process(predict.main, work, *options, status=1).stderr.splitlines()
        assert re.match(message, sentence)


def of_other_words(folder: Path) -> Path:
    """A labelled text that no model was trained on, prepared."""
    folder.mkdir()
    (folder / "text.tsv").write_text("text\tlabel\none one\ta\none\tb\n", encoding="utf-8")
    files = [part for split in SIZES for part in (f"--{split}", folder / "text.tsv")]
    options = ["--text", "text", "--label", "label", "--workers", 1, "--output", folder / "data"]
    run_script("prepare_labelled_texts", *files, *options)
    return folder / "data"


def test_options_of_the_training_are_replaced(classifier: tuple[Path, Path]) -> None:
    data, work = classifier
    options = ["--work", work, "--data", data, "--gpus", 0, "--model-overrides"]
    refused = run_in_process(
        evaluate.main, CHECKOUT / "configs/trec/rcrn.yaml", *options, "{'hidden_size': 5}", status=1
    )
    assert "size mismatch" in refused.stderr or "another size" in refused.stderr


def test_the_report_shows_confusions_and_picked_words(classifier: tuple[Path, Path], tmp_path: Path) -> None:
    _, work = classifier
    run_script("report", work, "--output", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "confusion matrix" in page and "Words that pooling picked" in page and "Convergence" in page


@pytest.mark.slow
def test_candidates_are_ranked(tmp_path: Path) -> None:
    columns = ["--text", "question", "--text", "candidate", "--label", "label", "--group", "group"]
    data = prepared(tmp_path, "ranking", *columns)
    results = trained("wikiqa/ap_bilstm.yaml", data, tmp_path / "work", *SMALL)
    scores = [line.split("\t")[0] for line in lines(tmp_path / "work" / "generate" / "test.predicted.tsv")[1:]]
    labels, groups = (lines(data / "raw" / f"test.{column}") for column in ("label", "group"))
    assert len(scores) == len(labels) == CANDIDATES * SIZES["test"]
    pairs = [f"{group} {label}" for group, label in zip(groups, labels, strict=True)]
    expected = metric_named("ranking").scores(Outputs(scores, scores), References([pairs], [pairs]))
    assert {name: results[name] for name in ("map", "mrr")} == {name: expected[name] for name in ("map", "mrr")}
    # The training set is evaluated as any other.
    place = ["--work", tmp_path / "work", "--data", data, "--gpus", 0]
    run_in_process(evaluate.main, CHECKOUT / "configs/wikiqa/ap_bilstm.yaml", *place, "--subset", "train")
    run_in_process(report.main, tmp_path / "work", "--output", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "MAP on the validation set" in page and "the candidate that is put first" in page
    for kind in "ap_bilstm", "bilstm":
        if kind == "bilstm":
            trained("wikiqa/bilstm.yaml", data, tmp_path / kind, *SMALL)
        work = tmp_path / ("work" if kind == "ap_bilstm" else kind)
        found = picked_words(work / "checkpoints" / "checkpoint_best.pt", PreparedData.load(data), 2)
        assert len(found) == 2 and all(len(example.texts) == 2 and example.label in "01" for example in found)
        for text in (text for example in found for text in example.texts):
            assert len(text.words) == len(text.shares) and sum(text.shares) == pytest.approx(1)
            assert "<pad>" not in text.words


def test_pairs_are_classified(tmp_path: Path) -> None:
    data = prepared(tmp_path, "entailment", "--text", "premise", "--text", "hypothesis", "--label", "label")
    results = trained("snli/rcrn.yaml", data, tmp_path / "work", *SMALL, "--projection-size", "6")
    assert 0 <= results["accuracy"] <= 100
    checkpoint = tmp_path / "work" / "checkpoints" / "checkpoint_best.pt"
    finished = run_script("predict", checkpoint, "--gpus", 0, stdin="The doctor paid.\tThe pilot was paid.\n")
    assert finished.stdout.split("\t")[0] in ("entailment", "contradiction", "neutral")
    found = picked_words(checkpoint, PreparedData.load(data), 2)
    assert len(found) == 2
    for number, example in enumerate(found):
        given = [lines(data / "tokens" / f"test.input{side}") for side in (0, 1)]
        known = set((data / "dictionary" / "text.txt").read_text(encoding="utf-8").split()[::2])
        for text, sentences in zip(example.texts, given, strict=True):
            sentence = sentences[number * len(sentences) // 2].split()
            assert text.words == [word if word in known else "<unk>" for word in sentence]
            assert sum(text.shares) == pytest.approx(1) and len(text.shares) == len(text.words)


@pytest.mark.parametrize(
    ("preparation", "configuration", "key"),
    [
        (["prepare_copy_memory", "--length", "5", "--sequences", "9"], "copy_memory/dilated_rnn.yaml", "copy"),
        pytest.param(
            *(["prepare_pixels", "--small", "--length", "70"], "noisy_mnist_1000/dilated_cnn.yaml", "accuracy"),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_long_memory(tmp_path: Path, preparation: Sequence[str], configuration: str, key: str) -> None:
    run_script(*preparation, "--workers", 1, "--output", tmp_path / "data")
    options = ["--layers", "3", "--max-update", "3", "--batch-size", "32", "--num-workers", "0"]
    results = trained(configuration, tmp_path / "data", tmp_path / "work", *options)
    assert results["updates"] == 3
    assert 0 <= results["accuracy" if key == "accuracy" else "copy_accuracy"] <= 100
    assert key == "accuracy" or results["copy_cross_entropy"] > 0


def one_sentence(finished: subprocess.CompletedProcess[str]) -> str:
    """The one line that a command that failed says of its error."""
    assert "Traceback" not in finished.stdout + finished.stderr
    [sentence] = [line for line in finished.stderr.splitlines() if "error: " in line]
    return sentence


def test_bad_input_is_one_sentence(classifier: tuple[Path, Path], tmp_path: Path) -> None:
    data, work = classifier
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("the 1 2 3\n", encoding="utf-8")
    place = [CHECKOUT / "configs/trec/bilstm.yaml", "--work", tmp_path / "work", "--data", data, "--gpus", 0]
    finished = run_script("train", *place, *SMALL, "--embed-path", vectors, status=None)
    assert finished.returncode != 0
    assert f"{vectors}, line 1: a vector of 3 numbers, but --embed-dim is 8" in one_sentence(finished)
    place[0] = CHECKOUT / "configs/snli/bilstm.yaml"
    finished = run_in_process(train.main, *place, *SMALL, status=1)
    assert "sequence_pair_classifier reads 2 texts an example; the data has 1" in one_sentence(finished)
