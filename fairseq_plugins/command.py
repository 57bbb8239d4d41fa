"""The one command, ``fairseq-plugins``; ``python -m fairseq_plugins`` is the same.

What a command needs is imported when it is the one that runs: help does not wait for PyTorch.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence

from .command_parser import PROGRAM, Command
from .errors import InputError, nearest, report_input_errors
from .missing import explain_missing_packages
from .startup import prepare_command
from .versions import add_version_argument

COMMANDS = {
    "quickstart": Command("experiments.quickstart", "train two models on a built-in corpus, translate, score"),
    "train": Command("experiments.train", "train the model of a configuration"),
    "evaluate": Command("experiments.evaluate", "translate or classify a test set, and score it"),
    "translate": Command("experiments.translate", "translate the standard input with a trained model"),
    "predict": Command("experiments.predict", "classify the standard input with a trained model"),
    "perplexity": Command("experiments.language_models", "how probable a text is to a language model", "perplexity"),
    "generate-text": Command("experiments.language_models", "draw text from a language model", "generate-text"),
    "report": Command("report.command", "write an HTML page about one experiment, or several"),
    "reproduce": Command("tables.workflow", "train and evaluate every row of a paper's table"),
    "analysis": Command("report.analyses", "where models look, significance, scores by length, …"),
    "export": Command("export.command", "a trained model as a folder that runs without PyTorch and fairseq"),
    "serve": Command("serving.command", "exported models behind LibreTranslate's HTTP interface, and a page"),
    "average": Command("checkpoints", "average checkpoints of one training"),
    "word-overlap": Command("experiments.word_overlap", "the baseline that a ranker has to beat"),
    "options": Command("options", "the options of an architecture or a recurrent layer"),
    "check": Command("installation", "what works here, and what each layer runs on"),
    "completion": Command("completion", "print a script that completes these commands in a shell"),
}
PREPARE = "prepare a data set, or text of your own"


def main() -> None:
    """Runs the command line."""
    prepare_command()
    # fairseq's parsers report at INFO that a user dir is imported and that optional packages are missing.
    logging.disable(logging.INFO)
    report_input_errors(lambda: run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> None:
    """Runs one command.

    Raises:
        InputError: something that the user gave cannot be used, or a package is not installed.
    """
    with explain_missing_packages():
        command, remaining = _chosen(arguments)
        command.run(remaining)


def _chosen(arguments: Sequence[str]) -> tuple[Command, Sequence[str]]:
    if arguments[:1] == ["prepare"]:
        from .corpora.data_sets import PREPARATIONS

        summaries = {name: command.summary for name, command in PREPARATIONS.items()}
        return _named(PREPARATIONS, arguments[1:], _parser("prepare", "NAME", summaries))
    summaries = {"prepare": PREPARE}
    summaries |= {name: command.summary for name, command in COMMANDS.items()}
    return _named(COMMANDS, arguments, _parser("", "COMMAND", summaries))


def _named(
    commands: dict[str, Command], arguments: Sequence[str], parser: argparse.ArgumentParser
) -> tuple[Command, Sequence[str]]:
    if not arguments:
        parser.print_help(sys.stderr)
        sys.exit(2)
    name, *remaining = arguments
    if name in commands:
        return commands[name], remaining
    if name.startswith("-"):
        parser.parse_args([name])
    hint = nearest(name, commands) or f"; '{parser.prog} --help' lists them"
    raise InputError(f"there is no {parser.prog} {name}{hint}")


def _parser(name: str, what: str, summaries: dict[str, str]) -> argparse.ArgumentParser:
    width = max(map(len, summaries)) + 2
    lines = [f"  {word:<{width}}{summary}" for word, summary in summaries.items()]
    program = f"{PROGRAM} {name}".rstrip()
    parser = argparse.ArgumentParser(
        prog=program,
        usage=f"{program} {what} ...",
        description="\n".join([f"{what} is one of", "", *lines, "", f"'{program} {what} --help' says more of one."]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_version_argument(parser)
    return parser
