"""Sentences that are there together are decoded together, by one thread, and not too many wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError

import pytest

from fairseq_plugins.exported.beam_search import SearchOptions
from fairseq_plugins.serving.decoding_queue import DecodingQueue, QueueFullError
from tests.serving.fakes import FakeModel, served

Queues = Callable[..., DecodingQueue]


@pytest.fixture
def queues() -> Iterator[Queues]:
    opened: list[DecodingQueue] = []

    def open_queue(capacity: int = 10, batch: int = 3) -> DecodingQueue:
        opened.append(DecodingQueue(SearchOptions(), capacity, batch))
        return opened[-1]

    yield open_queue
    for queue in opened:
        queue.close()


def test_what_waits_is_decoded_together(queues: Queues) -> None:
    one, other = FakeModel(), FakeModel("fr")
    models, queue = served(one, other).models, queues()
    one.gate.clear()
    results = queue.put(models[0], ["first"], 1, False)
    assert one.started.wait(10)
    for model, sentence in (0, "a"), (1, "x"), (0, "b"), (1, "y"), (0, "c"), (0, "d"):
        results += queue.put(models[model], [sentence], 1, False)
    one.gate.set()
    assert [result.result(10).text for result in results] == ["FIRST", "A", "X", "B", "Y", "C", "D"]
    assert one.batches == [["first"], ["a", "b", "c"], ["d"]]
    assert other.batches == [["x", "y"]]


def test_each_gets_what_it_has_asked_for(queues: Queues) -> None:
    model, queue = FakeModel(), queues()
    [of_model] = served(model).models
    model.gate.clear()
    [first] = queue.put(of_model, ["first"], 1, False)
    [plain] = queue.put(of_model, ["a b"], 1, False)
    [more] = queue.put(of_model, ["c d"], 3, True)
    model.gate.set()
    assert first.result(10).text == "FIRST" and plain.result(10).text == "B A"
    assert [translation.text for translation in more.result(10).translations] == ["D C", "D1 C1", "D2 C2"]
    assert more.result(10).translations[0].attention is not None


def test_only_so_many_wait(queues: Queues) -> None:
    model, queue = FakeModel(), queues(capacity=2)
    [of_model] = served(model).models
    model.gate.clear()
    queue.put(of_model, ["first"], 1, False)
    assert model.started.wait(10)
    with pytest.raises(QueueFullError, match="too many"):
        queue.put(of_model, ["a", "b", "c"], 1, False)
    queue.put(of_model, ["a", "b"], 1, False)
    with pytest.raises(QueueFullError):
        queue.put(of_model, ["c"], 1, False)
    model.gate.set()


def test_what_nobody_waits_for_is_not_decoded(queues: Queues) -> None:
    model, queue = FakeModel(), queues()
    [of_model] = served(model).models
    model.gate.clear()
    queue.put(of_model, ["first"], 1, False)
    assert model.started.wait(10)
    gone, there = queue.put(of_model, ["gone", "there"], 1, False)
    assert gone.cancel()
    model.gate.set()
    assert there.result(10).text == "THERE"
    with pytest.raises(CancelledError):
        gone.result(10)
    assert model.batches == [["first"], ["there"]]


def test_one_sentence_does_not_spoil_the_others(queues: Queues) -> None:
    model, queue = FakeModel(), queues()
    fine, bad, also_fine = queue.put(served(model).models[0], ["a", "boom", "b"], 1, False)
    assert (fine.result(10).text, also_fine.result(10).text) == ("A", "B")
    with pytest.raises(RuntimeError, match="boom"):
        bad.result(10)
    assert queue.is_open


def test_closing_finishes_what_waits(queues: Queues) -> None:
    model, queue = FakeModel(), queues()
    [of_model] = served(model).models
    results = queue.put(of_model, list("abcdefg"), 1, False)
    queue.close()
    assert all(result.done() for result in results) and results[-1].result().text == "G"
    assert not queue.is_open
    with pytest.raises(QueueFullError, match="ending"):
        queue.put(of_model, ["a"], 1, False)
