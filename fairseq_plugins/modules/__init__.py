"""The papers' equations as ``torch.nn`` modules. They import PyTorch and the kernels, never fairseq."""

from .attention import AdditiveAttention
from .conventional_rnn import ConventionalRNN
from .multi_channel_rnn import MultiChannelRNN
from .recurrent import LayerOutput, RecurrentLayer, RecurrentState
from .recurrent_stack import RECURRENT_LAYERS, LayerOptions, RecurrentStack, reorder_states

__all__ = [
    "RECURRENT_LAYERS",
    "AdditiveAttention",
    "ConventionalRNN",
    "LayerOptions",
    "LayerOutput",
    "MultiChannelRNN",
    "RecurrentLayer",
    "RecurrentStack",
    "RecurrentState",
    "reorder_states",
]
