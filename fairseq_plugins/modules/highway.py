"""Highway networks: Srivastava, Greff and Schmidhuber (2015), "Highway Networks", Eq. 3."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .linear import Linear


class Highway(nn.Module):
    """Layers y = t * relu(W x + b) + (1 - t) * x with t = sigmoid(W_t x + b_t): x (..., D) -> (..., D).

    The gates' biases start at -1, so that a layer first carries most of its input (Section 2.2).

    Args:
        size: D.
        layers: how many, at least 1.

    Raises:
        ValueError: a size below 1, or no layer.
    """

    def __init__(self, size: int, layers: int = 2) -> None:
        super().__init__()
        if min(size, layers) < 1:
            raise ValueError(f"sizes and layers must be at least 1, not {size} and {layers}")
        self.transforms = nn.ModuleList(Linear(size, size) for _ in range(layers))
        gates = [Linear(size, size) for _ in range(layers)]
        for gate in gates:
            nn.init.constant_(gate.bias, -1.0)
        self.gates = nn.ModuleList(gates)

    def forward(self, x: Tensor) -> Tensor:
        for transform, gate in zip(self.transforms, self.gates, strict=True):
            opened = torch.sigmoid(gate(x))
            x = opened * torch.relu(transform(x)) + (1 - opened) * x
        return x
