"""The benchmark runs and prints ratios. It is never timed here."""

from __future__ import annotations

import json
from pathlib import Path

from tests.commands import CHECKOUT, run_command


def test_epochs_of_three_models(tmp_path: Path) -> None:
    options = ["--steps", "2", "--repetitions", "2", "--json", str(tmp_path / "rows.json")]
    printed = run_command([CHECKOUT / "scripts" / "reproduce.sh", "rcrn_table_10", *options]).stdout
    rows = json.loads((tmp_path / "rows.json").read_text(encoding="utf-8"))["rows"]
    assert {(row["phase"], row["model"]) for row in rows} == {
        (phase, model) for phase in ("training", "inference") for model in ("3-layer BiLSTM", "BiLSTM", "RCRN")
    }
    assert all(row["ratio"] == 1 for row in rows if row["model"] == "3-layer BiLSTM")
    assert all(row["paper_ratio"] is None and row["epoch_seconds"] > 0 for row in rows)
    assert "ratio" in printed and "trained parameters: 3-layer BiLSTM 2," in printed
    assert all(0 < row["parameters"] < 20_000 * 200 for row in rows), "word vectors are not trained"
