"""What a ranker is trained on, and its loss."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from fairseq import options
from fairseq.data import ListDataset
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

from fairseq_plugins.criterions.ranking_hinge import hinge
from fairseq_plugins.errors import InputError
from fairseq_plugins.tasks.epoch_order import EpochOrderedDataset
from fairseq_plugins.tasks.sequence_ranking import RankingDataset, SequenceRankingTask

GROUPS = np.array([0, 0, 0, 0, 1, 1])
RIGHT = np.array([True, False, False, True, True, False])


def dataset(negatives: int) -> RankingDataset:
    lines = [torch.tensor([4] * (line + 1)) for line in range(len(GROUPS))]
    texts = ListDataset(lines, [len(line) for line in lines])
    return RankingDataset(texts, texts, RIGHT, GROUPS, negatives, pad=1, seed=3)


def test_wrong_candidates_are_the_question_s_own_before_others() -> None:
    examples = dataset(2)
    assert len(examples) == 3
    for index, right, own in (0, 0, {1, 2}), (1, 3, {1, 2}):
        lines = examples[index]
        assert lines[0] == right and set(lines[1:]) == own
    assert set(examples[2][1:2]) == {5} and examples[2][2] in (1, 2, 5)
    assert (examples[2] == examples[2]).all()
    drawn = set()
    for epoch in range(1, 9):
        examples.set_epoch(epoch)
        drawn.add(tuple(examples[0]))
    assert drawn == {(0, 1, 2), (0, 2, 1)}, "drawn anew in each epoch"


def test_a_batch() -> None:
    sample = dataset(2).collater([dataset(2)[0], dataset(2)[2]])
    assert sample["net_input"]["question"].tolist() == [0, 0, 0, 1, 1, 1]
    assert sample["target"].tolist() == [1, 0, 0, 1, 0, 0]
    assert (sample["rights"], sample["nsentences"]) == (2, 2)
    assert sample["net_input"]["candidate_tokens"].shape == (6, int(sample["net_input"]["candidate_lengths"].max()))
    whole = dataset(0)
    assert [item.tolist() for item in (whole[0], whole[1])] == [[0, 1, 2, 3], [4, 5]]
    assert whole.collater([whole[0], whole[1]])["target"].tolist() == [1, 0, 0, 1, 1, 0]


def test_batches_by_tokens_count_the_wrong_candidates() -> None:
    # The question, the right candidate, and two wrong ones of 2, 3 or 6 words.
    assert dataset(2).sizes.tolist() == [1 + 1 + 7, 4 + 4 + 7, 5 + 5 + 7]


def test_a_model_that_writes_text_is_refused(tmp_path: Path) -> None:
    for name in "input0", "label":
        (tmp_path / name).mkdir()
        (tmp_path / name / "dict.txt").write_text("a 1\n", encoding="utf-8")
    args = [str(tmp_path), "--task", "sequence_ranking", "--arch", "lstm"]
    config = convert_namespace_to_omegaconf(options.parse_args_and_arch(options.get_training_parser(), args))
    task = SequenceRankingTask.setup_task(config.task)
    with pytest.raises(InputError, match="labelled texts, but LSTMModel writes text; give data of texts"):
        task.build_model(config.model)


def training(folder: Path, labels: list[int], negatives: int = 1) -> EpochOrderedDataset:
    """The training set of one question whose candidates have these labels."""
    (folder / "group").mkdir(exist_ok=True)
    (folder / "group" / "train.txt").write_text("q1\n" * len(labels))
    texts = ListDataset([torch.tensor([4])] * len(labels), [1] * len(labels))
    task = SimpleNamespace(
        cfg=SimpleNamespace(data=folder, negatives=negatives, seed=1),
        dictionary=SimpleNamespace(pad=lambda: 1),
        label_dictionary=SimpleNamespace(index=int),
        texts=lambda _: [texts, texts],
        indexed=lambda *_: [torch.tensor([label]) for label in labels],
        datasets={},
    )
    task.examples = lambda *parts: SequenceRankingTask.examples(task, *parts)
    SequenceRankingTask.load_dataset(task, "train")
    return task.datasets["train"]


@pytest.mark.parametrize("label", [0, 1])
def test_training_needs_right_and_wrong_candidates(tmp_path: Path, label: int) -> None:
    with pytest.raises(InputError, match="training needs right candidates"):
        training(tmp_path, [label, label])


def test_as_many_wrong_candidates_as_negatives(tmp_path: Path) -> None:
    for negatives in 1, 2:
        assert len(training(tmp_path, [0, 1, 0, 0], negatives)[0]) == 1 + negatives
    with pytest.raises(InputError, match="--negatives must be at least 1, not 0"):
        training(tmp_path, [0, 1], negatives=0)


def test_hinge_by_hand() -> None:
    scores = torch.tensor([0.5, 0.45, 0.9, 0.2, 0.3])
    right = torch.tensor([True, False, False, True, False])
    question = torch.tensor([0, 0, 0, 1, 1])
    expected = (0.05 + 0.5) / 2 + 0.2
    assert hinge(scores, right, question, 0.1).item() == pytest.approx(expected)
    assert hinge(torch.tensor([1.0]), torch.tensor([True]), torch.tensor([0]), 0.1).item() == 0


def test_the_order_is_new_in_each_epoch_and_similar_lengths_are_neighbours() -> None:
    lengths = np.array([3, 1, 2, 5, 4] * 10)
    ordered = EpochOrderedDataset(ListDataset(list(range(50)), lengths.tolist()), lengths, seed=1, shuffles=True)
    first = ordered.ordered_indices()
    ordered.set_epoch(2)
    second = ordered.ordered_indices()
    assert sorted(first) == sorted(second) == list(range(50))
    assert (first != second).any()
    assert (np.diff(lengths[first]) >= 0).all()
    assert not ordered.can_reuse_epoch_itr_across_epochs
