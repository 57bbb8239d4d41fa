"""The papers' equations as ``torch.nn`` modules. They import PyTorch and the kernels, never fairseq."""

from ..kernels.forget_scan import forget_scan
from .attention import AdditiveAttention, ConvolutionalAttention, Memory, MultiHeadAttention
from .attentive_pooling import AttentivePooling
from .convolution import GatedConvolution
from .double_path.decoder import ConvolutionalDecoderPath, SelfAttentionDecoderPath
from .double_path.encoder import ConvolutionalEncoderPath, SelfAttentionEncoderPath, SelfAttentionOptions
from .double_path.gate import ScalarGate
from .highway import Highway
from .linear import Linear
from .pooling import POOLINGS, Pooled, pool
from .recurrent.contract import RecurrentNetwork, RecurrentOutput, RecurrentState
from .recurrent.conventional import ConventionalRNN
from .recurrent.dilated import DilatedRNN, DilatedRNNStack
from .recurrent.hierarchical_multiscale import HierarchicalMultiscaleRNN
from .recurrent.higher_order import HigherOrderRNN
from .recurrent.memory import mean_recurrent_length
from .recurrent.multi_channel import MultiChannelRNN
from .recurrent.recurrently_controlled import RecurrentlyControlledRNN
from .recurrent.registry import RECURRENT_KINDS, LayerSizes, RecurrentKind, option, register_recurrent_kind
from .recurrent.stack import RecurrentStack, StackOutput, reorder_states
from .regularization import LockedDropout, embedding_dropout
from .word_vectors import CharacterEncoder, ContextEncoder

__all__ = [
    "POOLINGS",
    "RECURRENT_KINDS",
    "AdditiveAttention",
    "AttentivePooling",
    "CharacterEncoder",
    "ContextEncoder",
    "ConventionalRNN",
    "ConvolutionalAttention",
    "ConvolutionalDecoderPath",
    "ConvolutionalEncoderPath",
    "DilatedRNN",
    "DilatedRNNStack",
    "GatedConvolution",
    "HierarchicalMultiscaleRNN",
    "HigherOrderRNN",
    "Highway",
    "LayerSizes",
    "Linear",
    "LockedDropout",
    "Memory",
    "MultiChannelRNN",
    "MultiHeadAttention",
    "Pooled",
    "RecurrentKind",
    "RecurrentNetwork",
    "RecurrentOutput",
    "RecurrentStack",
    "RecurrentState",
    "RecurrentlyControlledRNN",
    "ScalarGate",
    "SelfAttentionDecoderPath",
    "SelfAttentionEncoderPath",
    "SelfAttentionOptions",
    "StackOutput",
    "embedding_dropout",
    "forget_scan",
    "mean_recurrent_length",
    "option",
    "pool",
    "register_recurrent_kind",
    "reorder_states",
]
