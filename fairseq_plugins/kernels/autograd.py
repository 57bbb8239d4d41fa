"""The recurrence in plain tensor operations, vectorised over channels and batch; autograd makes the backward pass."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from .interface import divisors, outputs_read, slot_shift


def recurrence(
    gates: Tensor,
    candidate_bias: Tensor | None,
    history: Tensor,
    memory: Tensor,
    weight_hh: Tensor | None,
    weight_connection: Tensor,
    cell: str,
    connection: str,
) -> tuple[Tensor, Tensor]:
    """A recurrence as ``vectorized.py`` defines it."""
    lags, slots = history.shape[:2]
    hidden = list(history.unbind(0))[::-1]
    memories = [memory]
    # unbind: indexing a tensor in a loop makes a backward pass that is quadratic in T.
    for step_gates in gates.unbind(0):
        by_lag = [hidden[-j][: slots - slot_shift(j, slots, lags)] for j in range(1, lags + 1)]
        output, memory = cell_step(
            step_gates, candidate_bias, by_lag, memories[-1], weight_hh, weight_connection, cell, connection, slot_dim=0
        )
        hidden.append(output.roll(1, dims=0))
        memories.append(memory.roll(1, dims=0))
    return torch.stack(hidden), torch.stack(memories)


def cell_step(
    gates: Tensor,
    candidate_bias: Tensor | None,
    by_lag: Sequence[Tensor],
    memory: Tensor,
    weight_hh: Tensor | None,
    weight_connection: Tensor,
    cell: str,
    connection: str,
    slot_dim: int,
) -> tuple[Tensor, Tensor]:
    """One time step of all channels (Eq. 2 and 3).

    Args:
        gates: the input's share, broadcastable to (slots and batch, G * H).
        by_lag: for j = 1 ... L, h(t - j) of the slots that W_j reads, along ``slot_dim``.
        memory: c(t - 1).

    Returns:
        h(t) and c(t) in the slots of time t (the caller rolls them to those of t + 1).
    """
    lags, slots = len(by_lag), by_lag[0].size(slot_dim)
    hidden_size = weight_connection.size(-1)
    shape = [1, 1, 1]
    shape[slot_dim] = slots

    s = sum(
        _from_slot(F.linear(h, weight_connection[j]), slot_shift(j + 1, slots, lags), slot_dim)
        for j, h in enumerate(by_lag)
    ) / divisors(slots, lags, gates).view(shape)  # Eq. 2
    if connection == "state":
        from_history, interpolated = F.linear(s, weight_hh), s
    else:
        from_history = s
        interpolated = (
            sum(_from_slot(h, slot_shift(j + 1, slots, lags), slot_dim) for j, h in enumerate(by_lag))
            / outputs_read(slots, lags, gates).view(shape)
            if cell == "gru"
            else None
        )

    if cell == "lstm":
        i, f, g, o = (gates + from_history).split(hidden_size, dim=-1)
        memory = torch.sigmoid(f) * memory + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(memory), memory
    if cell == "gru":
        r, z = torch.sigmoid(gates[..., : 2 * hidden_size] + from_history[..., : 2 * hidden_size]).chunk(2, dim=-1)
        n = torch.tanh(gates[..., 2 * hidden_size :] + r * (from_history[..., 2 * hidden_size :] + candidate_bias))
        return n + z * (interpolated - n), memory
    return torch.tanh(gates + from_history), memory


def _from_slot(x: Tensor, first: int, slot_dim: int) -> Tensor:
    """Puts zeros before ``x``, so that its first slot becomes slot ``first``."""
    padding = [0, 0] * (x.dim() - 1 - slot_dim) + [first, 0]
    return F.pad(x, padding) if first else x
