"""A learning rate scheduler hears of the validation loss of the epoch that a training was resumed after."""

from __future__ import annotations

from pathlib import Path

from fairseq_plugins.checkpoints import read_checkpoint
from tests.commands import train_in_process
from tests.texts import training

# Too fast to get better after the first epoch.
PLATEAU = "--lr-scheduler reduce_lr_on_plateau --lr 40 --clip-norm 5 --lr-shrink 0.5 --lr-patience 0".split()


def test_a_plateau_is_seen_after_resuming(running_text: Path, tmp_path: Path) -> None:
    learning_rates = {}
    for name, epochs in (("whole", [4]), ("in parts", [1, 2, 3, 4])):
        for epoch in epochs:
            train_in_process(*training(running_text, tmp_path / name, *PLATEAU, "--max-epoch", epoch))
        checkpoint = read_checkpoint(tmp_path / name / "checkpoint_last.pt")
        learning_rates[name] = checkpoint["last_optimizer_state"]["param_groups"][0]["lr"]
    assert learning_rates["in parts"] == learning_rates["whole"] < 40
