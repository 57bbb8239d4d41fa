"""Autocast on any device: PyTorch's own functions raise on one that has none, such as ``meta``."""

from __future__ import annotations

import contextlib

import torch


def is_autocast(device_type: str) -> bool:
    """Whether products of a device are computed in another precision than their operands have."""
    return torch.amp.is_autocast_available(device_type) and torch.is_autocast_enabled(device_type)


def without_autocast(device_type: str) -> contextlib.AbstractContextManager[object]:
    """Has a block compute in the precision of what it is given."""
    if not torch.amp.is_autocast_available(device_type):
        return contextlib.nullcontext()
    return torch.autocast(device_type, enabled=False)
