"""R-NET as a model of fairseq's: batches, sizes, its task's batches and its loss."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from fairseq.data import ListDataset
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fairseq_plugins.criterions.answer_span import AnswerSpanCriterion, overlap
from fairseq_plugins.errors import InputError
from fairseq_plugins.models.reading_comprehension import ReadingComprehensionModel, ReadingComprehensionModelConfig
from fairseq_plugins.modules import Pointed
from fairseq_plugins.tasks.reading_comprehension import ReadingDataset

from .labelled import batch, labelled_task, reading_task, texts

SIZES = {"embed_dim": 6, "hidden_size": 3, "attention_size": 4, "character_hidden_size": 2, "layers": 1}


def model(**options: object) -> ReadingComprehensionModel:
    torch.manual_seed(0)
    cfg = ReadingComprehensionModelConfig(recurrent_layer="gru")
    for name, value in {**SIZES, **options}.items():
        setattr(cfg, name, value)
    return ReadingComprehensionModel.build_model(cfg, reading_task()).eval()


@settings(max_examples=8)
@given(texts, texts, st.data(), st.integers(0, 2))
def test_an_answer_does_not_depend_on_its_batch(
    passages: list[list[int]], questions: list[list[int]], data: st.DataObject, more: int
) -> None:
    """Nor on padding, nor on whether other questions are on the same passage."""
    reader = model()
    owners = data.draw(st.lists(st.integers(0, len(passages) - 1), min_size=len(questions), max_size=len(questions)))
    together = reader(*batch(passages, more), *batch(questions, more), torch.tensor(owners))
    for row, (owner, question) in enumerate(zip(owners, questions, strict=True)):
        alone = reader(*batch([passages[owner]]), *batch([question]), torch.tensor([0]))
        for part, expected in zip(together, alone, strict=True):
            torch.testing.assert_close(part[row, : len(passages[owner])], expected[0])
            assert part[row, len(passages[owner]) :].eq(-math.inf).all()


def test_every_part_matters() -> None:
    """The question changes where the model points, its words' order too; so does self-matching."""
    passage, one = batch([[4, 5, 6, 7, 8]]), torch.tensor([0])
    reader = model()
    pointed = [reader(*passage, *batch([question]), one).start for question in ([4, 5], [5, 4], [6, 7])]
    assert not torch.allclose(pointed[0], pointed[1]) and not torch.allclose(pointed[0], pointed[2])
    plain = model(no_self_matching=True)
    assert plain.self_matching is None
    assert sum(map(torch.numel, plain.parameters())) < sum(map(torch.numel, reader.parameters()))


def test_sizes_of_the_paper() -> None:
    """R-NET's 75 everywhere; one RCRN layer of GRU cells reads with the parameters of three GRU layers."""
    reader = model(**{**SIZES, "hidden_size": 75, "attention_size": 75, "layers": 3})
    assert reader.encoder.output_size == reader.matching.output_size == 150
    assert len(reader.encoder.stack.layers) == len(reader.question_encoder.stack.layers) == 3
    assert reader.encoder.words is reader.question_encoder.words
    assert reader.encoder.stack is not reader.question_encoder.stack
    rcrn = model(**{**SIZES, "hidden_size": 75, "attention_size": 75, "recurrent_layer": "rcrn", "cell": "gru"})
    assert rcrn.encoder.output_size == 150 and len(rcrn.encoder.stack.layers) == 1
    with pytest.raises(InputError, match="--attention-size must be at least 1, not 0"):
        model(attention_size=0)


def test_a_task_of_other_data_is_refused() -> None:
    with pytest.raises(InputError, match="reading_comprehension needs --task reading_comprehension"):
        ReadingComprehensionModel.build_model(ReadingComprehensionModelConfig(), labelled_task())


def test_a_passage_is_in_a_batch_once() -> None:
    def dataset(rows: list[list[int]]) -> ListDataset:
        return ListDataset([torch.tensor(row) for row in rows], list(map(len, rows)))

    passages, questions = dataset([[4, 5, 6], [7, 8]]), dataset([[4], [5, 6], [7]])
    spans = np.array([[0, 1], [1, 1], [-1, -1]])
    examples = ReadingDataset(passages, questions, np.array([1, 0, 1]), spans, pad=1)
    assert [examples.num_tokens(number) for number in range(3)] == [3, 5, 3]
    made = examples.collater([0, 2])
    assert made["net_input"]["src_tokens"].tolist() == [[7, 8]]
    assert made["net_input"]["question_tokens"].tolist() == [[4], [7]]
    assert made["net_input"]["passage"].tolist() == [0, 0]
    assert made["target"].tolist() == [[0, 1], [-1, -1]] and made["found"] == 1
    made = examples.collater([1, 0])
    assert made["net_input"]["src_tokens"][made["net_input"]["passage"]].tolist() == [[4, 5, 6], [7, 8, 1]]


def test_the_loss_and_what_is_logged() -> None:
    """A question without a place counts in nothing."""
    start = torch.tensor([[0.5, 0.25, 0.25], [0.1, 0.8, 0.1]]).log()
    end = torch.tensor([[0.2, 0.4, 0.4], [0.1, 0.8, 0.1]]).log().requires_grad_()
    sample = {"target": torch.tensor([[0, 1], [-1, -1]]), "found": 1, "ntokens": 8, "nsentences": 2}
    criterion = AnswerSpanCriterion(SimpleNamespace(cfg=SimpleNamespace(max_answer=30))).eval()
    loss, count, logged = criterion.of_places(Pointed(start, end), sample)
    assert loss.item() == pytest.approx(-math.log(0.5 * 0.4)) and count == 1
    assert (logged["questions"], int(logged["exact"]), float(logged["f1"])) == (1, 1, 1)
    loss.backward()
    assert isinstance(end.grad, Tensor) and not end.grad[1].any()


def test_overlap_of_places() -> None:
    one = torch.tensor([[0, 3], [2, 2], [5, 6]])
    other = torch.tensor([[2, 5], [2, 2], [0, 4]])
    assert overlap(one, other).tolist() == [0.5, 1.0, 0.0]
