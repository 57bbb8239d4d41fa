"""The self-attention path (DPN-S2S, Section 2.3), ``san``: the stack of a pre-norm transformer without biases.

Padding is masked everywhere: no attention looks at a padded position.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...kernels.checks import check_number
from ...kernels.dropout import dropout
from ..attention import Memory, MultiHeadAttention
from ..linear import Linear
from ..recurrent.registry import option
from .contract import (
    DecoderPath,
    EncoderOutput,
    EncoderPath,
    Fusion,
    LayerResult,
    PathOutput,
    path_output,
    without_padding,
)
from .gate import fuse, make_gate
from .registry import PathKind, PathSizes, has_scale_of, register_path


@dataclass(frozen=True)
class SelfAttentionPathOptions:
    """What a self-attention path can be asked for."""

    san_layers: int = option(2, "layers of the self-attention path", minimum=1)
    attention_heads: int = option(4, "heads of every attention of the SAN path", minimum=1)
    ffn_embed_dim: int = option(1024, "filter size of the SAN path", minimum=1)
    san_output_norm_init: float = option(1.0, "gain of the SAN path's final layer norm at the start")
    activation_dropout: float = option(0.1, "probability of dropout after the ReLU of the SAN paths")
    san_input_scale: float | None = option(
        None, "factor of the embeddings that the SAN paths read; default: the root of their size"
    )


@dataclass(frozen=True)
class SelfAttentionOptions:
    """What a self-attention path is made from, of the encoder or of the decoder.

    Attributes:
        size: d.
        layers: number of layers.
        heads: of every attention.
        ffn_size: of the feed-forward network.
        dropout: probability of dropout on the output of each sublayer.
        activation_dropout: probability of dropout after the ReLU.
        output_norm_init: the final layer norm's gain at the start.
        input_scale: what the embeddings are multiplied by.
    """

    size: int
    layers: int
    heads: int
    ffn_size: int
    dropout: float = 0.0
    activation_dropout: float = 0.0
    output_norm_init: float = 1.0
    input_scale: float = 1.0


class SelfAttentionEncoderPath(EncoderPath):
    """Pre-norm transformer layers without biases in the projections, and a final layer norm.

    Args:
        options: what it is made from.

    Raises:
        ValueError: the heads do not divide d.
    """

    def __init__(self, options: SelfAttentionOptions) -> None:
        super().__init__()
        self.input_scale = options.input_scale
        layers = (_SelfAttentionEncoderLayer(options) for _ in range(options.layers))
        self.layers = cast("Sequence[_SelfAttentionEncoderLayer]", nn.ModuleList(layers))
        self.output_norm = _output_norm(options)

    def forward(self, x: Tensor, real: Tensor) -> EncoderOutput:
        """As :meth:`EncoderPath.forward`."""
        x = without_padding(self, x, real)
        mask = real[:, None, None, :]
        x = x * self.input_scale
        for layer in self.layers:
            x = layer(x, mask)
        return EncoderOutput(self.output_norm(x))


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
        """As :meth:`LayerState.reorder`."""
        memories = self.memories
        if sentences is not None:
            memories = {
                path: (keys.index_select(0, sentences), values.index_select(0, sentences))
                for path, (keys, values) in memories.items()
            }
        return SelfAttentionLayerState(self.keys.index_select(0, rows), self.values.index_select(0, rows), memories)


class SelfAttentionDecoderPath(DecoderPath[SelfAttentionLayerState]):
    """Pre-norm transformer layers whose attention to the encoder's paths is gated, and a final layer norm.

    Args:
        options: what it is made from.
        fusion: what it reads. Where it matches memories, it reads one of the embeddings' scale through a layer norm
            without parameters, so that it has the scale of the SAN encoder's.

    Raises:
        ValueError: the heads do not divide d.
    """

    def __init__(self, options: SelfAttentionOptions, fusion: Fusion | None = None) -> None:
        super().__init__()
        fusion = fusion or Fusion()
        self.input_scale = options.input_scale
        self.normalized_memories = [
            path for path in fusion.encoder_paths if fusion.matches_memory and not has_scale_of("san", path)
        ]
        layers = (_SelfAttentionDecoderLayer(options, fusion) for _ in range(options.layers))
        self.layers = cast("Sequence[_SelfAttentionDecoderLayer]", nn.ModuleList(layers))
        self.output_norm = _output_norm(options)

    def forward(
        self,
        embedded: Tensor,
        memories: Mapping[str, Memory],
        real: Tensor | None = None,
        states: Sequence[SelfAttentionLayerState] | None = None,
        need_attention: bool = False,
    ) -> PathOutput:
        """As :meth:`DecoderPath.forward`."""
        embedded = without_padding(self, embedded, real)
        check_number(states, len(self.layers))
        before = 0 if states is None else states[0].keys.size(2)
        mask = _causal_mask(embedded, real, before)
        if states is None:
            # Later calls have the memories' projections in their states.
            memories = {**memories, **{path: _normalized(memories[path]) for path in self.normalized_memories}}
        x, results = embedded * self.input_scale, []
        for i, layer in enumerate(self.layers):
            x, result = layer(x, memories, mask, None if states is None else states[i], need_attention)
            results.append(result)
        return path_output(self.output_norm(x), results, need_attention)


class FeedForward(nn.Module):
    """f2(max(0, f1(x))) of Eq. 7 without biases."""

    def __init__(self, options: SelfAttentionOptions) -> None:
        super().__init__()
        self.activation_dropout = options.activation_dropout
        self.in_projection = Linear(options.size, options.ffn_size, bias=False)
        self.out_projection = Linear(options.ffn_size, options.size, bias=False)
        for linear in self.in_projection, self.out_projection:
            nn.init.uniform_(linear.weight, -0.1, 0.1)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, d) -> (B, T, d)."""
        x = dropout(F.relu(self.in_projection(x)), self.activation_dropout, self.training)
        output: Tensor = self.out_projection(x)
        return output


class _SelfAttentionEncoderLayer(nn.Module):
    def __init__(self, options: SelfAttentionOptions) -> None:
        super().__init__()
        self.dropout = options.dropout
        self.self_attention_norm = nn.LayerNorm(options.size)
        self.self_attention = MultiHeadAttention(options.size, options.heads)
        self.ffn_norm = nn.LayerNorm(options.size)
        self.ffn = FeedForward(options)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        normed = self.self_attention_norm(x)
        attended, _ = self.self_attention(normed, *self.self_attention.project_memory(normed), mask)
        x = x + dropout(attended, self.dropout, self.training)
        return x + dropout(self.ffn(self.ffn_norm(x)), self.dropout, self.training)


class _SelfAttentionDecoderLayer(nn.Module):
    def __init__(self, options: SelfAttentionOptions, fusion: Fusion) -> None:
        super().__init__()
        size, heads = options.size, options.heads
        self.dropout = options.dropout
        self.self_attention_norm = nn.LayerNorm(size)
        self.self_attention = MultiHeadAttention(size, heads)
        self.attention_norm = nn.LayerNorm(size)
        attentions = {path: MultiHeadAttention(size, heads) for path in fusion.encoder_paths}
        self.attentions = cast("Mapping[str, MultiHeadAttention]", nn.ModuleDict(attentions))
        self.gate = make_gate(size, fusion)
        self.ffn_norm = nn.LayerNorm(size)
        self.ffn = FeedForward(options)

    def forward(
        self,
        x: Tensor,
        memories: Mapping[str, Memory],
        mask: Tensor,
        state: SelfAttentionLayerState | None,
        need_attention: bool,
    ) -> tuple[Tensor, LayerResult]:
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
        context, shares = fuse(self.gate, contexts, own="san")
        x = x + dropout(context, self.dropout, self.training)

        x = x + dropout(self.ffn(self.ffn_norm(x)), self.dropout, self.training)
        return x, (SelfAttentionLayerState(keys, values, projected), attention_weights, shares)


def _normalized(memory: Memory) -> Memory:
    return memory._replace(output=F.layer_norm(memory.output, memory.output.shape[-1:]))


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


def _output_norm(options: SelfAttentionOptions) -> nn.LayerNorm:
    norm = nn.LayerNorm(options.size)
    nn.init.constant_(norm.weight, options.output_norm_init)
    return norm


def _options(options: SelfAttentionPathOptions, sizes: PathSizes) -> SelfAttentionOptions:
    return SelfAttentionOptions(
        sizes.size,
        options.san_layers,
        options.attention_heads,
        options.ffn_embed_dim,
        sizes.dropout,
        options.activation_dropout,
        options.san_output_norm_init,
        math.sqrt(sizes.size) if options.san_input_scale is None else options.san_input_scale,
    )


def _encoder(options: SelfAttentionPathOptions, sizes: PathSizes) -> SelfAttentionEncoderPath:
    return SelfAttentionEncoderPath(_options(options, sizes))


def _decoder(options: SelfAttentionPathOptions, sizes: PathSizes, fusion: Fusion) -> SelfAttentionDecoderPath:
    return SelfAttentionDecoderPath(_options(options, sizes), fusion)


register_path(
    PathKind(
        "san",
        "a",
        "self-attention",
        SelfAttentionPathOptions,
        _encoder,
        _decoder,
        shared_options=("activation_dropout", "san_input_scale"),
        is_normalized=True,
    )
)
