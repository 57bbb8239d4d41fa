"""What a data set is to ``fairseq-plugins prepare``: a row of the table :data:`.data_sets.DATA_SETS`."""

from __future__ import annotations

import argparse
import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

from fairseq_plugins.command_parser import CommandParser
from fairseq_plugins.corpora.preparation import Preparation

Source = TypeVar("Source")


@dataclasses.dataclass(frozen=True)
class DataSet(ABC, Generic[Source]):
    """A row of the table; a subclass for each kind of data prepares what a row's ``source`` makes.

    Attributes:
        summary: what it is, in half a sentence
        source: the options, and a folder for what is made on the way → what is to be prepared
        options: its own → the arguments of :meth:`argparse.ArgumentParser.add_argument`
        choices: fields of the record, which the kind's :class:`.Preparation` explains
        description: what the command does
        examples: of its options
        notes: what else is to be known
    """

    summary: str
    source: Callable[[argparse.Namespace, Path], Source]
    options: Mapping[str, Mapping[str, Any]]
    choices: Mapping[str, Any]
    description: str
    examples: tuple[str, ...]
    notes: str = ""

    def parser(self, name: str) -> CommandParser:
        """The command line of the row of this name."""
        parser = CommandParser(f"prepare {name}", self.description, self.examples, self.notes)
        for option, arguments in self.options.items():
            parser.add_argument(option, **arguments)
        self.add_arguments(parser)
        return parser

    @abstractmethod
    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Adds the options of the kind."""

    @abstractmethod
    def prepare(self, name: str, options: argparse.Namespace, folder: Path) -> None:
        """Prepares the row of this name; ``folder`` is for what is made on the way."""


def named_fields(record: type[Preparation], options: argparse.Namespace) -> dict[str, Any]:
    """The options that are called as fields of a record."""
    names = {field.name for field in dataclasses.fields(record)}
    return {name: value for name, value in vars(options).items() if name in names}


def path_option(metavar: str, text: str, required: bool = True) -> dict[str, Any]:
    """How an option is read whose value is a path."""
    return {"type": Path, "required": required, "metavar": metavar, "help": text}
