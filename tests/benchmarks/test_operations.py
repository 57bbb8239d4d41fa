"""The benchmark of operations runs, and both candidates compute the same, but for dropout. It is never timed here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, str(CHECKOUT / "benchmarks" / "operations.py")]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(CHECKOUT), "PYTHONWARNINGS": "ignore"}

SAME = """
import torch, operations
for name, (given, candidates) in operations.operations(True).items():
    if name == "dropout":  # at random
        continue
    ours, theirs = (torch.autograd.grad(run(), given) for run in candidates.values())
    torch.testing.assert_close(ours, theirs)
    print(name)
"""


def test_prints_ratios_and_writes_json(tmp_path: Path) -> None:
    options = ["--tiny", "--threads", "1", "--repetitions", "2", "--json", str(tmp_path / "rows.json")]
    printed = subprocess.run([*COMMAND, *options], check=True, capture_output=True, text=True, env=ENVIRONMENT).stdout
    assert "linear map, 8 x 4 -> 6" in printed and "additive attention" in printed
    rows = json.loads((tmp_path / "rows.json").read_text())["rows"]
    assert {row["candidate"] for row in rows} == {"PyTorch", "ours"} and len(rows) == 8


def test_both_candidates_have_the_same_gradients() -> None:
    path = os.pathsep.join([str(CHECKOUT), str(CHECKOUT / "benchmarks")])
    finished = subprocess.run(
        [sys.executable, "-c", SAME],
        check=True,
        capture_output=True,
        text=True,
        env={**ENVIRONMENT, "PYTHONPATH": path},
    )
    assert finished.stdout.splitlines()[-1] == "additive attention" and len(finished.stdout.splitlines()) == 3
