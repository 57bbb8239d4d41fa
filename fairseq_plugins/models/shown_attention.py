"""What attention a model can show: it is asked of the model, so that nobody has to know which model it is.

A model of ours has the methods of the protocols below. fairseq's own models hand the attention of their decoder out.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

import torch
from fairseq.models import BaseFairseqModel
from torch import Tensor

_INPUTS = ("src_tokens", "src_lengths", "prev_output_tokens")


class ShownAttention(NamedTuple):
    """Where a decoder looks that reads given tokens.

    Attributes:
        flows: weights (B, T, S) of target tokens over source tokens, by the name of what looks where; ``attention``
            where there is one
        gates: (B, T, layers) shares between 0 and 1, by the name of what is gated; empty where there are none
    """

    flows: dict[str, Tensor]
    gates: dict[str, Tensor]


@runtime_checkable
class ShowsAttention(Protocol):
    """A model that has several flows of attention, or gates."""

    def show_attention(self, src_tokens: Tensor, src_lengths: Tensor, prev_output_tokens: Tensor) -> ShownAttention:
        """Where the decoder looks that reads ``prev_output_tokens`` (B, T) beside ``src_tokens`` (B, S)."""


@runtime_checkable
class ShowsChannelAttention(Protocol):
    """A model whose recurrent layers may have channels."""

    def show_channel_attention(self, src_tokens: Tensor) -> list[Tensor] | None:
        """The weights (B, S, C) over channels for each layer, forwards and backwards in turn; None without channels."""


def attention_of(model: BaseFairseqModel, net_input: dict[str, Tensor]) -> ShownAttention | None:
    """Where a model looks that reads a batch; None where it does not say.

    Args:
        model: with an encoder and a decoder
        net_input: ``src_tokens`` (B, S), ``src_lengths`` (B,), ``prev_output_tokens`` (B, T)
    """
    if isinstance(model, ShowsAttention):
        return model.show_attention(**{name: net_input[name] for name in _INPUTS})
    encoded = model.encoder(net_input["src_tokens"], src_lengths=net_input["src_lengths"])
    _, extra = model.decoder(net_input["prev_output_tokens"], encoder_out=encoded)
    # fairseq's decoders: a dictionary with a list (transformer), or the weights themselves (lstm, fconv).
    weights = extra["attn"][0] if isinstance(extra, dict) else extra
    return ShownAttention({"attention": weights}, {}) if torch.is_tensor(weights) else None


def channel_attention_of(model: BaseFairseqModel, src_tokens: Tensor) -> list[Tensor] | None:
    """The weights over channels that a model's layers gave to ``src_tokens`` (B, S); None where it has no channels."""
    return model.show_channel_attention(src_tokens) if isinstance(model, ShowsChannelAttention) else None
