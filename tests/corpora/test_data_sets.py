"""The one table of data sets."""

from __future__ import annotations

import argparse
import dataclasses

import pytest

from fairseq_plugins.corpora.audio_data_sets import AUDIO_SETS
from fairseq_plugins.corpora.data_set import named_fields
from fairseq_plugins.corpora.data_sets import DATA_SETS, PREPARATIONS, parsers
from fairseq_plugins.corpora.reading_comprehension import ReadingPreparation
from fairseq_plugins.corpora.reading_data_sets import READING_SETS
from fairseq_plugins.corpora.text_data_sets import TEXT_SETS


def test_no_row_takes_the_place_of_another() -> None:
    assert len(DATA_SETS) == len(TEXT_SETS) + len(READING_SETS) + len(AUDIO_SETS)
    assert DATA_SETS.keys() == {name for name, one in PREPARATIONS.items() if one.module == "corpora.data_sets"}


@pytest.mark.parametrize("name", DATA_SETS)
def test_each_row_is_a_command(name: str) -> None:
    row, parser = DATA_SETS[name], parsers()[name]
    assert PREPARATIONS[name].summary == row.summary
    options = parser._option_string_actions
    assert {*row.options, "--output", "--workers", "--seed"} <= options.keys()
    assert all(example.startswith("--") for example in row.examples) and row.examples


def test_options_that_are_called_as_fields_go_to_the_record() -> None:
    options = argparse.Namespace(tokenizer="moses", max_answer=7, train="file", output="folder")
    assert named_fields(ReadingPreparation, options) == {"tokenizer": "moses", "max_answer": 7}
    assert {"train", "output"}.isdisjoint(field.name for field in dataclasses.fields(ReadingPreparation))
