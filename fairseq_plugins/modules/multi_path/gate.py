"""The gate of networks of several paths (DPN-S2S, Eq. 9 and 10), which fuses what the paths give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .contract import Fusion


class ScalarGate(nn.Module):
    """Fuses n paths: shares = softmax([0; W [own; others] + b]), fused = sum of share times path.

    With two paths that is g = sigmoid([own; other] W + b), fused = own (1 - g) + other g (Eq. 9 and 10). The paper
    leaves more than two for future work (its Section 6); of n scores n - 1 are learned, since their differences alone
    count. The shares start equal.

    Args:
        size: d.
        gradient_scale: of the gradient of the scores, the gate's parameters with it; 0 keeps the shares equal.
        paths: n.
        path_dropout: the probability that a sentence goes without a path in training, which then has a share of 0. One
            path stays always.
    """

    def __init__(self, size: int, gradient_scale: float = 1.0, paths: int = 2, path_dropout: float = 0.0) -> None:
        super().__init__()
        self.gradient_scale = gradient_scale
        self.path_dropout = path_dropout
        self.linear = nn.Linear(paths * size, paths - 1)
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, output: Tensor, *others: Tensor) -> tuple[Tensor, Tensor]:
        """Fuses an output and the n - 1 others (B, T, d). Returns (B, T, d) and the others' shares (B, T, n - 1)."""
        scores = self.linear(torch.cat([output, *others], dim=-1))
        if self.gradient_scale != 1 and scores.requires_grad:
            scores = torch.lerp(scores.detach(), scores, self.gradient_scale)
        # Under autocast they may be of different precisions, which lerp and stack do not take.
        dtype = output.dtype
        for other in others:
            dtype = torch.promote_types(dtype, other.dtype)
        drops_paths = self.training and self.path_dropout > 0
        if len(others) == 1 and not drops_paths:
            gate = torch.sigmoid(scores)
            return torch.lerp(output.to(dtype), others[0].to(dtype), gate.to(dtype)), gate
        scores = F.pad(scores, (1, 0))
        if drops_paths:
            scores = scores.masked_fill(self._dropped(scores), float("-inf"))
        shares = F.softmax(scores, dim=-1)
        stacked = torch.stack([path.to(dtype) for path in (output, *others)], dim=-2)
        return (shares.to(dtype).unsqueeze(-2) @ stacked).squeeze(-2), shares[..., 1:]

    def _dropped(self, scores: Tensor) -> Tensor:
        """Which paths the sentences of scores (B, T, n) go without: (B, 1, n)."""
        draws = torch.rand(scores.size(0), 1, scores.size(2), device=scores.device)
        # The path of the largest draw stays.
        return (draws < self.path_dropout) & (draws < draws.amax(dim=-1, keepdim=True))


def order(paths: Sequence[str], reader: str) -> list[str]:
    """The paths as a gate takes them: the reader first, or the first of them where it is not among them."""
    first = reader if reader in paths else paths[0]
    return [first, *(path for path in paths if path != first)]


def make_gate(size: int, fusion: Fusion) -> ScalarGate | None:
    """The gate of a layer of a decoder path; None where it reads one encoder path alone."""
    paths = len(fusion.encoder_paths)
    return ScalarGate(size, fusion.gate_gradient_scale, paths, fusion.path_dropout) if paths > 1 else None


def fuse(gate: ScalarGate | None, outputs: Mapping[str, Tensor], reader: str) -> tuple[Tensor, dict[str, Tensor]]:
    """Eq. 9 in a decoder path called ``reader``, and Eq. 10: what each path gives (B, T, d) -> (B, T, d), and the share
    (B, T, 1) of each path but the first of :func:`order`.

    With one path there is no gate.
    """
    if gate is None:
        (output,) = outputs.values()
        return output, {}
    first, *others = order(list(outputs), reader)
    fused, shares = gate(outputs[first], *(outputs[path] for path in others))
    return fused, dict(zip(others, shares.split(1, dim=-1), strict=True)) if len(others) > 1 else {others[0]: shares}
