"""Sentences that wait for one thread, which decodes together those that are there together."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from ..exported.beam_search import SearchOptions
from ..exported.translation import TranslatedText
from .models import ServedModel


class QueueFullError(Exception):
    """No more can wait, or no more is taken since the server ends."""


@dataclass(eq=False)
class _Sentence:
    text: str
    model: ServedModel
    count: int
    need_attention: bool
    result: Future[TranslatedText] = field(default_factory=Future)


class DecodingQueue:
    """A queue with a bound, and its thread.

    Args:
        options: of beam search, the same for all.
        capacity: sentences that wait at most.
        batch: sentences that are decoded together at most.
        on_batch: called with the number of sentences that were decoded together.
    """

    def __init__(
        self,
        options: SearchOptions,
        capacity: int,
        batch: int,
        on_batch: Callable[[int], object] = lambda sentences: None,
    ) -> None:
        self.options, self.capacity, self.batch = options, capacity, batch
        self._on_batch = on_batch
        self._waiting: deque[_Sentence] = deque()
        self._changed = threading.Condition()
        self._is_closed = False
        self._thread = threading.Thread(target=self._work, name="decoding", daemon=True)
        self._thread.start()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_open(self) -> bool:
        """Whether it takes sentences."""
        return not self._is_closed and self._thread.is_alive()

    def put(
        self, model: ServedModel, sentences: Sequence[str], count: int, need_attention: bool
    ) -> list[Future[TranslatedText]]:
        """Has sentences wait. A result that is cancelled before its turn is not computed.

        Args:
            model: that is to translate them.
            sentences: all of them are taken, or none.
            count: translations of each.
            need_attention: translations have their attention.

        Raises:
            QueueFullError: there is no room for them.
        """
        items = [_Sentence(sentence, model, count, need_attention) for sentence in sentences]
        with self._changed:
            if not self.is_open:
                raise QueueFullError("the server is ending")
            if len(self._waiting) + len(items) > self.capacity:
                raise QueueFullError("too many sentences are waiting")
            self._waiting.extend(items)
            self._changed.notify()
        return [item.result for item in items]

    def close(self) -> None:
        """Takes no more, and returns when all that has been taken is done."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._thread.join()

    def _work(self) -> None:
        while items := self._take():
            items = [item for item in items if item.result.set_running_or_notify_cancel()]
            if items:
                self._on_batch(len(items))
                self._decode(items)

    def _take(self) -> list[_Sentence]:
        """The sentence that has waited longest, and others for the same model; none when all is done."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_closed)
            taken: list[_Sentence] = []
            left: deque[_Sentence] = deque()
            for item in self._waiting:
                is_taken = len(taken) < self.batch and (not taken or item.model is taken[0].model)
                (taken if is_taken else left).append(item)
            self._waiting = left
            return taken

    def _decode(self, items: Sequence[_Sentence]) -> None:
        try:
            results = items[0].model.model.translations(
                [item.text for item in items],
                self.options,
                count=max(item.count for item in items),
                need_attention=any(item.need_attention for item in items),
            )
        except Exception as error:
            # Whatever it is, the thread goes on; and one sentence must not spoil those of other clients.
            if len(items) == 1:
                items[0].result.set_exception(error)
            else:
                for item in items:
                    self._decode([item])
            return
        for item, result in zip(items, results, strict=True):
            item.result.set_result(result)
