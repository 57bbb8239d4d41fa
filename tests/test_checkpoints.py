"""Reading, averaging and choosing checkpoints, and what is said about those that cannot be used."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import pytest
import torch

from fairseq_plugins.checkpoints import (
    architecture,
    average_checkpoints,
    checkpoint_of,
    epoch_checkpoints,
    last_checkpoints,
    main,
    newest_readable_checkpoint,
    read_checkpoint,
    require_checkpoint,
    updates,
)
from fairseq_plugins.errors import InputError
from fairseq_plugins.exported.folder import write_card
from tests.commands import run_command, train_in_process
from tests.conftest import TranslationData


def write_checkpoint(path: Path, value: float = 0.0, *, arch: str = "lstm", after: int = 1, size: int = 2) -> Path:
    state = {
        "args": None,
        "cfg": {"model": argparse.Namespace(arch=arch)},
        "model": {"weight": torch.full((size, 300), value), "steps": torch.tensor(after)},
        "optimizer_history": [{"num_updates": after}],
        "last_optimizer_state": {"state": {}},
        "extra_state": {"train_iterator": {"epoch": 1}},
    }
    torch.save(state, path)
    return path


def with_dictionaries(path: Path, checksum: str) -> Path:
    write_checkpoint(path)
    state = torch.load(path, weights_only=False)
    torch.save({**state, "dictionaries": {"source": checksum, "target": "t"}}, path)
    return path


def truncate(path: Path, fraction: float) -> None:
    os.truncate(path, int(path.stat().st_size * fraction))


def contents(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


# ----------------------------------------------------------------------------------------------------------- reading


def test_reads_what_fairseq_saves(tmp_path: Path) -> None:
    state = read_checkpoint(write_checkpoint(tmp_path / "a.pt", 0.5, arch="lstm_luong_wmt_en_de", after=7))
    assert architecture(state) == "lstm_luong_wmt_en_de" and updates(state) == 7
    assert state["model"]["weight"].eq(0.5).all()


def test_reads_the_older_file_format(tmp_path: Path) -> None:
    torch.save({"model": {"weight": torch.ones(2)}}, tmp_path / "a.pt", _use_new_zipfile_serialization=False)
    state = read_checkpoint(tmp_path / "a.pt")
    assert state["model"]["weight"].tolist() == [1, 1] and architecture(state) is None and updates(state) == 0


@pytest.mark.parametrize(
    "model, expected", [({"_name": "recurrent_seq2seq", "arch": "mc_rnn"}, "mc_rnn"), ({"_name": "fconv"}, "fconv")]
)
def test_names_the_architecture_of_models_with_a_configuration(model: dict[str, str], expected: str) -> None:
    assert architecture({"cfg": {"model": model}, "model": {}}) == expected


@pytest.mark.parametrize("fraction", [0, 0.001, 0.3, 0.99])
@pytest.mark.parametrize("zipped", [True, False])
def test_a_truncated_checkpoint_is_named(fraction: float, zipped: bool, tmp_path: Path) -> None:
    state = read_checkpoint(write_checkpoint(tmp_path / "whole.pt"))
    torch.save(state, tmp_path / "a.pt", _use_new_zipfile_serialization=zipped)
    truncate(tmp_path / "a.pt", fraction)
    with pytest.raises(InputError, match=r"a\.pt: truncated, or not a checkpoint$"):
        read_checkpoint(tmp_path / "a.pt")


def test_an_exported_model_is_no_checkpoint(tmp_path: Path) -> None:
    for kind, use in {
        "translation": "run fairseq-plugins translate {}",
        "language_model": r"in Python fairseq_plugins.exported.load\('{}'\) has perplexity and sample",
        "classifier": r"in Python fairseq_plugins.exported.load\('{}'\) has classify",
    }.items():
        write_card(tmp_path, {"kind": kind})
        sentence = f"^{tmp_path}: an exported model, and no checkpoint; {use.format(tmp_path)}$"
        with pytest.raises(InputError, match=sentence):
            require_checkpoint(checkpoint_of(tmp_path))
    with pytest.raises(InputError, match=r"b\.pt: no such checkpoint$"):
        require_checkpoint(tmp_path / "a" / "b.pt")


def test_what_is_no_checkpoint_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a\.pt: no such checkpoint$"):
        read_checkpoint(tmp_path / "a.pt")
    torch.save({"weight": torch.ones(1)}, tmp_path / "weights.pt")
    with pytest.raises(InputError, match=r"weights\.pt: not a checkpoint of fairseq: it holds no model$"):
        read_checkpoint(tmp_path / "weights.pt")
    (tmp_path / "text.pt").write_text("Checkpoints are binary.\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"text\.pt: truncated, or not a checkpoint$"):
        read_checkpoint(tmp_path / "text.pt")


def test_a_training_that_was_not_validated_has_no_best_checkpoint(tmp_path: Path) -> None:
    last = tmp_path / "checkpoint_last.pt"
    last.touch()
    with pytest.raises(
        InputError, match=f"no such checkpoint; there is none where no epoch was validated: name {last}$"
    ):
        require_checkpoint(tmp_path / "checkpoint_best.pt")
    require_checkpoint(last)


@pytest.mark.parametrize("function", [open, os.mkdir])
def test_code_in_a_checkpoint_is_refused(function, tmp_path: Path) -> None:
    class Malicious:
        def __reduce__(self) -> tuple:
            return function, (str(tmp_path / "proof"), *(["w"] if function is open else []))

    torch.save({"model": {}, "args": Malicious()}, tmp_path / "a.pt")
    with pytest.raises(InputError, match=r"a\.pt: refused, because it holds objects that could run code"):
        read_checkpoint(tmp_path / "a.pt")
    assert contents(tmp_path) == {"a.pt"}


# ------------------------------------------------------------------------------------------- the one to go on from


def test_goes_on_from_the_last_checkpoint(tmp_path: Path, caplog) -> None:
    assert newest_readable_checkpoint(tmp_path / "missing") is None and newest_readable_checkpoint(tmp_path) is None
    write_checkpoint(tmp_path / "checkpoint9.pt", after=90)
    write_checkpoint(tmp_path / "checkpoint_last.pt", after=10)
    assert newest_readable_checkpoint(tmp_path) == tmp_path / "checkpoint_last.pt" and not caplog.records


def test_goes_on_from_the_furthest_readable_one_when_the_last_is_truncated(tmp_path: Path, caplog) -> None:
    # The times of the files say nothing: a copied folder has others.
    for name, after in ("10", 100), ("9", 90), ("_best", 40), ("_last", 110), ("_1_105", 105), (".best_bleu_9.5", 80):
        write_checkpoint(tmp_path / f"checkpoint{name}.pt", after=after)
    average_checkpoints([tmp_path / "checkpoint10.pt", tmp_path / "checkpoint_last.pt"], tmp_path / "checkpoint_avg.pt")
    truncate(tmp_path / "checkpoint_last.pt", 0.5)
    truncate(tmp_path / "checkpoint_1_105.pt", 0.5)
    assert newest_readable_checkpoint(tmp_path) == tmp_path / "checkpoint10.pt"
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert "checkpoint_last.pt: truncated, or not a checkpoint; it is not used" in caplog.text
    for path in tmp_path.glob("checkpoint*.pt"):
        truncate(path, 0.5)
    assert newest_readable_checkpoint(tmp_path) is None


# --------------------------------------------------------------------------------------------------------- averaging


def test_averages_parameters_and_keeps_the_rest_of_the_last(tmp_path: Path) -> None:
    paths = [write_checkpoint(tmp_path / f"{value}.pt", value, after=int(value)) for value in (1.0, 2.0, 6.0)]
    average_checkpoints(paths, tmp_path / "average.pt")
    state = read_checkpoint(tmp_path / "average.pt")
    assert state["model"]["weight"].eq(3).all() and state["model"]["weight"].dtype == torch.float32
    assert state["model"]["steps"] == 6 and updates(state) == 6
    assert "last_optimizer_state" not in state and state["averaged"] == ["1.0.pt", "2.0.pt", "6.0.pt"]


def test_an_average_may_take_the_place_of_its_source(tmp_path: Path) -> None:
    paths = [write_checkpoint(tmp_path / f"{value}.pt", value) for value in (1.0, 2.0)]
    average_checkpoints(paths, paths[0])
    assert read_checkpoint(paths[0])["model"]["weight"].eq(1.5).all()


def test_models_that_differ_are_not_averaged(tmp_path: Path) -> None:
    first = write_checkpoint(tmp_path / "a.pt")
    other = write_checkpoint(tmp_path / "b.pt", arch="fconv")
    with pytest.raises(InputError, match=r"b\.pt is a checkpoint of 'fconv', but .*a\.pt of 'lstm'; average"):
        average_checkpoints([first, other], tmp_path / "average.pt")
    larger = write_checkpoint(tmp_path / "c.pt", size=3)
    with pytest.raises(InputError, match=r"c\.pt: weight has shape \(3, 300\), but in .*a\.pt shape \(2, 300\)"):
        average_checkpoints([first, larger], tmp_path / "average.pt")
    truncate(first, 0.5)
    with pytest.raises(InputError, match="truncated"):
        average_checkpoints([larger, first], tmp_path / "average.pt")
    with pytest.raises(InputError, match="no checkpoints were given"):
        average_checkpoints([], tmp_path / "average.pt")
    assert contents(tmp_path) == {"a.pt", "b.pt", "c.pt"}


def test_models_of_different_dictionaries_are_not_averaged(tmp_path: Path) -> None:
    first, second = (with_dictionaries(tmp_path / f"{name}.pt", name) for name in "ab")
    with pytest.raises(InputError, match=r"b\.pt and .*a\.pt were trained with different dictionaries; average"):
        average_checkpoints([first, second], tmp_path / "average.pt")
    assert contents(tmp_path) == {"a.pt", "b.pt"}
    average_checkpoints([first, write_checkpoint(tmp_path / "c.pt")], tmp_path / "average.pt")  # c names none


def test_chooses_epochs_by_number(tmp_path: Path) -> None:
    for name in "2", "9", "10", "_best", "_last", "_3_40":
        write_checkpoint(tmp_path / f"checkpoint{name}.pt")
    assert list(epoch_checkpoints(tmp_path)) == [2, 9, 10]
    assert [path.name for path in last_checkpoints(tmp_path, 2)] == ["checkpoint9.pt", "checkpoint10.pt"]
    with pytest.raises(InputError, match=r"3 checkpoints of epochs \(checkpoint<epoch>\.pt\), but 4 are wanted; train"):
        last_checkpoints(tmp_path, 4)
    with pytest.raises(InputError, match="ask for 1 or more"):
        last_checkpoints(tmp_path, 0)


def test_command_chooses_and_averages(tmp_path: Path, capsys) -> None:
    for epoch in 1, 2, 3:
        write_checkpoint(tmp_path / f"checkpoint{epoch}.pt", float(epoch))
    output = tmp_path / "out" / "average.pt"
    for options, expected in (["--last", "2"], 2.5), (["--epochs", "1", "3"], 2):
        main(["--inputs", str(tmp_path), *options, "--output", str(output)])
        assert read_checkpoint(output)["model"]["weight"].eq(expected).all()
    main(["--inputs", str(tmp_path / "checkpoint1.pt"), "--output", str(output)])
    assert read_checkpoint(output)["model"]["weight"].eq(1).all()
    assert "checkpoint1.pt, " in capsys.readouterr().out
    for wrong, message in (
        ([str(tmp_path)], "is a folder: say which"),
        ([str(tmp_path / "checkpoint1.pt"), "--last", "1"], "choose from one folder"),
        ([str(tmp_path), "--epochs", "3", "4"], r"no checkpoint4\.pt; there are those of epochs 1, 2, 3$"),
    ):
        with pytest.raises(InputError, match=message):
            main(["--inputs", *wrong, "--output", str(output)])


@pytest.mark.system
def test_command_says_errors_in_one_sentence(tmp_path: Path) -> None:
    finished = run_command(
        ["python", "-m", "fairseq_plugins", "average", "--inputs", tmp_path / "a.pt", "--output", tmp_path / "b.pt"],
        status=1,
    )
    errors = [line for line in finished.stderr.splitlines() if not line.startswith("INFO:")]
    assert errors == [f"error: {tmp_path / 'a.pt'}: no such checkpoint"] and not contents(tmp_path)


@pytest.mark.system
def test_fairseq_loads_an_average(tiny_translation_data: TranslationData, tmp_path: Path) -> None:
    from fairseq import checkpoint_utils

    sizes = "--encoder-embed-dim 8 --decoder-embed-dim 8 --encoder-hidden-size 8 --decoder-hidden-size 8".split()
    train_in_process(
        *[tiny_translation_data.separate, "--arch", "lstm", *sizes, "--decoder-out-embed-dim", "8", "--cpu"],
        *["--optimizer", "adam", "--lr", "0.01", "--max-tokens", "800", "--max-epoch", "2", "--disable-validation"],
        *["--save-dir", tmp_path],
    )
    average_checkpoints(last_checkpoints(tmp_path, 2), tmp_path / "average.pt")
    names = ["checkpoint1.pt", "checkpoint2.pt", "average.pt"]
    models = [checkpoint_utils.load_model_ensemble([str(tmp_path / name)])[0][0].state_dict() for name in names]
    for name in models[0]:
        torch.testing.assert_close(models[2][name], (models[0][name] + models[1][name]) / 2)
    assert not torch.equal(models[0]["decoder.fc_out.weight"], models[1]["decoder.fc_out.weight"])


def test_a_work_folder_means_its_best_checkpoint(tmp_path: Path) -> None:
    assert checkpoint_of(tmp_path) == tmp_path / "checkpoints" / "checkpoint_best.pt"
    assert checkpoint_of(tmp_path / "a.pt") == tmp_path / "a.pt"
