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


OPTIONS = """
import argparse
import timing
for kind, text in ((timing.REPETITIONS, "1"), (timing.at_least(1), "0"), (timing.device_here, "foo")):
    try:
        kind(text)
    except argparse.ArgumentTypeError as error:
        print(error)
print(timing.REPETITIONS("2"), timing.device_here("cpu"))
"""


def test_options_that_make_no_sense() -> None:
    printed = run_command(["python", "-c", OPTIONS], PYTHONPATH=str(CHECKOUT / "benchmarks")).stdout
    assert printed.splitlines() == [
        "1 is too few: at least 2",
        "0 is too few: at least 1",
        "there is no device 'foo' here: cpu, or cuda where there is a GPU",
        "2 cpu",
    ]
    script = CHECKOUT / "benchmarks" / "rcrn_table_10.py"
    finished = run_command(["python", script, "--repetitions", "1"], status=2)
    assert finished.stderr.endswith("error: argument --repetitions: 1 is too few: at least 2\n")
