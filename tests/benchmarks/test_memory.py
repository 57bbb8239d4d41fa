"""The benchmark of memory: what it measures, and its table."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from fairseq_plugins.errors import InputError
from tests.commands import CHECKOUT, run_command

sys.path.insert(0, str(CHECKOUT / "benchmarks"))

import memory  # noqa: E402


def test_the_most_that_was_held_at_once() -> None:
    def run() -> None:
        for _ in range(2):
            held = bytearray(64 * memory.MIB)
            del held

    before = bytearray(32 * memory.MIB)
    assert 60 <= memory.alone(lambda: memory.peak(run)) / memory.MIB <= 80
    del before


def test_a_process_that_is_killed() -> None:
    with pytest.raises(InputError, match="a measurement ended with status 3"):
        memory.alone(lambda: os._exit(3))


def test_a_process_over_its_budget() -> None:
    with pytest.raises(memory.OverBudgetError, match="took more than 1 s"):
        memory.alone(lambda: sum(iter(int, 1)), 1)
    assert memory.alone(lambda: 5, 1) == 5


def test_one_of_the_two_sizes_is_varied_at_a_time() -> None:
    assert memory.sizes([1, 2, 3], [5, 6]) == [(1, 5), (2, 5), (3, 5), (2, 6)]
    assert memory.sizes([1], [5, 6]) == [(1, 5), (1, 6)]


@pytest.mark.slow
def test_prints_a_table_and_writes_json(tmp_path: Path) -> None:
    command = ["python", str(CHECKOUT / "benchmarks" / "memory.py"), "--systems", "dpn_iwslt_de_en", "dpn_checkpointed"]
    command += ["transformer_as_dpn", "--tokens", "3000", "--types", "20", "--json", str(tmp_path / "rows.json")]
    assert "| model | 3,000 tokens, 20 types |" in run_command(command).stdout
    whole, checkpointed, peer = json.loads((tmp_path / "rows.json").read_text())["rows"]
    assert checkpointed["bytes"] < 0.8 * whole["bytes"]
    assert whole["ratio_to_peer"] == whole["bytes"] / peer["bytes"] and peer["ratio_to_peer"] == 1
