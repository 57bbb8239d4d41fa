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
_OPEN = {"LSTM": (1,), "GRU": (0, 1), "RNN_TANH": ()}
_KERNELS = {"LSTM": (4,), "GRU": (2, 1), "RNN_TANH": (1,)}


@torch.no_grad()
def glorot_(network: nn.Module) -> None:
    """Starts every ``torch.nn`` recurrent layer, and every layer of given lags, in a network as TensorFlow 1 does.

    Other layers stay as they are.
    """
    for module in network.modules():
        if isinstance(module, nn.RNNBase):
            size = module.hidden_size
            for layer in module.all_weights:
                weight_ih, weight_hh, bias_ih, bias_hh = layer
                first = 0
                for gates in _KERNELS[module.mode]:
                    rows = slice(first * size, (first + gates) * size)
                    _glorot([weight_ih[rows], weight_hh[rows]])
                    first += gates
                nn.init.zeros_(bias_ih)
                nn.init.zeros_(bias_hh)
                for gate in _OPEN[module.mode]:
                    bias_ih[gate * size : (gate + 1) * size] = 1.0
        elif isinstance(module, ConnectedRNN) and module.weight_hh is None:
            _glorot([module.weight_ih, *module.weight_connection])
            nn.init.zeros_(module.bias_ih)
            nn.init.zeros_(module.bias_hh)


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
