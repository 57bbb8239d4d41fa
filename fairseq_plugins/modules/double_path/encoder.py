"""The encoder's paths of double path networks (DPN-S2S, Section 2), a convolutional and a self-attention stack, and
what self-attention paths are made from, the decoder's too.

Padding is masked everywhere: a padded position counts as zero in every convolution, as the outside of the sentence
does, and no attention looks at one. (The authors' code masks neither the source in the decoder's attentions nor the
convolutions' inputs.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch.nn.functional as F
from torch import Tensor, nn

from ...kernels.checks import check_mask, check_tensor
from ...kernels.dropout import dropout
from ..attention import MultiHeadAttention
from ..convolution import GatedConvolution
from ..linear import Linear

SQRT_HALF = math.sqrt(0.5)


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


class ConvolutionalEncoderPath(nn.Module):
    """z = (GLU(conv(dropout(z))) + z) sqrt(0.5) in each layer.

    Eq. 5 prints the residual without the factor; the ConvS2S code that it builds on has it.

    Args:
        size: d.
        layers: number of layers.
        kernel_width: r, odd.
        dropout: probability of dropout on the input of each convolution.
    """

    def __init__(self, size: int, layers: int, kernel_width: int, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        convolutions = (GatedConvolution(size, kernel_width, dropout) for _ in range(layers))
        self.layers = cast("Sequence[GatedConvolution]", nn.ModuleList(convolutions))

    def forward(self, x: Tensor, real: Tensor) -> Tensor:
        """x (B, S, d), real (B, S), False at padding -> (B, S, d). Raises ValueError where they do not fit."""
        x = without_padding(self, x, real)
        for layer in self.layers:
            convolved, _ = layer(dropout(x, self.dropout, self.training), real)
            x = (convolved + x) * SQRT_HALF
        return x


class SelfAttentionEncoderPath(nn.Module):
    """Pre-norm transformer layers without biases in the projections, and a final layer norm (Section 2.3).

    Args:
        options: what it is made from.
    """

    def __init__(self, options: SelfAttentionOptions) -> None:
        super().__init__()
        self.input_scale = options.input_scale
        layers = (_SelfAttentionEncoderLayer(options) for _ in range(options.layers))
        self.layers = cast("Sequence[_SelfAttentionEncoderLayer]", nn.ModuleList(layers))
        self.output_norm = output_norm(options)

    def forward(self, x: Tensor, real: Tensor) -> Tensor:
        """x (B, S, d), real (B, S), False at padding -> (B, S, d). Raises ValueError where they do not fit."""
        x = without_padding(self, x, real)
        mask = real[:, None, None, :]
        x = x * self.input_scale
        for layer in self.layers:
            x = layer(x, mask)
        output: Tensor = self.output_norm(x)
        return output


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


def without_padding(path: nn.Module, x: Tensor, real: Tensor | None) -> Tensor:
    """What a path begins with: x (B, T, d), zero where real (B, T) is False. NaN would go on from there through weights
    of 0.

    Raises:
        ValueError: x and real do not fit the path or each other.
    """
    check_tensor("x", x, ("B", "T", "d"), next(path.parameters(), x))
    if real is None:
        return x
    check_mask("real", real, x)
    return x.masked_fill(~real.unsqueeze(-1), 0)


def output_norm(options: SelfAttentionOptions) -> nn.LayerNorm:
    """The final layer norm of a self-attention path."""
    norm = nn.LayerNorm(options.size)
    nn.init.constant_(norm.weight, options.output_norm_init)
    return norm


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
