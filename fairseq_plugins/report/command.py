"""``fairseq-plugins report``: a page about one experiment, or about several side by side."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from ..command_parser import CommandParser
from ..errors import InputError
from ..experiments.run import Run

_NOTES = """\
The file needs nothing else, no network either. Sample translations need the prepared data that the model was trained on
to be where it was."""


def parser() -> CommandParser:
    """The command line."""
    options = CommandParser(
        "report",
        "Writes an experiment's report, and prints where it is: one HTML file with its scores, learning curves, "
        "sample translations and commands.",
        ("work/quickstart/mc_rnn_3", "MC-RNN=work/a/mc_rnn_3 RNNSearch=work/a/rnnsearch --output report.html"),
        _NOTES,
    )
    options.add_argument(
        "work",
        nargs="+",
        metavar="WORK or NAME=WORK",
        help="the work folder of 'train' and 'evaluate'; several experiments are put side by side, under these names",
    )
    options.add_argument(
        "--output", type=Path, metavar="FILE", help="the report (default, of one experiment: WORK/report.html)"
    )
    options.add_argument("--title", metavar="TEXT", help="of the page")
    options.add_argument("--subtitle", metavar="TEXT", help="the line below the title")
    options.add_argument("--notice", metavar="TEXT", help="what must not be overlooked")
    return options


def main(arguments: Sequence[str]) -> None:
    """Writes the report and prints where."""
    options = parser().parse_args(arguments)
    works = dict(map(named, options.work))
    if len(works) < len(options.work):
        raise InputError(f"{' '.join(options.work)}: two have one name; give others, as in NAME=WORK")
    runs = {name: Run.required(work) for name, work in works.items()}
    output = options.output or (next(iter(works.values())) / "report.html" if len(works) == 1 else None)
    if output is None:
        raise InputError("--output is missing: say where the report of several experiments goes")
    if output.is_dir():
        raise InputError(f"--output {output} is a folder; name a file in it")

    # Not at the head of the file: what is wrong in the arguments is said before PyTorch is there.
    from . import page
    from .experiment import attention_figures, experiment_report, spread_samples, systems_report

    if len(runs) == 1:
        [run] = runs.values()
        samples = spread_samples(run)
        report = experiment_report(run, attention_figures(run) if samples else [], samples)
        texts = {"title": options.title, "subtitle": options.subtitle, "notice": options.notice}
        report = dataclasses.replace(report, **{name: text for name, text in texts.items() if text is not None})
    else:
        title, subtitle = options.title or " and ".join(runs), options.subtitle or "Several systems side by side"
        report = systems_report(runs, title, subtitle, options.notice)
    page.write(report, output)
    print(output)


def named(argument: str) -> tuple[str, Path]:
    """A system and its work folder, out of ``NAME=WORK`` or ``WORK``, whose name is that of the folder."""
    name, equals, folder = argument.partition("=")
    if not equals or Path(argument).is_dir():
        return Path(argument).name, Path(argument)
    return name, Path(folder)
