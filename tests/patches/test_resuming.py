"""A training that is resumed has the batches, limits and learning rates of one that was never interrupted."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.optim.lr_scheduler.reduce_lr_on_plateau import ReduceLROnPlateauLRSchedule
from fairseq.tasks import FairseqTask
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from fairseq.trainer import Trainer

from fairseq_plugins.checkpoints import read_checkpoint, updates
from fairseq_plugins.patches.resuming import (
    keep_batches_when_resuming,
    keep_limits_when_resuming,
    keep_patience_of_schedulers_when_resuming,
    tell_schedulers_when_resuming,
)
from tests.commands import train_in_process
from tests.conftest import TranslationData
from tests.texts import training

from .unpatched import for_fairseq_fixed, needless

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


@pytest.mark.system
def test_patience_holds_over_interruptions(running_text: Path, tmp_path: Path) -> None:
    whole = train(running_text, tmp_path / "whole", "--patience", 3)
    ended = whole["extra_state"]["train_iterator"]["epoch"] - 1
    assert 3 <= ended < 9
    for interrupted in range(1, ended + 1):
        state = train(running_text, tmp_path / "parts", "--patience", 3, "--max-epoch", interrupted)
        assert state["extra_state"]["train_iterator"]["epoch"] - 1 == interrupted
    assert_same_training(train(running_text, tmp_path / "parts", "--patience", 3), whole)


@pytest.mark.system
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


@pytest.mark.system
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


@pytest.mark.system
def test_a_checkpoint_without_the_count_is_gone_on_from(running_text: Path, tmp_path: Path) -> None:
    """fairseq's own: the count begins anew."""
    ended = updates(train(running_text, tmp_path, "--patience", 2))
    path = tmp_path / "checkpoint_last.pt"
    checkpoint = torch.load(path, weights_only=True)
    del checkpoint["extra_state"]["early_stopping"]
    torch.save(checkpoint, path)
    assert updates(train(running_text, tmp_path, "--patience", 2)) > ended


@pytest.mark.system
def test_a_training_that_begins_with_a_checkpoints_model_alone_has_its_own_count(
    running_text: Path, tmp_path: Path
) -> None:
    train(running_text, tmp_path / "first", "--patience", 2)
    path = tmp_path / "first" / "checkpoint_last.pt"
    checkpoint = torch.load(path, weights_only=True)
    checkpoint["extra_state"]["previous_training_time"] = 7200.0
    torch.save(checkpoint, path)
    start = ("--finetune-from-model", path)
    limits = ("--patience", 2, "--max-update", 5, "--stop-time-hours", 1)
    checkpoint = train(running_text, tmp_path / "second", *start, *limits)
    assert updates(checkpoint) == 5
    assert checkpoint["extra_state"]["previous_training_time"] < 3600, "its own time, too"


@pytest.mark.system
def test_fairseq_goes_on_with_an_ended_training(
    running_text: Path, tmp_path: Path, unpatch: Callable[[object, str], None]
) -> None:
    for name in "save_checkpoint", "load_checkpoint":
        unpatch(Trainer, name)
    ended = updates(train(running_text, tmp_path, "--max-update", 3))
    assert updates(train(running_text, tmp_path, "--max-update", 3)) > ended, needless(keep_limits_when_resuming)


# ------------------------------------------------------------------------------------------------- batches


def batches_of(data: TranslationData, epoch: int, **keywords: bool) -> tuple[list[list[int]], list[list[int]]]:
    """The batches that are made in an epoch, and the order in which it has them."""
    config = TranslationConfig(
        data=str(data.separate),
        source_lang="xx",
        target_lang="yy",
        train_subset="train",
        dataset_impl="mmap",
        required_seq_len_multiple=1,
    )
    task = TranslationTask.setup_task(config)
    task.load_dataset("train")
    iterator = task.get_batch_iterator(task.dataset("train"), max_tokens=100, epoch=epoch, **keywords)
    in_order = [sample["id"].tolist() for sample in iterator.next_epoch_itr(shuffle=True)]
    return [list(batch) for batch in iterator.frozen_batches], in_order


def test_batches_are_the_same_whichever_epoch_makes_them(tiny_translation_data: TranslationData) -> None:
    first, third = (batches_of(tiny_translation_data, epoch) for epoch in (1, 3))
    assert first[0] == third[0] and first[1] != third[1]
    assert batches_of(tiny_translation_data, 1, update_epoch_batch_itr=True) == first
    assert batches_of(tiny_translation_data, 3, update_epoch_batch_itr=True)[0] != first[0]


def test_fairseq_makes_other_batches_when_it_resumes(
    tiny_translation_data: TranslationData, unpatch: Callable[[object, str], None]
) -> None:
    for_fairseq_fixed(keep_batches_when_resuming)
    unpatch(FairseqTask, "get_batch_iterator")
    first, third = (batches_of(tiny_translation_data, epoch)[0] for epoch in (1, 3))
    assert first != third, needless(keep_batches_when_resuming)


# ---------------------------------------------------------------------------------------------- schedulers

# Too fast to get better after the first epoch.
PLATEAU = "--lr-scheduler reduce_lr_on_plateau --lr 40 --clip-norm 5 --lr-shrink 0.5 --lr-patience 0".split()


def last_learning_rate(data: Path, folder: Path, epochs: list[int], *options: str) -> float:
    """After a training that was interrupted after each of these epochs but the last."""
    for epoch in epochs:
        train_in_process(*training(data, folder, *PLATEAU, "--max-epoch", epoch, *options))
    checkpoint = read_checkpoint(folder / "checkpoint_last.pt")
    return checkpoint["last_optimizer_state"]["param_groups"][0]["lr"]


@pytest.mark.system
def test_a_plateau_is_seen_after_resuming(
    running_text: Path, tmp_path: Path, unpatch: Callable[[object, str], None]
) -> None:
    whole = last_learning_rate(running_text, tmp_path / "whole", [4])
    assert last_learning_rate(running_text, tmp_path / "parts", [1, 2, 3, 4]) == whole < 40
    patient = "--lr-patience", "1"
    whole = last_learning_rate(running_text, tmp_path / "patient", [5], *patient)
    assert last_learning_rate(running_text, tmp_path / "patient parts", [1, 2, 3, 4, 5], *patient) == whole < 40
    unpatch(ReduceLROnPlateauLRSchedule, "state_dict")
    unpatch(ReduceLROnPlateauLRSchedule, "load_state_dict")
    unpatched = last_learning_rate(running_text, tmp_path / "impatient", [1, 2, 3, 4, 5], *patient)
    assert unpatched == 40, needless(keep_patience_of_schedulers_when_resuming)
    unpatch(checkpoint_utils, "load_checkpoint")
    unpatched = last_learning_rate(running_text, tmp_path / "unpatched", [1, 2, 3])
    assert unpatched == 40, needless(tell_schedulers_when_resuming)
