"""The convolutional path (DPN-S2S, Section 2.2), ``cnn``: ConvS2S without its fully connected layers.

Padding is masked everywhere: a padded position counts as zero in every convolution, as the outside of the sentence
does, and no attention looks at one. (The authors' code masks neither the source in the decoder's attentions nor the
convolutions' inputs.)
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
from ...kernels.dropout import dropout
from ...kernels.linear import prepared_linear
from ..attention import ConvolutionalAttention, Memory, ProjectedMemory
from ..convolution import GatedConvolution
from ..packed_sentences import PackedSentences, is_packable
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
from .registry import PathKind, PathSizes, memory_scale, register_path

SQRT_HALF = math.sqrt(0.5)


@dataclass(frozen=True)
class ConvolutionalPathOptions:
    """What a convolutional path can be asked for."""

    cnn_layers: int = option(4, "convolutions of the CNN path", minimum=1)
    kernel_width: int = option(3, "width of the CNN path's convolutions", minimum=1)


class ConvolutionalEncoderPath(EncoderPath):
    """z = (GLU(conv(dropout(z))) + z) sqrt(0.5) in each layer.

    Eq. 5 prints the residual without the factor; the ConvS2S code that it builds on has it.

    Args:
        size: d.
        layers: number of layers.
        kernel_width: r, odd.
        dropout: probability of dropout on the input of each convolution.

    Raises:
        ValueError: an even kernel width.
    """

    def __init__(self, size: int, layers: int, kernel_width: int, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        convolutions = (GatedConvolution(size, kernel_width, dropout) for _ in range(layers))
        self.layers = cast("Sequence[GatedConvolution]", nn.ModuleList(convolutions))

    def forward(self, x: Tensor, real: Tensor) -> EncoderOutput:
        """As :meth:`EncoderPath.forward`."""
        x = without_padding(self, x, real)
        if self.training and is_packable(x, real):
            sentences = PackedSentences.of(real)
            x = sentences.pack(x)
            for layer in self.layers:
                x = run_layer(self, self._run_packed, layer, x, sentences.offsets)
            return EncoderOutput(sentences.unpack(x))
        for layer in self.layers:
            x = run_layer(self, self._run, layer, x, real)
        return EncoderOutput(x)

    def _run(self, layer: GatedConvolution, x: Tensor, real: Tensor) -> Tensor:
        convolved, _ = layer(dropout(x, self.dropout, self.training), real)
        output: Tensor = (convolved + x) * SQRT_HALF
        return output

    def _run_packed(self, layer: GatedConvolution, x: Tensor, offsets: Tensor) -> Tensor:
        output: Tensor = (layer.forward_packed(dropout(x, self.dropout), offsets) + x) * SQRT_HALF
        return output


class ConvolutionalLayerStep(NamedTuple):
    """What a layer of the CNN decoder path has prepared for steps.

    Attributes:
        convolution: (B, r d) -> (B, 2d).
        memories: of each encoder path.
    """

    convolution: Callable[[Tensor], Tensor]
    memories: dict[str, ProjectedMemory]


class ConvolutionalLayerState(NamedTuple):
    """What a layer of the CNN decoder path carries from one call to the next.

    Attributes:
        inputs: (B, r - 1, d), the last inputs of the convolution.
        convolution_weight: (2d, r d), normalised.
        projection_weights: of the attention to each encoder path, normalised, two of (d, d).
        step: for steps, once it is prepared.
    """

    inputs: Tensor
    convolution_weight: Tensor
    projection_weights: dict[str, tuple[Tensor, Tensor]]
    step: ConvolutionalLayerStep | None = None

    def reorder(self, rows: Tensor, sentences: Tensor | None) -> ConvolutionalLayerState:
        """As :meth:`LayerState.reorder`."""
        step = self.step
        if step is not None and sentences is not None:
            memories = {
                path: ProjectedMemory(*(tensor.index_select(0, sentences) for tensor in memory))
                for path, memory in step.memories.items()
            }
            step = step._replace(memories=memories)
        return self._replace(inputs=self.inputs.index_select(0, rows), step=step)


class ConvolutionalDecoderPath(DecoderPath[ConvolutionalLayerState]):
    """Causal convolutions, each followed by the gated attention to the encoder's paths.

    In each layer: z' = GLU(conv(dropout(z))), z' = (z' + ctx) sqrt(0.5), z = (z' + z) sqrt(0.5).

    Args:
        size: d.
        layers: number of layers.
        kernel_width: r.
        dropout: probability of dropout on the input of each convolution.
        fusion: what it reads. Where it matches memories, it reads one that a final layer norm has left at a scale of 1
            at :data:`.EMBEDDING_SCALE`, that of this path's own states.
    """

    def __init__(self, size: int, layers: int, kernel_width: int, dropout: float, fusion: Fusion | None = None) -> None:
        super().__init__()
        fusion = fusion or Fusion()
        self.path_dropout = fusion.path_dropout
        of_path = (_ConvolutionalDecoderLayer(size, kernel_width, dropout, fusion) for _ in range(layers))
        self.layers = cast("Sequence[_ConvolutionalDecoderLayer]", nn.ModuleList(of_path))

    def forward(
        self,
        embedded: Tensor,
        memories: Mapping[str, Memory],
        real: Tensor | None = None,
        states: Sequence[ConvolutionalLayerState] | None = None,
        need_attention: bool = False,
    ) -> PathOutput:
        """As :meth:`DecoderPath.forward`."""
        embedded = without_padding(self, embedded, real)
        check_number(states, len(self.layers))
        if states is not None and takes_step(embedded, states[0].step, need_attention):
            return self._step(embedded, memories, states)
        if packs(self, embedded, memories, real, states, need_attention):
            return self._forward_packed(embedded, memories, cast("Tensor", real))
        x, results = embedded, []
        for i, layer in enumerate(self.layers):
            state = None if states is None else states[i]
            x, result = run_layer(self, layer, x, embedded, memories, real, state, need_attention)
            results.append(result)
        return path_output(x, results, need_attention)

    def with_steps(
        self, states: Sequence[ConvolutionalLayerState], memories: Mapping[str, Memory], rows: int
    ) -> Sequence[ConvolutionalLayerState]:
        """As :meth:`DecoderPath.with_steps`: the attentions' projections are done on the memories."""
        return [
            state._replace(step=layer.prepared(state, memories, rows))
            for layer, state in zip(self.layers, states, strict=True)
        ]

    def _step(
        self, embedded: Tensor, memories: Mapping[str, Memory], states: Sequence[ConvolutionalLayerState]
    ) -> PathOutput:
        attentions = self.layers[0].attentions
        scores = {path: attentions[path].embedding_scores(embedded, memories[path]) for path in attentions}
        x, next_states = embedded, []
        for layer, state in zip(self.layers, states, strict=True):
            x, next_state = layer.step(x, scores, state, cast("ConvolutionalLayerStep", state.step))
            next_states.append(next_state)
        return PathOutput(x, tuple(next_states), {}, {})

    def _forward_packed(self, embedded: Tensor, memories: Mapping[str, Memory], real: Tensor) -> PathOutput:
        batch = PackedBatch.of(embedded, memories, real)
        scale = batch.sources.lengths.to(embedded.dtype).sqrt().repeat_interleave(batch.targets.lengths).unsqueeze(1)
        x = batch.embedded
        for layer in self.layers:
            x = run_layer(self, layer.forward_packed, x, batch, scale)
        return PathOutput(batch.targets.unpack(x), (), {}, {})


class _ConvolutionalDecoderLayer(nn.Module):
    def __init__(self, size: int, kernel_width: int, dropout: float, fusion: Fusion) -> None:
        super().__init__()
        self.dropout = dropout
        self.convolution = GatedConvolution(size, kernel_width, dropout, causal=True)
        attentions = {
            path: ConvolutionalAttention(size, dropout, memory_scale("cnn", path, fusion))
            for path in fusion.encoder_paths
        }
        self.attentions = cast("Mapping[str, ConvolutionalAttention]", nn.ModuleDict(attentions))
        self.gate = make_gate(size, fusion)

    def forward(
        self,
        x: Tensor,
        embedded: Tensor,
        memories: Mapping[str, Memory],
        real: Tensor | None,
        state: ConvolutionalLayerState | None,
        need_attention: bool,
    ) -> tuple[Tensor, LayerResult]:
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
        context, shares = fuse(self.gate, contexts, reader="cnn")
        x = (x + context) * SQRT_HALF
        x = (x + residual) * SQRT_HALF
        return x, (ConvolutionalLayerState(inputs, weight, projections), attention_weights, shares)

    def prepared(
        self, state: ConvolutionalLayerState, memories: Mapping[str, Memory], rows: int
    ) -> ConvolutionalLayerStep:
        projected = {
            path: attention.project_memory(memories[path], state.projection_weights[path])
            for path, attention in self.attentions.items()
        }
        convolution = prepared_linear(state.convolution_weight, self.convolution.linear.bias, rows)
        return ConvolutionalLayerStep(convolution, projected)

    def step(
        self,
        x: Tensor,
        embedding_scores: Mapping[str, Tensor],
        state: ConvolutionalLayerState,
        step: ConvolutionalLayerStep,
    ) -> tuple[Tensor, ConvolutionalLayerState]:
        """:meth:`forward` for one position x (B, 1, d), in evaluation."""
        window = torch.cat([state.inputs, x], dim=1)
        convolved = F.glu(step.convolution(window.flatten(1)), dim=-1).unsqueeze(1)
        contexts = {
            path: ConvolutionalAttention.attend(convolved, embedding_scores[path], memory)
            for path, memory in step.memories.items()
        }
        context, _ = fuse(self.gate, contexts, reader="cnn")
        # As a sum of three, a step has fewer passes.
        x = torch.add(x, convolved + context, alpha=SQRT_HALF) * SQRT_HALF
        return x, state._replace(inputs=window[:, 1:])

    def forward_packed(self, x: Tensor, batch: PackedBatch, scale: Tensor) -> Tensor:
        residual = x
        x = self.convolution.forward_packed(dropout(x, self.dropout), batch.targets.offsets)
        contexts = {
            path: attention.forward_packed(x, batch.embedded, batch.memories[path], scale, batch.to_sources)
            for path, attention in self.attentions.items()
        }
        context, _ = fuse(self.gate, contexts, reader="cnn")
        x = (x + context) * SQRT_HALF
        return (x + residual) * SQRT_HALF


def _encoder(options: ConvolutionalPathOptions, sizes: PathSizes) -> ConvolutionalEncoderPath:
    return ConvolutionalEncoderPath(sizes.size, options.cnn_layers, options.kernel_width, sizes.dropout)


def _decoder(options: ConvolutionalPathOptions, sizes: PathSizes, fusion: Fusion) -> ConvolutionalDecoderPath:
    return ConvolutionalDecoderPath(sizes.size, options.cnn_layers, options.kernel_width, sizes.dropout, fusion)


register_path(PathKind("cnn", "c", "convolutions", ConvolutionalPathOptions, _encoder, _decoder))
