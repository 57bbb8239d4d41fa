"""The benchmark runs and prints ratios. It is never timed here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands import CHECKOUT, run_command


@pytest.mark.slow
def test_prints_ratios_and_writes_json(tmp_path: Path) -> None:
    command = ["python", str(CHECKOUT / "benchmarks" / "rcrn_and_dilated.py"), "--threads", "1", "--steps", "2"]
    command += ["--dilations", "2", "--cells", "gru", "--features", "4", "--repetitions", "2"]
    command += ["--networks", "rcrn", "dilated", "waveform", "--samples", "70", "--json", str(tmp_path / "rows.json")]
    printed = run_command(command).stdout
    assert "RCRN, 2 steps, 1 threads" in printed
    rows = json.loads((tmp_path / "rows.json").read_text())["rows"]
    assert {row["pass"] for row in rows} == {"forward", "forward+backward"}
    assert {row["layer"] for row in rows} >= {"RCRN", "DilatedRNN, dilation 2", "DilatedRNNStack"}
    references = ("3-layer BiLSTM", "torch.nn.GRU", "torch.nn.GRU, 1 layers", "torch.nn.GRU, 8 layers")
    assert {row["layer"] for row in rows} >= {"dilations 8 to 1,024", "dilations 32 to 1,024"}
    assert {row["layer"] for row in rows} >= set(references)
    assert all(row["ratio"] == 1 for row in rows if row["layer"] in references)
