"""The loop of a decoder whose input at each step depends on its own last output, so that no layer runs on its own.

Symbols: T time steps, B batch.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

from torch import Tensor

from .. import dispatch
from ..autocast import is_autocast

__all__ = ["DecoderLoop", "decoder_loop", "runs_in_graphs"]

Tensors = Sequence[Tensor]


class DecoderLoop(NamedTuple):
    """What is computed: a function of tensors alone, which does the same for any number of steps and rows.

    Attributes:
        owner: whose loop it is, as long as that lives.
        variant: what else than the tensors' sizes the operations depend on.
        run: of inputs (n, B, ...), the state and constants (B, ...) and parameters: the outputs (n, B, ...) and the
            next state, like the state. Rows do not know of each other.
    """

    owner: object
    variant: Hashable
    run: Callable[[Tensors, Tensors, Tensors, Tensors], tuple[Tensors, Tensors]]


def runs_in_graphs(like: Tensor) -> bool:
    """Whether the loop runs as CUDA graphs where its tensors are like this one: on a GPU that has found them right and
    faster than a launch for each operation."""
    return not is_autocast(like.device.type) and dispatch.choose("decoder_loop", like).name == "cuda_graph"


def decoder_loop(
    loop: DecoderLoop, inputs: Tensors, state: Tensors, constants: Tensors, parameters: Tensors
) -> tuple[Tensor, ...]:
    """Runs all steps. Differentiable once.

    Args:
        loop: what it computes.
        inputs: what each step reads, (T, B, ...).
        state: before the first step, (B, ...).
        constants: what all steps read, (B, ...).
        parameters: what all rows read; their memory stays theirs from one call to the next.

    Returns:
        the outputs (T, B, ...).

    Raises:
        ValueError: the state or the constants have another number of rows.
    """
    rows = inputs[0].size(1)
    if any(part.size(0) != rows for part in (*state, *constants)):
        raise ValueError(f"the state and what all steps read must have {rows} rows, as the inputs")
    module = dispatch.choose("decoder_loop", inputs[0]).module
    outputs: tuple[Tensor, ...] = module.decoder_loop(loop, inputs, state, constants, parameters)
    return outputs
