"""The benchmark of scaling writes its figures, its plot and its report. It is never timed here."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands import CHECKOUT, run_command

sys.path.insert(0, str(CHECKOUT / "benchmarks"))

import memory  # noqa: E402
import scaling  # noqa: E402
import scaling_models  # noqa: E402


@pytest.mark.slow
def test_writes_plot_and_report(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra plot)")
    command = ["python", str(CHECKOUT / "benchmarks" / "scaling.py"), "--tiny", "--threads", "1"]
    command += ["--repetitions", "2", "--output", str(tmp_path)]
    run_command(command)
    rows = json.loads((tmp_path / "scaling_cpu.json").read_text())["rows"]
    assert [row["axis"] for row in rows] == ["steps"] * 2 + ["channels"] * 2 + ["hidden"] * 2 + ["batch"] * 2
    assert "linear in T" in (tmp_path / "scaling_cpu.md").read_text()
    assert "</svg>" in (tmp_path / "scaling_cpu.svg").read_text()


def test_whole_models_within_a_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An update takes as many seconds as there are tokens, a search the square: of 400 tokens both are left out."""

    def alone(measure: Callable[[], dict[str, float]], budget: int) -> dict[str, float]:
        figures = measure()
        if figures.get("update", figures.get("search")) > budget:
            raise memory.OverBudgetError
        return figures

    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra plot)")
    monkeypatch.setattr(scaling_models, "alone", alone)
    monkeypatch.setattr(
        scaling_models, "measure_update", lambda _, size, __: {"update": size["length"], "memory": 5 * 2**20}
    )
    monkeypatch.setattr(scaling_models, "measure_search", lambda _, size, __: {"search": size["length"] ** 2})
    command = ["scaling.py", "--models", "--tiny", "--threads", "1", "--budget", "300", "--output", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", command)
    scaling.main()
    rows = json.loads((tmp_path / "scaling_models_cpu.json").read_text())["rows"]
    of_length = [row for row in rows if row["axis"] == "length" and row["arch"] == "lstm_as_rnnsearch"]
    assert [(row["update"], row["search"]) for row in of_length] == [(2, 4), (4, 16), (None, None)]
    assert [row["memory"] for row in of_length] == [5 * 2**20, 5 * 2**20, None]
    written = (tmp_path / "scaling_models_cpu.md").read_text()
    assert "more than 300 s in all" in written and "| 400 | – | – | – | – | – |" in written
    assert "| p | 1.00 |" in written and "| p | 2.00 |" in written and "| p | 0.00 |" in written
    assert "</svg>" in (tmp_path / "scaling_models_cpu.svg").read_text()


@pytest.mark.slow
def test_a_point_of_whole_models() -> None:
    size = {"length": 3, "sentences": 2, "types": 20}
    for measure in scaling_models.measure_update, scaling_models.measure_search:
        figures = scaling_models.alone(lambda measure=measure: measure("lstm_as_rnnsearch", size, 1))
        assert min(figures.values()) > 0
