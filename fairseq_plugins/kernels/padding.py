"""Which positions of a ragged batch are padding."""

from __future__ import annotations

import torch
from torch import Tensor


def padding_mask(lengths: Tensor, steps: int) -> Tensor:
    """(T, B), True at padding, of T = ``steps`` positions and lengths (B,)."""
    return torch.arange(steps, device=lengths.device).unsqueeze(1) >= lengths
