"""The graph of a classifier of texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx
import torch
import torch.nn.functional as F
from fairseq.models import BaseFairseqModel
from torch import Tensor, nn

from ..errors import InputError
from ..kernels.padding import padding_mask
from ..models.sequence_classifier import SequenceClassifier
from ..modules.pooling import POOLINGS
from .graphs import Input, check_form, exported_graph
from .recurrences import with_exported_layers


class ExportedClassifier(nn.Module):
    """``sequence_classifier``: tokens -> log-probabilities of the classes."""

    model: Any

    def __init__(self, model: SequenceClassifier) -> None:
        super().__init__()
        self.model = with_exported_layers(model)

    def forward(self, tokens: Tensor, lengths: Tensor) -> tuple[Tensor]:
        """tokens (B, T), padded on the right, and how many each text has (B,), at least one -> (B, classes)."""
        encoder = self.model.encoder
        x = encoder.stack(encoder.projection(encoder.words(tokens, lengths)), lengths).output
        padding = padding_mask(lengths, x.size(0))
        pooled = torch.cat([POOLINGS[name](x, padding)[0] for name in self.model.poolings], dim=-1)
        return (F.log_softmax(self.model.output(pooled), dim=-1),)


def classifier_graph(model: BaseFairseqModel, architecture: str, padding: int, types: int) -> onnx.ModelProto:
    """The graph of a classifier, checked: ``tokens`` (B, T) and ``lengths`` (B,) -> ``log_probabilities`` (B, classes).

    Args:
        model: in evaluation mode.
        architecture: its ``--arch``.
        padding: its token.
        types: of its dictionary.

    Raises:
        InputError: the model reads more than one text, or more of it than words.
        GraphError: the graph depends on the sizes of its example, or does not compute what the model computes.
    """
    if type(model) is not SequenceClassifier:  # one that is derived from it may compute anything
        raise InputError(f"'{architecture}' has no exported form: export a classifier of single texts")
    words = model.encoder.words
    if words.characters is not None or words.context is not None or words.tags is not None:
        raise InputError("a classifier that reads characters, context vectors or tags beside words cannot be exported")

    def example(sizes: Mapping[str, int]) -> list[Tensor]:
        draw = torch.Generator().manual_seed(1)
        tokens = torch.randint(4, types, (sizes["B"], sizes["T"]), generator=draw)
        lengths = torch.randint(1, sizes["T"] + 1, (sizes["B"],), generator=draw)
        return [tokens.masked_fill(torch.arange(sizes["T"]) >= lengths[:, None], padding), lengths]

    exported = ExportedClassifier(model).eval()
    tokens, lengths = example({"B": 3, "T": 5})
    with torch.no_grad():
        expected = model.get_normalized_probs(model(tokens, lengths), log_probs=True)
        check_form(exported(tokens, lengths)[0], expected)
    inputs = [Input("tokens", ("B", "T"), torch.int64), Input("lengths", ("B",), torch.int64)]
    return exported_graph(exported, inputs, ["log_probabilities"], example)
