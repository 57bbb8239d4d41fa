"""The benchmark of whole models runs and prints its ratios. It is never timed here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, str(CHECKOUT / "benchmarks" / "models.py")]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(CHECKOUT), "PYTHONWARNINGS": "ignore"}


def test_prints_ratios_and_writes_json(tmp_path: Path) -> None:
    options = ["--systems", "dpn_iwslt_de_en", "lstm_as_rnnsearch", "san_deeper_iwslt_de_en", "--types", "50"]
    options += ["--train-peer", "san_deeper_iwslt_de_en", "--sentences", "2", "2", "--threads", "1"]
    options += ["--repetitions", "2", "--json", str(tmp_path / "rows.json")]
    printed = subprocess.run([*COMMAND, *options], check=True, capture_output=True, text=True, env=ENVIRONMENT).stdout
    assert "tokens/s" in printed
    rows = json.loads((tmp_path / "rows.json").read_text())["rows"]
    assert [(row["work"], row["arch"]) for row in rows] == [
        (work, arch) for work in ("training", "beam search") for arch in options[1:4]
    ]
    assert [row["ratio_to_peer"] for row in rows if row["arch"] == row["peer"]] == [1, 1]
    assert all(row["speed"] > 0 for row in rows)


def test_a_peer_must_be_there() -> None:
    options = ["--systems", "dpn_iwslt_de_en", "--train-peer", "dpn_iwslt_de_en"]
    finished = subprocess.run([*COMMAND, *options], capture_output=True, text=True, env=ENVIRONMENT)
    assert finished.returncode == 2
    assert "--decode-peer san_deeper_iwslt_de_en is not among the --systems" in finished.stderr
