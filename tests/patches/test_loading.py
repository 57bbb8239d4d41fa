"""Checkpoints load with ``weights_only=True`` and without the files that their models were made from."""

from __future__ import annotations

import argparse
import contextlib
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import omegaconf
import pytest
import torch
from fairseq import checkpoint_utils, models
from fairseq.distributed import utils as distributed_utils

from benchmarks.untrained import make_configuration
from fairseq_plugins.errors import InputError
from fairseq_plugins.patches.loading import allow_checkpoint_types, tell_models_of_checkpoints
from tests.models.tasks import make_task

from .unpatched import fault_of

TINY = dict.fromkeys(["encoder_embed_dim", "encoder_hidden_size", "decoder_embed_dim", "decoder_hidden_size"], 6)


def save_and_load(value: object, folder: Path) -> object:
    torch.save(value, folder / "checkpoint.pt")
    return torch.load(folder / "checkpoint.pt", weights_only=True)


def test_loads_what_fairseq_checkpoints_hold(tmp_path: Path) -> None:
    arrays = {name: np.ones(2, name) for name in ("bool", "int32", "int64", "float16", "float32", "float64")}
    state = {
        "args": argparse.Namespace(arch="lstm", lr=[0.25]),
        "cfg": {"model": argparse.Namespace(dropout=0.1)},
        "extra_state": {"best": np.float64(12.5), "count": np.int64(3), "ratio": np.float32(0.5), **arrays},
    }
    loaded = save_and_load(state, tmp_path)
    assert loaded["args"] == state["args"] and loaded["cfg"] == state["cfg"]
    for name, value in state["extra_state"].items():
        np.testing.assert_array_equal(loaded["extra_state"][name], value, strict=True)


def test_loads_what_several_processes_send_each_other(tmp_path: Path) -> None:
    config = omegaconf.OmegaConf.create(
        {"model": argparse.Namespace(dropout=0.1), "lr": [0.1, None], "name": "x"}, flags={"allow_objects": True}
    )
    tensors: list[torch.Tensor] = []
    state = distributed_utils._split_tensors_from_obj({"cfg": config, "model": {"weight": torch.ones(2)}}, tensors)
    loaded = distributed_utils._put_tensors_in_obj(save_and_load(state, tmp_path), tensors)
    assert loaded["cfg"] == config and loaded["cfg"].lr == [0.1, None]
    assert torch.equal(loaded["model"]["weight"], torch.ones(2))


@pytest.mark.parametrize("package", ["numpy.core.multiarray", "numpy._core.multiarray"])
def test_loads_numpy_numbers_of_older_and_newer_numpy(package: str, tmp_path: Path) -> None:
    torch.save({"best": np.float64(1.5), "all": np.arange(3.0)}, tmp_path / "here.pt")
    with zipfile.ZipFile(tmp_path / "here.pt") as here, zipfile.ZipFile(tmp_path / "there.pt", "w") as there:
        for name in here.namelist():
            content = here.read(name)
            if name.endswith("data.pkl"):
                for known in b"numpy._core.multiarray", b"numpy.core.multiarray":
                    content = content.replace(b"c" + known + b"\n", b"c" + package.encode() + b"\n")
                assert package.encode() in content
            there.writestr(name, content)
    loaded = torch.load(tmp_path / "there.pt", weights_only=True)
    assert loaded["best"] == 1.5 and loaded["all"].tolist() == [0, 1, 2]


class Malicious:
    """Unpickling it runs code of the file's choosing."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple:
        return open, (str(self.target), "w")


def test_a_malicious_checkpoint_is_still_refused(tmp_path: Path) -> None:
    torch.save({"model": {}, "args": Malicious(tmp_path / "proof")}, tmp_path / "checkpoint.pt")
    refusals = [{"weights_only": True}] + [{}] * (torch.__version__ >= (2, 6))
    for keywords in refusals:
        with pytest.raises(pickle.UnpicklingError, match="weights_only|Weights only"):
            torch.load(tmp_path / "checkpoint.pt", **keywords)
    assert not (tmp_path / "proof").exists()


@pytest.mark.skipif(torch.__version__ < (2, 6), reason="PyTorch refuses nothing before 2.6")
def test_pytorch_refuses_fairseqs_checkpoints(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.pt"
    torch.save({"args": argparse.Namespace(arch="lstm"), "model": {}}, path)
    allowed = torch.serialization.get_safe_globals()
    torch.serialization.clear_safe_globals()
    try:
        # fairseq misses something in so small a checkpoint, but only when it has been loaded.
        with fault_of(allow_checkpoint_types, pickle.UnpicklingError), contextlib.suppress(KeyError):
            checkpoint_utils.load_checkpoint_to_cpu(str(path))
    finally:
        torch.serialization.add_safe_globals(allowed)


def test_vectors_are_not_read_again(tmp_path: Path, unpatch: Callable[[object, str], None]) -> None:
    path, task = tmp_path / "vectors.txt", make_task(left_pad_target=False)
    path.write_text("1 6\nw3 1 2 3 4 5 6\n")
    options = {"encoder_embed_path": str(path), "encoder_freeze_embed": True}
    whole = make_configuration("recurrent_seq2seq", **options, **TINY)
    weights = models.build_model(whole.model, task).state_dict()
    path.unlink()
    with pytest.raises(InputError, match="vectors.txt: no such file"):
        models.build_model(whole.model, task)
    model = models.build_model(whole.model, task, from_checkpoint=True)
    model.load_state_dict(weights)
    assert not model.encoder.embed_tokens.weight.requires_grad
    del task.is_from_checkpoint
    unpatch(models, "build_model")
    with fault_of(tell_models_of_checkpoints, InputError):
        models.build_model(whole.model, task, from_checkpoint=True)
