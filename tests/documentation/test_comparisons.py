"""Pages compare the recorded runs of systems over their seeds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fairseq_plugins.documentation import pages
from fairseq_plugins.documentation.comparisons import NOT_RECORDED, comparisons
from fairseq_plugins.experiments import configuration as configurations
from fairseq_plugins.experiments import record_groups, records
from fairseq_plugins.experiments.records import Record
from fairseq_plugins.package_files import CONFIGURATIONS


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(records.VARIABLE, str(tmp_path / "results"))


def run(system: str, seed: int, score: int, subset: str = "test", **facts: object) -> None:
    rows = np.column_stack([np.arange(100) < score, np.ones(100)])
    made = Record("trec", system, f"configs/trec/{system}.yaml", seed, scores={subset: {"accuracy": score}}, **facts)
    records.write(made, statistics={subset: rows})


def cells(text: str) -> list[dict[str, str]]:
    heading, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    return [dict(zip(heading, row, strict=True)) for row in rows]


def test_a_row_for_each_pair_and_set(root: None) -> None:
    for seed, (first, second) in enumerate([(80, 84), (82, 92)], 1):
        run("bilstm", seed, first)
        run("rcrn", seed, second)
    run("bilstm", 1, 50, "test1")
    run("rcrn", 1, 51, "test1")
    run("bilstm_3", 1, 70)
    pairs = [("bilstm", "rcrn"), ("bilstm", "bilstm_3"), ("rcrn", "bilstm_3")]
    found = cells(comparisons(records.load_all(), "trec", pairs, [0, 5]))
    assert [(row["baseline"], row["system"], row["set"]) for row in found] == [
        ("`bilstm`", "`rcrn`", "test"),
        ("`bilstm`", "`rcrn`", "test1"),
        ("`bilstm`", "`bilstm_3`", "test"),
        ("`rcrn`", "`bilstm_3`", "test"),
    ]
    assert found[0] == {
        "baseline": "`bilstm`",
        "system": "`rcrn`",
        "set": "test",
        "accuracy, baseline": "81.00 ± 1.41",
        "system's": "88.00 ± 5.66",
        "difference by seed (p)": "+4.00 (0.125), +10.00 (0.002)",
        "mean difference": "+7.00",
        "95 % interval over seeds": found[0]["95 % interval over seeds"],
        "p, all seeds together": "0.002",
    }
    assert found[2]["95 % interval over seeds"] == "–", "a single run of one of them"
    (short, *_) = cells(comparisons(records.load_all(), "trec", pairs, [0, 5], brief=True))
    assert short == {
        **{key: found[0][key] for key in ("baseline", "system", "set", "mean difference", "95 % interval over seeds")},
        "difference by seed": "+4.00, +10.00",
    }


def test_runs_that_differ_from_their_configurations_as_asked(root: None) -> None:
    with_cache = {"cache": "true"}
    for seed, (first, second) in enumerate([(80, 84), (82, 92)], 1):
        run("bilstm", seed, first)
        run("rcrn", seed, second)
        run("bilstm", seed, first + 5, "test with cache", differs={"generate": with_cache})
        run("rcrn", seed, second + 1, "test with cache", differs={"generate": with_cache})
    run("bilstm_3", 1, 90)
    pairs = [("bilstm", "rcrn"), ("bilstm", "bilstm_3")]
    [found] = cells(comparisons(records.load_all(), "trec", pairs, differences=with_cache))
    assert (found["accuracy, baseline"], found["mean difference"]) == ("86.00 ± 1.41", "+3.00")


def test_a_baseline_that_is_not_trained(root: None) -> None:
    rows = np.column_stack([np.arange(100) < 82, np.ones(100)])
    records.record_baseline("trec", "plain", {"accuracy": 82.0}, statistics={"test": rows})
    for seed, score in enumerate((84, 92), 1):
        run("rcrn", seed, score)
    [found] = cells(comparisons(records.load_all(), "trec", [("plain", "rcrn")]))
    assert (found["baseline"], found["accuracy, baseline"]) == ("`plain`", "82.00")
    assert found["difference by seed (p)"] == "+2.00 (0.500), +10.00 (0.002)"
    assert found["mean difference"] == "+6.00" and found["95 % interval over seeds"] == "-44.82 to +56.82"
    assert comparisons(records.load_all(), "trec", [("nothing", "rcrn")]) == NOT_RECORDED


def test_runs_with_the_same_budget_of_their_own(root: None) -> None:
    short = {"train": {"max-epoch": "2"}}
    run("bilstm", 1, 80, differs=short)
    run("rcrn", 1, 84, differs=short)
    run("bilstm_3", 1, 90, differs={"train": {"max-epoch": "3"}})
    [found] = cells(comparisons(records.load_all(), "trec", [("bilstm", "rcrn"), ("bilstm_3", "rcrn")]))
    assert (found["baseline"], found["difference by seed (p)"]) == ("`bilstm`", "+4.00 (0.125)")
    run("rcrn", 2, 85)
    assert comparisons(records.load_all(), "trec", [("bilstm", "rcrn")]) == NOT_RECORDED


def test_the_set_on_which_settings_are_chosen_is_not_compared(root: None) -> None:
    for system, score in (("bilstm", 80), ("rcrn", 84)):
        run(system, 1, score, "valid", differs={"train": {"max-epoch": "5"}})
    assert comparisons(records.load_all(), "trec", [("bilstm", "rcrn")]) == NOT_RECORDED


def test_runs_of_another_day_do_not_count(root: None) -> None:
    run("bilstm", 1, 80)
    path = CONFIGURATIONS / "trec" / "rcrn.yaml"
    options = {key: value.text for key, value in configurations.load(path).train.items()}
    run("rcrn", 1, 90, options={"train": {**options, "lr": "0.5"}})
    assert comparisons(records.load_all(), "trec", [("bilstm", "rcrn")]) == NOT_RECORDED


def test_what_pages_compare_is_there() -> None:
    for dataset, pairs, _ in [*pages.COMPARED.values(), *pages.DIFFERENCES.values()]:
        for pair in pairs:
            for name in pair:
                is_trained = (CONFIGURATIONS / dataset / f"{name}.yaml").is_file()
                assert is_trained or name in record_groups.baselines(records.load_all(), dataset), (dataset, name)
