"""Word overlap, which a ranker has to beat: how many different words of the question a candidate has.

    fairseq-plugins word-overlap work/wikiqa/data [--subset test] [--work DIR] [--record wikiqa]

Punctuation does not count. Candidates that have as many are put in an order that a seed draws, as those of models are.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..command_parser import CommandParser
from ..decoding.prepared_data import PreparedData
from ..errors import InputError
from ..files import read_lines
from ..scoring.bleu import has_hardly_spaces
from ..scoring.metrics import Outputs, metric_named
from ..scoring.predictions import write_predictions
from ..scoring.rouge_tokens import unicode_tokens
from ..terminal import table
from . import recorded_runs
from .decoding import decoding_of
from .run import Run

SYSTEM = "word_overlap"
"""What it is called among recorded systems."""


def parser() -> CommandParser:
    """The command line."""
    options = CommandParser(
        "word-overlap",
        "Word overlap, which a ranker has to beat: how many different words of the question a candidate has.",
        ("work/wikiqa/data",),
    )
    options.add_argument("data", type=Path, metavar="DATA", help="prepared questions with candidates")
    options.add_argument("--subset", default="test", metavar="NAME", help="which set (default: test)")
    options.add_argument("--work", type=Path, metavar="DIR", help="where results.json and generate/ go")
    options.add_argument(
        "--record", metavar="DATASET", help="keep the scores in results/DATASET, beside those of models"
    )
    return options


def main(arguments: Sequence[str]) -> None:
    """Scores the baseline and, with ``--work``, keeps its scores and predictions."""
    options = parser().parse_args(arguments)
    data = PreparedData.load(options.data)
    if not data.labelled_texts.is_ranking:
        raise InputError(f"{options.data}: no questions with candidates; prepare them with --group")
    run = None if options.work is None else Run(options.work)
    if run is not None and {"config", "checkpoint"} & run.results.keys():
        raise InputError(f"{options.work}: the results of a model, which would be overwritten; name another --work")
    metric = metric_named(data.preparation.metric)
    references = decoding_of(metric).references(data, options.subset)
    sides = [list(read_lines(data.folder / "tokens" / f"{options.subset}.input{side}")) for side in (0, 1)]
    has_spaces = not has_hardly_spaces(sides[0])
    scores = [str(overlap(question, candidate, has_spaces)) for question, candidate in zip(*sides, strict=True)]
    outputs = Outputs(scores, scores, [[] for _ in scores])
    values = metric.scores(outputs, references)
    if run is not None:
        write_predictions(run.outputs_folder / f"{options.subset}.predicted.tsv", outputs, [])
        kept = values if options.subset == "test" else {"subsets": {options.subset: values}}
        run.update(data=str(data.folder), **kept)
    if options.record is not None:
        statistics = {options.subset: metric.statistics(outputs, references)}
        print(f"record: {recorded_runs.record_baseline(options.record, SYSTEM, values, options.subset, statistics)}")
    row = {"system": "word overlap", "set": options.subset, "candidates": len(scores)}
    print(table([row | {column.label: values[column.key] for column in metric.columns}]))


def overlap(question: str, candidate: str, has_spaces: bool = True) -> int:
    """How many different words of tokenised text another one has; in text without spaces, how many characters."""
    if not has_spaces:
        return len({*unicode_tokens(question)} & {*unicode_tokens(candidate)})
    words = {token for token in question.split() if any(map(str.isalnum, token))}
    return len(words & set(candidate.split()))
