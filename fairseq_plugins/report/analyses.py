"""``fairseq-plugins analysis COMMAND``: one command for each analysis; ``--help`` lists them.

The numbers are the analyses', the figures :mod:`.drawings`': this puts both together.
"""

from __future__ import annotations

import argparse
import importlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

from .. import extensions
from ..analysis.result import Analysis
from ..checkpoints import load_extensions_of
from ..command_parser import CommandParser
from ..errors import InputError
from ..files import atomic_file, write_json

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
_ANALYSES = f"{__package__.rpartition('.')[0]}.analysis"
FORMATS = ("svg", "png", "pdf")


def parser() -> CommandParser:
    """The command line, without the options of the single analyses."""
    return _parser({})


def main(arguments: Sequence[str]) -> None:
    """Runs one of :data:`COMMANDS`."""
    modules = {}
    # The others would only be waited for.
    if (name := "".join(arguments[:1])) in COMMANDS:
        extensions.load()
        # Here, before the analysis imports the models, which make options of the layers that there are.
        load_extensions_of(part for part in arguments if part.endswith(".pt"))
        modules[name] = importlib.import_module(f"{_ANALYSES}.{name.replace('-', '_')}")
    parsed = _parser(modules).parse_args(arguments)
    check_prefix(parsed.output)
    write(parsed.command, modules[parsed.command].run(parsed), parsed.output, parsed.format)


def _parser(modules: Mapping[str, ModuleType]) -> CommandParser:
    """The command line of analyses.

    Args:
        modules: the analyses whose options are to be known, by their commands
    """
    options = CommandParser("analysis", "Figures and numbers: what trained models do, and how their outputs differ.")
    commands = options.add_subparsers(
        dest="command", required=True, metavar="COMMAND", parser_class=argparse.ArgumentParser
    )
    for name, text in COMMANDS.items():
        command = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.", allow_abbrev=False)
        if name in modules:
            modules[name].add_arguments(command)
            command.add_argument(
                "--output", required=True, metavar="PREFIX", help="PREFIX.json takes the numbers, PREFIX.svg the figure"
            )
            command.add_argument("--format", choices=FORMATS, default="svg", help="the figure's format (default: svg)")
    return options


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
    from .drawings import DRAWINGS
    from .style import rendered

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
