"""``sequence_classifier``: the class of a text by any recurrent layer.

RCRN (Tay, Luu and Hui 2018), Section 4.2, "Classification Model": the hidden states' maximum, mean and minimum over the
text, a dense layer of 200 with ReLU, then the output layer. What the paper leaves open: dropout, and how learned word
vectors start (``--embed-init-std``).
"""

# No postponed evaluation of annotations here: fairseq reads the types of the configuration's fields.
from dataclasses import dataclass, field

from fairseq.models import BaseFairseqModel, register_model
from fairseq.tasks import FairseqTask
from torch import Tensor, nn

from ..errors import InputError, nearest_or_all
from ..modules.dropout import Dropout
from ..modules.pooling import POOLINGS, Pooled, pool
from .options import check_sizes, complete
from .text_encoder import EncodedTexts, TextEncoder, TextEncoderConfig


@dataclass
class SequenceClassifierConfig(TextEncoderConfig):
    """The options of ``sequence_classifier``."""

    pooling: str = field(
        default="max,mean,min", metadata={"help": f"what is read of the outputs, of {', '.join(POOLINGS)}"}
    )
    output_hidden_size: int = field(default=200, metadata={"help": "size of the dense layer below the output layer"})


@register_model("sequence_classifier", dataclass=SequenceClassifierConfig)
class SequenceClassifier(BaseFairseqModel):
    """See the head of this file."""

    data_kind = "labelled_texts"

    def __init__(self, encoder: TextEncoder, poolings: list[str], hidden_size: int, dropout: float, classes: int):
        super().__init__()
        self.encoder = encoder
        self.poolings = poolings
        self.output = nn.Sequential(
            Dropout(dropout),
            nn.Linear(len(poolings) * encoder.output_size, hidden_size),
            nn.ReLU(),
            Dropout(dropout),
            nn.Linear(hidden_size, classes),
        )

    @classmethod
    def build_model(cls, cfg: SequenceClassifierConfig, task: FairseqTask) -> "SequenceClassifier":
        """Raises InputError if the options contradict each other or the task."""
        complete(cfg, SequenceClassifierConfig)
        check_sizes(cfg, ("output_hidden_size",))
        check_task(task, "sequence_classifier", inputs=1)
        encoder = TextEncoder(cfg, task)
        return cls(encoder, poolings(cfg.pooling), cfg.output_hidden_size, cfg.dropout, len(task.labels))

    def forward(self, src_tokens: Tensor, src_lengths: Tensor, src_tags: Tensor | None = None) -> Tensor:
        """src_tokens (B, T), right-padded, src_lengths (B,) -> logits (B, classes)."""
        [text] = self.pooled(src_tokens, src_lengths, src_tags)
        logits: Tensor = self.output(text.output)
        return logits

    def pooled(self, src_tokens: Tensor, src_lengths: Tensor, src_tags: Tensor | None = None) -> list[Pooled]:
        """What the dense layer reads of the one text, and which tokens it was picked from."""
        texts: EncodedTexts = self.encoder(src_tokens, src_lengths, src_tags)
        return [pool(texts.output, texts.lengths, self.poolings)]


def poolings(names: str) -> list[str]:
    """The poolings of an option.

    Raises:
        InputError: there is no such pooling, or one is there twice.
    """
    poolings = names.split(",")
    if len(set(poolings)) < len(poolings):
        raise InputError(f"--pooling {names}: a pooling is there twice")
    for name in poolings:
        if name not in POOLINGS:
            raise InputError(f"--pooling {names}: there is no '{name}'{nearest_or_all(name, POOLINGS)}")
    return poolings


def check_task(task: FairseqTask, model: str, inputs: int, ranks: bool = False) -> None:
    """Raises InputError if the task's data has not the texts that a model reads."""
    count, has_candidates = len(getattr(task, "inputs", ())), getattr(task, "has_candidates", False)
    kind = "ranking" if has_candidates else {1: "classes", 2: "pairs"}.get(count)
    remedy = "; give other data" if kind is None else "; take --arch {}, as configs/own_labels/{}.yaml has it"
    remedy = remedy.format(*_FITTING.get(kind or "", ()))
    if count != inputs:
        texts = f"{inputs} text{'s' if inputs > 1 else ''}"
        raise InputError(f"{model} reads {texts} an example; the data has {count}{remedy}")
    if ranks != has_candidates:
        wanted = "questions with candidates" if ranks else "pairs of texts with classes"
        raise InputError(f"{model} reads {wanted}, and the data has none{remedy}")


_FITTING = {
    "classes": ("rcrn_classifier", "rcrn"),
    "pairs": ("rcrn_entailment", "rcrn_pairs"),
    "ranking": ("rcrn_ranking", "rcrn_ranking"),
}
"""What the examples of data are → an architecture that reads them, and a configuration that has it."""
