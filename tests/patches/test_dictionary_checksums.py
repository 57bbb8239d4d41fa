"""A model is not used with dictionaries of another training; as a whole command in tests/system."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from fairseq import checkpoint_utils
from fairseq.trainer import Trainer

from fairseq_plugins.errors import InputError
from fairseq_plugins.patches.dictionary_checksums import keep_dictionary_checksums
from tests.commands import train_in_process
from tests.conftest import TranslationData

from .test_bfloat16 import TINY_LSTM
from .unpatched import needless


@pytest.fixture
def other_data(tiny_translation_data: TranslationData, tmp_path: Path) -> Path:
    """The same data with the words of the target dictionary in another order."""
    data = tmp_path / "data"
    shutil.copytree(tiny_translation_data.separate, data)
    dictionary = data / "dict.yy.txt"
    lines = dictionary.read_text(encoding="utf-8").splitlines()
    dictionary.write_text("".join(f"{line}\n" for line in lines[::-1]), encoding="utf-8")
    return data


def test_another_dictionary_is_refused(
    tiny_translation_data: TranslationData, other_data: Path, tmp_path: Path, unpatch: Callable[[object, str], None]
) -> None:
    train_in_process(tiny_translation_data.separate, *TINY_LSTM, "--max-update", "1", "--save-dir", tmp_path)
    path = str(tmp_path / "checkpoint_last.pt")
    checkpoint_utils.load_model_ensemble_and_task([path])
    with pytest.raises(InputError, match="another dictionary of the target side"):
        checkpoint_utils.load_model_ensemble_and_task([path], {"data": str(other_data)})
    for owner, name in (checkpoint_utils, "load_model_ensemble_and_task"), (Trainer, "state_dict"):
        unpatch(owner, name)
    try:
        checkpoint_utils.load_model_ensemble_and_task([path], {"data": str(other_data)})
    except Exception:  # whatever fairseq says of it
        pytest.fail(needless(keep_dictionary_checksums))


def test_a_training_does_not_start_with_another_dictionary(
    tiny_translation_data: TranslationData, other_data: Path, tmp_path: Path, unpatch: Callable[[object, str], None]
) -> None:
    first = tmp_path / "first"
    train_in_process(tiny_translation_data.separate, *TINY_LSTM, "--max-update", "1", "--save-dir", first)
    further = [other_data, *TINY_LSTM, "--max-update", "2", "--save-dir"]
    for start in ("--finetune-from-model", "--restore-file"):
        with pytest.raises(InputError, match="another dictionary of the target side: give the data of its training"):
            train_in_process(*further, tmp_path / "second", start, first / "checkpoint_last.pt")
    with pytest.raises(InputError, match="another dictionary of the target side"):
        train_in_process(*further, first)  # goes on
    train_in_process(
        *(tiny_translation_data.separate, *TINY_LSTM, "--max-update", "2", "--save-dir", tmp_path / "third"),
        *("--finetune-from-model", first / "checkpoint_last.pt"),
    )
    unpatch(Trainer, "load_checkpoint")
    try:
        train_in_process(*further, tmp_path / "second", "--finetune-from-model", first / "checkpoint_last.pt")
    except Exception:  # whatever fairseq says of it
        pytest.fail(needless(keep_dictionary_checksums))
