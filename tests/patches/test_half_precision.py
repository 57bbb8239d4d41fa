"""Training in bfloat16 and float16 on the CPU, and resuming it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq import options
from fairseq.optim.dynamic_loss_scaler import DynamicLossScaler
from fairseq.optim.fp16_optimizer import FP16Optimizer, _FP16OptimizerMixin, _MemoryEfficientFP16OptimizerMixin

from fairseq_plugins.checkpoints import read_checkpoint
from fairseq_plugins.patches.half_precision import (
    allow_bfloat16_without_tpu,
    allow_float16_without_gpu,
    keep_float32_weights_when_resuming,
    keep_steps_of_the_loss_scale_when_resuming,
)
from tests.commands import train_in_process
from tests.conftest import TranslationData

from .unpatched import fault_of, needless

TINY_LSTM = (
    "--arch lstm --encoder-embed-dim 16 --decoder-embed-dim 16 --encoder-hidden-size 16 --decoder-hidden-size 16 "
    "--decoder-out-embed-dim 16 --optimizer adam --lr 0.01 --max-tokens 400 --no-progress-bar --cpu"
).split()


@pytest.mark.system
@pytest.mark.parametrize("precision", [["--memory-efficient-bf16"], ["--bf16", "--fp16-no-flatten-grads"], ["--bf16"]])
def test_trains_with_bfloat16_on_the_cpu(
    precision: list[str], tiny_translation_data: TranslationData, tmp_path: Path
) -> None:
    from fairseq import checkpoint_utils

    train_in_process(
        tiny_translation_data.separate, *TINY_LSTM, *precision, "--max-update", "2", "--save-dir", tmp_path
    )
    state = checkpoint_utils.load_checkpoint_to_cpu(str(tmp_path / "checkpoint_last.pt"))
    assert state["cfg"].common.bf16 and not state["cfg"].common.tpu
    embedding = state["model"]["encoder.embed_tokens.weight"]
    assert torch.equal(embedding, embedding.bfloat16().float()) and torch.isfinite(embedding).all()


def parse(*precision: str) -> argparse.Namespace:
    return options.parse_args_and_arch(options.get_training_parser(), ["data", *TINY_LSTM[:-1], *precision])


def test_fairseq_wants_a_tpu(unpatch: Callable[[object, str], None]) -> None:
    unpatch(options, "parse_args_and_arch")
    assert parse("--bf16").tpu, needless(allow_bfloat16_without_tpu)


def test_a_tpu_that_was_asked_for_stays() -> None:
    assert parse("--tpu", "--bf16").tpu and not parse("--bf16").tpu and not parse().tpu


@pytest.mark.system
def test_trains_with_float16_on_the_cpu(tiny_translation_data: TranslationData, tmp_path: Path) -> None:
    model = trained(tiny_translation_data, tmp_path, "--fp16", "--max-update", 2)["model"]
    embedding = model["encoder.embed_tokens.weight"]
    assert torch.equal(embedding, embedding.half().float()) and torch.isfinite(embedding).all()


@pytest.mark.system
def test_fairseq_trains_with_float16_on_gpus_alone(
    tiny_translation_data: TranslationData, tmp_path: Path, unpatch: Callable[[object, str], None]
) -> None:
    if torch.cuda.is_available():
        pytest.skip("the gradients of a CPU are flattened on the GPU that is there")
    unpatch(FP16Optimizer, "build_optimizer")
    with fault_of(allow_float16_without_gpu, AssertionError, RuntimeError):
        trained(tiny_translation_data, tmp_path, "--fp16", "--max-update", 1)


# ------------------------------------------------------------------------------------------------- resuming

# Updates that are too small for the model's own weights; a loss scale that grows every seventh update.
SMALL = ("--lr", "1e-5", "--fp16-scale-window", 7, "--fp16-init-scale", 4)


def trained(data: TranslationData, folder: Path, *options: object) -> dict[str, Any]:
    options = (*TINY_LSTM, "--distributed-world-size", 1, "--no-epoch-checkpoints", *options)
    train_in_process(data.separate, *map(str, options), "--save-dir", folder)
    return read_checkpoint(folder / "checkpoint_last.pt")


def both_ways(data: TranslationData, folder: Path, *options: object) -> tuple[dict[str, Any], dict[str, Any]]:
    """Twenty updates at once, and with three interruptions."""
    whole = trained(data, folder / "whole", *SMALL, *options, "--max-update", 20)
    for updates in 5, 10, 15, 20:
        parts = trained(data, folder / "parts", *SMALL, *options, "--max-update", updates)
    return whole, parts


def are_same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    assert one["optimizer_history"][-1]["num_updates"] == other["optimizer_history"][-1]["num_updates"]
    return all(torch.equal(tensor, other["model"][name]) for name, tensor in one["model"].items())


@pytest.mark.system
@pytest.mark.parametrize("precision", ["--bf16", "--fp16", "--memory-efficient-bf16", "--memory-efficient-fp16"])
def test_a_training_that_is_resumed_ends_as_one_that_was_never_interrupted(
    precision: str, tiny_translation_data: TranslationData, tmp_path: Path
) -> None:
    whole, parts = both_ways(tiny_translation_data, tmp_path, precision)
    assert are_same(whole, parts)
    state, resumed = whole["last_optimizer_state"], parts["last_optimizer_state"]
    weights, others = state.get("float32_weights", []), resumed.get("float32_weights", [])
    assert len(weights) == len(others) and all(map(torch.equal, weights, others))
    assert all(weight.dtype == torch.float32 for weight in weights) and bool(weights) == ("efficient" not in precision)
    scale = [one.get(name) for one in (state, resumed) for name in ("loss_scale", "loss_scale_steps")]
    assert scale[:2] == scale[2:] and (scale[1] is None) == precision.endswith("bf16")


@pytest.mark.system
def test_fairseq_forgets_the_weights_in_float32(
    tiny_translation_data: TranslationData, tmp_path: Path, unpatch: Callable[[object, str], None]
) -> None:
    for name in "state_dict", "load_state_dict":
        unpatch(_FP16OptimizerMixin, name)
    is_as_whole = are_same(*both_ways(tiny_translation_data, tmp_path, "--bf16"))
    assert not is_as_whole, needless(keep_float32_weights_when_resuming)


def optimizer_of(kind: Any) -> Any:
    """The part that saves: of an optimizer of one parameter."""
    optimizer = kind.__new__(kind)
    inner = SimpleNamespace(state_dict=lambda: {}, load_state_dict=lambda state, overrides=None: None)
    optimizer.fp32_optimizer = optimizer.wrapped_optimizer = inner
    optimizer.scaler = DynamicLossScaler(scale_window=5)
    optimizer.fp16_params = [torch.nn.Parameter(torch.tensor([1.0, 2.0], dtype=torch.bfloat16))]
    optimizer.fp32_params = FP16Optimizer.build_fp32_params(None, optimizer.fp16_params, flatten=False)
    return optimizer


def test_fairseq_forgets_since_when_the_scale_of_the_loss_holds(unpatch: Callable[[object, str], None]) -> None:
    for kind in _FP16OptimizerMixin, _MemoryEfficientFP16OptimizerMixin:
        assert "loss_scale_steps" in optimizer_of(kind).state_dict()
        unpatch(kind, "state_dict")
        optimizer = optimizer_of(kind)
        for _ in range(3):
            optimizer.scaler.update()
        assert 3 not in optimizer.state_dict().values(), needless(keep_steps_of_the_loss_scale_when_resuming)


def test_weights_that_were_changed_in_the_model_stay_as_they_are() -> None:
    saved = optimizer_of(_FP16OptimizerMixin)
    saved.fp32_params[0].data += 1e-4  # nothing of it shows in bfloat16
    state = saved.state_dict()
    for first, expected in (1.0, [1.0001, 2.0001]), (3.0, [3.0, 2.0001]):
        loaded = optimizer_of(_FP16OptimizerMixin)
        loaded.fp16_params[0].data[0] = first
        loaded.fp32_params = FP16Optimizer.build_fp32_params(None, loaded.fp16_params, flatten=False)
        loaded.load_state_dict(state)
        torch.testing.assert_close(loaded.fp32_params[0].data, torch.tensor(expected))
        assert "float32_weights" in state, "what was read is not changed"


def test_flat_weights_are_kept_whatever_the_number_of_the_gpu() -> None:
    saved, loaded = (optimizer_of(_FP16OptimizerMixin) for _ in range(2))
    saved.fp32_params = {0: torch.nn.Parameter(torch.tensor([1.0001, 2.0001]))}
    loaded.fp32_params = {1: torch.nn.Parameter(torch.tensor([1.0, 2.0]))}
    loaded.load_state_dict(saved.state_dict())
    assert torch.equal(loaded.fp32_params[1], saved.fp32_params[0])


@pytest.mark.parametrize("kept", [{}, {"float32_weights": [torch.ones(3)]}])
def test_states_of_other_versions_are_taken(kept: dict[str, Any]) -> None:
    optimizer = optimizer_of(_FP16OptimizerMixin)
    optimizer.load_state_dict(kept)
    assert optimizer.fp32_params[0].tolist() == [1.0, 2.0]
