"""The benchmark runs and prints ratios. It is never timed here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands import CHECKOUT, run_command

SYSTEMS = """
import json
import rcrn_table_10 as table, torch
import fairseq_plugins
fairseq_plugins.register()
torch.manual_seed(1)
models = table.classifiers(torch.device("cpu"))
tokens, lengths = torch.randint(4, 100, (3, 5)), torch.full((3,), 5)
differences = {}
for name, model in models.items():
    model.eval()
    plain = model(tokens, lengths)
    with table.kernels_of(name):
        differences[name] = (model(tokens, lengths) - plain).abs().max().item()
print(json.dumps(differences))
"""


@pytest.mark.slow
def test_the_six_systems_compute_the_same_with_and_without_kernels() -> None:
    printed = run_command(["python", "-c", SYSTEMS], PYTHONPATH=str(CHECKOUT / "benchmarks")).stdout
    differences = json.loads(printed.splitlines()[-1])
    assert len(differences) == 6 and max(differences.values()) < 1e-5
    by_others = [name for name, difference in differences.items() if difference > 0]
    assert {"3-layer BiLSTM, by steps", "BiLSTM, by steps"} <= set(by_others), "other operations round otherwise"
    assert differences["RCRN"] == differences["BiLSTM"] == 0


@pytest.mark.slow
def test_epochs_of_six_models(tmp_path: Path) -> None:
    options = ["--steps", "2", "--repetitions", "2", "--json", str(tmp_path / "rows.json")]
    printed = run_command([CHECKOUT / "scripts" / "reproduce.sh", "rcrn_table_10", *options]).stdout
    rows = json.loads((tmp_path / "rows.json").read_text(encoding="utf-8"))["rows"]
    assert {(row["phase"], row["model"]) for row in rows} == {
        (phase, model)
        for phase in ("training", "inference")
        for model in (
            *("3-layer BiLSTM, by steps", "BiLSTM, by steps", "BiLSTM"),
            *("3-layer BiLSTM", "RCRN, without its kernel", "RCRN"),
        )
    }
    assert all(row["ratio"] == 1 for row in rows if row["model"] == "3-layer BiLSTM")
    assert all(row["paper_ratio"] is None and row["epoch_seconds"] > 0 for row in rows)
    assert "ratio" in printed and "3-layer BiLSTM 2," in printed
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
