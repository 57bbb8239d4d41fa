"""The benchmark of whole models runs and prints its ratios. It is never timed here."""

from __future__ import annotations

import json
from pathlib import Path

from tests.commands import CHECKOUT, run_command

COMMAND = ["python", str(CHECKOUT / "benchmarks" / "models.py")]


def test_prints_ratios_and_writes_json(tmp_path: Path) -> None:
    options = ["--systems", "dpn_iwslt_de_en", "lstm_as_rnnsearch", "san_deeper_iwslt_de_en", "--types", "50"]
    options += ["--train-peer", "san_deeper_iwslt_de_en", "--sentences", "2", "2", "--threads", "1"]
    options += ["--repetitions", "2", "--json", str(tmp_path / "rows.json")]
    printed = run_command([*COMMAND, *options]).stdout
    assert "tokens/s" in printed
    rows = json.loads((tmp_path / "rows.json").read_text())["rows"]
    assert [(row["work"], row["arch"]) for row in rows] == [
        (work, arch) for work in ("training", "beam search") for arch in options[1:4]
    ]
    assert [row["ratio_to_peer"] for row in rows if row["arch"] == row["peer"]] == [1, 1]
    assert all(row["speed"] > 0 for row in rows)


def test_a_peer_must_be_there() -> None:
    options = ["--systems", "dpn_iwslt_de_en", "--train-peer", "dpn_iwslt_de_en"]
    finished = run_command([*COMMAND, *options], status=2)
    assert "--decode-peer san_deeper_iwslt_de_en is not among the --systems" in finished.stderr
