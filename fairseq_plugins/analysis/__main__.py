"""``python -m fairseq_plugins.analysis COMMAND``: one command for each analysis; ``--help`` lists them.

The numbers are the analyses' (this room), the figures :mod:`fairseq_plugins.report.drawings`': this command, which
nobody imports, puts both together.
"""

from __future__ import annotations

if __name__ == "__main__":
    from fairseq_plugins.startup import prepare_command

    prepare_command()

import argparse
import importlib
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from .. import extensions
from ..errors import InputError, report_input_errors
from ..experiments import results
from ..files import atomic_file, write_json
from ..versions import add_version_argument
from .result import Analysis

COMMANDS = {
    "channel-attention": "which channels of an MC-RNN encoder are attended to at each step (MC-RNN, Figure 3)",
    "alignments": "where a decoder looks in the source (DPN-S2S, Figure 2)",
    "entropy": "how focused that is, over a whole set (DPN-S2S, Table 5)",
    "length": "scores by source length, for several systems (MC-RNN, Figure 4)",
    "compare": "two systems: significance, and the sentences where they differ most (DPN-S2S, Table 6)",
    "seeds": "two systems of results/ over their seeds: the mean difference, and how sure it is",
    "boundaries": "where an HM-RNN encoder sees boundaries in a sentence",
    "memory": "how far the past is from an output, in networks of given dilations (DilatedRNN, Section 3)",
    "speed": "training and decoding speeds, from results.json",
}
FORMATS = ("svg", "png", "pdf")


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs one of :data:`COMMANDS`."""
    arguments = sys.argv[1:] if arguments is None else arguments
    parser = argparse.ArgumentParser(prog="python -m fairseq_plugins.analysis", allow_abbrev=False)
    add_version_argument(parser)
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    modules = {}
    for name, text in COMMANDS.items():
        subparser = subparsers.add_parser(
            name, help=text, description=f"{text[0].upper()}{text[1:]}.", allow_abbrev=False
        )
        # The others would only be waited for.
        if name in arguments[:1]:
            extensions.load()
            # Here, before the analysis imports the models, which make options of the layers that there are.
            results.load_extensions_of(part for part in arguments if part.endswith(".pt"))
            modules[name] = importlib.import_module(f"{__package__}.{name.replace('-', '_')}")
            modules[name].add_arguments(subparser)
            subparser.add_argument(
                "--output", required=True, metavar="PREFIX", help="PREFIX.json takes the numbers, PREFIX.svg the figure"
            )
            subparser.add_argument(
                "--format", choices=FORMATS, default="svg", help="the figure's format (default: svg)"
            )
    parsed = parser.parse_args(arguments)
    check_prefix(parsed.output)
    # fairseq reports at INFO that it loads a checkpoint and that optional packages are missing.
    logging.disable(logging.INFO)
    write(parsed.command, modules[parsed.command].run(parsed), parsed.output, parsed.format)


def check_prefix(prefix: str) -> None:
    """Whether :func:`write` can take a prefix, to be asked before the work begins.

    Raises:
        InputError: it names a folder.
    """
    if prefix.endswith(os.sep) or not Path(prefix).name or Path(prefix).is_dir():
        raise InputError(
            f"--output {prefix} is a folder; add the beginning of a file name, as in {prefix or '.'}/figure"
        )


def write(command: str, analysis: Analysis, prefix: str, kind: str) -> None:
    """Writes an analysis' figures, and its numbers as JSON beside them, and prints what it found.

    After an error while figures are drawn nothing is there.

    Args:
        command: one of :data:`COMMANDS`.
        analysis: what it found.
        prefix: of the files' names; folders that do not exist are made.
        kind: of the figures, one of :data:`FORMATS`.
    """
    from ..report.drawings import DRAWINGS
    from ..report.style import rendered

    figures = {
        f"{prefix}{panel.ending}.{kind}": rendered(DRAWINGS[command](panel.content), kind) for panel in analysis.panels
    }
    write_json(f"{prefix}.json", analysis.numbers)
    for path, content in figures.items():
        with atomic_file(path, "wb") as stream:
            stream.write(content)
    lines = []
    for path, panel in zip(figures, analysis.panels, strict=True):
        # Of several figures each is named.
        lines += [*([path] if panel.ending else []), *panel.lines]
    print("\n".join([*lines, *([analysis.text] if analysis.text else [])]))


if __name__ == "__main__":
    report_input_errors(main)
