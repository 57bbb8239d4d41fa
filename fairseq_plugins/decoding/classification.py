"""The classes of texts, or scores of candidates, as the task that a model was trained on predicts them."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from fairseq.criterions import FairseqCriterion
from fairseq.data import FairseqDataset

from ..corpora.codec import list_of_texts
from ..errors import InputError
from .trained_model import WHOLE, BatchOptions, Hypothesis, Share, Stopwatch, TrainedModel, quietly

BATCH_SIZE = 64
"""Examples in a batch where no option says it."""


class ClassificationModel(TrainedModel):
    """A model whose task has ``predictions(sample, model, criterion)``: of classes, or of scores."""

    @functools.cached_property
    def criterion(self) -> FairseqCriterion:
        """The one of the training."""
        with quietly():
            return self.task.build_criterion(self.cfg.criterion)

    def require_predictions(self) -> None:
        """Raises InputError where the task predicts nothing."""
        if not hasattr(self.task, "predictions"):
            raise InputError(
                f"{self.path}: its task predicts neither classes nor scores; 'translate' takes a translation model, "
                "'perplexity' and 'generate-text' take a language model"
            )

    def predict(
        self, dataset: FairseqDataset, options: BatchOptions, stopwatch: Stopwatch, share: Share = WHOLE
    ) -> Iterator[tuple[int, Hypothesis]]:
        """What the model makes of each example of a data set.

        Args:
            dataset: fairseq's
            options: how examples are put together
            stopwatch: is told how long the model takes
            share: which of the batches

        Yields:
            the number of an example, in no particular order, and what is predicted

        Raises:
            InputError: the task predicts nothing.
        """
        self.require_predictions()
        if options.max_tokens is None and options.batch_size is None:
            options = replace(options, batch_size=BATCH_SIZE)
        for batch in self.batches(dataset, options.fitted(dataset, 0), share):
            with stopwatch, torch.no_grad():
                predictions = self.task.predictions(batch, self.model, self.criterion)
            for number, (predicted, numbers) in zip(batch["id"].tolist(), predictions, strict=True):
                yield number, Hypothesis(predicted, numbers)

    def predictions_of(self, lines: Sequence[str], options: BatchOptions) -> list[Hypothesis | None]:
        """What the model makes of lines of text.

        Args:
            lines: texts; a pair has a tab between them; what is empty has no prediction
            options: how they are put together

        Raises:
            TypeError: ``lines`` is one text, or one of them is no text.
            InputError: a line has not as many texts as the model reads, or the model reads tags.
        """
        preparation = self.data.labelled_texts
        if preparation.has_tags:
            raise InputError(
                f"{self.path}: the model reads a part-of-speech tag for each word, and plain text has none; prepare "
                f"the data without tags (prepare_entailment.sh --no-tags) and train a model on that"
            )
        encoded: list[list[str]] = []
        for number, line in enumerate(list_of_texts("predict", lines), 1):
            texts = line.split("\t")
            if line.strip() and len(texts) != len(preparation.texts):
                wanted = " TAB ".join(preparation.texts)
                raise InputError(f"standard input, line {number}: {len(texts)} texts, but the model reads {wanted}")
            pieces = [preparation.encode(text) for text in texts]
            if any(pieces) and not all(pieces):
                raise InputError(f"standard input, line {number}: one of the texts is empty")
            encoded.append(pieces if all(pieces) else [])
        places = [place for place, pieces in enumerate(encoded) if pieces]
        predictions: list[Hypothesis | None] = [None] * len(encoded)
        if places:
            dataset = self.task.dataset_of_texts([encoded[place] for place in places])
            for number, hypothesis in self.predict(dataset, options, Stopwatch()):
                predictions[places[number]] = hypothesis
        return predictions
