"""The convolutional path (DPN-S2S, Section 2.2), ``cnn``: ConvS2S without its fully connected layers.

Padding is masked everywhere: a padded position counts as zero in every convolution, as the outside of the sentence
does, and no attention looks at one. (The authors' code masks neither the source in the decoder's attentions nor the
convolutions' inputs.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

from torch import Tensor, nn

from ...kernels.checks import check_number
from ...kernels.dropout import dropout
from ..attention import ConvolutionalAttention, Memory
from ..convolution import GatedConvolution
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
        for layer in self.layers:
            convolved, _ = layer(dropout(x, self.dropout, self.training), real)
            x = (convolved + x) * SQRT_HALF
        return EncoderOutput(x)


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
        """As :meth:`LayerState.reorder`."""
        return self._replace(inputs=self.inputs.index_select(0, rows))


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
        x, results = embedded, []
        for i, layer in enumerate(self.layers):
            x, result = layer(x, embedded, memories, real, None if states is None else states[i], need_attention)
            results.append(result)
        return path_output(x, results, need_attention)


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
        context, shares = fuse(self.gate, contexts, own="cnn")
        x = (x + context) * SQRT_HALF
        x = (x + residual) * SQRT_HALF
        return x, (ConvolutionalLayerState(inputs, weight, projections), attention_weights, shares)


def _encoder(options: ConvolutionalPathOptions, sizes: PathSizes) -> ConvolutionalEncoderPath:
    return ConvolutionalEncoderPath(sizes.size, options.cnn_layers, options.kernel_width, sizes.dropout)


def _decoder(options: ConvolutionalPathOptions, sizes: PathSizes, fusion: Fusion) -> ConvolutionalDecoderPath:
    return ConvolutionalDecoderPath(sizes.size, options.cnn_layers, options.kernel_width, sizes.dropout, fusion)


register_path(PathKind("cnn", "c", "convolutions", ConvolutionalPathOptions, _encoder, _decoder))
