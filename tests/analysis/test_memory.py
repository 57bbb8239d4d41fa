"""The command that counts edges between the past and an output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairseq_plugins.analysis.memory import memories
from fairseq_plugins.errors import InputError

from .commands import run


def test_networks_side_by_side() -> None:
    found = {each.name.split(",")[0].split(" ")[0]: each for each in memories([1, 2, 4], 3)}
    assert found["DilatedRNN"].mean == 4.25 and found["DilatedRNN"].edges_per_node == 1
    assert found["plain"].mean == 5.5 and found["skip"].edges_per_node == 2
    assert found["dilated"].lengths[8] is None, "a convolution ends"
    assert found["Clockwork"].mean == 3.5, "of the worst times: that of a plain network of one layer"
    assert found["MC-RNN"].lengths == [1, 2, 2, 2, 3, 3, 3, 4, 4]


def test_the_command_writes_numbers_and_a_figure(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    run("memory", "--dilations", "2", "4", "--output", str(tmp_path / "memory"))
    assert "DilatedRNN 2, 4" in capsys.readouterr().out
    networks = json.loads((tmp_path / "memory.json").read_text())["networks"]
    assert networks[0]["lengths"][:5] == [3, 3, 4, 4, 4]
    assert (tmp_path / "memory.svg").read_text().startswith("<?xml")
    run("memory", "--dilations", "2", "4", "--channels", "2", "--output", str(tmp_path / "two"))
    assert json.loads((tmp_path / "two.json").read_text())["networks"] != networks


def test_bad_dilations() -> None:
    with pytest.raises(InputError, match="must be at least 1"):
        memories([1, 0], 3)
