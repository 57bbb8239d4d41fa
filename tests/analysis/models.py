"""Models with known attention, and small models of every kind, for the tests of analyses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from fairseq.models import FairseqEncoder, FairseqEncoderDecoderModel, FairseqIncrementalDecoder
from torch import Tensor

from fairseq_plugins.corpora.pairs import PairsPreparation
from fairseq_plugins.decoding.prepared_data import PreparedData
from fairseq_plugins.decoding.translation import Sentence, TranslationModel

from ..models.tasks import build_architecture, make_task

PAD = 1


class GivenEncoder(FairseqEncoder):
    """Hands its tokens over."""

    def forward(self, src_tokens: Tensor, src_lengths: Tensor) -> dict[str, Tensor]:
        return {"tokens": src_tokens}


class GivenDecoder(FairseqIncrementalDecoder):
    """Attention of which everything is known: to the same position as its own, or to all real tokens alike."""

    def __init__(self, dictionary: Any, kind: str) -> None:
        super().__init__(dictionary)
        self.kind = kind

    def forward(
        self, prev_output_tokens: Tensor, encoder_out: dict[str, Tensor]
    ) -> tuple[None, dict[str, list[Tensor]]]:
        tokens = encoder_out["tokens"]
        size = prev_output_tokens.size(1), tokens.size(1)
        if self.kind == "identity":
            weights = torch.eye(*size, dtype=torch.float64).expand(len(tokens), *size)
        else:
            real = tokens.ne(PAD).double()
            weights = (real / real.sum(1, keepdim=True)).unsqueeze(1).expand(len(tokens), *size)
        # What is at padding must not matter.
        weights = weights.masked_fill(tokens.eq(PAD).unsqueeze(1), 7.0)
        return None, {"attn": [weights.masked_fill(prev_output_tokens.eq(PAD).unsqueeze(2), 9.0)]}

    def max_positions(self) -> int:
        return 1024


def model_with_attention(kind: str) -> TranslationModel:
    """A model whose attention is the ``identity`` or ``uniform``."""
    task = make_task(40)
    dictionary = task.source_dictionary
    encoder = GivenEncoder(dictionary)
    encoder.max_positions = lambda: 1024
    return trained(FairseqEncoderDecoderModel(encoder, GivenDecoder(dictionary, kind)), task, kind)


def model_of_architecture(name: str) -> TranslationModel:
    """A small model with random parameters, in float64."""
    torch.manual_seed(3)
    task = make_task(40)
    return trained(build_architecture(name, task).double(), task, name)


def trained(model: FairseqEncoderDecoderModel, task: Any, name: str) -> TranslationModel:
    """What :meth:`TranslationModel.load` would make of a checkpoint; words are w0, w1, …."""
    data = PreparedData(Path("data"), PairsPreparation("de", "en", bpe="none"))
    device = torch.device("cpu")
    return TranslationModel([Path("checkpoint.pt")], [name], [model.eval()], None, task, data, device)


def pair(model: TranslationModel, source: int, target: int, first: int = 0) -> tuple[Sentence, Sentence]:
    """A pair of sentences of so many words."""
    return tuple(
        make(" ".join(f"w{(first + i) % 36}" for i in range(length)))
        for make, length in ((model.source, source), (model.target, target))
    )
