"""A metric and a recurrent layer of a user's own, files that a configuration names, through every script: nothing else
has to change."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import pytest
import torch

from fairseq_plugins.corpora.pairs import PairsPreparation, prepare
from fairseq_plugins.scoring.metrics import read_numbers
from tests.commands import CHECKOUT, PYTHON, run_command
from tests.conftest import TOY_PERPLEXITY, TranslationData

TOY_RECURRENT = CHECKOUT / "tests" / "extensions" / "toy_recurrent.py"
MODEL = """
extensions: [toy_perplexity.py, toy_recurrent.py]
train:
  arch: recurrent_seq2seq
  encoder-recurrent-layer: toy
  decoder-recurrent-layer: toy
  leak: 0.4
  decoder-leak: 0.2
  encoder-embed-dim: 8
  encoder-hidden-size: 8
  encoder-layers: 1
  decoder-embed-dim: 8
  decoder-hidden-size: 8
  decoder-layers: 1
  optimizer: adam
  lr: 0.01
  batch-size: 20
  max-epoch: 2
generate:
  beam: 2
  batch-size: 64
evaluate: {metric: toy_perplexity}
"""


@pytest.fixture(scope="module")
def folder(tiny_translation_data: TranslationData, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A configuration with its extension, and prepared data."""
    folder = tmp_path_factory.mktemp("extensions")
    raw = tiny_translation_data.raw
    files = {split: (raw / f"{split}.xx", raw / f"{split}.yy") for split in ("train", "valid", "test")}
    prepare(PairsPreparation("xx", "yy", bpe="none"), files, folder / "data")
    for extension in TOY_PERPLEXITY, TOY_RECURRENT:
        shutil.copyfile(extension, folder / extension.name)
    (folder / "model.yaml").write_text(MODEL, encoding="utf-8")
    return folder


def run(folder: Path, script: str, *arguments: object, stdin: str | None = None) -> str:
    """Not preloaded: the configuration's extension is imported before the models are."""
    command = [CHECKOUT / "scripts" / f"{script}.sh", *map(str, arguments)]
    return run_command(command, stdin=stdin, PYTHON=PYTHON).stdout


@pytest.mark.slow
def test_a_metric_and_a_layer_go_through_all_scripts(folder: Path) -> None:
    work = folder / "work"
    places = [folder / "model.yaml", "--work", work, "--data", folder / "data", "--gpus", 0]
    run(folder, "train", *places)
    checkpoint = work / "checkpoints" / "checkpoint_best.pt"
    state = torch.load(checkpoint, weights_only=True)
    options = state["cfg"]["model"]
    assert (options["encoder_leak"], options["decoder_leak"]) == (0.4, 0.2)
    epochs = {name: value.item() for name, value in state["model"].items() if name.endswith(".epochs")}
    assert len(epochs) == 2 + 1, "two directions of the encoder, and the decoder"
    assert set(epochs.values()) == {state["extra_state"]["train_iterator"]["epoch"] - 1}, "they are told of each epoch"

    shown = run(folder, "evaluate", *places)
    results = json.loads((work / "results.json").read_text(encoding="utf-8"))
    lines = read_numbers(work / "generate" / "test.log_probabilities.yy")
    numbers = [number for line in lines for number in line]
    assert len(lines) == 101
    assert results["toy_perplexity"] == pytest.approx(math.exp(-sum(numbers) / len(numbers)), abs=0.01)
    assert 1 < results["toy_perplexity"] < 30, "there are 24 words"
    assert f"{results['toy_perplexity']:.2f}" in shown and "toy perplexity: nrefs:1|toy_perplexity" in shown
    assert "bleu_tokenized" not in results and results["extensions"] == [
        str(folder / "toy_perplexity.py"),
        str(folder / "toy_recurrent.py"),
    ]

    run(folder, "report", work)
    page = (work / "report.html").read_text(encoding="utf-8")
    assert ">toy perplexity<" in page and f"{results['toy_perplexity']:.2f}" in page
    command = [
        "python",
        "-m",
        "fairseq_plugins",
        "analysis",
        "alignments",
        checkpoint,
        "--output",
        folder / "alignments",
    ]
    run_command(command, is_fresh=True)
    assert "<svg" in (folder / "alignments_1.svg").read_text(encoding="utf-8")
    translated = run(folder, "translate", work, "--gpus", 0, stdin="ba bi\n")
    assert translated.count("\n") == 1

    # Two systems of numbers for each token: the one with the lower perplexity is the better one.
    better, worse = folder / "better", folder / "worse"
    better.write_text("-0.1 -0.2\n-0.3\n")
    worse.write_text("-1 -2\n-0.3\n")
    files = [part for name in ("source", "reference") for part in (f"--{name}", folder / "two")]
    (folder / "two").write_text("a b\nc\n")
    compared = run_command(
        ["python", "-m", "fairseq_plugins", "analysis", "compare", "--metric", "toy_perplexity", *map(str, files)]
        + ["--system", f"worse={worse}", f"better={better}", "--output", str(folder / "compared")],
        FAIRSEQ_PLUGINS_EXTENSIONS=str(folder / "toy_perplexity.py"),
    ).stdout
    assert "better is better in 1, worse in 0, both are equal in 1" in compared
    content = json.loads((folder / "compared.json").read_text(encoding="utf-8"))
    assert content["comparisons"]["toy perplexity"]["difference"] == pytest.approx(math.exp(0.2) - math.exp(1.1))


def test_the_layers_options_are_listed(folder: Path) -> None:
    command = ["python", "-m", "fairseq_plugins", "options", "toy"]
    options = run_command(command, FAIRSEQ_PLUGINS_EXTENSIONS=str(folder / "toy_recurrent.py"))
    assert "toy: leaky integrator" in options.stdout and "--leak LEAK" in options.stdout


def test_an_extension_that_is_broken_is_one_sentence(folder: Path) -> None:
    (folder / "broken.py").write_text("import nothing_of_this_name\n")
    (folder / "broken.yaml").write_text("extensions: [broken.py]\ntrain: {arch: recurrent_seq2seq}\n")
    places = [folder / "broken.yaml", "--work", folder / "broken work", "--data", folder / "data", "--gpus", 0]
    for script in "train", "evaluate":
        message = run_command([CHECKOUT / "scripts" / f"{script}.sh", *map(str, places)], status=1).stderr
        assert message.startswith(f"error: {folder}/broken.py, line 1: this extension cannot be imported: ")
        assert message.count("\n") == 1
    assert not (folder / "broken work").exists()
