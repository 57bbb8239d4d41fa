"""The benchmark of decoding runs and prints its ratios. It is never timed here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands import CHECKOUT, run_command

COMMAND = ["python", str(CHECKOUT / "benchmarks" / "decoding.py")]


@pytest.mark.slow
def test_prints_ratios_and_writes_json(tmp_path: Path) -> None:
    options = [
        "--systems",
        "mc_rnn_iwslt_de_en",
        "--peer",
        "mc_rnn_iwslt_de_en",
        "--types",
        "50",
        "--sentences",
        "1",
        "2",
    ]
    options += ["--hidden-size", "16"]
    options += ["--lengths", "3", "4", "--threads", "1", "--repetitions", "2", "--json", str(tmp_path / "rows.json")]
    printed = run_command([*COMMAND, *options]).stdout
    assert "one step, 5 rows, hidden size 16" in printed
    rows = json.loads((tmp_path / "rows.json").read_text())["rows"]
    assert [row["ratio_to_cell"] for row in rows if row.get("layer") == "torch.nn.LSTMCell"] == [1, 1]
    assert [(row["sentences"], row["length"]) for row in rows if row["work"] == "beam search"] == [
        (sentences, length) for sentences in (1, 2) for length in (3, 4)
    ]


def test_the_peer_must_be_there() -> None:
    options = ["--systems", "mc_rnn_iwslt_de_en"]
    finished = run_command([*COMMAND, *options], status=2)
    assert "--peer lstm_as_rnnsearch is not among the --systems" in finished.stderr
