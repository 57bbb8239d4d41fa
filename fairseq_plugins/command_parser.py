"""What a command is, and how its options are read and shown. Standard library only."""

from __future__ import annotations

import argparse
import importlib
import sys
import textwrap
from collections.abc import Sequence
from types import ModuleType
from typing import NamedTuple

from .versions import add_version_argument

PROGRAM = "fairseq-plugins"
_WIDTH = 110


class Command(NamedTuple):
    """One of the commands.

    Attributes:
        module: below this package; it has ``main(arguments)``, and ``parser()``, which reads them
        summary: what it does, in half a sentence
        name: of the command in a module that has several
    """

    module: str
    summary: str
    name: str | None = None

    def run(self, arguments: Sequence[str]) -> None:
        """Runs it."""
        self._load().main(arguments if self.name is None else [self.name, *arguments])

    def parser(self) -> argparse.ArgumentParser:
        """Its options."""
        module = self._load()
        return module.parser() if self.name is None else module.parsers()[self.name]

    def _load(self) -> ModuleType:
        return importlib.import_module(f".{self.module}", __package__)


class CommandParser(argparse.ArgumentParser):
    """The options of ``fairseq-plugins <name>``.

    Args:
        name: of the command, such as ``train`` or ``prepare trec``
        description: what it does
        examples: of its use, without ``fairseq-plugins <name>``
        notes: what else is to be known, below the options; lines stay as they are
        passes_on_to: a command of fairseq's that gets the options which are not ours
    """

    def __init__(
        self, name: str, description: str, examples: Sequence[str] = (), notes: str = "", passes_on_to: str = ""
    ) -> None:
        shown = "\n".join(["examples:", *(f"  {PROGRAM} {name} {example}" for example in examples)]) if examples else ""
        super().__init__(
            prog=f"{PROGRAM} {name}",
            description=textwrap.fill(description, _WIDTH),
            epilog="\n\n".join(filter(None, [notes, shown])),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        self._passes_on_to = passes_on_to
        add_version_argument(self)

    def format_usage(self) -> str:
        """See :meth:`argparse.ArgumentParser.format_usage`."""
        return self._with_options_of_others(super().format_usage())

    def format_help(self) -> str:
        """See :meth:`argparse.ArgumentParser.format_help`."""
        usage = super().format_usage()
        return super().format_help().replace(usage, self._with_options_of_others(usage), 1)

    def parse_and_pass_on(self, arguments: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
        """Our options, and what is left of the others for fairseq's command.

        What is no option of ours may be the value of one that is fairseq's: our one argument comes first.
        """
        if not arguments:
            self.print_help(sys.stderr)
            sys.exit(2)
        if arguments[0].startswith("-") and arguments[0] not in ("-h", "--help", "--version"):
            first = next(action for action in self._actions if not action.option_strings)
            self.error(f"{first.metavar} comes first, before {arguments[0]}")
        return self.parse_known_args(arguments)

    def _with_options_of_others(self, usage: str) -> str:
        return f"{usage.rstrip()} [{self._passes_on_to.upper()} OPTIONS ...]\n" if self._passes_on_to else usage


def flag(name: str) -> str:
    """The option of a field: ``embed_dim`` is ``--embed-dim``."""
    return f"--{name}".replace("_", "-")
