"""A checkpoint says how many parameters its model has."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from fairseq.trainer import Trainer

from fairseq_plugins.checkpoints import read_checkpoint
from fairseq_plugins.patches.parameter_counts import keep_parameter_counts
from tests.commands import train_in_process
from tests.conftest import TranslationData

from .test_half_precision import TINY_LSTM
from .unpatched import needless


def test_a_checkpoint_counts_as_fairseq_does(
    tiny_translation_data: TranslationData,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    unpatch: Callable[[object, str], None],
) -> None:
    caplog.set_level(logging.INFO)
    for name, options in (
        ("plain", ()),
        ("shared", ("--share-decoder-input-output-embed",)),
        ("frozen", ("--encoder-freeze-embed",)),
    ):
        for updates in "1", "2":  # the second time it goes on
            caplog.clear()
            options = (*TINY_LSTM, *options, "--max-update", updates, "--save-dir", tmp_path / name)
            train_in_process(tiny_translation_data.separate, *options)
            counted = read_checkpoint(tmp_path / name / "checkpoint_last.pt")["parameters"]
            assert f"num. shared model params: {counted:,} (" in caplog.text
    unpatch(Trainer, "state_dict")
    unpatched = tmp_path / "unpatched"
    train_in_process(tiny_translation_data.separate, *TINY_LSTM, "--max-update", "1", "--save-dir", unpatched)
    checkpoint = read_checkpoint(unpatched / "checkpoint_last.pt")
    assert "parameters" not in checkpoint, needless(keep_parameter_counts)
