"""A model is not used with dictionaries of another training (as a whole command in tests/system), nor trained on with
other recurrent layers."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from fairseq import checkpoint_utils
from fairseq.trainer import Trainer

from fairseq_plugins.errors import InputError
from fairseq_plugins.patches.trained_with import keep_dictionary_checksums, refuse_other_starts
from tests.commands import train_in_process
from tests.conftest import TranslationData

from .test_half_precision import TINY_LSTM
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
        pytest.fail(needless(refuse_other_starts))


MC_RNN = (
    "--arch mc_rnn_iwslt_de_en --encoder-embed-dim 8 --encoder-hidden-size 8 --decoder-embed-dim 8 "
    "--decoder-hidden-size 8 --optimizer adam --lr 0.01 --max-tokens 400 --no-progress-bar --cpu"
).split()


@pytest.fixture(scope="module")
def trained(tiny_translation_data: TranslationData, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("first")
    train_in_process(tiny_translation_data.separate, *MC_RNN, "--max-update", "1", "--save-dir", folder)
    return folder / "checkpoint_last.pt"


@pytest.mark.system
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--connection-rate", "1"], "--encoder-connection-rate 0.1, not 1.0: .*; give --encoder-connection-rate 0.1"),
        (["--decoder-connection-rate", "0.2"], "--decoder-connection-rate 0.1, not 0.2"),
        (["--connection-init", "orthogonal"], "--encoder-connection-rate 0.1, not 1.0"),
        (["--arch", "ho_rnn_iwslt_de_en"], "--encoder-recurrent-layer mc_rnn, not ho_rnn"),
        (["--channels", "2"], "--encoder-channels 3, not 2"),
    ],
)
def test_a_training_does_not_start_with_other_recurrent_layers(
    options: list[str], message: str, trained: Path, tiny_translation_data: TranslationData, tmp_path: Path
) -> None:
    command = [tiny_translation_data.separate, *MC_RNN, *options, "--max-update", "1", "--save-dir", tmp_path]
    for start in "--finetune-from-model", "--restore-file":
        with pytest.raises(InputError, match=f"checkpoint_last.pt has {message}"):
            train_in_process(*command, start, trained)


@pytest.mark.system
def test_the_same_layers_by_other_options_are_taken(
    trained: Path, tiny_translation_data: TranslationData, tmp_path: Path
) -> None:
    """How connections started does not matter."""
    further = [tiny_translation_data.separate, *MC_RNN, "--max-update", "1", "--save-dir"]
    same = ["--encoder-connection-rate", "0.1", "--connection-rate", "0.1", "--dropout", "0"]
    train_in_process(*further, tmp_path / "second", *same, "--finetune-from-model", trained)
    plain = ["--connection-rate", "1"]
    train_in_process(*further, tmp_path / "plain", *plain)
    start = ["--finetune-from-model", tmp_path / "plain" / "checkpoint_last.pt"]
    train_in_process(*further, tmp_path / "third", "--connection-init", "orthogonal", *start)


@pytest.mark.system
def test_fairseq_takes_any_layers_of_the_same_sizes(
    trained: Path, tiny_translation_data: TranslationData, tmp_path: Path, unpatch: Callable[[object, str], None]
) -> None:
    unpatch(Trainer, "load_checkpoint")
    command = [tiny_translation_data.separate, *MC_RNN, "--connection-rate", "1", "--max-update", "1"]
    try:
        train_in_process(*command, "--save-dir", tmp_path, "--finetune-from-model", trained)
    except Exception:  # whatever fairseq says of it
        pytest.fail(needless(refuse_other_starts))
