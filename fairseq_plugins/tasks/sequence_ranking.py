"""``--task sequence_ranking``: candidates for the answer to a question, best first.

The data is that of labelled texts with two inputs, question and candidate, and ``group/``: which question a line is of.
In training an example is a right candidate with some wrong ones, drawn anew in each epoch: of its own question and,
where that has too few, of others. Elsewhere an example is a question with all its candidates.

What is predicted of each candidate is its score.
"""

# No postponed evaluation of annotations here: fairseq reads the types of the configuration's fields.
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq.criterions import FairseqCriterion
from fairseq.data import FairseqDataset, data_utils
from fairseq.models import BaseFairseqModel
from fairseq.tasks import register_task

from ..errors import InputError
from ..files import read_lines
from .epoch_order import EpochOrderedDataset
from .predictions import Prediction, check_criterion
from .sequence_classification import LabelledTextsTask, SequenceClassificationConfig


@dataclass
class SequenceRankingConfig(SequenceClassificationConfig):
    """The options of ``sequence_ranking``."""

    negatives: int = field(
        default=6, metadata={"help": "wrong candidates that a right one is compared with in training"}
    )


class RankingDataset(FairseqDataset):
    """Questions with candidates.

    Args:
        questions, candidates: the texts of each line.
        is_right: (N,) of each line; None where it is not known.
        groups: (N,) which question each line is of.
        negatives: drawn for each right candidate; 0 takes every question with all its candidates.
        pad: the padding's number.
        seed: of what is drawn.
    """

    def __init__(
        self,
        questions: FairseqDataset,
        candidates: FairseqDataset,
        is_right: np.ndarray | None,
        groups: np.ndarray,
        negatives: int,
        pad: int,
        seed: int,
    ) -> None:
        super().__init__()
        self.questions, self.candidates, self.is_right, self.groups = questions, candidates, is_right, groups
        self.negatives, self.pad, self.seed, self.epoch = negatives, pad, seed, 1
        lengths = np.asarray(questions.sizes) + np.asarray(candidates.sizes)
        self.lines: dict[int, np.ndarray] = {}
        for group in dict.fromkeys(groups.tolist()):
            self.lines[group] = np.flatnonzero(groups == group)
        if negatives and is_right is not None:
            self.items = [np.array([line]) for line in np.flatnonzero(is_right)]
            self.wrong = np.flatnonzero(~is_right)
            # Which wrong candidates an example has is drawn later.
            expected = negatives * np.asarray(candidates.sizes)[self.wrong].mean()
            self.sizes = np.array([lengths[line] + round(expected) for [line] in self.items])
        else:
            self.items = list(self.lines.values())
            self.sizes = np.array([int(lengths[item].sum()) for item in self.items])

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> np.ndarray:
        """The lines of an example's candidates."""
        if not self.negatives or self.is_right is None:
            return self.items[index]
        [right] = self.items[index]
        generator = np.random.default_rng((self.seed, self.epoch, index))
        of_question = self.lines[int(self.groups[right])]
        of_question = generator.permutation(of_question[~self.is_right[of_question]])[: self.negatives]
        others = generator.choice(self.wrong, self.negatives - len(of_question))
        return np.concatenate([[right], of_question, others])

    def num_tokens(self, index: int) -> int:
        return int(self.sizes[index])

    def size(self, index: int) -> int:
        return int(self.sizes[index])

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def collater(self, samples: list[np.ndarray]) -> dict[str, Any]:
        """A batch; each question is in it once for each example."""
        if not samples:
            return {}
        lines = np.concatenate(samples)
        questions = [self.questions[int(item[0])] for item in samples]
        candidates = [self.candidates[int(line)] for line in lines]
        owners = np.repeat(np.arange(len(samples)), [len(item) for item in samples])
        batch = {
            "id": torch.from_numpy(lines),
            "net_input": {
                "src_tokens": data_utils.collate_tokens(questions, self.pad),
                "src_lengths": torch.tensor([len(text) for text in questions]),
                "candidate_tokens": data_utils.collate_tokens(candidates, self.pad),
                "candidate_lengths": torch.tensor([len(text) for text in candidates]),
                "question": torch.from_numpy(owners),
            },
            "nsentences": len(samples),
            "ntokens": sum(len(text) for text in (*questions, *candidates)),
        }
        if self.is_right is not None:
            target = self.is_right[lines]
            if self.negatives:
                # What stands for a wrong candidate is one, though it answers another question.
                target = np.concatenate([np.arange(len(item)) == 0 for item in samples])
            batch["target"], batch["rights"] = torch.from_numpy(target.astype(np.int64)), int(target.sum())
        return batch


@register_task("sequence_ranking", dataclass=SequenceRankingConfig)
class SequenceRankingTask(LabelledTextsTask):
    """See the head of this file."""

    has_candidates = True

    def build_criterion(self, cfg: Any, from_checkpoint: bool = False) -> FairseqCriterion:
        """Raises InputError if the criterion is not one of scores."""
        criterion = super().build_criterion(cfg, from_checkpoint)
        check_criterion(criterion, cfg, "sequence_ranking", "ranking_hinge", ["of_scores"])
        return criterion

    def load_dataset(self, split: str, combine: bool = False, is_evaluated: bool = False, **unused: Any) -> None:
        """Loads a set; the training set too has questions with all their candidates where it is evaluated.

        Raises:
            InputError: there is no such set, or nothing in it to learn from.
        """
        if self.cfg.negatives < 1:
            raise InputError(f"--negatives must be at least 1, not {self.cfg.negatives}")
        labels = self.indexed("label", split, self.label_dictionary)
        right = self.label_dictionary.index("1")
        is_right = np.array([int(labels[line][0]) == right for line in range(len(labels))])
        names = list(read_lines(Path(self.cfg.data) / "group" / f"{split}.txt"))
        numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
        groups = np.array([numbers[name] for name in names])
        is_training = split == "train" and not is_evaluated
        if is_training and (is_right.all() or not is_right.any()):
            raise InputError(f"{self.cfg.data}: training needs right candidates (label 1) and wrong ones (label 0)")
        self.datasets[split] = self.examples(self.texts(split), is_right, groups, is_training)

    def examples(
        self,
        texts: list[FairseqDataset],
        is_right: np.ndarray | None = None,
        groups: np.ndarray | None = None,
        is_training: bool = False,
    ) -> FairseqDataset:
        """The data set of these questions and candidates; each is a question of its own where no group is given."""
        questions, candidates = texts
        groups = np.arange(len(questions)) if groups is None else groups
        negatives = self.cfg.negatives if is_training else 0
        pad = self.dictionary.pad()
        dataset = RankingDataset(questions, candidates, is_right, groups, negatives, pad, self.cfg.seed)
        return EpochOrderedDataset(dataset, dataset.sizes, self.cfg.seed, is_training)

    def predictions(
        self, sample: dict[str, Any], model: BaseFairseqModel, criterion: FairseqCriterion
    ) -> list[Prediction]:
        """The score of each candidate."""
        return [(f"{score:.8f}", []) for score in model(**sample["net_input"]).float().tolist()]
