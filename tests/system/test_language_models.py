"""Language models from a text to a report, by the scripts that a user types."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch

from fairseq_plugins.checkpoints import read_checkpoint
from fairseq_plugins.experiments import evaluate, train
from fairseq_plugins.report import command as report
from fairseq_plugins.report.curves import LearningCurves
from tests.commands import USER_DIR, run_command, run_in_process, run_script, train_in_process
from tests.texts import training

CONFIGURATION = """
train:
  task: streaming_language_modeling
  arch: mc_rnn_lm_ptb
  channels: 2
  decoder-embed-dim: 12
  decoder-hidden-size: 16
  decoder-layers: 2
  tokens-per-sample: 10
  random-windows: true
  batch-size: 4
  criterion: activation_regularized_cross_entropy
  activation-regularization: 2
  temporal-activation-regularization: 1
  optimizer: asgd
  lr-scheduler: non_monotone
  lr: 2
  clip-norm: 0.25
  max-epoch: 2
  num-workers: 0
  seed: 1
evaluate: {cache-window: 20}
"""


@pytest.fixture(scope="module")
def trained(running_text: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[object]]:
    """A configuration, and the options that say where its data and its work folder are."""
    folder = tmp_path_factory.mktemp("experiment")
    (folder / "tiny.yaml").write_text(CONFIGURATION)
    place = ["--work", folder / "work", "--data", running_text, "--gpus", 0]
    run_script("train", folder / "tiny.yaml", *place)
    return folder, place


def test_scores_cache_and_report(trained: tuple[Path, list[object]]) -> None:
    folder, place = trained
    run_script("evaluate", folder / "tiny.yaml", *place)
    run_in_process(evaluate.main, folder / "tiny.yaml", *place, "--subset", "valid")
    with_cache = run_in_process(evaluate.main, folder / "tiny.yaml", *place, "--cache").stdout
    assert "continuous cache: window 20, " in with_cache
    found = json.loads((folder / "work" / "results.json").read_text())
    assert 2 < found["perplexity"] < 20
    assert set(found["subsets"]) == {"valid", "test with cache"}
    assert found["subsets"]["test with cache"]["perplexity"] != found["perplexity"]
    values = [float(x) for x in (folder / "work/generate/test.log_probabilities.txt").read_text().split()]
    assert f"tokens:{len(values)}|" in found["perplexity_signature"]
    assert math.exp(-sum(values) / len(values)) == pytest.approx(found["perplexity"], abs=0.006)
    run_in_process(report.main, folder / "work")
    page = (folder / "work" / "report.html").read_text()
    for part in ("Surprise of each word", "Learning curves", "perplexity", "test with cache"):
        assert part in page


@pytest.mark.slow
def test_finetuning_goes_on_from_averages_and_ends_by_itself(running_text: Path, tmp_path: Path) -> None:
    recipe = "--criterion activation_regularized_cross_entropy --random-windows --optimizer asgd --max-epoch 6"
    recipe += " --lr-scheduler non_monotone --non-monotone-interval 1 --lr 15 --clip-norm 1 --channels 2"
    train_in_process(*training(running_text, tmp_path / "averaged", *recipe.split(), arch="mc_rnn_lm_ptb"))
    started = tmp_path / "averaged" / "checkpoint_best.pt"
    averaged = read_checkpoint(started)
    assert averaged["last_optimizer_state"]["is_averaging"] and averaged["last_optimizer_state"]["holds_averages"]

    unmoved = ["--max-update", 1, "--lr", 1e-9, "--finetune-from-model", started]
    train_in_process(*training(running_text, tmp_path / "unmoved", *recipe.split(), *unmoved, arch="mc_rnn_lm_ptb"))
    begun = read_checkpoint(tmp_path / "unmoved" / "checkpoint_last.pt")["extra_state"]["val_loss"]
    assert begun == pytest.approx(averaged["extra_state"]["val_loss"], abs=1e-4), "it begins with the averages"

    finetuning = f"lr: 25\n  finetune-from-model: {started}\n  when-non-monotone: stop\n  stop-min-lr: 0\n"
    configuration = CONFIGURATION.replace("lr: 2\n", finetuning + "  non-monotone-interval: 0\n")
    (tmp_path / "finetuned.yaml").write_text(configuration.replace("max-epoch: 2", "max-epoch: 40"))
    work = tmp_path / "finetuned"
    place = [tmp_path / "finetuned.yaml", "--work", work, "--data", running_text, "--gpus", 0]
    run_script("train", *place)
    assert "the validation loss does not fall any more: this is the end" in (work / "train.log").read_text()
    last, best = (read_checkpoint(work / "checkpoints" / f"checkpoint_{name}.pt") for name in ("last", "best"))
    assert last["extra_state"]["train_iterator"]["epoch"] < 40
    assert last["last_optimizer_state"]["is_averaging"] and last["last_optimizer_state"]["holds_averages"]
    first = LearningCurves.load(work / "train.jsonl").validation[0][1]
    from_scratch = averaged["optimizer_history"][-1]["lr_scheduler_state"]["losses"][0]
    assert first < (averaged["extra_state"]["val_loss"] + from_scratch) / 2
    assert best["extra_state"]["val_loss"] <= first
    run_in_process(train.main, *place)
    again = read_checkpoint(work / "checkpoints" / "checkpoint_last.pt")
    assert all(value.equal(again["model"][name]) for name, value in last["model"].items()), "it has ended"


def test_a_text_of_the_users(trained: tuple[Path, list[object]]) -> None:
    folder, _ = trained
    checkpoint = folder / "work" / "checkpoints" / "checkpoint_best.pt"
    printed = run_script("perplexity", checkpoint, "--gpus", 0, "--words", stdin="ba di\nzebra\n").stdout.splitlines()
    assert [line.split("\t")[0] for line in printed[:5]] == ["ba", "di", "</s>", "zebra", "</s>"]
    assert printed[5].startswith("perplexity ") and "5 tokens with the lines' ends, 1 of them unknown" in printed[5]
    text = run_script("generate_text", checkpoint, "--tokens", 12, "--seed", 4, "--gpus", 0).stdout
    assert text == run_script("generate_text", checkpoint, "--tokens", 12, "--seed", 4, "--gpus", 0).stdout != ""


def test_refusals(trained: tuple[Path, list[object]], tmp_path: Path) -> None:
    folder, _ = trained
    checkpoint = folder / "work" / "checkpoints" / "checkpoint_best.pt"
    for command, message in (
        (("perplexity", checkpoint, "--cache-weight", 2), "a cache has a window of at least 1"),
        (("generate_text", tmp_path / "none.pt"), "none.pt: no such checkpoint"),
        (("predict", checkpoint, "--gpus", 0), "its task predicts neither classes nor scores; 'translate' takes"),
    ):
        finished = run_script(*command, stdin="ba\n", status=1)
        [error] = [line for line in finished.stderr.splitlines() if line.startswith("error: ")]
        assert message in error and "Traceback" not in finished.stderr


def test_two_processes_have_streams_of_their_own_and_can_be_interrupted(running_text: Path, tmp_path: Path) -> None:
    """Two with two streams each train as one with four; amid an epoch a checkpoint has the states of both."""
    two = [
        "--batch-size",
        2,
        "--distributed-world-size",
        2,
        "--distributed-backend",
        "gloo",
        "--ddp-backend",
        "legacy_ddp",
    ]
    for name, options in (
        ("one", ["--max-update", 30]),
        ("two", [*two, "--max-update", 23]),
        ("two", [*two, "--max-update", 30]),
    ):
        command = training(running_text, tmp_path / name, "--random-windows", "--num-workers", 0, *options)
        if name == "one":
            train_in_process(*command)
        else:
            run_command(["fairseq-train", *command, "--user-dir", USER_DIR])
    one, both = (read_checkpoint(tmp_path / name / "checkpoint_last.pt") for name in ("one", "two"))
    states = both["extra_state"]["StreamingLanguageModelingTask"]["states"]
    assert [state[0].shape for of_process in states for state in of_process] == [(2, 16), (2, 12)] * 2
    [whole] = one["extra_state"]["StreamingLanguageModelingTask"]["states"]
    for layer, (state, *_) in enumerate(whole):
        torch.testing.assert_close(torch.cat([of_process[layer][0] for of_process in states]), state, rtol=0, atol=1e-4)
    for name, value in one["model"].items():
        torch.testing.assert_close(both["model"][name], value, rtol=0, atol=1e-4)
