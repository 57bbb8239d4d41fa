"""How the recurrent networks of DilatedRNN's experiments start, as in TensorFlow 1, with which they were made.

The paper says that all weights are drawn from the standard normal distribution; in the authors' code the output layer's
alone are. Its cells keep TensorFlow's own start: Glorot's uniform distribution over each joint kernel of inputs and
outputs, zero biases, but 1 for the LSTM's forget gate and for the GRU's gates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from .recurrent.connected import ConnectedRNN

# In torch's order, of each cell the gates whose biases start at 1, and how many gates TensorFlow's kernels join.
_OPEN = {"lstm": (1,), "gru": (0, 1), "rnn": ()}
_KERNELS = {"lstm": (4,), "gru": (2, 1), "rnn": (1,)}
_CELLS = {"LSTM": "lstm", "GRU": "gru", "RNN_TANH": "rnn"}
"""What ``torch.nn`` calls a mode."""


@torch.no_grad()
def glorot_(network: nn.Module) -> None:
    """Starts every ``torch.nn`` recurrent layer, and every layer whose connections lead into the gates, in a network as
    TensorFlow 1 does.

    Other layers stay as they are.

    Raises:
        ValueError: there are no others.
    """
    is_any_started = False
    for module in network.modules():
        if isinstance(module, nn.RNNBase):
            cell = _CELLS[module.mode]
            for weight_ih, weight_hh, *biases in module.all_weights:
                _start(cell, [weight_ih, weight_hh], biases)
        elif isinstance(module, ConnectedRNN) and module.weight_hh is None:
            _start(module.cell, [module.weight_ih, *module.weight_connection], [module.bias_ih, module.bias_hh])
        else:
            continue
        is_any_started = True
    if not is_any_started:
        raise ValueError("TensorFlow 1 has no such layer to take a start from")


def _start(cell: str, weights: Sequence[Tensor], biases: Sequence[Tensor]) -> None:
    """Of a layer whose ``weights`` (G H, inputs) lie side by side in TensorFlow's kernels."""
    size = weights[0].size(0) // sum(_KERNELS[cell])
    first = 0
    for gates in _KERNELS[cell]:
        rows = slice(first * size, (first + gates) * size)
        _glorot([weight[rows] for weight in weights])
        first += gates
    for bias in biases:
        nn.init.zeros_(bias)
    for gate in _OPEN[cell]:
        biases[0][gate * size : (gate + 1) * size] = 1.0


@torch.no_grad()
def standard_normal_(network: nn.Module) -> None:
    """Draws every parameter from N(0, 1), biases too."""
    for parameter in network.parameters():
        nn.init.normal_(parameter)


def _glorot(parts: Sequence[Tensor]) -> None:
    """U(-b, b) with b² = 6 / (inputs + outputs) of the kernel (outputs, inputs) that the parts make up side by side."""
    bound = math.sqrt(6 / (sum(part.size(1) for part in parts) + parts[0].size(0)))
    for part in parts:
        nn.init.uniform_(part, -bound, bound)
