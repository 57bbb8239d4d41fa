"""``reading_comprehension``: R-NET (Wang et al. 2017), whose encoder may be any recurrent layer.

RCRN (Tay, Luu and Hui 2018), Section 4.2, "Reading Comprehension Model": R-NET encodes passage and question by three
bidirectional GRU layers, each by its own; one RCRN layer of GRU cells takes their place, of 75 as they are. What RCRN's
paper leaves open is R-NET's: characters by a bidirectional GRU, given word vectors, attention of 75, dropout between
layers.
"""

# No postponed evaluation of annotations here: fairseq reads the types of the configuration's fields.
from dataclasses import dataclass, field

from fairseq.models import BaseFairseqModel, register_model
from fairseq.tasks import FairseqTask
from torch import Tensor

from ..errors import InputError
from ..modules import GatedMatching, Matched, Pointed, PointerNetwork, SelfMatching
from ..modules.dropout import Dropout
from .options import check_sizes, complete
from .text_encoder import EncodedTexts, TextEncoder, TextEncoderConfig


@dataclass
class ReadingComprehensionModelConfig(TextEncoderConfig):
    """The options of ``reading_comprehension``; the defaults are R-NET's."""

    hidden_size: int = field(default=75, metadata={"help": "hidden size of each direction of all layers"})
    attention_size: int = field(default=75, metadata={"help": "size of the hidden layer of every attention"})
    character_hidden_size: int = field(
        default=75, metadata={"help": "size of each direction of a GRU over the characters of words; 0 for none"}
    )
    shared_encoder: bool = field(
        default=False, metadata={"help": "encode questions by the layers of passages: words meet their like sooner"}
    )
    no_self_matching: bool = field(
        default=False, metadata={"help": "leave out the passage's attention to itself: point from what matching gives"}
    )
    dropout: float = field(
        default=0.2, metadata={"help": "probability of dropout on word vectors, and between all layers"}
    )


@register_model("reading_comprehension", dataclass=ReadingComprehensionModelConfig)
class ReadingComprehensionModel(BaseFairseqModel):
    """See the head of this file."""

    data_kind = "reading_comprehension"

    def __init__(
        self,
        encoder: TextEncoder,
        question_encoder: TextEncoder,
        hidden_size: int,
        attention_size: int,
        dropout: float,
        has_self_matching: bool,
    ) -> None:
        super().__init__()
        size = encoder.output_size
        self.encoder, self.question_encoder = encoder, question_encoder
        self.dropout = Dropout(dropout)
        self.matching = GatedMatching(size, size, hidden_size, attention_size)
        matched = self.matching.output_size
        self.self_matching = SelfMatching(matched, hidden_size, attention_size) if has_self_matching else None
        self.pointer = PointerNetwork(matched, size, attention_size)

    @classmethod
    def build_model(cls, cfg: ReadingComprehensionModelConfig, task: FairseqTask) -> "ReadingComprehensionModel":
        """Raises InputError if the options contradict each other or the task."""
        complete(cfg, ReadingComprehensionModelConfig)
        check_sizes(cfg, ("attention_size",))
        if getattr(task, "data_kind", None) != cls.data_kind:
            raise InputError("reading_comprehension needs --task reading_comprehension")
        encoder = TextEncoder(cfg, task)
        question_encoder = encoder if cfg.shared_encoder else TextEncoder(cfg, task, encoder.words)
        sizes = cfg.hidden_size, cfg.attention_size
        return cls(encoder, question_encoder, *sizes, cfg.dropout, not cfg.no_self_matching)

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        question_tokens: Tensor,
        question_lengths: Tensor,
        passage: Tensor,
    ) -> Pointed:
        """Points at answers.

        Args:
            src_tokens: (P, T) passages, right-padded, of src_lengths (P,).
            question_tokens: (B, J) questions, right-padded, of question_lengths (B,).
            passage: (B,) which row of the passages each question is on.

        Returns:
            the logarithms of the probabilities of first and last words, each (B, T).
        """
        matched, questions = self.matched(src_tokens, src_lengths, question_tokens, question_lengths, passage)
        lengths, output = src_lengths[passage], self.dropout(matched.output)
        if self.self_matching is not None:
            output = self.dropout(self.self_matching(output, lengths))
        pointed: Pointed = self.pointer(output, lengths, questions.output, questions.lengths)
        return pointed

    def matched(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        question_tokens: Tensor,
        question_lengths: Tensor,
        passage: Tensor,
    ) -> tuple[Matched, EncodedTexts]:
        """The passages as they are read for their questions, and the encoded questions; see :meth:`forward`."""
        passages: EncodedTexts = self.encoder(src_tokens, src_lengths)
        questions: EncodedTexts = self.question_encoder(question_tokens, question_lengths)
        questions = questions._replace(output=self.dropout(questions.output))
        # Each question drops other features of its passage.
        output = self.dropout(passages.output[:, passage])
        matched: Matched = self.matching(output, src_lengths[passage], *questions)
        return matched, questions
