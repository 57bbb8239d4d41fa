"""The self-attention path (DPN-S2S, Section 2.3), ``san``: the stack of a pre-norm transformer without biases.

Padding is masked everywhere: no attention looks at a padded position.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...kernels.checks import check_number
from ...kernels.dropout import dropout, relu_dropout
from ...kernels.linear import prepared_linear
from ..attention import Memory, MultiHeadAttention, attention_mask, dot_product_attention
from ..linear import Linear
from ..packed_sentences import PackedFlow, PackedSentences, is_packable
from ..recurrent.registry import option
from .contract import (
    DecoderPath,
    EncoderOutput,
    EncoderPath,
    Fusion,
    LayerResult,
    PathOutput,
    path_output,
    run_layer,
    takes_step,
    without_padding,
)
from .gate import fuse, make_gate
from .packing import PackedBatch, packs
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
        x = x * self.input_scale
        if self.training and is_packable(x, real):
            sentences = PackedSentences.of(real)
            flow = PackedFlow(sentences.offsets, sentences.offsets)
            x = sentences.pack(x)
            for layer in self.layers:
                x = run_layer(self, layer, x, flow)
            return EncoderOutput(sentences.unpack(self.output_norm(x)))
        mask = attention_mask(real)
        for layer in self.layers:
            x = run_layer(self, layer, x, mask)
        return EncoderOutput(self.output_norm(x))


class SelfAttentionLayerStep(NamedTuple):
    """The products of a layer of the SAN decoder path, prepared for steps: each takes (B, .).

    Attributes:
        projections: to the query, keys and values of the self-attention, (B, 3d).
        out_projection: of the self-attention.
        queries: to the queries of the attentions to all encoder paths, (B, d) of each.
        out_projections: of the attention to each encoder path.
        ffn_in, ffn_out: of the feed-forward network.
    """

    projections: Callable[[Tensor], Tensor]
    out_projection: Callable[[Tensor], Tensor]
    queries: Callable[[Tensor], Tensor]
    out_projections: dict[str, Callable[[Tensor], Tensor]]
    ffn_in: Callable[[Tensor], Tensor]
    ffn_out: Callable[[Tensor], Tensor]


class SelfAttentionLayerState(NamedTuple):
    """What a layer of the SAN decoder path carries from one call to the next.

    Attributes:
        keys, values: (B, s, t, d / s) of the positions before.
        memories: keys and values (N, s, S, d / s) of each encoder path.
        step: for steps, once it is prepared.
    """

    keys: Tensor
    values: Tensor
    memories: dict[str, tuple[Tensor, Tensor]]
    step: SelfAttentionLayerStep | None = None

    def reorder(self, rows: Tensor, sentences: Tensor | None) -> SelfAttentionLayerState:
        """As :meth:`LayerState.reorder`."""
        memories = self.memories
        if sentences is not None:
            memories = {
                path: (keys.index_select(0, sentences), values.index_select(0, sentences))
                for path, (keys, values) in memories.items()
            }
        keys, values = self.keys.index_select(0, rows), self.values.index_select(0, rows)
        return SelfAttentionLayerState(keys, values, memories, self.step)


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
        self.path_dropout = fusion.path_dropout
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
        if states is not None and takes_step(embedded, states[0].step, need_attention):
            return self._step(embedded, memories, states)
        if packs(self, embedded, memories, real, states, need_attention):
            return self._forward_packed(embedded, memories, cast("Tensor", real))
        before = 0 if states is None else states[0].keys.size(2)
        mask = _causal_mask(embedded, real, before)
        if states is None:
            # Later calls have the memories' projections in their states.
            memories = {**memories, **{path: _normalized(memories[path]) for path in self.normalized_memories}}
        x, results = embedded * self.input_scale, []
        for i, layer in enumerate(self.layers):
            state = None if states is None else states[i]
            x, result = run_layer(self, layer, x, memories, mask, state, need_attention)
            results.append(result)
        return path_output(self.output_norm(x), results, need_attention)

    def with_steps(
        self, states: Sequence[SelfAttentionLayerState], memories: Mapping[str, Memory], rows: int
    ) -> Sequence[SelfAttentionLayerState]:
        """As :meth:`DecoderPath.with_steps`: products of the same input are one product."""
        return [state._replace(step=layer.prepared(rows)) for layer, state in zip(self.layers, states, strict=True)]

    def _step(
        self, embedded: Tensor, memories: Mapping[str, Memory], states: Sequence[SelfAttentionLayerState]
    ) -> PathOutput:
        x, next_states = embedded.squeeze(1) * self.input_scale, []
        for layer, state in zip(self.layers, states, strict=True):
            x, next_state = layer.step(x, memories, state, cast("SelfAttentionLayerStep", state.step))
            next_states.append(next_state)
        return PathOutput(self.output_norm(x).unsqueeze(1), tuple(next_states), {}, {})

    def _forward_packed(self, embedded: Tensor, memories: Mapping[str, Memory], real: Tensor) -> PathOutput:
        batch = PackedBatch.of(embedded, memories, real)
        for path in self.normalized_memories:
            batch.memories[path] = F.layer_norm(batch.memories[path], batch.memories[path].shape[-1:])
        x = batch.embedded * self.input_scale
        for layer in self.layers:
            x = run_layer(self, layer.forward_packed, x, batch)
        return PathOutput(batch.targets.unpack(self.output_norm(x)), (), {}, {})


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
        x = relu_dropout(self.in_projection(x), self.activation_dropout, self.training)
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

    def forward(self, x: Tensor, mask: Tensor | PackedFlow) -> Tensor:
        """x (B, S, d) with a mask of :func:`.dot_product_attention`, or packed sentences (N, d)."""
        normed = self.self_attention_norm(x)
        if isinstance(mask, PackedFlow):
            attended = self.self_attention.forward_packed(normed, normed, mask)
        else:
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
        context, shares = fuse(self.gate, contexts, reader="san")
        x = x + dropout(context, self.dropout, self.training)

        x = x + dropout(self.ffn(self.ffn_norm(x)), self.dropout, self.training)
        return x, (SelfAttentionLayerState(keys, values, projected), attention_weights, shares)

    def prepared(self, rows: int) -> SelfAttentionLayerStep:
        def product(*layers: Linear) -> Callable[[Tensor], Tensor]:
            return prepared_linear(torch.cat([layer.weight for layer in layers]), None, rows)

        self_attention, attentions = self.self_attention, self.attentions
        return SelfAttentionLayerStep(
            product(self_attention.query_projection, self_attention.key_value_projection),
            product(self_attention.out_projection),
            product(*(attention.query_projection for attention in attentions.values())),
            {path: product(attention.out_projection) for path, attention in attentions.items()},
            product(self.ffn.in_projection),
            product(self.ffn.out_projection),
        )

    def step(
        self,
        x: Tensor,
        memories: Mapping[str, Memory],
        state: SelfAttentionLayerState,
        step: SelfAttentionLayerStep,
    ) -> tuple[Tensor, SelfAttentionLayerState]:
        """:meth:`forward` for one position x (B, d), in evaluation."""
        rows, heads = x.size(0), self.self_attention.heads
        scale = (x.size(1) // heads) ** -0.5

        def by_head(x: Tensor, sentences: int) -> Tensor:
            """(B, d) -> (N, s, B / N, d / s)."""
            return x.reshape(sentences, rows // sentences, heads, -1).transpose(1, 2)

        query, keys, values = (
            by_head(part, rows) for part in step.projections(self.self_attention_norm(x)).chunk(3, 1)
        )
        keys, values = torch.cat([state.keys, keys], dim=2), torch.cat([state.values, values], dim=2)
        attended, _ = dot_product_attention(query, keys, values, None, scale)
        x = x + step.out_projection(attended.transpose(1, 2).reshape(x.shape))

        queries = step.queries(self.attention_norm(x)).chunk(len(self.attentions), dim=1)
        contexts = {}
        for path, query in zip(self.attentions, queries, strict=True):
            of_memory = state.memories[path]
            by_sentence = by_head(query, of_memory[0].size(0))
            attended, _ = dot_product_attention(by_sentence, *of_memory, memories[path].mask, scale)
            contexts[path] = step.out_projections[path](attended.transpose(1, 2).reshape(x.shape))
        context, _ = fuse(self.gate, contexts, reader="san")
        x = x + context

        x = x + step.ffn_out(F.relu(step.ffn_in(self.ffn_norm(x))))
        return x, state._replace(keys=keys, values=values)

    def forward_packed(self, x: Tensor, batch: PackedBatch) -> Tensor:
        normed = self.self_attention_norm(x)
        attended = self.self_attention.forward_packed(normed, normed, batch.to_earlier_targets)
        x = x + dropout(attended, self.dropout)

        normed = self.attention_norm(x)
        contexts = {
            path: attention.forward_packed(normed, batch.memories[path], batch.to_sources)
            for path, attention in self.attentions.items()
        }
        context, _ = fuse(self.gate, contexts, reader="san")
        x = x + dropout(context, self.dropout)

        return x + dropout(self.ffn(self.ffn_norm(x)), self.dropout)


def _normalized(memory: Memory) -> Memory:
    return memory._replace(output=F.layer_norm(memory.output, memory.output.shape[-1:]))


def _causal_mask(x: Tensor, real: Tensor | None, before: int) -> Tensor:
    """True where one of T positions of x (B, T, d) may look at one of the ``before + T`` so far: (B or 1, 1, T, .)."""
    size = x.size(1)
    if size == 1 and real is None:
        return torch.ones(1, 1, 1, before + 1, dtype=torch.bool, device=x.device)
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
