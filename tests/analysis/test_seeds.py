"""The command that compares recorded systems over their seeds."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from fairseq_plugins.errors import InputError
from fairseq_plugins.experiments import recorded_runs
from fairseq_plugins.experiments.configuration import Configuration
from fairseq_plugins.experiments.recorded_runs import Record

from .commands import run

SCORES = {"bilstm": (88, 89, 90), "rcrn": (90, 90, 93)}


@pytest.fixture(autouse=True)
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(recorded_runs.VARIABLE, str(tmp_path / "results"))
    for system, scores in SCORES.items():
        for seed, score in enumerate(scores, 1):
            rows = np.column_stack([np.arange(100) < score, np.ones(100)])
            made = Record("trec", system, f"configs/trec/{system}.yaml", seed, scores={"test": {"accuracy": score}})
            recorded_runs.write(made, statistics={"test": rows})


def test_prints_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("seeds", "trec", "bilstm", "rcrn", "--output", tmp_path / "seeds")
    printed = capsys.readouterr().out
    assert "mean  89.00 ± 1.00  91.00 ± 1.73  +2.00" in printed
    assert "95 % interval of the difference: -1.55 to +5.55 (Welch's t-test over the seeds, p = 0.1" in printed
    found = json.loads((tmp_path / "seeds.json").read_text())["comparisons"]["accuracy"]
    assert found["difference"] == 2 and set(found["seeds"]) == {"1", "2", "3"}
    assert found["seeds"]["1"] == {"difference": 2, "p_value": 0.5}, "McNemar: two against none"
    assert (tmp_path / "seeds.svg").stat().st_size > 1000


def test_a_baseline_that_is_not_trained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded_runs.record_baseline("trec", "plain", {"accuracy": 88.0})
    run("seeds", "trec", "plain", "rcrn", "--output", tmp_path / "seeds")
    printed = capsys.readouterr().out
    assert "mean  88.00  91.00 ± 1.73  +3.00" in printed
    assert "95 % interval of the difference: -1.30 to +7.30 (t-test over the seeds, p = 0.0955)" in printed
    recorded_runs.record_baseline("trec", "far", {"accuracy": -900.0})
    run("seeds", "trec", "far", "rcrn", "--output", tmp_path / "far")
    assert "(t-test over the seeds, p < 0.0001)" in capsys.readouterr().out
    recorded_runs.record_baseline("trec", "other", {"accuracy": 80.0})
    with pytest.raises(InputError, match="neither 'plain' nor 'other' is trained; name a system that has seeds"):
        run("seeds", "trec", "plain", "other", "--output", tmp_path / "two")


def test_a_recipe_and_one_of_several_data_sets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for system, score in ("bilstm_books", 80.0), ("rcrn_books", 81.0):
        path = f"configs/reviews/{system.removesuffix('_books')}.yaml"
        recorded_runs.write(Record("reviews", system, path, 1, scores={"test": {"accuracy": score}}))
    run("seeds", "reviews", "bilstm_books", "rcrn_books", "--output", tmp_path / "seeds")
    assert "mean 80.00 81.00 +1.00" in " ".join(capsys.readouterr().out.split())
    for system, recipe in ("dpn", None), ("dpn_paper", "paper"):
        made = Record("multi30k_de_en", system, "configs/multi30k_de_en/dpn.yaml", 1, recipe=recipe)
        made.scores["test"] = {"accuracy": 1.0 if recipe else 2.0}
        recorded_runs.write(made)
    run("seeds", "multi30k_de_en", "dpn", "dpn_paper", "--output", tmp_path / "seeds")
    assert "mean 2.00 1.00 -1.00" in " ".join(capsys.readouterr().out.split())
    with pytest.raises(InputError, match="there is no 'rcrn_book'; did you mean 'rcrn_books'"):
        run("seeds", "reviews", "bilstm_books", "rcrn_book", "--output", tmp_path / "seeds")


def test_extensions_of_the_configurations_are_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    monkeypatch.setattr(Configuration, "load_extensions", lambda own: loaded.append(own.path.name))
    run("seeds", "trec", "bilstm", "rcrn", "--output", tmp_path / "seeds")
    assert loaded == ["bilstm.yaml", "rcrn.yaml"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trec", "bilstm", "bilstm_3"], "bilstm_3: no run of .*bilstm_3.yaml is recorded with its options of today"),
        (["trec", "bilstm", "rcrn", "--average", "5"], "the checkpoint 'mean of the last 5 epochs'"),
        (
            ["trec", "bilstm", "rcrn", "--subset", "valid"],
            "--subset valid: not recorded of both systems; there are test",
        ),
        (
            ["trec", "bilstm", "rcrm"],
            "there is no 'rcrm'; did you mean 'rcrn'.; there are bilstm, bilstm_3, rcrn, rcrn_gru$",
        ),
        (["treq", "bilstm", "rcrn"], "there is no 'treq'; did you mean 'trec'.; there are trec$"),
    ],
)
def test_bad_input(tmp_path: Path, arguments: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        run("seeds", *arguments, "--output", tmp_path / "seeds")
    assert not list(tmp_path.glob("seeds*"))
