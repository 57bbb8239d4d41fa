"""The papers' equations as ``torch.nn`` modules. They import PyTorch and the kernels, never fairseq."""

from .attention import AdditiveAttention, ConvolutionalAttention, Memory, MultiHeadAttention, ScalarGate
from .conventional_rnn import ConventionalRNN
from .convolution import GatedConvolution
from .double_path import (
    ConvolutionalDecoderPath,
    ConvolutionalEncoderPath,
    SelfAttentionDecoderPath,
    SelfAttentionEncoderPath,
)
from .higher_order_rnn import HigherOrderRNN
from .multi_channel_rnn import MultiChannelRNN
from .recurrent import LayerOutput, RecurrentLayer, RecurrentState
from .recurrent_stack import RECURRENT_LAYERS, LayerOptions, RecurrentStack, reorder_states

__all__ = [
    "RECURRENT_LAYERS",
    "AdditiveAttention",
    "ConventionalRNN",
    "ConvolutionalAttention",
    "ConvolutionalDecoderPath",
    "ConvolutionalEncoderPath",
    "GatedConvolution",
    "HigherOrderRNN",
    "LayerOptions",
    "LayerOutput",
    "Memory",
    "MultiHeadAttention",
    "MultiChannelRNN",
    "RecurrentLayer",
    "RecurrentStack",
    "RecurrentState",
    "ScalarGate",
    "SelfAttentionDecoderPath",
    "SelfAttentionEncoderPath",
    "reorder_states",
]
