"""``--task sequence_classification``: the class of a text, or of a pair of texts.

The data is laid out as fairseq's ``sentence_prediction`` has it: folders ``input0``, for pairs ``input1``, and
``label``, and for tagged texts ``tags0`` and ``tags1``. Unlike there the two texts stay apart.

What is predicted of each example: the class, and the natural logarithm of each class's probability, in the order of the
label dictionary.
"""

# No postponed evaluation of annotations here: fairseq reads the types of the configuration's fields.
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from fairseq.criterions import FairseqCriterion
from fairseq.data import (
    Dictionary,
    FairseqDataset,
    IdDataset,
    ListDataset,
    NestedDictionaryDataset,
    NumelDataset,
    NumSamplesDataset,
    OffsetTokensDataset,
    RightPadDataset,
    StripTokenDataset,
    data_utils,
)
from fairseq.dataclass import FairseqDataclass
from fairseq.models import BaseFairseqModel, FairseqEncoderDecoderModel, FairseqLanguageModel
from fairseq.tasks import FairseqTask, register_task
from omegaconf import II, MISSING
from torch import Tensor

from ..errors import InputError
from .epoch_order import EpochOrderedDataset
from .predictions import OF_CLASSES, Prediction, check_criterion


@dataclass
class SequenceClassificationConfig(FairseqDataclass):
    """The options of ``sequence_classification`` and, since they are the same, of ``sequence_ranking``."""

    data: str = field(default=MISSING, metadata={"help": "folder with input0/, label/ …"})
    seed: int = II("common.seed")


class LabelledTextsTask(FairseqTask, ABC):
    """What classification and ranking share: dictionaries and texts."""

    cfg: SequenceClassificationConfig
    data_kind = "labelled_texts"
    has_candidates = False
    """Whether the second text is a candidate for the answer to the first."""

    def __init__(
        self, cfg: SequenceClassificationConfig, dictionary: Dictionary, labels: Dictionary, tags: Dictionary | None
    ) -> None:
        super().__init__(cfg)
        self.dictionary, self.label_dictionary, self.tag_dictionary = dictionary, labels, tags
        self.inputs = [name for name in ("input0", "input1") if (Path(cfg.data) / name).is_dir()]

    @classmethod
    def setup_task(cls, cfg: SequenceClassificationConfig, **unused: Any) -> "LabelledTextsTask":
        """Raises InputError if there is no prepared data."""
        dictionaries = {}
        for name in ("input0", "label", "tags0"):
            path = Path(cfg.data) / name / "dict.txt"
            if path.is_file():
                dictionaries[name] = Dictionary.load(str(path))
            elif name != "tags0":
                raise InputError(f"{path}: no such file; give the bin/ of labelled texts ('fairseq-plugins prepare')")
        return cls(cfg, dictionaries["input0"], dictionaries["label"], dictionaries.get("tags0"))

    def build_model(self, cfg: FairseqDataclass, from_checkpoint: bool = False) -> BaseFairseqModel:
        """Raises InputError if the model writes text."""
        model = super().build_model(cfg, from_checkpoint)
        if isinstance(model, (FairseqEncoderDecoderModel, FairseqLanguageModel)):
            raise InputError(
                f"{self.cfg.data}: labelled texts, but {type(model).__name__} writes text; give data of texts that "
                f"it can learn, or --arch a model that predicts labels"
            )
        return model

    @property
    def source_dictionary(self) -> Dictionary:
        return self.dictionary

    @property
    def target_dictionary(self) -> Dictionary:
        return self.label_dictionary

    @property
    def labels(self) -> list[str]:
        """The classes, in the order of their numbers."""
        return self.label_dictionary.symbols[self.label_dictionary.nspecial :]

    def max_positions(self) -> None:
        """Texts may have any length."""

    def texts(self, split: str) -> list[FairseqDataset]:
        """The one text of each example or the two, without ends of sentences."""
        texts_of_inputs = [self._without_end(name, split, self.dictionary) for name in self.inputs]
        for name, texts in zip(self.inputs, texts_of_inputs, strict=True):
            # The sizes may count the end of a sentence.
            empty = (int(index) for index in np.flatnonzero(np.asarray(texts.sizes) <= 1) if not len(texts[index]))
            if (index := next(empty, None)) is not None:
                raise InputError(f"{self.cfg.data}/{name}: text {index + 1:,} of '{split}' is empty; leave it out")
        return texts_of_inputs

    def indexed(self, name: str, split: str, dictionary: Dictionary) -> FairseqDataset:
        """What fairseq-preprocess wrote.

        Raises:
            InputError: there is no such split.
        """
        dataset = data_utils.load_indexed_dataset(f"{self.cfg.data}/{name}/{split}", dictionary)
        if dataset is None:
            raise InputError(f"{self.cfg.data}/{name}: there is no set '{split}'")
        return dataset

    def _without_end(self, name: str, split: str, dictionary: Dictionary) -> FairseqDataset:
        return StripTokenDataset(self.indexed(name, split, dictionary), dictionary.eos())

    def dataset_of_texts(self, examples: Sequence[Sequence[str]]) -> FairseqDataset:
        """A data set of new texts, without labels.

        Args:
            examples: the tokens of the one text of each, or of both of them
        """
        sides = [[self._encoded(text) for text in side] for side in zip(*examples, strict=True)]
        return self.examples([ListDataset(side, [len(tokens) for tokens in side]) for side in sides])

    @abstractmethod
    def examples(self, texts: list[FairseqDataset]) -> FairseqDataset:
        """The data set of unlabelled examples with these texts."""

    def _encoded(self, text: str) -> Tensor:
        return self.dictionary.encode_line(text, append_eos=False, add_if_not_exist=False).long()


@register_task("sequence_classification", dataclass=SequenceClassificationConfig)
class SequenceClassificationTask(LabelledTextsTask):
    """See the head of this file."""

    def build_criterion(self, cfg: Any, from_checkpoint: bool = False) -> FairseqCriterion:
        """Raises InputError if the criterion is not one of classes."""
        criterion = super().build_criterion(cfg, from_checkpoint)
        check_criterion(criterion, cfg, "sequence_classification", "sequence_classification", OF_CLASSES)
        return criterion

    def load_dataset(self, split: str, combine: bool = False, **unused: Any) -> None:
        texts = self.texts(split)
        tags = []
        if self.tag_dictionary is not None:
            names = [name.replace("input", "tags") for name in self.inputs]
            tags = [self._without_end(name, split, self.tag_dictionary) for name in names]
        labels = self._without_end("label", split, self.label_dictionary)
        target = OffsetTokensDataset(labels, offset=-self.label_dictionary.nspecial)
        self.datasets[split] = self.examples(texts, tags, target, split == "train")

    def examples(
        self,
        texts: list[FairseqDataset],
        tags: Sequence[FairseqDataset] = (),
        target: FairseqDataset | None = None,
        is_training: bool = False,
    ) -> FairseqDataset:
        """The data set of examples with these texts, tags and classes."""
        net_input: dict[str, Any] = {}
        for side, text in zip(("src", "other"), texts, strict=False):
            net_input[f"{side}_tokens"] = RightPadDataset(text, pad_idx=self.dictionary.pad())
            net_input[f"{side}_lengths"] = NumelDataset(text)
        for side, text in zip(("src", "other"), tags, strict=False):
            assert self.tag_dictionary is not None
            net_input[f"{side}_tags"] = RightPadDataset(text, pad_idx=self.tag_dictionary.pad())
        parts = {
            "id": IdDataset(),
            "net_input": net_input,
            "nsentences": NumSamplesDataset(),
            "ntokens": NumelDataset(texts[0], reduce=True),
            **({} if target is None else {"target": target}),
        }
        sizes = np.sum([np.asarray(text.sizes) for text in texts], axis=0)
        dataset = NestedDictionaryDataset(parts, sizes=[sizes])
        return EpochOrderedDataset(dataset, sizes, self.cfg.seed, is_training)

    def predictions(
        self, sample: dict[str, Any], model: BaseFairseqModel, criterion: FairseqCriterion
    ) -> list[Prediction]:
        """The class of each example, and the logarithm of each class's probability."""
        log_probabilities = criterion.log_probabilities(model, sample)
        chosen = log_probabilities.argmax(dim=-1).tolist()
        return [(self.labels[number], row) for number, row in zip(chosen, log_probabilities.tolist(), strict=True)]
