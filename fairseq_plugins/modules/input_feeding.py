"""The loop of a decoder with input feeding: c(t) from h(t - 1), then h(t) from [E y(t - 1); c(t)], as Bahdanau, Cho and
Bengio (2015) have it, over all steps of a training's targets at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..kernels.decoder_loop import DecoderLoop, Tensors, decoder_loop, runs_in_graphs
from .attention import AdditiveAttention
from .recurrent.contract import RecurrentNetwork, RecurrentState
from .recurrent.stack import RecurrentStack
from .regularization import with_parameters

# Sources are padded to a multiple of so many positions: one graph serves several lengths.
POSITIONS = 8


def feeds_in_graphs(stack: RecurrentStack, like: Tensor) -> bool:
    """Whether :func:`input_feeding` is the fastest way for such a stack and tensors like this one."""
    is_fixed = isinstance(stack.dropout, nn.Dropout) and not stack.drop_connect
    return is_fixed and all(map(_has_fixed_steps, stack.layers)) and runs_in_graphs(like)


def input_feeding(
    decoder: nn.Module,
    stack: RecurrentStack,
    attention: AdditiveAttention,
    embedded: Tensor,
    query: Tensor,
    states: Sequence[RecurrentState],
    keys: Tensor,
    values: Tensor,
    padding_mask: Tensor,
) -> tuple[Tensor, Tensor]:
    """Runs all steps as CUDA graphs.

    Args:
        decoder: of which ``stack`` and ``attention`` are parts.
        stack: whose layers have steps that do not change (``has_fixed_steps``).
        attention: of the top layer's output to the encoder's.
        embedded: E y (B, T, E).
        query: h(0) of the top layer (B, H).
        states: of the layers before the first step.
        keys: (B, S, A), projected.
        values: (B, S, K).
        padding_mask: (B, S), True at padding.

    Returns:
        h (B, T, H) and c (B, T, K).
    """
    parts = {
        "stack": stack,
        "attention.query_projection": attention.query_projection,
        "attention.score": attention.score,
    }
    parameters = {
        f"{part}.{name}": parameter for part, module in parts.items() for name, parameter in module.named_parameters()
    }
    kinds = [type(state) for state in states]
    sizes = [len(state) for state in states]
    is_dropping = isinstance(stack.dropout, nn.Dropout) and stack.dropout.training and stack.dropout.p > 0
    # A graph draws no numbers: for the backward pass it is computed anew, and would draw others.
    kept = [
        stack.dropout(embedded.new_ones(embedded.size(1), embedded.size(0), layer.output_size))
        for layer in (list(stack.layers)[:-1] if is_dropping else ())
    ]
    more = -keys.size(1) % POSITIONS
    keys, values = (nn.functional.pad(part, (0, 0, 0, more)) for part in (keys, values))
    padding_mask = nn.functional.pad(padding_mask, (0, more), value=True)

    def run(inputs: Tensors, state: Tensors, constants: Tensors, given: Tensors) -> tuple[Tensors, Tensors]:
        replaced = dict(zip(parameters, given, strict=True))
        return with_parameters(decoder, replaced, steps, inputs, state, constants)

    def steps(inputs: Tensors, state: Tensors, constants: Tensors) -> tuple[Tensors, Tensors]:
        tokens, *factors = inputs
        query, *parts = state
        t = 0
        dropouts = [lambda x, factor=factor: x * factor[t] for factor in factors]
        step = stack.stepper(tokens.size(1), dropouts if is_dropping else None)
        keys, values, padding_mask = constants
        attend = attention.attending(keys, values, padding_mask)
        layers: Sequence[RecurrentState] = _grouped(parts, kinds, sizes)
        outputs, contexts = [], []
        for t, token in enumerate(tokens.unbind(0)):  # noqa: B007 - dropouts read it
            context = attend(query.unsqueeze(1))[0].squeeze(1)
            query, layers = step(torch.cat([token, context], dim=-1), layers)
            outputs.append(query)
            contexts.append(context)
        return (torch.stack(outputs), torch.stack(contexts)), (query, *_flat(layers))

    loop = DecoderLoop(decoder, is_dropping, run)
    output, context = decoder_loop(
        loop,
        (embedded.transpose(0, 1), *kept),
        (query, *_flat(states)),
        (keys, values, padding_mask),
        tuple(parameters.values()),
    )
    return output.transpose(0, 1), context.transpose(0, 1)


def _has_fixed_steps(layer: RecurrentNetwork[Any]) -> bool:
    """Whether its class says so of the steps that it has: a layer derived from one of ours may have its own."""
    for kind in type(layer).__mro__:
        if "has_fixed_steps" in vars(kind):
            return layer.has_fixed_steps
        if not {"step", "stepper"}.isdisjoint(vars(kind)):
            return False
    return False


def _flat(states: Sequence[RecurrentState]) -> list[Tensor]:
    return [part for state in states for part in state]


def _grouped(parts: Sequence[Tensor], kinds: Sequence[Any], sizes: Sequence[int]) -> list[RecurrentState]:
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
    return [kind(*parts[end - size : end]) for kind, size, end in zip(kinds, sizes, ends, strict=True)]
