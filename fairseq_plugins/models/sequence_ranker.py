"""``sequence_ranker``: which candidate answers a question? Their cosine, of encodings by any recurrent layer.

RCRN (Tay, Luu and Hui 2018), Section 4.2, "Ranking Model", after the attentive pooling networks of dos Santos et al.
(2016): question and candidate go through the same encoder; they become vectors by their maximum over time or, with
``--attentive-pooling``, by weights that each draws from the other.
"""

# No postponed evaluation of annotations here: fairseq reads the types of the configuration's fields.
from dataclasses import dataclass, field

import torch.nn.functional as F
from fairseq.models import BaseFairseqModel, register_model
from fairseq.tasks import FairseqTask
from torch import Tensor

from ..modules import AttentivePooling
from ..modules.pooling import pool
from .options import complete
from .sequence_classifier import check_task
from .text_encoder import EncodedTexts, TextEncoder, TextEncoderConfig


@dataclass
class SequenceRankerConfig(TextEncoderConfig):
    """The options of ``sequence_ranker``."""

    attentive_pooling: bool = field(
        default=False, metadata={"help": "weigh the outputs of question and candidate by each other"}
    )


@register_model("sequence_ranker", dataclass=SequenceRankerConfig)
class SequenceRanker(BaseFairseqModel):
    """See the head of this file."""

    data_kind = "labelled_texts"

    def __init__(self, encoder: TextEncoder, is_attentive: bool) -> None:
        super().__init__()
        self.encoder = encoder
        self.attention = AttentivePooling(encoder.output_size) if is_attentive else None

    @classmethod
    def build_model(cls, cfg: SequenceRankerConfig, task: FairseqTask) -> "SequenceRanker":
        """Raises InputError if the options contradict each other or the task."""
        complete(cfg, SequenceRankerConfig)
        check_task(task, "sequence_ranker", inputs=2, ranks=True)
        return cls(TextEncoder(cfg, task), cfg.attentive_pooling)

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        candidate_tokens: Tensor,
        candidate_lengths: Tensor,
        question: Tensor,
    ) -> Tensor:
        """Scores candidates.

        Args:
            src_tokens: (B, T) questions, right-padded, of src_lengths (B,).
            candidate_tokens: (N, S) candidates, right-padded, of candidate_lengths (N,).
            question: (N,) which row of the questions each candidate belongs to.

        Returns:
            (N,) cosines.
        """
        questions: EncodedTexts = self.encoder(src_tokens, src_lengths)
        candidates: EncodedTexts = self.encoder(candidate_tokens, candidate_lengths)
        if self.attention is None:
            q = pool(questions.output, questions.lengths, ["max"]).output[question]
            a = pool(candidates.output, candidates.lengths, ["max"]).output
        else:
            q, a = self.attention(questions.output[:, question], questions.lengths[question], *candidates)
        return F.cosine_similarity(q, a, dim=-1)
