"""``sequence_pair_classifier``: does one text entail the other? Both are encoded apart, by any recurrent layer.

RCRN (Tay, Luu and Hui 2018), Section 4.2, "Entailment Model": a projection and two highway layers of 300 below the
recurrent layer; of each text the maximum and the mean of the hidden states; [s1; s2; s1 * s2; s1 - s2] through two
highway layers to the output layer. What the paper leaves open: a projection brings both highway networks to their
size.

Section 4.3 adds the attention of Parikh et al. (2016) between the two (``--cross-sentence-attention``), and says no
more of it: here the poolings are of v_1 and v_2 of :class:`DecomposableAttention`, of the projections' size.
"""

# No postponed evaluation of annotations here: fairseq reads the types of the configuration's fields.
from dataclasses import dataclass, field
from typing import Optional

import torch
from fairseq.models import BaseFairseqModel, register_model
from fairseq.tasks import FairseqTask
from torch import Tensor, nn

from ..modules import DecomposableAttention, Highway
from ..modules.dropout import Dropout
from ..modules.pooling import POOLINGS, Pooled, pool
from .options import check_sizes, complete
from .sequence_classifier import check_task, poolings
from .text_encoder import EncodedTexts, TextEncoder, TextEncoderConfig


@dataclass
class SequencePairClassifierConfig(TextEncoderConfig):
    """The options of ``sequence_pair_classifier``."""

    projection_size: int = field(
        default=300,
        metadata={"help": "size of the projections and highway layers on both sides of the recurrent ones"},
    )
    cross_sentence_attention: bool = field(
        default=False, metadata={"help": "compare each word with what the other text holds for it, before pooling"}
    )
    pooling: str = field(
        default="max,mean", metadata={"help": f"what is read of the outputs, of {', '.join(POOLINGS)}"}
    )


@register_model("sequence_pair_classifier", dataclass=SequencePairClassifierConfig)
class SequencePairClassifier(BaseFairseqModel):
    """See the head of this file."""

    data_kind = "labelled_texts"

    def __init__(
        self,
        encoder: TextEncoder,
        poolings: list[str],
        size: int,
        highway_layers: int,
        dropout: float,
        classes: int,
        has_attention: bool = False,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.poolings = poolings
        self.attention = DecomposableAttention(encoder.output_size, size, dropout) if has_attention else None
        self.output = nn.Sequential(
            Dropout(dropout),
            nn.Linear(4 * len(poolings) * (size if has_attention else encoder.output_size), size),
            Highway(size, highway_layers),
            Dropout(dropout),
            nn.Linear(size, classes),
        )

    @classmethod
    def build_model(cls, cfg: SequencePairClassifierConfig, task: FairseqTask) -> "SequencePairClassifier":
        """Raises InputError if the options contradict each other or the task."""
        complete(cfg, SequencePairClassifierConfig)
        check_sizes(cfg, ("projection_size", "highway_layers"))
        check_task(task, "sequence_pair_classifier", inputs=2)
        encoder = TextEncoder(cfg, task)
        return cls(
            encoder,
            poolings(cfg.pooling),
            cfg.projection_size,
            cfg.highway_layers,
            cfg.dropout,
            len(task.labels),
            cfg.cross_sentence_attention,
        )

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        other_tokens: Tensor,
        other_lengths: Tensor,
        src_tags: Optional[Tensor] = None,  # noqa: UP045
        other_tags: Optional[Tensor] = None,  # noqa: UP045
    ) -> Tensor:
        """Premises src_tokens (B, T) and hypotheses other_tokens (B, S), right-padded -> logits (B, classes)."""
        premise, hypothesis = self.pooled(src_tokens, src_lengths, other_tokens, other_lengths, src_tags, other_tags)
        s1, s2 = premise.output, hypothesis.output
        logits: Tensor = self.output(torch.cat([s1, s2, s1 * s2, s1 - s2], dim=-1))
        return logits

    def pooled(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        other_tokens: Tensor,
        other_lengths: Tensor,
        src_tags: Optional[Tensor] = None,  # noqa: UP045
        other_tags: Optional[Tensor] = None,  # noqa: UP045
    ) -> list[Pooled]:
        """The vectors of both texts, and which tokens they were picked from."""
        premise: EncodedTexts = self.encoder(src_tokens, src_lengths, src_tags)
        hypothesis: EncodedTexts = self.encoder(other_tokens, other_lengths, other_tags)
        lengths = premise.lengths, hypothesis.lengths
        outputs = premise.output, hypothesis.output
        if self.attention is not None:
            outputs = self.attention(outputs[0], lengths[0], outputs[1], lengths[1])
        return [pool(*text, self.poolings) for text in zip(outputs, lengths, strict=True)]
