"""``--task reading_comprehension``: where in a passage the answer to a question is.

The data are folders ``passage`` and ``question`` as fairseq-preprocess writes them, and ``span/SPLIT.txt``: of each
question its passage and the answer's first and last word, or -1 and -1 where the passage does not hold it.

What is predicted of each question is the answer's first and last word, and the natural logarithm of its probability.
"""

# No postponed evaluation of annotations here: fairseq reads the types of the configuration's fields.
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

import numpy as np
import torch
from fairseq.criterions import FairseqCriterion
from fairseq.data import Dictionary, FairseqDataset, ListDataset, StripTokenDataset, data_utils
from fairseq.dataclass import FairseqDataclass
from fairseq.models import BaseFairseqModel, FairseqEncoderDecoderModel, FairseqLanguageModel
from fairseq.tasks import FairseqTask, register_task
from omegaconf import II, MISSING

from ..errors import InputError
from ..files import read_lines
from ..modules import best_spans
from .epoch_order import EpochOrderedDataset
from .predictions import Prediction, check_criterion


@dataclass
class ReadingComprehensionConfig(FairseqDataclass):
    """The options of ``reading_comprehension``."""

    data: str = field(default=MISSING, metadata={"help": "folder with passage/, question/ and span/"})
    max_answer: int = field(default=30, metadata={"help": "words of the longest answer that is given"})
    seed: int = II("common.seed")


class ReadingDataset(FairseqDataset):
    """Questions, each with its passage.

    Args:
        passages: the words of each passage.
        questions: the words of each question.
        owners: (N,) the passage of each question.
        spans: (N, 2) first and last word of the answers; None where they are not known.
        pad: the padding's number.
    """

    def __init__(
        self,
        passages: FairseqDataset,
        questions: FairseqDataset,
        owners: np.ndarray,
        spans: Optional[np.ndarray],  # noqa: UP045
        pad: int,
    ) -> None:
        super().__init__()
        self.passages, self.questions, self.owners, self.spans, self.pad = passages, questions, owners, spans, pad
        self.sizes = np.asarray(passages.sizes)[owners] + np.asarray(questions.sizes)

    def __len__(self) -> int:
        return len(self.owners)

    def __getitem__(self, index: int) -> int:
        """A question's number: its texts are put together in batches."""
        return int(index)

    def num_tokens(self, index: int) -> int:
        return int(self.sizes[index])

    def size(self, index: int) -> int:
        return int(self.sizes[index])

    def collater(self, samples: list[int]) -> dict[str, Any]:
        """A batch; a passage is in it once, however many of its questions are."""
        if not samples:
            return {}
        numbers = np.array(samples)
        owners, passage = np.unique(self.owners[numbers], return_inverse=True)
        passages = [self.passages[int(owner)] for owner in owners]
        questions = [self.questions[number] for number in samples]
        batch = {
            "id": torch.from_numpy(numbers),
            "net_input": {
                "src_tokens": data_utils.collate_tokens(passages, self.pad),
                "src_lengths": torch.tensor([len(text) for text in passages]),
                "question_tokens": data_utils.collate_tokens(questions, self.pad),
                "question_lengths": torch.tensor([len(text) for text in questions]),
                "passage": torch.from_numpy(passage.reshape(-1)),
            },
            "nsentences": len(samples),
            "ntokens": int(self.sizes[numbers].sum()),
        }
        if self.spans is not None:
            batch["target"] = torch.from_numpy(self.spans[numbers])
            batch["found"] = int((self.spans[numbers, 0] >= 0).sum())
        return batch


@register_task("reading_comprehension", dataclass=ReadingComprehensionConfig)
class ReadingComprehensionTask(FairseqTask):
    """See the head of this file."""

    cfg: ReadingComprehensionConfig
    data_kind = "reading_comprehension"
    tag_dictionary = None
    """Words have no tags here."""

    def __init__(self, cfg: ReadingComprehensionConfig, dictionary: Dictionary) -> None:
        super().__init__(cfg)
        self.dictionary = dictionary

    @classmethod
    def setup_task(cls, cfg: ReadingComprehensionConfig, **unused: Any) -> "ReadingComprehensionTask":
        """Raises InputError if there is no prepared data."""
        if cfg.max_answer < 1:
            raise InputError(f"--max-answer must be at least 1, not {cfg.max_answer}")
        path = Path(cfg.data) / "passage" / "dict.txt"
        if not path.is_file():
            raise InputError(
                f"{path}: no such file; give the bin/ of passages with questions ('fairseq-plugins prepare')"
            )
        return cls(cfg, Dictionary.load(str(path)))

    def build_model(self, cfg: FairseqDataclass, from_checkpoint: bool = False) -> BaseFairseqModel:
        """Raises InputError if the model finds no answers."""
        model = super().build_model(cfg, from_checkpoint)
        is_writer = isinstance(model, (FairseqEncoderDecoderModel, FairseqLanguageModel))
        if is_writer or getattr(model, "data_kind", self.data_kind) != self.data_kind:
            raise InputError(
                f"{self.cfg.data}: passages with questions, but {type(model).__name__} finds no answers; give it other "
                f"data, or --arch a model that does, such as rnet"
            )
        return model

    def build_criterion(self, cfg: Any, from_checkpoint: bool = False) -> FairseqCriterion:
        """Raises InputError if the criterion is not one of places."""
        criterion = super().build_criterion(cfg, from_checkpoint)
        check_criterion(criterion, cfg, "reading_comprehension", "answer_span", ["of_places"])
        return criterion

    @property
    def source_dictionary(self) -> Dictionary:
        return self.dictionary

    @property
    def target_dictionary(self) -> Dictionary:
        return self.dictionary

    def max_positions(self) -> None:
        """Texts may have any length."""

    def load_dataset(self, split: str, combine: bool = False, **unused: Any) -> None:
        """Raises InputError if there is no such set, or what lies there does not fit together."""
        path = Path(self.cfg.data) / "span" / f"{split}.txt"
        rows = np.array([line.split() for line in read_lines(path)], dtype=np.int64).reshape(-1, 3)
        passages, questions = self._texts("passage", split), self._texts("question", split)
        if len(rows) != len(questions) or rows[:, 0].max(initial=-1) >= len(passages):
            raise InputError(
                f"{path}: {len(rows):,} answers for {len(questions):,} questions; delete the folder and prepare the "
                f"data again"
            )
        self.datasets[split] = self._examples(passages, questions, rows[:, 0], rows[:, 1:], split == "train")

    def dataset_of_texts(self, passages: Sequence[str], questions: Sequence[tuple[int, str]]) -> FairseqDataset:
        """A data set of new texts.

        Args:
            passages: their words
            questions: of each the number of its passage, and its words
        """
        owners = np.array([owner for owner, _ in questions], dtype=np.int64)
        return self._examples(self._encoded(passages), self._encoded([text for _, text in questions]), owners)

    def predictions(
        self, sample: dict[str, Any], model: BaseFairseqModel, criterion: FairseqCriterion
    ) -> list[Prediction]:
        """The first and the last word of each answer, ``12 14``, and the logarithm of its probability."""
        spans, scores = best_spans(model(**sample["net_input"]), self.cfg.max_answer)
        rows = zip(spans.tolist(), scores.tolist(), strict=True)
        return [(f"{first} {last}", [score]) for (first, last), score in rows]

    def _examples(
        self,
        passages: FairseqDataset,
        questions: FairseqDataset,
        owners: np.ndarray,
        spans: Optional[np.ndarray] = None,  # noqa: UP045
        is_training: bool = False,
    ) -> FairseqDataset:
        dataset = ReadingDataset(passages, questions, owners, spans, self.dictionary.pad())
        return EpochOrderedDataset(dataset, dataset.sizes, self.cfg.seed, is_training)

    def _encoded(self, texts: Sequence[str]) -> FairseqDataset:
        encoded = [self.dictionary.encode_line(text, append_eos=False, add_if_not_exist=False).long() for text in texts]
        return ListDataset(encoded, list(map(len, encoded)))

    def _texts(self, column: str, split: str) -> FairseqDataset:
        """What fairseq-preprocess wrote, without the ends of sentences."""
        dataset = data_utils.load_indexed_dataset(f"{self.cfg.data}/{column}/{split}", self.dictionary)
        if dataset is None:
            raise InputError(f"{self.cfg.data}/{column}: there is no set '{split}'")
        return StripTokenDataset(dataset, self.dictionary.eos())
