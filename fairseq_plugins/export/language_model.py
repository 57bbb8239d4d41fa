"""The graph of a recurrent language model."""

from __future__ import annotations

from typing import Any

import onnx
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..errors import InputError
from ..models.recurrent_language_model import RecurrentLanguageModel
from .contract import flat, nested
from .graphs import Input, check_form, exported_graph
from .recurrences import with_exported_layers


class ExportedLanguageModel(nn.Module):
    """``recurrent_lm``: tokens and the states that they go on from -> what comes next, and the states after them."""

    model: Any

    def __init__(self, model: RecurrentLanguageModel) -> None:
        super().__init__()
        self.model = with_exported_layers(model)
        weight, bias = self.model.decoder.output_parameters()
        self.weight, self.bias = nn.Parameter(weight.detach()), nn.Parameter(bias.detach())
        self.names = list(flat(self.starts()))

    def starts(self) -> list[tuple[Tensor, ...]]:
        """The states of one text before its first token."""
        return [layer.initial_state(1) for layer in self.model.decoder.stack.layers]

    def forward(self, tokens: Tensor, *states: Tensor) -> tuple[Tensor, ...]:
        """tokens (B, T) and states (B, …) -> log-probabilities (B, T, V) of the token after each, and the states."""
        decoder = self.model.decoder
        before = nested(dict(zip(self.names, states, strict=True)), len(decoder.stack.layers))
        result = decoder.stack(decoder._embed(tokens.t()), None, before)
        log_probabilities = F.log_softmax(F.linear(result.output.transpose(0, 1), self.weight, self.bias), dim=-1)
        return (log_probabilities, *flat(result.states).values())


def language_model_graph(model: RecurrentLanguageModel, types: int) -> onnx.ModelProto:
    """The graph of a language model, checked.

    It reads ``tokens`` (B, T) and the states ``state.…`` (B, …), which are zero before the first token; and gives
    ``log_probabilities`` (B, T, V) and ``next.…``.

    Args:
        model: in evaluation mode.
        types: of its dictionary.

    Raises:
        InputError: it is no model of ours, or its states do not start from zeros.
        GraphError: the graph depends on the sizes of its example, or does not compute what the model computes.
    """
    if type(model) is not RecurrentLanguageModel:  # one that is derived from it may compute anything
        raise InputError(f"a language model of the kind {type(model).__name__} has no exported form")
    exported = ExportedLanguageModel(model).eval()
    starts = flat(exported.starts())
    if any(bool(start.any()) for start in starts.values()):
        raise InputError("the layers of this language model do not start from zeros, so that it cannot be exported")
    states = [Input(f"state.{name}", ("B", *start.shape[1:]), start.dtype) for name, start in starts.items()]

    def example(sizes: Any) -> list[Tensor]:
        draw = torch.Generator().manual_seed(1)
        tokens = torch.randint(4, types, (sizes["B"], sizes["T"]), generator=draw)
        return [tokens, *(0.5 * state.example(sizes, draw) for state in states)]

    tokens, *_ = example({"B": 1, "T": 6})
    with torch.no_grad():
        log_probabilities, *_ = exported(tokens, *starts.values())
        check_form(log_probabilities, model.get_normalized_probs(model(tokens), log_probs=True))
    outputs = ["log_probabilities", *(f"next.{name}" for name in starts)]
    return exported_graph(exported, [Input("tokens", ("B", "T"), torch.int64), *states], outputs, example)
