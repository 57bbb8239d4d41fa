"""The benchmark of operations runs, and both candidates compute the same, but for dropout. It is never timed here."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import torch

from tests.commands import CHECKOUT, run_command

sys.path.insert(0, str(CHECKOUT / "benchmarks"))

from operations import operations  # noqa: E402

COMMAND = ["python", str(CHECKOUT / "benchmarks" / "operations.py")]


@pytest.mark.slow
def test_prints_ratios_and_writes_json(tmp_path: Path) -> None:
    options = ["--tiny", "--threads", "1", "--repetitions", "2", "--json", str(tmp_path / "rows.json")]
    printed = run_command([*COMMAND, *options]).stdout
    assert "linear map, 8 x 4 -> 6" in printed and "additive attention" in printed
    rows = json.loads((tmp_path / "rows.json").read_text())["rows"]
    assert {row["candidate"] for row in rows} == {"PyTorch", "ours"} and len(rows) == 8


def test_both_candidates_have_the_same_gradients() -> None:
    compared = operations(is_tiny=True)
    assert len(compared) == 4
    for name, (given, candidates) in compared.items():
        if name != "dropout":  # at random
            ours, theirs = (torch.autograd.grad(run(), given) for run in candidates.values())
            torch.testing.assert_close(ours, theirs)
