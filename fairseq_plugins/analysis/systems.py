"""What systems wrote for one test set, as the commands that compare them are given it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import InputError
from ..files import read_lines
from ..scoring.metrics import Metric, Outputs, References, all_metrics, metrics_named
from ..scoring.significance import SEED


@dataclass(frozen=True)
class Systems:
    """A test set of N sentences and what systems made of it.

    Attributes:
        source: N sentences.
        references: one or several for each.
        outputs: of each system, by its name, in the order that was given.
        metric: what they are scored by.
        further: what else they are scored by.
        remarks: on how it scores them, a line each.
    """

    source: list[str]
    references: References
    outputs: dict[str, Outputs]
    metric: Metric
    further: list[Metric]
    remarks: list[str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options that name a test set's files, and what they are scored by."""
    parser.add_argument("--source", required=True, metavar="FILE", type=Path, help="the sentences, one on each line")
    parser.add_argument(
        "--reference",
        required=True,
        nargs="+",
        metavar="FILE",
        type=Path,
        help="what they should become; the ending says the language: test.zh",
    )
    parser.add_argument(
        "--system",
        required=True,
        nargs="+",
        action="extend",
        metavar="NAME=FILE",
        help="what a system made of them; others are compared with the first",
    )
    metrics = all_metrics()
    names = ", ".join(metric.name for metric in metrics)
    parser.add_argument(
        "--metric",
        "--metrics",
        default="bleu",
        metavar="NAME[,NAME]",
        help=f"{names}; sentences are compared by the first; default: bleu",
    )
    for metric in metrics:
        metric.add_arguments(parser)
    parser.add_argument("--seed", type=int, default=SEED, help=f"of the bootstrap (default: {SEED})")


def load(arguments: argparse.Namespace) -> Systems:
    """Reads the files that the options of :func:`add_arguments` name.

    Raises:
        InputError: a file is missing, empty, or has another number of lines than the source; a system has no name, or
            another's; the seed is below 1; an option is another metric's.
    """
    metric, *further = _metrics(arguments)
    if arguments.seed < 1:
        raise InputError(f"--seed {arguments.seed}: the bootstrap takes seeds from 1 on; give another")
    files: dict[str, Path] = {}
    for argument in arguments.system:
        name, separator, file = argument.partition("=")
        if not (name and separator and file):
            raise InputError(f"--system {argument}: not NAME=FILE; write for example --system MC-RNN=test.tok.en")
        if name in files:
            raise InputError(f"--system {argument}: {name} is {files[name]} already; give every system its own name")
        files[name] = Path(file)
    source = list(read_lines(arguments.source))
    if not source:
        raise InputError(f"{arguments.source}: empty; give the sentences of a test set")
    references = [
        _parallel(file, list(read_lines(file)), arguments.source, len(source)) for file in arguments.reference
    ]
    outputs = {name: metric.read(file) for name, file in files.items()}
    for name, file in files.items():
        _parallel(file, outputs[name].text, arguments.source, len(source))
    lowercase = getattr(arguments, "lowercase", False)
    language = arguments.reference[0].suffix.removeprefix(".")
    expected = References(references, references, lowercase, language)
    remarks = [remark for scored in (metric, *further) for remark in scored.remarks(expected)]
    return Systems(source, expected, outputs, metric, further, remarks)


def _metrics(arguments: argparse.Namespace) -> list[Metric]:
    """The metrics that were asked for, as their options want them; the main one first."""
    metrics = metrics_named(arguments.metric, "--metric")
    label = " and ".join(metric.label for metric in metrics)
    options = {name for metric in metrics for name in metric.options}
    tokenize_options = {metric.tokenize_option for metric in metrics}
    for other in all_metrics():
        if any(getattr(arguments, name.replace("-", "_")) for name in set(other.options) - options):
            shown = " and ".join(f"--{name}" for name in other.options)
            raise InputError(f"{shown} are {other.label}'s, and {label} has none of them; leave them out")
        option = other.tokenize_option
        if option not in tokenize_options and getattr(arguments, option.replace("-", "_"), None):
            raise InputError(f"--{option} is {other.label}'s, and {label} has none; leave it out")
    return [metric.configured(arguments) for metric in metrics]


def _parallel(file: Path, lines: Sequence[str], source: Path, count: int) -> Sequence[str]:
    """The lines of a file, as many as the source has."""
    if len(lines) != count:
        raise InputError(
            f"{file} has {len(lines):,} lines, but {source} has {count:,}; each line must belong to that of the source"
        )
    return lines
