"""What a page shows of models of labelled texts: confusion matrices, and the words that pooling picked."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from ..decoding.prepared_data import PreparedData
from ..errors import InputError
from ..experiments.decoding import decoding_of
from ..experiments.run import Run
from ..scoring.accuracy import confusion
from ..scoring.metrics import metric_named
from .page import Drawing, ReportTable
from .style import INK, inline_svg, style

logger = logging.getLogger(__name__)

MOST_CLASSES = 20
"""More would not be read."""
TEXTS = 8
"""Of the test set, whose picked words are shown."""


def figures(runs: Mapping[str, Run], data: PreparedData) -> list[Drawing]:
    """The confusion matrix of each system over the test set; none where there are no classes, or no predictions of the
    present model.

    Args:
        runs: by their systems' names
        data: that of those that name none
    """
    metric = metric_named("accuracy")
    drawn = []
    for name, run in runs.items():
        own = run.data or data
        classes = getattr(own.preparation, "labels", [])
        if not run.is_evaluated or own.preparation.metric != "accuracy" or not 2 <= len(classes) <= MOST_CLASSES:
            continue
        labels = list(decoding_of(metric).references(own, "test").tokens[0])
        try:
            predicted = list(run.outputs(metric, own, "test").tokens)
        except InputError as error:
            logger.debug(f"left out of the report: {error}")
            continue
        if len(predicted) != len(labels):
            raise InputError(
                f"{run.folder}: {len(predicted):,} predictions of {len(labels):,} examples; evaluate it again"
            )
        prefix = "".join(character if character.isalnum() else "-" for character in name)
        matrix = confusion(predicted, labels, classes)
        drawn.append(
            Drawing(
                f"{name}: confusion matrix",
                "How many examples of each class of the test set (rows) were taken for each class (columns).",
                inline_svg(draw_confusion(matrix, classes), f"confusion-{prefix}", f"Confusion matrix of {name}"),
            )
        )
    return drawn


def draw_confusion(matrix: Sequence[Sequence[int]], classes: Sequence[str]) -> Figure:
    """Counts of classes (rows) and what they were taken for (columns); the darker, the larger a row's share."""
    counts = np.array(matrix)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    size = 1.4 + 0.5 * len(classes)
    with style():
        figure = Figure(figsize=(size + 0.6, size), layout="constrained")
        axis = figure.subplots()
        axis.imshow(shares, cmap="Blues", vmin=0, vmax=1)
        axis.set_xticks(range(len(classes)), classes, rotation=90)
        axis.set_yticks(range(len(classes)), classes)
        axis.set_xlabel("predicted")
        axis.set_ylabel("class")
        axis.tick_params(length=0, labelsize=8)
        axis.grid(visible=False)
        for row, column in np.ndindex(counts.shape):
            colour = "white" if shares[row, column] > 0.6 else INK
            axis.text(column, row, f"{counts[row, column]:,}", ha="center", va="center", fontsize=8, color=colour)
    return figure


def picked_words_table(run: Run, data: PreparedData) -> list[ReportTable]:
    """Which words pooling took its features from, in some texts of the test set; none where nobody knows.

    Args:
        run: of an experiment
        data: its prepared data
    """
    is_ranking = data.preparation.metric == "ranking"
    if (data.preparation.metric != "accuracy" and not is_ranking) or run.checkpoint is None:
        return []
    # Not at the head of the file: it imports fairseq.
    from ..analysis.picked_words import picked_words

    try:
        examples = picked_words(run.checkpoint, data, TEXTS)
    except InputError as error:
        logger.debug(f"left out of the report: {error}")
        return []
    rows = []
    for example in examples:
        for text in example.texts:
            order = np.argsort(text.shares)[::-1][:3]
            most = ", ".join(f"{text.words[place]} {100 * text.shares[place]:.0f} %" for place in order)
            rows.append([" ".join(text.words), example.label, example.predicted, most])
    notes = ["Shares of the features whose maximum over the text is at a word, or its weight; the three largest."]
    columns = ["Class", "Predicted"]
    if is_ranking:
        columns = ["Label", "Score"]
        notes.append("Each question is followed by the candidate that is put first; the label 1 says that it is right.")
    return [ReportTable("Words that pooling picked", ["Text", *columns, "Picked words"], rows, notes)]
