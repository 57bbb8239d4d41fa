"""The recurrent path, ``rnn``: RNNSearch (Bahdanau, Cho and Bengio, 2015) of any recurrent layers.

The encoder reads the source in both directions. The decoder attends after its top layer (Luong, no input feeding), so
that its whole recurrence runs in one call; it starts from the recurrent encoder's summaries, or from the mean of the
first encoder path's output where there is no recurrent one. Alone on both sides, with positions of zero and an input
scale of 1, it is ``recurrent_seq2seq`` with ``--decoder-attention output`` and an encoder of half the width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from ...kernels.checks import check_number
from ...kernels.dropout import dropout
from ..attention import AdditiveAttention, Memory, by_sentence
from ..dropout import Dropout
from ..linear import Linear
from ..recurrent.contract import RecurrentState
from ..recurrent.registry import option
from ..recurrent.stack import RecurrentStack, initial_states, of_levels, reorder_states
from .contract import (
    DecoderPath,
    EncoderOutput,
    EncoderPath,
    Fusion,
    PathOutput,
    path_output,
    run_layer,
    without_padding,
)
from .gate import fuse, make_gate, order
from .registry import PathKind, PathSizes, memory_scale, register_path


@dataclass(frozen=True)
class RecurrentPathOptions:
    """What a recurrent path can be asked for, beside its recurrent layers."""

    rnn_layers: int = option(2, "layers of the recurrent path", minimum=1)
    rnn_input_scale: float = option(2.0, "factor of the embeddings that the recurrent paths read")


class RecurrentEncoderPath(EncoderPath):
    """A stack of recurrent layers in two directions, of half the width each.

    Args:
        size: d.
        layers: number of layers.
        dropout: probability of dropout between layers.
        recurrent_layer: their kind, and its options; None for the kind's own defaults.
        input_scale: what the embeddings are multiplied by.

    Raises:
        ValueError: the kind does not take these sizes, or d is odd.
    """

    def __init__(
        self, size: int, layers: int, dropout: float, recurrent_layer: tuple[str, Any], input_scale: float = 1.0
    ) -> None:
        super().__init__()
        self.input_scale = input_scale
        kind, options = recurrent_layer
        if size % 2:
            raise ValueError(f"{size} features cannot be split between two directions: choose an even number")
        self.stack = RecurrentStack(kind, size, [size // 2] * layers, True, Dropout(dropout), options)
        self.summary_sizes = self.stack.summary_sizes
        # Some kinds have outputs of another width than asked for.
        width = self.stack.output_size
        self.projection = nn.Identity() if width == size else _linear(width, size)

    def forward(self, x: Tensor, real: Tensor) -> EncoderOutput:
        """As :meth:`EncoderPath.forward`."""
        x = self.input_scale * without_padding(self, x, real)
        lengths, first = _span(real)
        result = run_layer(self, self.stack, _rolled(x, -first).transpose(0, 1), lengths)
        output = self.projection(_rolled(result.output.transpose(0, 1), first))
        return EncoderOutput(output, tuple(self.stack.summaries(result, lengths)))


class RecurrentPathState(NamedTuple):
    """What the recurrent decoder path carries from one call to the next.

    Attributes:
        layers: the states of its layers.
        keys: of the attention to each encoder path (N, S, d).
        step: runs one time step; None before the first.
    """

    layers: tuple[RecurrentState, ...]
    keys: dict[str, Tensor]
    step: Callable[[Tensor, Sequence[RecurrentState]], tuple[Tensor, tuple[RecurrentState, ...]]] | None = None

    def reorder(self, rows: Tensor, sentences: Tensor | None) -> RecurrentPathState:
        """As :meth:`.LayerState.reorder`."""
        keys = self.keys
        if sentences is not None:
            keys = {path: projected.index_select(0, sentences) for path, projected in keys.items()}
        return RecurrentPathState(reorder_states(self.layers, rows), keys, self.step)


class RecurrentDecoderPath(DecoderPath[RecurrentPathState]):
    """Recurrent layers, above them the gated attention to the encoder's paths, and a readout of all three.

    h = the top layer's output, z = tanh(W [h; ctx; E]).

    Args:
        size: d.
        layers: number of layers.
        dropout: probability of dropout between layers and on the readout.
        recurrent_layer: their kind, and its options; None for the kind's own defaults.
        input_scale: what the embeddings E are multiplied by.
        fusion: what it reads. Where it matches memories, it reads one that a final layer norm has left at a scale of 1
            at :data:`.EMBEDDING_SCALE`.

    Raises:
        ValueError: the kind does not take these sizes, or does not run step by step.
    """

    def __init__(
        self,
        size: int,
        layers: int,
        dropout: float,
        recurrent_layer: tuple[str, Any],
        input_scale: float = 1.0,
        fusion: Fusion | None = None,
    ) -> None:
        super().__init__()
        fusion = fusion or Fusion()
        self.dropout = dropout
        self.input_scale = input_scale
        kind, options = recurrent_layer
        self.stack = RecurrentStack(kind, size, [size] * layers, False, Dropout(dropout), options)
        if not self.stack.is_steppable:
            raise ValueError(f"{kind} layers do not run step by step: choose others")
        self.start = order(fusion.encoder_paths, "rnn")[0]
        of_layers = self.stack.layers
        sizes = of_levels(fusion.summary_sizes.get(self.start, [size]), len(of_layers))
        self.initial_hidden = _starts(sizes, [layer.output_size for layer in of_layers])
        self.initial_memory = _starts(sizes, [layer.output_size for layer in of_layers if layer.has_cell_state])
        hidden_size = self.stack.output_size
        self.memory_scales = {path: memory_scale("rnn", path, fusion) for path in fusion.encoder_paths}
        attentions = {path: AdditiveAttention(hidden_size, size, hidden_size) for path in fusion.encoder_paths}
        self.attentions = cast("Mapping[str, AdditiveAttention]", nn.ModuleDict(attentions))
        self.gate = make_gate(size, fusion)
        self.readout = _linear(hidden_size + 2 * size, size)

    def forward(
        self,
        embedded: Tensor,
        memories: Mapping[str, Memory],
        real: Tensor | None = None,
        states: Sequence[RecurrentPathState] | None = None,
        need_attention: bool = False,
    ) -> PathOutput:
        """As :meth:`.DecoderPath.forward`."""
        x = self.input_scale * without_padding(self, embedded, real)
        check_number(states, 1)
        state = self._first_state(memories, x.size(0)) if states is None else states[0]
        output, state = self._read(x, real, state, is_step=states is not None and x.size(1) == 1)
        contexts, attention_weights = {}, {}
        for path, attention in self.attentions.items():
            memory = memories[path]
            query = by_sentence(output, memory.output.size(0))
            context, weights = attention(query, state.keys[path], memory.output, ~memory.mask[:, 0, 0])
            contexts[path] = (self.memory_scales[path] * context).view(*x.shape[:2], -1)
            attention_weights[path] = weights.view(*x.shape[:2], -1)
        context, shares = fuse(self.gate, contexts, reader="rnn")
        readout = torch.tanh(self.readout(torch.cat([output, context, x], dim=-1)))
        return path_output(
            dropout(readout, self.dropout, self.training), [(state, attention_weights, shares)], need_attention
        )

    def _first_state(self, memories: Mapping[str, Memory], rows: int) -> RecurrentPathState:
        memory = memories[self.start]
        summaries = memory.summaries or (memory.output.sum(dim=1) / memory.scale.squeeze(-1).square().clamp(min=1),)
        levels = of_levels(summaries, len(self.stack.layers))
        # The hypotheses of a sentence one after the other.
        repeated = [summary.repeat_interleave(rows // summary.size(0), dim=0) for summary in levels]
        layers, _ = initial_states(self.stack.layers, self.initial_hidden, self.initial_memory, repeated)
        keys = {
            path: attention.project_keys(self.memory_scales[path] * memories[path].output)
            for path, attention in self.attentions.items()
        }
        return RecurrentPathState(layers, keys)

    def _read(
        self, x: Tensor, real: Tensor | None, state: RecurrentPathState, is_step: bool
    ) -> tuple[Tensor, RecurrentPathState]:
        """The top layer's output (B, T, H) for x (B, T, d), and the next state."""
        if is_step:
            step = state.step or self.stack.stepper(x.size(0))
            output, layers = step(x.squeeze(1), state.layers)
            return output.unsqueeze(1), state._replace(layers=layers, step=step)
        if real is None:
            result = run_layer(self, self.stack, x.transpose(0, 1), None, state.layers)
            return result.output.transpose(0, 1), state._replace(layers=result.states)
        lengths, first = _span(real)
        result = run_layer(self, self.stack, _rolled(x, -first).transpose(0, 1), lengths, state.layers)
        return _rolled(result.output.transpose(0, 1), first), state._replace(layers=result.states)


def _span(real: Tensor) -> tuple[Tensor, Tensor]:
    """The number of real tokens (B,) of real (B, T), and of positions before the first of them (B, 1)."""
    return real.sum(dim=1), real.long().argmax(dim=1, keepdim=True)


def _rolled(x: Tensor, by: Tensor) -> Tensor:
    """Each row of x (B, T, d) moved to the right by so many positions (B, 1), round the end."""
    index = (torch.arange(x.size(1), device=x.device) - by) % x.size(1)
    return x.gather(1, index.unsqueeze(-1).expand_as(x))


def _starts(summary_sizes: Sequence[int], sizes: Sequence[int]) -> nn.ModuleList:
    return nn.ModuleList(_linear(summary, size) for summary, size in zip(summary_sizes, sizes, strict=False))


def _linear(in_features: int, out_features: int) -> Linear:
    linear = Linear(in_features, out_features)
    nn.init.uniform_(linear.weight, -0.1, 0.1)
    nn.init.zeros_(linear.bias)
    return linear


def _encoder(options: RecurrentPathOptions, sizes: PathSizes) -> RecurrentEncoderPath:
    return RecurrentEncoderPath(
        sizes.size, options.rnn_layers, sizes.dropout, sizes.recurrent_layer, options.rnn_input_scale
    )


def _decoder(options: RecurrentPathOptions, sizes: PathSizes, fusion: Fusion) -> RecurrentDecoderPath:
    return RecurrentDecoderPath(
        sizes.size, options.rnn_layers, sizes.dropout, sizes.recurrent_layer, options.rnn_input_scale, fusion
    )


register_path(
    PathKind(
        "rnn",
        "r",
        "recurrent layers",
        RecurrentPathOptions,
        _encoder,
        _decoder,
        shared_options=("rnn_input_scale",),
        has_recurrent_layers=True,
    )
)
