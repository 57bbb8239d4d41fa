"""Copy memory's tables and drawing are made of the records' validation losses."""

from __future__ import annotations

import pytest

from fairseq_plugins.documentation import copy_memory
from fairseq_plugins.experiments.records import Record

DILATED = Record("copy_memory_500", "dilated_rnn", seed=1, validation_loss={"200": 1.22, "400": 0.5})
LONGER = Record("copy_memory_1000", "gru", seed=1, validation_loss={"200": 3.0, "400": 2.9996})


def rows(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]


def test_a_row_for_each_network() -> None:
    stacked = Record("copy_memory_500", "stacked_rnn", seed=1, validation_loss={"200": 3.0})
    records = [stacked, LONGER, DILATED, Record("trec", "rcrn", seed=1, validation_loss={"48": 1.0})]
    assert rows(copy_memory.table(records, 500)) == [
        ["network", "cell", "seed", "200", "400"],
        ["---"] * 5,
        ["dilated, 9 layers", "tanh", "1", "1.220", "0.500"],
        ["stacked, 9 layers", "tanh", "1", "3.000", "–"],
    ]
    assert rows(copy_memory.table(records, 1000))[2] == ["plain, 1 layer of 256", "GRU", "1", "3.000", "3.000"]
    assert copy_memory.table(records, 2000) == "Not recorded yet."


def test_the_longest_run_of_a_seed_counts() -> None:
    losses = {str(updates): 0.5 for updates in range(200, 2001, 200)}
    longer, another = (
        Record("copy_memory_500", "dilated_rnn", seed=1, differs={"train": {key: "2000"}}, validation_loss=losses)
        for key in ("max-update", "hidden-size")
    )
    heading, _, *found = rows(copy_memory.table([DILATED, longer], 500))
    assert heading[3:] == ["200", "400", "600", "800", "1,000", "2,000"]
    assert len(found) == 1
    assert copy_memory.table([DILATED, another], 500) == copy_memory.table([DILATED], 500), "another experiment"


@pytest.mark.system
def test_a_line_for_each_network() -> None:
    drawn = copy_memory.picture([DILATED, LONGER], "")
    assert all(text in drawn for text in ("T = 500, tanh", "T = 1,000, GRU", ">dilated<", ">plain<"))
    again = copy_memory.picture([DILATED, LONGER], drawn.replace("dilated", "another"))
    assert again.count("another"), "not drawn anew"
    assert "T = 1,000" not in copy_memory.picture([DILATED], drawn)
    assert copy_memory.picture([], drawn) == drawn, "nothing is recorded"
