"""Which checkpoints a training keeps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.trainer import Trainer

from fairseq_plugins.checkpoints import read_checkpoint, updates
from fairseq_plugins.patches.saving import save_the_end
from tests.commands import train_in_process
from tests.texts import training

from .unpatched import needless

# Too fast to get better after the first epochs.
PLATEAU = "--lr-scheduler reduce_lr_on_plateau --lr 40 --clip-norm 5 --lr-shrink 0.5 --lr-patience 0".split()


def train(data: Path, folder: Path, *options: object) -> dict[str, Any]:
    """Trains, and returns checkpoint_last.pt."""
    train_in_process(*training(data, folder, *options))
    return read_checkpoint(folder / "checkpoint_last.pt")


def epochs_of(checkpoint: dict[str, Any]) -> int:
    return checkpoint["extra_state"]["train_iterator"]["epoch"] - 1


@pytest.mark.system
def test_the_last_epoch_is_saved(running_text: Path, tmp_path: Path, unpatch: Callable[[object, str], None]) -> None:
    limits = ("--max-epoch", 3, "--save-interval", 2, "--validate-interval", 2)
    last = train(running_text, tmp_path, *limits)
    assert epochs_of(last) == 3
    best = read_checkpoint(tmp_path / "checkpoint_best.pt")
    assert updates(best) == updates(last), "it was validated, and is the best"
    before = (tmp_path / "checkpoint_last.pt").stat().st_mtime_ns
    train(running_text, tmp_path, *limits)
    assert (tmp_path / "checkpoint_last.pt").stat().st_mtime_ns == before, "a training that has ended trains nothing"
    longer = ("--save-interval", 2, "--validate-interval", 2, "--max-epoch", 4)
    whole, on = train(running_text, tmp_path / "whole", *longer), train(running_text, tmp_path, *longer)
    for name, tensor in whole["model"].items():
        torch.testing.assert_close(on["model"][name], tensor, rtol=0, atol=0)
    unpatch(Trainer, "lr_step")
    assert epochs_of(train(running_text, tmp_path / "unpatched", *limits)) == 2, needless(save_the_end)


@pytest.mark.system
def test_the_epoch_whose_learning_rate_is_the_last_is_saved(running_text: Path, tmp_path: Path) -> None:
    end = (*PLATEAU, "--save-interval", 50, "--max-epoch", 40)
    last = train(running_text, tmp_path, *end, "--stop-min-lr", 20)
    ended = epochs_of(last)
    assert 1 < ended < 40 and last["last_optimizer_state"]["param_groups"][0]["lr"] == 20
    assert updates(train(running_text, tmp_path, *end, "--stop-min-lr", 20)) == updates(last)
    # One that goes on has the learning rates of one that never ended.
    longer = (*PLATEAU, "--max-epoch", ended + 3)
    whole, on = train(running_text, tmp_path / "whole", *longer), train(running_text, tmp_path, *longer)
    assert updates(whole) == updates(on)
    for name, tensor in whole["model"].items():
        torch.testing.assert_close(on["model"][name], tensor, rtol=0, atol=0)


@pytest.mark.system
def test_what_is_not_validated_is_saved_all_the_same(running_text: Path, tmp_path: Path) -> None:
    last = train(running_text, tmp_path, "--max-epoch", 3, "--save-interval", 2, "--disable-validation")
    assert epochs_of(last) == 3
    assert not (tmp_path / "checkpoint_best.pt").exists()
