"""Which checkpoints a training keeps."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.dataclass.configs import CheckpointConfig, FairseqConfig
from fairseq.trainer import Trainer
from fairseq_cli import train as train_command

from fairseq_plugins.checkpoints import read_checkpoint, updates
from fairseq_plugins.patches.saving import (
    counting_as_worst,
    keep_as_many_of_the_best,
    name_updates_that_end_epochs,
    prefer_numbers,
    save_the_end,
)
from tests.commands import train_in_process
from tests.texts import training

from .unpatched import needless, original_of

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


# ------------------------------------------------------------------------------------- which ones are the best


class Saving:
    """A training that saves alone: each checkpoint is the ``extra_state`` that it is given.

    Args:
        folder: where
        options: of fairseq's about checkpoints
    """

    should_save_checkpoint_on_current_rank = True
    checkpoint_suffix = ""
    data_parallel_rank = 0

    def __init__(self, folder: Path, **options: object) -> None:
        self.cfg = FairseqConfig(checkpoint=CheckpointConfig())
        self.cfg.checkpoint.save_dir = str(folder)
        for name, value in options.items():
            setattr(self.cfg.checkpoint, name, value)
        self.task = object()
        self.folder, self.updates = folder, 0

    def get_num_updates(self) -> int:
        return self.updates

    def consolidate_optimizer(self) -> None:
        pass

    def save_checkpoint(self, filename: str, extra_state: dict[str, Any]) -> str:
        Path(filename).write_text(json.dumps(extra_state))
        return filename

    def save(self, *losses: float) -> dict[str, float]:
        """After an epoch of one update with each of these validation losses.

        Returns:
            name of checkpoint → the loss in it
        """
        for loss in losses:
            self.updates += 1
            epoch = SimpleNamespace(epoch=self.updates, end_of_epoch=lambda: True, state_dict=lambda: {})
            checkpoint_utils.save_checkpoint(self.cfg.checkpoint, self, epoch, loss)
        return {path.name: json.loads(path.read_text())["val_loss"] for path in sorted(self.folder.iterdir())}


@pytest.fixture(autouse=True)
def new_best(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """fairseq keeps the best loss on its functions."""
    yield
    for function in checkpoint_utils.save_checkpoint, train_command.should_stop_early:
        vars(function).pop("best", None)


def test_what_is_no_number_is_never_the_best(tmp_path: Path) -> None:
    saving = Saving(tmp_path, no_epoch_checkpoints=True)
    assert saving.save(math.nan).keys() == {"checkpoint_last.pt"}
    kept = saving.save(2.0, math.nan)
    assert kept["checkpoint_best.pt"] == 2 and math.isnan(kept["checkpoint_last.pt"])
    assert saving.save(3.0) == {"checkpoint_best.pt": 2, "checkpoint_last.pt": 3}
    assert saving.save(1.0)["checkpoint_best.pt"] == 1


def test_fairseq_takes_what_follows_it_for_the_best(tmp_path: Path, unpatch: Callable[[object, str], None]) -> None:
    unpatch(checkpoint_utils, "save_checkpoint")
    kept = Saving(tmp_path, no_epoch_checkpoints=True).save(2.0, math.nan, 3.0)
    assert kept["checkpoint_best.pt"] == 3, needless(prefer_numbers)


@pytest.mark.parametrize("is_maximized", [False, True])
def test_patience_is_lost_over_what_is_no_number(is_maximized: bool, caplog: pytest.LogCaptureFixture) -> None:
    cfg = FairseqConfig(checkpoint=CheckpointConfig())
    cfg.checkpoint.patience, cfg.checkpoint.maximize_best_checkpoint_metric = 2, is_maximized
    stop = counting_as_worst(train_command.should_stop_early)
    sign = -1 if is_maximized else 1
    losses = [math.nan, sign * 5.0, sign * 4.0, math.nan, sign * 3.0, math.nan, math.nan]
    assert [stop(cfg, loss) for loss in losses] == [False] * 6 + [True]
    said = [record.message for record in caplog.records if "NaN" in record.message]
    assert said == ["the validation's loss is not a number (NaN): it counts as worse than any other"]
    fairseq_stops = original_of(train_command, "should_stop_early")
    vars(train_command.should_stop_early).pop("best", None)
    stopped = [fairseq_stops(cfg, loss) for loss in losses[:3]]
    assert stopped == [False, False, True], needless(prefer_numbers)


@pytest.mark.system
def test_a_training_uses_it(
    running_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    losses = iter([3.0, math.nan, 3.5, math.nan])
    monkeypatch.setattr(train_command, "validate", lambda *arguments: [next(losses)])
    last = train(running_text, tmp_path, "--patience", 3, "--max-epoch", 9)
    assert epochs_of(last) == 4 and math.isnan(last["extra_state"]["val_loss"])
    assert read_checkpoint(tmp_path / "checkpoint_best.pt")["extra_state"]["val_loss"] == 3
    assert last["extra_state"]["best"] == 3


def test_an_update_that_ends_an_epoch_has_its_checkpoint(
    tmp_path: Path, unpatch: Callable[[object, str], None]
) -> None:
    def kept(name: str, **options: object) -> list[str]:
        (tmp_path / name).mkdir()
        saving = Saving(tmp_path / name, no_last_checkpoints=True, save_interval_updates=2, **options)
        return [file for file in saving.save(*[1.0] * 6) if file != "checkpoint_best.pt"]

    every_second = ["checkpoint_2_2.pt", "checkpoint_4_4.pt", "checkpoint_6_6.pt"]
    assert kept("no epochs", no_epoch_checkpoints=True) == every_second
    assert kept("some", no_epoch_checkpoints=True, keep_interval_updates=2) == every_second[1:]
    assert (
        kept("every third epoch", save_interval=3)
        == [
            "checkpoint3.pt",
            "checkpoint6.pt",  # the same as checkpoint_6_6.pt
            *every_second[:2],
        ]
    )
    unpatch(checkpoint_utils, "save_checkpoint")
    assert kept("unpatched", no_epoch_checkpoints=True) == [], needless(name_updates_that_end_epochs)


@pytest.mark.parametrize(
    ("losses", "best"),
    [
        ([2.0, 3.0, 4.0], [2.0, 3.0]),
        ([4.0, 2.0, 3.0, 5.0], [2.0, 3.0]),
        ([3.0, 4.0, 2.0, 6.0, 1.0], [1.0, 2.0]),
        ([math.nan, 5.0], [5.0]),
        ([2.0, math.nan, 4.0], [2.0, 4.0]),
    ],
)
def test_as_many_of_the_best_are_kept(losses: list[float], best: list[float], tmp_path: Path) -> None:
    for is_maximized in (False, True):
        folder = tmp_path / str(is_maximized)
        folder.mkdir()
        options = {"maximize_best_checkpoint_metric": is_maximized, "no_last_checkpoints": True}
        saving = Saving(folder, keep_best_checkpoints=2, no_epoch_checkpoints=True, **options)
        kept = saving.save(*[10 - loss if is_maximized else loss for loss in losses])
        numbered = sorted(loss for name, loss in kept.items() if name.startswith("checkpoint.best_loss_"))
        assert numbered == sorted(10 - loss if is_maximized else loss for loss in best)
        vars(checkpoint_utils.save_checkpoint).pop("best")


def test_as_many_of_equal_ones_are_kept(tmp_path: Path) -> None:
    saving = Saving(tmp_path, keep_best_checkpoints=3, no_epoch_checkpoints=True)
    kept = saving.save(2.0004, 2.0003, 2.0002, 2.5, 2.0001, 2.0, 1.9999)
    assert len(kept) == 3 + 2 and max(kept.values()) < 2.1
    assert kept["checkpoint_best.pt"] == 1.9999


def test_fairseq_keeps_fewer_of_the_best(tmp_path: Path, unpatch: Callable[[object, str], None]) -> None:
    unpatch(checkpoint_utils, "save_checkpoint")
    kept = Saving(tmp_path, keep_best_checkpoints=2, no_epoch_checkpoints=True).save(2.0, 3.0, 4.0)
    assert len(kept) == 1 + 2, needless(keep_as_many_of_the_best)
