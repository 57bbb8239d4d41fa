"""``--bf16`` without a TPU, ``--fp16`` without a GPU, and what a training with them needs to be resumed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from typing import Any

import torch
from fairseq import options, utils
from fairseq.optim.fp16_optimizer import FP16Optimizer, _FP16OptimizerMixin, _MemoryEfficientFP16OptimizerMixin
from torch import Tensor

from .replacing import replace_once

WEIGHTS = "float32_weights"
STEPS = "loss_scale_steps"
"""What these patches add to the state of an optimizer."""
_STEPS = ("_iter", "_last_overflow_iter", "_last_rescale_iter", "_overflows_since_rescale")


def allow_bfloat16_without_tpu() -> None:
    """Lets ``--bf16`` and ``--memory-efficient-bf16`` run on what is there; fairseq takes them for a wish for a TPU.

    For fairseq 0.12.
    """

    def build(parse_args_and_arch: Callable) -> Callable:
        def parse(parser: argparse.ArgumentParser, input_args: list[str] | None = None, *rest: Any, **keywords: Any):
            parsed = parse_args_and_arch(parser, input_args, *rest, **keywords)
            args = parsed[0] if isinstance(parsed, tuple) else parsed
            asked_for_tpu = "--tpu" in (sys.argv if input_args is None else input_args)
            if getattr(args, "bf16", False) and not asked_for_tpu and (utils.xm is None or getattr(args, "cpu", False)):
                args.tpu = False
            return parsed

        return parse

    replace_once(options, "parse_args_and_arch", build)


def allow_float16_without_gpu() -> None:
    """Lets ``--fp16`` run on a CPU, without flat gradients: fairseq makes those on the current GPU.

    For fairseq 0.12.
    """

    def build(build_optimizer: Callable) -> Callable:
        def build_on_any_device(cfg: Any, params: Iterable[Tensor], **keywords: Any) -> FP16Optimizer:
            params = list(params)
            if not any(parameter.is_cuda for parameter in params):
                cfg.common.fp16_no_flatten_grads = True
            return build_optimizer(cfg, params, **keywords)

        return build_on_any_device

    replace_once(FP16Optimizer, "build_optimizer", build)


def keep_float32_weights_when_resuming() -> None:
    """Makes a training with ``--fp16`` or ``--bf16`` go on as one that was never interrupted.

    Behind the model's weights are others in float32, which the updates change. fairseq does not save them: resumed, it
    makes them of the model's, and all updates that were too small to show there are lost.

    For fairseq 0.12.
    """
    replace_once(_FP16OptimizerMixin, "state_dict", _keeping_weights)
    replace_once(_FP16OptimizerMixin, "load_state_dict", _restoring_weights)


def _keeping_weights(state_dict: Callable) -> Callable:
    def keep(self: FP16Optimizer) -> dict[str, Any]:
        return {**state_dict(self), WEIGHTS: [weight.detach() for weight in _float32_weights(self)]}

    return keep


def _restoring_weights(load_state_dict: Callable) -> Callable:
    def restore(self: FP16Optimizer, state_dict: dict[str, Any], optimizer_overrides: Any = None) -> None:
        state_dict = dict(state_dict)
        kept = state_dict.pop(WEIGHTS, [])
        load_state_dict(self, state_dict, optimizer_overrides)
        weights = _float32_weights(self)
        if [weight.shape for weight in kept] != [weight.shape for weight in weights]:
            return  # of an earlier version, or flat where these are not
        precision = self.fp16_params[0].dtype
        for weight, value in zip(weights, kept, strict=True):
            # What somebody has changed in the model since then stays.
            value = value.to(weight)
            weight.data.copy_(torch.where(value.to(precision) == weight.to(precision), value, weight))

    return restore


def _float32_weights(optimizer: FP16Optimizer) -> list[Tensor]:
    """One for each parameter, or a flat one for each GPU."""
    weights = optimizer.fp32_params
    return list(weights.values() if isinstance(weights, dict) else weights)


def keep_steps_of_the_loss_scale_when_resuming() -> None:
    """Makes the scale of the loss (``--fp16``, ``--memory-efficient-fp16``) grow and shrink at the updates at which it
    would have in a training that was never interrupted: fairseq saves the scale, and not since when it holds.

    For fairseq 0.12.
    """
    for kind in _FP16OptimizerMixin, _MemoryEfficientFP16OptimizerMixin:
        replace_once(kind, "state_dict", _keeping_steps)
        replace_once(kind, "load_state_dict", _restoring_steps)


def _keeping_steps(state_dict: Callable) -> Callable:
    def keep(self: Any) -> dict[str, Any]:
        state = state_dict(self)
        return state if self.scaler is None else {**state, STEPS: {name: getattr(self.scaler, name) for name in _STEPS}}

    return keep


def _restoring_steps(load_state_dict: Callable) -> Callable:
    def restore(self: Any, state_dict: dict[str, Any], optimizer_overrides: Any = None) -> None:
        load_state_dict(self, state_dict, optimizer_overrides)
        if self.scaler is not None:
            vars(self.scaler).update(state_dict.get(STEPS, {}))

    return restore
