"""A limit of the training holds over interruptions, and an ended training that is started again trains no more."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
import torch

from fairseq_plugins.checkpoints import read_checkpoint, updates
from tests.commands import train_in_process
from tests.texts import training

# Too fast to get better after the first epochs.
TOO_FAST = "--lr 40 --clip-norm 5 --max-epoch 9".split()


def train(data: Path, folder: Path, *options: object) -> dict[str, Any]:
    """Trains, and returns checkpoint_last.pt, which stays what it is when a training writes another one."""
    train_in_process(*training(data, folder, *TOO_FAST, *options))
    checkpoint = read_checkpoint(folder / "checkpoint_last.pt")
    return {**checkpoint, "model": {name: tensor.clone() for name, tensor in checkpoint["model"].items()}}


def assert_same_training(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert updates(one) == updates(other)
    assert one["extra_state"]["train_iterator"] == other["extra_state"]["train_iterator"]
    for name, tensor in one["model"].items():
        torch.testing.assert_close(tensor, other["model"][name], rtol=0, atol=0)


def test_patience_holds_over_interruptions(running_text: Path, tmp_path: Path) -> None:
    whole = train(running_text, tmp_path / "whole", "--patience", 3)
    ended = whole["extra_state"]["train_iterator"]["epoch"] - 1
    assert 3 <= ended < 9
    for interrupted in range(1, ended + 1):
        folder = tmp_path / str(interrupted)
        train(running_text, folder, "--patience", 3, "--max-epoch", interrupted)
        assert_same_training(train(running_text, folder, "--patience", 3), whole)


def test_an_ended_training_goes_on_with_more_patience(
    running_text: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    expected = train(running_text, tmp_path / "whole", "--patience", 3)
    less = train(running_text, tmp_path / "parts", "--patience", 2)
    assert updates(less) < updates(expected)
    with caplog.at_level(logging.INFO):
        assert_same_training(train(running_text, tmp_path / "parts", "--patience", 2), less)
    said = [record.message for record in caplog.records if "nothing is trained" in record.message]
    assert said == ["nothing is trained: validations in a row that were no better: 2, the limit of --patience 2"]
    assert_same_training(train(running_text, tmp_path / "parts", "--patience", 3), expected)


@pytest.mark.parametrize(
    ("limit", "done", "higher"),
    [(("--max-update", 3), 3, ("--max-update", 6)), (("--stop-time-hours", 1e-9), 1, ("--max-update", 6))],
)
def test_an_ended_training_gets_no_more_updates(
    limit: tuple[str, float], done: int, higher: tuple[str, int], running_text: Path, tmp_path: Path
) -> None:
    ended = train(running_text, tmp_path, *limit)
    assert updates(ended) == done
    assert_same_training(train(running_text, tmp_path, *limit), ended)
    assert updates(train(running_text, tmp_path, *higher)) == 6


def test_a_checkpoint_without_the_count_is_gone_on_from(running_text: Path, tmp_path: Path) -> None:
    """fairseq's own: the count begins anew."""
    ended = updates(train(running_text, tmp_path, "--patience", 2))
    path = tmp_path / "checkpoint_last.pt"
    checkpoint = torch.load(path, weights_only=True)
    del checkpoint["extra_state"]["early_stopping"]
    torch.save(checkpoint, path)
    assert updates(train(running_text, tmp_path, "--patience", 2)) > ended


def test_a_training_that_begins_with_a_checkpoints_model_alone_has_its_own_count(
    running_text: Path, tmp_path: Path
) -> None:
    train(running_text, tmp_path / "first", "--patience", 2)
    start = ("--finetune-from-model", tmp_path / "first" / "checkpoint_last.pt")
    assert updates(train(running_text, tmp_path / "second", *start, "--patience", 2, "--max-update", 5)) == 5
