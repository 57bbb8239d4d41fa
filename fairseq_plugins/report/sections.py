"""The parts of a page: scores, learning curves, samples with their alignments, attention, scores by length."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ..analysis import alignments, channel_attention, length
from ..corpora.running_text import RunningTextPreparation
from ..decoding.prepared_data import PreparedData
from ..decoding.translation import Sentence, TranslationModel
from ..errors import InputError
from ..experiments.decoding import Generation, decoding_of
from ..experiments.run import Run
from ..files import read_lines
from ..samples import spread
from ..scoring.metrics import Metric
from ..symbols import END
from . import curves
from .drawings import draw_alignment, draw_channel_attention, draw_lengths
from .page import Drawing, Sample, WordAttention
from .style import inline_svg

logger = logging.getLogger(__name__)


def example(data: PreparedData, number: int) -> int:
    """The sentence of the test set that figures show: one of ``number`` samples, the second where there are several."""
    return spread(len(source_text(data, "test")), number)[:2][-1]


def aligned_samples(runs: Mapping[str, Run], data: PreparedData, number: int) -> list[Sample]:
    """Sentences spread over the test set, and what systems made of them.

    Args:
        runs: by their systems' names; each has translated the test set
        data: that of one of them; their texts are the same
        number: how many sentences
    """
    language = data.pairs.target_lang
    sources = source_text(data, "test")
    references = Generation().references(data, "test").text[0]
    chosen = spread(len(sources), number)
    hypotheses = {name: list(read_lines(run.outputs_folder / f"test.{language}")) for name, run in runs.items()}
    aligned = {name: hypothesis_alignments(run, chosen) for name, run in runs.items()}
    return [
        Sample(
            sources[index],
            references[index],
            {name: lines[index] for name, lines in hypotheses.items()},
            {name: of_system[place] for name, of_system in aligned.items() if of_system},
        )
        for place, index in enumerate(chosen)
    ]


def source_text(data: PreparedData, subset: str) -> list[str]:
    """The source sentences of a set; their tokens where no text was given."""
    name = f"{subset}.{data.pairs.source_lang}"
    raw = data.folder / "raw" / name
    return list(read_lines(raw if raw.is_file() else data.folder / "tokens" / name))


def hypothesis_alignments(run: Run, indices: Sequence[int]) -> list[WordAttention]:
    """The alignments of some of a system's translations of the test set; none where the model does not tell.

    The mean of the flows comes first; the end of the sentence is no target word here.
    """
    try:
        trained, pairs = _translated(run, indices)
        return [_shown(alignment) for alignment in alignments.align(trained, pairs)] if trained else []
    except InputError as error:
        logger.warning(f"no alignments in the report: {error}")
        return []


def _translated(run: Run, indices: Sequence[int]) -> tuple[TranslationModel | None, list[tuple[Sentence, Sentence]]]:
    """A model, and some sentences of the test set with its translations; no model where it is not there any more."""
    # Systems of one table may have dictionaries of their own.
    data = run.data
    if data is None or run.checkpoint is None:
        return None, []
    trained, preparation = TranslationModel.load([run.checkpoint], data.folder), data.pairs
    source, target = preparation.source_lang, preparation.target_lang
    sources = list(read_lines(data.folder / "tokens" / f"test.{source}"))
    hypotheses = list(read_lines(run.outputs_folder / f"test.tok.{target}"))
    return trained, [
        (
            trained.source(preparation.encode_tokens(source, sources[index])),
            trained.target(preparation.encode_tokens(target, hypotheses[index])),
        )
        for index in indices
    ]


def _shown(alignment: alignments.Alignment) -> WordAttention:
    mean = np.mean(list(alignment.flows.values()), axis=0).tolist()
    flows = {"mean": mean, **(alignment.flows if len(alignment.flows) > 1 else {})}
    assert alignment.target[-1] == END
    return WordAttention(alignment.source, alignment.target[:-1], {name: rows[:-1] for name, rows in flows.items()})


def attention_figures(name: str, run: Run, index: int) -> list[Drawing]:
    """What a system attends to in one sentence of the test set: alignment, and the channels of an MC-RNN."""
    prefix = "".join(character if character.isalnum() else "-" for character in name)
    drawn: list[Drawing] = []
    try:
        trained, pairs = _translated(run, [index])
        if trained is None:
            return []
        [alignment] = alignments.align(trained, pairs)
        drawn.append(
            Drawing(
                f"{name}: alignment",
                f"Attention of each word of the translation (rows) to the words of the source, in sentence {index + 1} "
                f"of the test set; by forced decoding, subwords joined.",
                inline_svg(draw_alignment(alignment), f"alignment-{prefix}", f"Alignment of {name}"),
            )
        )
        [channels] = channel_attention.channel_attention(trained, [pairs[0][0]])
        drawn.append(
            Drawing(
                f"{name}: attention over channels",
                "The darker, the larger the weight of a channel; the number in a cell says with how many of the tokens "
                "before it (after it, backwards) the channel connects a token directly.",
                inline_svg(
                    draw_channel_attention(channels), f"channels-{prefix}", f"Attention over the channels of {name}"
                ),
            )
        )
    except InputError as error:
        # Most models have no channels, and some say nothing about their attention.
        logger.debug(f"left out of the report: {error}")
    return drawn


def learning_curves_figure(runs: Mapping[str, Run]) -> Drawing:
    """The learning curves of one or several trainings; those of language models as perplexity or bits per character.

    Args:
        runs: the name that the figure shows → a run that has a ``train.jsonl``

    Raises:
        InputError: a ``train.jsonl`` is missing or damaged.
    """
    of_works = {name: curves.LearningCurves.load(run.statistics) for name, run in runs.items()}
    measure = _measure_of(runs.values())
    what = "Loss in bits" if measure is curves.LOSS else measure.label.capitalize()
    return Drawing(
        title="Learning curves",
        caption=f"{what}, without the smoothing of labels: on the training set since the point before, on the "
        "validation set after each epoch. Below, the learning rate.",
        svg=inline_svg(curves.draw(of_works, measure), "learning-curves"),
    )


def _measure_of(runs: Iterable[Run]) -> curves.Measure:
    """What the losses of trainings are drawn as: bits where they are not all of one kind of running text."""
    units = set()
    for run in runs:
        preparation = None if run.data is None else run.data.preparation
        units.add(preparation.units if isinstance(preparation, RunningTextPreparation) else "")
    return curves.MEASURES.get(units.pop(), curves.LOSS) if len(units) == 1 else curves.LOSS


def length_figures(runs: Mapping[str, Run], data: PreparedData, metric: Metric) -> list[Drawing]:
    """Scores by source length; differences are to the first system. None where a metric is not made of sentences."""
    references = decoding_of(metric).references(data, "test")
    tokens = list(read_lines(data.folder / "tokens" / f"test.{data.pairs.source_lang}"))
    tokens_or_characters, unit = length.lengths_of(tokens)
    lengths = [max(1, number) for number in tokens_or_characters]
    systems = {name: run.outputs(metric, data, "test") for name, run in runs.items()}
    # Two thirds of a test set may be shorter than the first of the paper's bounds.
    bounds = length.BOUNDS if max(lengths) > length.BOUNDS[1] else (6, 8, 10, 12, 15)
    try:
        report = length.scores_by_length(systems, references, lengths, metric, bounds)
    except InputError as error:
        logger.debug(f"left out of the report: {error}")
        return []
    return [
        Drawing(
            f"{metric.main.name} by source length",
            f"{metric.main.label} with 95 % bootstrap intervals, by the number of source {unit}. {report.signature}",
            inline_svg(draw_lengths(report), "length", f"{metric.main.name} by source length"),
        )
    ]
