"""What a training says of its kernels."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from fairseq.dataclass.configs import FairseqConfig
from fairseq.distributed import utils as distributed_utils
from fairseq_cli import generate, train
from omegaconf import OmegaConf

from fairseq_plugins.kernels import BACKEND_VARIABLE, verdicts
from fairseq_plugins.kernels.verdicts import Verdict
from fairseq_plugins.patches import kernels_line
from fairseq_plugins.patches.kernels_line import say_kernels

from .unpatched import needless, original_of


def said(caplog: pytest.LogCaptureFixture, main=train.main, cpu: bool = True, fp16: bool = False) -> list[str]:
    caplog.clear()
    cfg = SimpleNamespace(common=SimpleNamespace(cpu=cpu, fp16=fp16, bf16=False))
    with caplog.at_level("INFO"):
        assert kernels_line._saying_kernels(lambda *arguments: arguments)(cfg, main) == (cfg, main)
    # The first time they are compiled, which is said too.
    return [record.message for record in caplog.records if record.message.startswith("kernels")]


def test_a_training_says_which_kernels_it_runs_on(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(BACKEND_VARIABLE, raising=False)
    assert said(caplog) == ["kernels: C++ (MC-RNN, attention, scan)"]
    assert said(caplog, fp16=True) == ["kernels: PyTorch operations (MC-RNN, attention, scan)"]
    assert said(caplog, main=generate.main) == []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert said(caplog) == ["kernels: C++ (MC-RNN, attention, scan)"]
    compared: list[bool] = []
    monkeypatch.setattr(kernels_line.comparison, "ensure", lambda: compared.append(True))
    monkeypatch.setattr(verdicts, "of_this_machine", lambda: {"multi_channel": {"cuda_graph": Verdict(0.1)}})
    line = "kernels: cuda_graph (MC-RNN), PyTorch operations (attention, scan, decoder's steps), on GPUs"
    assert said(caplog, cpu=False) == [line] and compared == [True]
    monkeypatch.setenv(BACKEND_VARIABLE, "triton")
    line = "kernels: cuda_graph (MC-RNN), PyTorch operations (attention, decoder's steps), triton (scan), on GPUs"
    assert said(caplog, cpu=False) == [line] and compared == [True], "whoever names one waits for nothing"
    monkeypatch.setenv(BACKEND_VARIABLE, "reference")
    assert said(caplog) == ["kernels: reference (MC-RNN, attention, scan)"]


def test_fairseq_says_nothing_of_them(caplog: pytest.LogCaptureFixture) -> None:
    cfg = OmegaConf.structured(FairseqConfig())
    cfg.common.cpu = True
    cfg.distributed_training.distributed_world_size = 1
    with caplog.at_level("INFO"):
        original_of(distributed_utils, "call_main")(cfg, lambda cfg: None)
    assert "kernels" not in caplog.text, needless(say_kernels)
