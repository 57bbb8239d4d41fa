"""The dilated CNN that DilatedRNN is compared with (Chang et al. 2017, Section 4.2), after WaveNet's convolutions.

Causal convolutions of width 2 with dilations 1, 2, 4 … on top of each other, each with a bias and ReLU (our choice); no
gates, no residuals. L layers see the last 2^L steps.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

WIDTH = 2


class DilatedCNN(nn.Module):
    """x (T, B, D) -> (T, B, H).

    Args:
        input_size: D.
        hidden_size: H, filters of each layer.
        layers: how many, at least 1.

    Raises:
        ValueError: a size below 1, or no layer.
    """

    def __init__(self, input_size: int, hidden_size: int, layers: int) -> None:
        super().__init__()
        if min(input_size, hidden_size, layers) < 1:
            raise ValueError(f"sizes and layers must be at least 1, not {input_size}, {hidden_size} and {layers}")
        self.output_size = hidden_size
        sizes = [input_size] + [hidden_size] * (layers - 1)
        convolutions = [
            nn.Conv1d(size, hidden_size, WIDTH, dilation=WIDTH**number) for number, size in enumerate(sizes)
        ]
        for convolution in convolutions:
            nn.init.xavier_uniform_(convolution.weight)
            if convolution.bias is not None:
                nn.init.zeros_(convolution.bias)
        self.layers = nn.ModuleList(convolutions)

    def forward(self, x: Tensor) -> Tensor:
        x = x.permute(1, 2, 0)
        for number, layer in enumerate(self.layers):
            x = torch.relu(layer(F.pad(x, (WIDTH**number * (WIDTH - 1), 0))))
        return x.permute(2, 0, 1)
