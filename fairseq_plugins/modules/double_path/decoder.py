"""The decoder's paths of double path networks (DPN-S2S, Section 3): every layer attends to every path of the encoder,
and a gate fuses what it gets (Eq. 9). ``reference.py`` holds the same equations position by position.

The paths of one side are independent of each other; those of the decoder meet again above it (Eq. 10, in
``models/double_path.py``). Padding is masked as in ``encoder.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...kernels.checks import check_number
from ...kernels.dropout import dropout
from ..attention import ConvolutionalAttention, Memory, MultiHeadAttention
from ..convolution import GatedConvolution
from .encoder import SQRT_HALF, FeedForward, SelfAttentionOptions, output_norm, without_padding
from .gate import PATHS, ScalarGate, fuse

# The embeddings start at N(0, 0.1) and the CNN paths stay about there.
SAN_MEMORY_SCALE = 0.1


class ConvolutionalLayerState(NamedTuple):
    """What a layer of the CNN decoder path carries from one call to the next.

    Attributes:
        inputs: (B, r - 1, d), the last inputs of the convolution.
        convolution_weight: (2d, r d), normalised.
        projection_weights: of the attention to each encoder path, normalised, two of (d, d).
    """

    inputs: Tensor
    convolution_weight: Tensor
    projection_weights: dict[str, tuple[Tensor, Tensor]]

    def reorder(self, rows: Tensor, sentences: Tensor | None) -> ConvolutionalLayerState:
        """As :meth:`SelfAttentionLayerState.reorder`."""
        return self._replace(inputs=self.inputs.index_select(0, rows))


class SelfAttentionLayerState(NamedTuple):
    """What a layer of the SAN decoder path carries from one call to the next.

    Attributes:
        keys, values: (B, s, t, d / s) of the positions before.
        memories: keys and values (N, s, S, d / s) of each encoder path.
    """

    keys: Tensor
    values: Tensor
    memories: dict[str, tuple[Tensor, Tensor]]

    def reorder(self, rows: Tensor, sentences: Tensor | None) -> SelfAttentionLayerState:
        """Takes these rows, and these of the encoder's sentences; None where they stay as they are."""
        memories = self.memories
        if sentences is not None:
            memories = {
                path: (keys.index_select(0, sentences), values.index_select(0, sentences))
                for path, (keys, values) in memories.items()
            }
        return SelfAttentionLayerState(self.keys.index_select(0, rows), self.values.index_select(0, rows), memories)


LayerState = ConvolutionalLayerState | SelfAttentionLayerState


class PathOutput(NamedTuple):
    """What a path of the decoder returns.

    Attributes:
        output: (B, T, d).
        states: of each layer.
        attention: for each encoder path the mean of the layers' weights (B, T, S); empty unless asked for.
        gates: (B, T, layers), the g of Eq. 9, the share of the other path; None with one encoder path or unless asked
            for.
    """

    output: Tensor
    states: tuple[LayerState, ...]
    attention: dict[str, Tensor]
    gates: Tensor | None


class ConvolutionalDecoderPath(nn.Module):
    """Causal convolutions, each followed by the gated attention to the encoder's paths.

    In each layer: z' = GLU(conv(dropout(z))), z' = (z' + ctx) sqrt(0.5), z = (z' + z) sqrt(0.5).

    Args:
        size: d.
        layers: number of layers.
        kernel_width: r.
        dropout: probability of dropout on the input of each convolution.
        encoder_paths: a non-empty subset of :data:`PATHS`.
        gate_gradient_scale: of Eq. 9's gates (:class:`.ScalarGate`).
        matches_memory: read the SAN encoder's memory, whose final layer norm leaves it at 1, at
            :data:`SAN_MEMORY_SCALE`, the scale of this path's own states.
    """

    def __init__(
        self,
        size: int,
        layers: int,
        kernel_width: int,
        dropout: float,
        encoder_paths: Sequence[str] = PATHS,
        gate_gradient_scale: float = 1.0,
        matches_memory: bool = False,
    ) -> None:
        super().__init__()
        scales = {"cnn": 1.0, "san": SAN_MEMORY_SCALE if matches_memory else 1.0}
        memory_scales = {path: scales[path] for path in encoder_paths}
        of_path = (
            _ConvolutionalDecoderLayer(size, kernel_width, dropout, memory_scales, gate_gradient_scale)
            for _ in range(layers)
        )
        self.layers = cast("Sequence[_ConvolutionalDecoderLayer]", nn.ModuleList(of_path))

    def forward(
        self,
        embedded: Tensor,
        memories: Mapping[str, Memory],
        real: Tensor | None = None,
        states: Sequence[ConvolutionalLayerState] | None = None,
        need_attention: bool = False,
    ) -> PathOutput:
        """Decodes T positions of each sentence, the first ones or those after ``states``.

        Args:
            embedded: E, (B, T, d).
            memories: of each encoder path, for B sentences or, B a multiple of it, fewer (:class:`Memory`).
            real: (B, T), False at padding; None if there is none.
            states: as an earlier call returned them.
            need_attention: return the attention weights and gates.

        Raises:
            ValueError: one of them does not fit the path or the others.
        """
        embedded = without_padding(self, embedded, real)
        check_number(states, len(self.layers))
        x, results = embedded, []
        for i, layer in enumerate(self.layers):
            x, *result = layer(x, embedded, memories, real, None if states is None else states[i], need_attention)
            results.append(result)
        return _path_output(x, results)


class SelfAttentionDecoderPath(nn.Module):
    """Pre-norm transformer layers whose attention to the encoder's paths is gated, and a final layer norm.

    Args:
        options: what it is made from.
        encoder_paths: a non-empty subset of :data:`PATHS`.
        gate_gradient_scale: of Eq. 9's gates (:class:`.ScalarGate`).
        matches_memory: read the CNN encoder's memory, which is at the embeddings' scale, through a layer norm without
            parameters, so that it has the scale of the SAN encoder's.
    """

    def __init__(
        self,
        options: SelfAttentionOptions,
        encoder_paths: Sequence[str] = PATHS,
        gate_gradient_scale: float = 1.0,
        matches_memory: bool = False,
    ) -> None:
        super().__init__()
        self.input_scale = options.input_scale
        self.matches_memory = matches_memory
        layers = (
            _SelfAttentionDecoderLayer(options, encoder_paths, gate_gradient_scale) for _ in range(options.layers)
        )
        self.layers = cast("Sequence[_SelfAttentionDecoderLayer]", nn.ModuleList(layers))
        self.output_norm = output_norm(options)

    def forward(
        self,
        embedded: Tensor,
        memories: Mapping[str, Memory],
        real: Tensor | None = None,
        states: Sequence[SelfAttentionLayerState] | None = None,
        need_attention: bool = False,
    ) -> PathOutput:
        """As :meth:`ConvolutionalDecoderPath.forward`."""
        embedded = without_padding(self, embedded, real)
        check_number(states, len(self.layers))
        before = 0 if states is None else states[0].keys.size(2)
        mask = _causal_mask(embedded, real, before)
        if self.matches_memory and "cnn" in memories and states is None:
            # Later calls have the memories' projections in their states.
            output = memories["cnn"].output
            memories = {**memories, "cnn": memories["cnn"]._replace(output=F.layer_norm(output, output.shape[-1:]))}
        x, results = embedded * self.input_scale, []
        for i, layer in enumerate(self.layers):
            x, *result = layer(x, memories, mask, None if states is None else states[i], need_attention)
            results.append(result)
        return _path_output(self.output_norm(x), results)


class _ConvolutionalDecoderLayer(nn.Module):
    def __init__(
        self,
        size: int,
        kernel_width: int,
        dropout: float,
        memory_scales: Mapping[str, float],
        gate_gradient_scale: float,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.convolution = GatedConvolution(size, kernel_width, dropout, causal=True)
        attentions = {path: ConvolutionalAttention(size, dropout, scale) for path, scale in memory_scales.items()}
        self.attentions = cast("Mapping[str, ConvolutionalAttention]", nn.ModuleDict(attentions))
        self.gate = ScalarGate(size, gate_gradient_scale) if len(memory_scales) == 2 else None

    def forward(
        self,
        x: Tensor,
        embedded: Tensor,
        memories: Mapping[str, Memory],
        real: Tensor | None,
        state: ConvolutionalLayerState | None,
        need_attention: bool,
    ) -> tuple[Tensor, ConvolutionalLayerState, dict[str, Tensor | None], Tensor | None]:
        if state is None:
            weight = self.convolution.linear.weight
            projections = {path: attention.projection_weights() for path, attention in self.attentions.items()}
        else:
            weight, projections = state.convolution_weight, state.projection_weights
        residual = x
        x, inputs = self.convolution(
            dropout(x, self.dropout, self.training), real, None if state is None else state.inputs, weight
        )
        contexts, attention_weights = {}, {}
        for path, attention in self.attentions.items():
            contexts[path], attention_weights[path] = attention(
                x, embedded, memories[path], need_attention, projections[path]
            )
        context, gate = fuse(self.gate, contexts, own="cnn")
        x = (x + context) * SQRT_HALF
        x = (x + residual) * SQRT_HALF
        return x, ConvolutionalLayerState(inputs, weight, projections), attention_weights, gate


class _SelfAttentionDecoderLayer(nn.Module):
    def __init__(self, options: SelfAttentionOptions, encoder_paths: Sequence[str], gate_gradient_scale: float) -> None:
        super().__init__()
        size, heads = options.size, options.heads
        self.dropout = options.dropout
        self.self_attention_norm = nn.LayerNorm(size)
        self.self_attention = MultiHeadAttention(size, heads)
        self.attention_norm = nn.LayerNorm(size)
        attentions = {path: MultiHeadAttention(size, heads) for path in encoder_paths}
        self.attentions = cast("Mapping[str, MultiHeadAttention]", nn.ModuleDict(attentions))
        self.gate = ScalarGate(size, gate_gradient_scale) if len(encoder_paths) == 2 else None
        self.ffn_norm = nn.LayerNorm(size)
        self.ffn = FeedForward(options)

    def forward(
        self,
        x: Tensor,
        memories: Mapping[str, Memory],
        mask: Tensor,
        state: SelfAttentionLayerState | None,
        need_attention: bool,
    ) -> tuple[Tensor, SelfAttentionLayerState, dict[str, Tensor | None], Tensor | None]:
        normed = self.self_attention_norm(x)
        keys, values = self.self_attention.project_memory(normed)
        if state is None:
            projected = {
                path: attention.project_memory(memories[path].output) for path, attention in self.attentions.items()
            }
        else:
            keys, values = torch.cat([state.keys, keys], dim=2), torch.cat([state.values, values], dim=2)
            projected = state.memories
        attended, _ = self.self_attention(normed, keys, values, mask)
        x = x + dropout(attended, self.dropout, self.training)

        normed = self.attention_norm(x)
        contexts, attention_weights = {}, {}
        for path, attention in self.attentions.items():
            contexts[path], attention_weights[path] = attention(
                normed, *projected[path], memories[path].mask, need_attention
            )
        context, gate = fuse(self.gate, contexts, own="san")
        x = x + dropout(context, self.dropout, self.training)

        x = x + dropout(self.ffn(self.ffn_norm(x)), self.dropout, self.training)
        return x, SelfAttentionLayerState(keys, values, projected), attention_weights, gate


def _causal_mask(x: Tensor, real: Tensor | None, before: int) -> Tensor:
    """True where one of T positions of x (B, T, d) may look at one of the ``before + T`` so far: (B or 1, 1, T, .)."""
    size = x.size(1)
    mask = torch.ones(size, before + size, dtype=torch.bool, device=x.device).tril(before)[None, None]
    if real is None:
        return mask
    # A padded position sees itself, so that no row is without a key; nothing reads what comes of it.
    itself = torch.eye(size, dtype=torch.bool, device=x.device)
    seen = real[:, None, None, :] | itself
    return mask & F.pad(seen, (before, 0), value=True)


def _path_output(
    x: Tensor, results: Sequence[tuple[LayerState, dict[str, Tensor | None], Tensor | None]]
) -> PathOutput:
    """Collects what the layers returned beside x."""
    states, attention, gates = zip(*results, strict=True)
    means = {
        path: torch.stack([weights[path] for weights in attention]).mean(0)
        for path in attention[0]
        if attention[0][path] is not None
    }
    return PathOutput(x, states, means, torch.cat(gates, dim=-1) if means and gates[0] is not None else None)
