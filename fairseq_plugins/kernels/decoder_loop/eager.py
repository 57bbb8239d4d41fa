"""The loop as it is written, an operation after the other."""

from __future__ import annotations

from torch import Tensor

from . import DecoderLoop, Tensors


def refuses(like: Tensor) -> str | None:
    """It takes everything."""
    return None


def decoder_loop(
    loop: DecoderLoop, inputs: Tensors, state: Tensors, constants: Tensors, parameters: Tensors
) -> tuple[Tensor, ...]:
    """See :func:`fairseq_plugins.kernels.decoder_loop.decoder_loop`."""
    outputs, _ = loop.run(inputs, state, constants, parameters)
    return tuple(outputs)
