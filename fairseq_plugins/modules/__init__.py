"""The papers' equations as ``torch.nn`` modules. They import PyTorch and the kernels, never fairseq."""

from ..kernels.forget_scan import forget_scan
from .attention import AdditiveAttention, ConvolutionalAttention, Memory, MultiHeadAttention
from .attentive_pooling import AttentivePooling
from .convolution import GatedConvolution
from .decomposable_attention import DecomposableAttention
from .highway import Highway
from .linear import Linear
from .multi_path.contract import DecoderPath, EncoderOutput, EncoderPath, Fusion, PathOutput
from .multi_path.convolutional import ConvolutionalDecoderPath, ConvolutionalEncoderPath
from .multi_path.gate import ScalarGate
from .multi_path.recurrent import RecurrentDecoderPath, RecurrentEncoderPath
from .multi_path.registry import PATH_KINDS, PathKind, PathSizes, register_path
from .multi_path.self_attention import SelfAttentionDecoderPath, SelfAttentionEncoderPath, SelfAttentionOptions
from .pooling import POOLINGS, Pooled, pool
from .reading_comprehension import GatedMatching, Matched, Pointed, PointerNetwork, SelfMatching, best_spans
from .recurrent.contract import RecurrentNetwork, RecurrentOutput, RecurrentState
from .recurrent.conventional import ConventionalRNN
from .recurrent.dilated import DilatedRNN, DilatedRNNStack
from .recurrent.hierarchical_multiscale import HierarchicalMultiscaleRNN
from .recurrent.higher_order import HigherOrderRNN
from .recurrent.mean_recurrent_length import mean_recurrent_length
from .recurrent.multi_channel import MultiChannelRNN
from .recurrent.recurrently_controlled import RecurrentlyControlledRNN
from .recurrent.registry import RECURRENT_KINDS, LayerSizes, RecurrentKind, option, register_recurrent_kind
from .recurrent.stack import RecurrentStack, StackOutput, reorder_states
from .regularization import LockedDropout, embedding_dropout
from .word_vectors import CharacterEncoder, ContextEncoder

__all__ = [
    "PATH_KINDS",
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
    "DecoderPath",
    "DecomposableAttention",
    "DilatedRNN",
    "DilatedRNNStack",
    "EncoderOutput",
    "EncoderPath",
    "Fusion",
    "GatedConvolution",
    "GatedMatching",
    "HierarchicalMultiscaleRNN",
    "HigherOrderRNN",
    "Highway",
    "LayerSizes",
    "Linear",
    "LockedDropout",
    "Matched",
    "Memory",
    "MultiChannelRNN",
    "MultiHeadAttention",
    "PathKind",
    "PathOutput",
    "PathSizes",
    "Pointed",
    "PointerNetwork",
    "Pooled",
    "RecurrentDecoderPath",
    "RecurrentEncoderPath",
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
    "SelfMatching",
    "StackOutput",
    "best_spans",
    "embedding_dropout",
    "forget_scan",
    "mean_recurrent_length",
    "option",
    "pool",
    "register_path",
    "register_recurrent_kind",
    "reorder_states",
]
