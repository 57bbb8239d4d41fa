"""What ``fairseq-plugins prepare`` knows by name, and the table of data sets, :data:`DATA_SETS`.

A new data set of a kind that is there is a row of ``text_data_sets``, ``reading_data_sets`` or ``audio_data_sets``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fairseq_plugins.command_parser import Command, CommandParser
from fairseq_plugins.corpora.audio_data_sets import AUDIO_SETS
from fairseq_plugins.corpora.data_set import DataSet
from fairseq_plugins.corpora.reading_data_sets import READING_SETS
from fairseq_plugins.corpora.text_data_sets import TEXT_SETS

DATA_SETS: Mapping[str, DataSet[Any]] = {**TEXT_SETS, **READING_SETS, **AUDIO_SETS}

PREPARATIONS = {
    "parallel": Command("corpora.parallel_text", "parallel text of your own"),
    "text": Command("corpora.running_text", "running text of your own, for language models"),
    "labelled_texts": Command("corpora.labelled_tables", "labelled texts of your own: a table or JSON lines"),
    "iwslt14_de_en": Command("corpora.iwslt14", "IWSLT'14 German-English"),
    "nist_zh_en": Command("corpora.nist", "NIST Chinese-English"),
    "gigaword": Command("corpora.gigaword", "Gigaword headlines"),
    "ptb": Command("corpora.ptb", "Penn Treebank, words or characters"),
    "copy_memory": Command("corpora.generated_sequences", "the copy memory problem", "copy_memory"),
    "pixels": Command("corpora.generated_sequences", "MNIST's digits, pixel by pixel", "pixels"),
    **{name: Command("corpora.data_sets", data_set.summary, name) for name, data_set in DATA_SETS.items()},
}
"""What ``fairseq-plugins prepare`` knows: a user's own text, data sets with steps of their own, the table's rows."""


def parsers() -> dict[str, CommandParser]:
    """The command lines of the table's rows."""
    return {name: data_set.parser(name) for name, data_set in DATA_SETS.items()}


def main(arguments: Sequence[str]) -> None:
    """Prepares the row whose name comes first."""
    name, *remaining = arguments
    data_set = DATA_SETS[name]
    options = data_set.parser(name).parse_args(remaining)
    with tempfile.TemporaryDirectory() as folder:
        data_set.prepare(name, options, Path(folder))
