"""The benchmark compares layers that compute the same, and prints its figures. It is never timed here."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import torch

from fairseq_plugins.modules import MultiChannelRNN
from tests.commands import CHECKOUT, run_command

sys.path.insert(0, str(CHECKOUT / "benchmarks"))

from recurrent_layers import PerChannelLoop  # noqa: E402


def test_the_peer_computes_the_same() -> None:
    torch.manual_seed(0)
    layer = MultiChannelRNN(3, 5, 3, connection_init="orthogonal")
    x = torch.randn(7, 2, 3)
    torch.testing.assert_close(PerChannelLoop(layer)(x), layer(x).output)


@pytest.mark.slow
def test_prints_ratios_and_writes_json(tmp_path: Path) -> None:
    command = [
        "python",
        str(CHECKOUT / "benchmarks" / "recurrent_layers.py"),
        "--sizes",
        "tiny",
        "--threads",
        "1",
    ]
    command += ["--repetitions", "3", "--json", str(tmp_path / "rows.json")]
    printed = run_command(command).stdout
    assert "MC-RNN-3 training step, cpp" in printed
    rows = json.loads((tmp_path / "rows.json").read_text())["rows"]
    assert {row["pass"] for row in rows} == {"forward", "forward+backward"}
    assert all(row["ratio_to_lstm"] == 1 for row in rows if row["layer"] == "torch.nn.LSTM")


def test_chosen_layers(tmp_path: Path) -> None:
    command = [
        "python",
        str(CHECKOUT / "benchmarks" / "recurrent_layers.py"),
        "--sizes",
        "tiny",
        "--threads",
        "1",
    ]
    command += ["--repetitions", "3", "--backends", "eager", "--bfloat16", "--json", str(tmp_path / "rows.json")]

    def layers(*more: str) -> set[str]:
        run_command([*command, *more])
        return {row["layer"] for row in json.loads((tmp_path / "rows.json").read_text())["rows"]}

    found = layers()
    assert "MC-RNN-3, eager, bfloat16" in found and not any("cpp" in layer for layer in found)
    assert layers("--layers", "MC-RNN-3, eager") == {"torch.nn.LSTM", "MC-RNN-3, eager"}
