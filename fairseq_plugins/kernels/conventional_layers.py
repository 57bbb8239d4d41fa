"""``torch.nn.LSTM``, ``GRU`` and ``RNN`` (tanh) on the kernels of the multi-channel recurrence, where they are faster.

A conventional layer is one channel that reads lag 1 through ``gate``, without attention.
"""

from __future__ import annotations

import torch
from torch import Tensor

from . import dispatch
from .autocast import is_autocast
from .checks import checked_lengths
from .multi_channel.specification import (
    MultiChannelLayer,
    MultiChannelParameters,
    MultiChannelSpecification,
    MultiChannelState,
    Stepper,
)


def conventional_rnn(
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor,
    bias_hh: Tensor,
    cell: str,
    x: Tensor,
    lengths: Tensor | None,
    hidden: Tensor,
    cell_state: Tensor,
) -> tuple[Tensor, Tensor, Tensor] | None:
    """A layer in one direction; None where no kernel of ours is faster than torch's own.

    Args:
        weight_ih, weight_hh, bias_ih, bias_hh: as ``torch.nn.LSTM`` and its kin have them.
        cell: ``lstm``, ``gru`` or ``rnn``.
        x: (T, B, D), right-padded.
        lengths: (B,) real tokens of each row, 0 ... T; None if there is no padding.
        hidden: (B, H), h before the first token.
        cell_state: (B, H), c before the first token; (B, 0) where the cell has none.

    Returns:
        the output (T, B, H), zero at padding, and each row's own h and c at its last real token.

    Raises:
        ValueError: lengths are not one whole number in 0 ... T for each row.
    """
    steps, rows, _ = x.shape
    is_reduced = x.dtype not in (torch.float32, torch.float64) or is_autocast(x.device.type)
    if is_reduced or not is_faster(cell, steps, rows, hidden.size(1)):
        return None
    layer = _layer(weight_ih, weight_hh, bias_ih, bias_hh, cell)
    choice = dispatch.choose("multi_channel", layer, steps * rows)
    if choice.name != "cpp":
        return None
    # Only channels need the time.
    time = x.new_zeros((), dtype=torch.long)
    state = MultiChannelState(hidden[:, None, None], cell_state[:, None], time)
    output, last, _ = choice.module.multi_channel_rnn(layer, x, checked_lengths(lengths, x), state)
    return output, last.history[:, 0, 0], last.cell_state[:, 0]


def conventional_stepper(
    weight_ih: Tensor, weight_hh: Tensor, bias_ih: Tensor, bias_hh: Tensor, cell: str, batch_size: int
) -> Stepper | None:
    """Steps of a layer, for about ``batch_size`` rows; None where no kernel of ours is faster than torch's cells."""
    layer = _layer(weight_ih, weight_hh, bias_ih, bias_hh, cell)
    choice = dispatch.choose("multi_channel", layer, batch_size)
    return choice.module.stepper(layer, batch_size) if choice.name == "cpp" else None


def is_faster(cell: str, steps: int, rows: int, hidden_size: int) -> bool:
    """Whether a sequence takes less time on a CPU than by torch's own layer, by ``benchmarks/rcrn_and_dilated.py``
    (``--cells``, ``--features``, with dilation 1).

    torch's LSTM is oneDNN's. It is faster for wide layers; but in training it writes much memory anew.
    """
    is_training = torch.is_grad_enabled()
    if cell == "gru":
        return is_training or rows >= 8
    if cell == "rnn":
        return is_training and hidden_size <= 128
    return is_training and hidden_size <= 64 and steps * rows >= 8192 and torch.get_num_threads() > 1


def _layer(weight_ih: Tensor, weight_hh: Tensor, bias_ih: Tensor, bias_hh: Tensor, cell: str) -> MultiChannelLayer:
    parameters = MultiChannelParameters(weight_ih, None, bias_ih, bias_hh, weight_hh.unsqueeze(0), None, None)
    return MultiChannelLayer(MultiChannelSpecification(cell, "gate"), parameters)
