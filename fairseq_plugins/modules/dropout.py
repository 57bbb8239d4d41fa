"""The dropout of every model."""

from __future__ import annotations

from torch import Tensor, nn

from ..kernels.dropout import dropout


class Dropout(nn.Dropout):
    """``torch.nn.Dropout`` on the fastest random numbers that there are (:func:`.kernels.dropout.dropout`)."""

    def forward(self, x: Tensor) -> Tensor:
        """x of any shape -> the same shape."""
        return dropout(x, self.p, self.training)
