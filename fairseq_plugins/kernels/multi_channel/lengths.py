"""The numbers of real tokens, before a backend finds its way in memory by them."""

from __future__ import annotations

from torch import Tensor


def checked_lengths(lengths: Tensor | None, x: Tensor) -> Tensor | None:
    """``lengths`` as int64, or None.

    Args:
        lengths: (B,) of any type of whole numbers; None if there is no padding.
        x: (T, B, D).

    Raises:
        ValueError: they are not one whole number for each row of x; or one of them, on the CPU, is not in 0 ... T. What
            is on a GPU is not looked at, since that would have to wait for all that the GPU still has to do.
    """
    if lengths is None:
        return None
    steps, batch_size, _ = x.shape
    if lengths.shape != (batch_size,) or lengths.is_floating_point():
        given = f"{str(lengths.dtype).removeprefix('torch.')} of shape {tuple(lengths.shape)}"
        raise ValueError(f"lengths must be {batch_size} whole numbers, one for each row, not {given}")
    if lengths.device.type == "cpu" and batch_size:
        least, most = (int(bound) for bound in lengths.aminmax())
        if least < 0 or most > steps:
            raise ValueError(f"lengths must be from 0 to the {steps} steps of x, not from {least} to {most}")
    return lengths.long()
