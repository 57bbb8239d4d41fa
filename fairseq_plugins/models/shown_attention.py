"""What attention a model can show: it is asked of the model, so that nobody has to know which model it is.

A model of ours has the methods of the protocols below. fairseq's own models hand the attention of their decoder out.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

import torch
from fairseq.models import BaseFairseqModel
from torch import Tensor

_DIRECTIONS = {"layers": "forwards", "backward_layers": "backwards"}
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


class LayerDetail(NamedTuple):
    """What happened inside a layer of an encoder.

    Attributes:
        layer: from 1, the lowest
        direction: ``forwards`` or ``backwards``
        values: (B, S, ...)
    """

    layer: int
    direction: str
    values: Tensor


@runtime_checkable
class ShowsAttention(Protocol):
    """A model that has several flows of attention, or gates."""

    def show_attention(self, src_tokens: Tensor, src_lengths: Tensor, prev_output_tokens: Tensor) -> ShownAttention:
        """Where the decoder looks that reads ``prev_output_tokens`` (B, T) beside ``src_tokens`` (B, S)."""


@runtime_checkable
class ShowsLayerDetails(Protocol):
    """A model whose encoder has recurrent layers."""

    def show_layer_details(self, src_tokens: Tensor) -> dict[str, Tensor]:
        """What happens inside the layers that read ``src_tokens`` (B, S): ``StackOutput.details``, each (B, S, ...), in
        the order of the tokens, zero at padding."""


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


def layer_details_of(model: BaseFairseqModel, src_tokens: Tensor, detail: str) -> list[LayerDetail]:
    """One detail of each of the encoder's layers, as they read ``src_tokens`` (B, S).

    Args:
        model: any.
        src_tokens: padded on either side.
        detail: ``channel_attention``, ``boundaries``, …

    Returns:
        the lowest layer first, forwards and backwards in turn; empty where the layers have no such detail.
    """
    details = model.show_layer_details(src_tokens) if isinstance(model, ShowsLayerDetails) else {}
    layer_details = []
    for name, value in details.items():
        networks, layer, part = name.split(".", 2)
        if part == detail:
            layer_details.append(LayerDetail(int(layer) + 1, _DIRECTIONS[networks], value))
    return layer_details
