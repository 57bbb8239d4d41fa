"""The linear layer of every model."""

from __future__ import annotations

from torch import Tensor, nn

from ..kernels.linear import linear


class Linear(nn.Linear):
    """``torch.nn.Linear`` on the fastest product that there is (:func:`.kernels.linear.linear`)."""

    def forward(self, x: Tensor) -> Tensor:
        """(..., in_features) -> (..., out_features)."""
        return linear(x, self.weight, self.bias)
