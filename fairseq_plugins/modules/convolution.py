"""Gated convolutions of the CNN path of double path networks (DPN-S2S, Section 2.2), after ConvS2S (Gehring et al.,
2017), with the gated linear units of Dauphin et al. (2017)."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parametrize
from torch.nn.utils.parametrizations import weight_norm

from ..kernels.checks import check_mask, check_tensor
from ..kernels.linear import linear
from ..kernels.packed_sentences import windows


class GatedConvolution(nn.Module):
    """v([h(i - r/2) ... h(i + r/2)] W + b) of Eq. 5, v the gated linear unit; the residual is the caller's.

    The window is concatenated as the equation says, so that a layer is one matrix product. W is weight-normalised:
    each output feature has a direction and a length.

    Args:
        size: d, features of the input and of the output.
        kernel_width: r. A window that is not causal is centred, so r must be odd.
        dropout: probability of the dropout that the caller applies to the input, for the initialisation
            N(0, sqrt(4 (1 - dropout) / (r d))) of ConvS2S.
        causal: the window ends at its own position.

    Raises:
        ValueError: an even kernel width without ``causal``.
    """

    def __init__(self, size: int, kernel_width: int, dropout: float = 0.0, causal: bool = False) -> None:
        super().__init__()
        if not causal and kernel_width % 2 == 0:
            raise ValueError(f"a centred window needs an odd kernel width, not {kernel_width}")
        self.size = size
        self.kernel_width = kernel_width
        self.causal = causal
        self.linear = weight_norm_linear(kernel_width * size, 2 * size, math.sqrt(4 * (1 - dropout)))

    def forward(
        self, x: Tensor, real: Tensor | None = None, context: Tensor | None = None, weight: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Convolves T positions of each sentence.

        Args:
            x: (B, T, d).
            real: (B, T), False at padding, whose input counts as zero; None if there is none.
            context: (B, r - 1, d), the inputs before the first position, as an earlier call returned them; zeros if
                None. Causal convolutions only.
            weight: (2d, r d), ``self.linear.weight`` where many calls share it: normalising it takes longer than a
                decoding step.

        Returns:
            (B, T, d), and the context for the positions that follow (B, r - 1, d).

        Raises:
            ValueError: their sizes, precisions or devices do not fit the layer or each other.
        """
        check_tensor("x", x, ("B", "T", self.size), self.linear.bias)
        if real is not None:
            check_mask("real", real, x)
            x = x.masked_fill(~real.unsqueeze(-1), 0)
        size = x.size(1)
        if context is not None:
            check_tensor("context", context, (x.size(0), self.kernel_width - 1, self.size), x)
            padded = torch.cat([context, x], dim=1)
        else:
            before = self.kernel_width - 1 if self.causal else self.kernel_width // 2
            padded = F.pad(x, (0, 0, before, self.kernel_width - 1 - before))
        window = torch.cat([padded[:, i : i + size] for i in range(self.kernel_width)], dim=-1)
        convolved = linear(window, self.linear.weight if weight is None else weight, self.linear.bias)
        return F.glu(convolved, dim=-1), padded[:, padded.size(1) - (self.kernel_width - 1) :]

    def forward_packed(self, x: Tensor, offsets: Tensor) -> Tensor:
        """Convolves packed sentences, which begin at ``offsets`` (B + 1,): (N, d) -> (N, d)."""
        before = self.kernel_width - 1 if self.causal else self.kernel_width // 2
        window = windows(x, offsets, self.kernel_width, before)
        return F.glu(linear(window, self.linear.weight, self.linear.bias), dim=-1)


def weight_norm_linear(in_features: int, out_features: int, gain: float = 1.0) -> nn.Linear:
    """A weight-normalised linear layer that starts at N(0, gain / sqrt(in_features)) with a bias of zero."""
    linear = nn.Linear(in_features, out_features)
    nn.init.normal_(linear.weight, std=gain / math.sqrt(in_features))
    nn.init.zeros_(linear.bias)
    weight_norm(linear)
    return linear


def remove_weight_norm(module: nn.Module) -> None:
    """Replaces every normalised weight inside ``module`` by its value: for inference, where it never changes."""
    for part in module.modules():
        if parametrize.is_parametrized(part, "weight"):
            parametrize.remove_parametrizations(part, "weight")
