"""The benchmark of scaling writes its figures, its plot and its report. It is never timed here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands import CHECKOUT, run_command


def test_writes_plot_and_report(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra plot)")
    command = ["python", str(CHECKOUT / "benchmarks" / "scaling.py"), "--tiny", "--threads", "1"]
    command += ["--repetitions", "2", "--output", str(tmp_path)]
    run_command(command)
    rows = json.loads((tmp_path / "scaling_cpu.json").read_text())["rows"]
    assert [row["axis"] for row in rows] == ["steps"] * 2 + ["channels"] * 2 + ["hidden"] * 2 + ["batch"] * 2
    assert "linear in T" in (tmp_path / "scaling_cpu.md").read_text()
    assert "</svg>" in (tmp_path / "scaling_cpu.svg").read_text()
