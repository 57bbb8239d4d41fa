"""Two systems over several seeds, and the statistics of sentences beside their records."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import t

from fairseq_plugins.errors import InputError
from fairseq_plugins.experiments import recorded_runs, sentence_statistics
from fairseq_plugins.experiments.comparison_over_seeds import compare_seeds
from fairseq_plugins.experiments.groups_of_runs import Group
from fairseq_plugins.experiments.recorded_runs import Record
from fairseq_plugins.scoring.accuracy import mcnemar
from fairseq_plugins.scoring.metrics import metric_named
from fairseq_plugins.scoring.significance import paired_bootstrap_of_means

GENERATOR = np.random.default_rng(1)
RIGHT = {"a": [0.6, 0.65, 0.7], "b": [0.75, 0.7, 0.8]}
"""System → the share of sentences that it has right with each seed."""


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of records."""
    monkeypatch.setenv(recorded_runs.VARIABLE, str(tmp_path / "results"))
    return tmp_path / "results"


def rows_of(share: float, count: int = 200) -> np.ndarray:
    """Accuracy's statistics of sentences of which so many are right."""
    right = np.arange(count) < share * count
    return np.column_stack([GENERATOR.permutation(right), np.ones(count)])


def run(system: str, seed: int, rows: np.ndarray | None, subset: str = "test", **facts: object) -> Path:
    """Writes the record of one run."""
    score = 100 * float(rows[:, 0].mean()) if rows is not None else 50.0
    made = Record("trec", system, seed=seed, scores={subset: {"accuracy": score}}, train_seconds=1.0, **facts)
    return recorded_runs.write(made, statistics=None if rows is None else {subset: rows})


def group(system: str) -> Group:
    return Group(tuple(record for record in recorded_runs.load_all() if record.system == system), {})


def test_two_systems_over_three_seeds() -> None:
    rows = {name: [rows_of(share) for share in shares] for name, shares in RIGHT.items()}
    for name, each in rows.items():
        for seed, one in enumerate(each, 1):
            run(name, seed, one)
    [found] = compare_seeds(group("a"), group("b"))
    assert found.column.key == "accuracy" and found.baseline.values == (60, 65, 70)
    assert found.difference == pytest.approx(10)
    assert [seed.seed for seed in found.seeds] == [1, 2, 3]
    assert [seed.difference for seed in found.seeds] == pytest.approx([15, 5, 10])
    for seed, first, second in zip(found.seeds, rows["a"], rows["b"], strict=True):
        alone = [int(np.sum(x[:, 0] > y[:, 0])) for x, y in ((first, second), (second, first))]
        assert seed.p_value == mcnemar(*alone)
    # By Welch's formulas; both variances are 25, so that there are four degrees of freedom.
    half = t.ppf(0.975, 4) * np.sqrt(25 / 3 + 25 / 3)
    assert found.interval == pytest.approx((10 - half, 10 + half))
    assert found.p_value == pytest.approx(2 * t.sf(10 / np.sqrt(50 / 3), 4))
    [together] = paired_bootstrap_of_means(rows["a"], rows["b"], metric_named("accuracy").scores_of)
    assert found.together == together.p_value and found.together < min(seed.p_value for seed in found.seeds)


def test_what_is_missing_is_not_made_up() -> None:
    for name, shares in RIGHT.items():
        for seed, share in enumerate(shares[:2], 1):
            run(name, seed, rows_of(share) if seed == 1 else None)
    run("b", 7, rows_of(0.5))
    [found] = compare_seeds(group("a"), group("b"))
    assert [seed.seed for seed in found.seeds] == [1, 2]
    assert found.seeds[0].p_value is not None and found.seeds[1].p_value is None and found.together is None
    assert len(found.system.values) == 3 and found.interval is not None
    assert found.difference == pytest.approx(found.system.mean - found.baseline.mean), "of all seeds"
    assert compare_seeds(group("a"), group("b"), "test1") == []


def test_one_seed_has_no_interval() -> None:
    run("a", 1, rows_of(0.5))
    run("b", 1, rows_of(0.6))
    run("b", 2, rows_of(0.9))
    [found] = compare_seeds(group("a"), group("b"))
    assert found.interval is None and found.p_value is None and found.seeds[0].p_value is not None
    assert found.together is None, "seed 1 alone is of another difference than that of the means"
    assert found.difference == pytest.approx(found.system.mean - found.baseline.mean) == pytest.approx(25)
    assert [seed.difference for seed in found.seeds] == pytest.approx([10])


def test_runs_of_a_seed_on_two_machines_count_as_one() -> None:
    for machine, (first, second) in enumerate([(0.5, 0.6), (0.6, 0.8)]):
        for system, share in ("a", first), ("b", second):
            run(system, 1, rows_of(share), machine={"processor": str(machine)})
    for system, share in ("a", 0.5), ("b", 0.9):
        run(system, 2, rows_of(share))
    [found] = compare_seeds(group("a"), group("b"))
    assert found.baseline.values == pytest.approx((55, 50)) and found.system.values == pytest.approx((70, 90))
    assert [seed.p_value is None for seed in found.seeds] == [True, False] and found.together is None


def test_what_is_not_trained_stands_beside_every_seed() -> None:
    plain = rows_of(0.62)
    recorded_runs.record_baseline("trec", "plain", {"accuracy": 62.0}, statistics={"test": plain})
    rows = [rows_of(share) for share in RIGHT["a"]]
    for seed, one in enumerate(rows, 1):
        run("a", seed, one)
    [found] = compare_seeds(group("plain"), group("a"))
    assert found.baseline.values == (62,) and found.system.values == (60, 65, 70)
    assert [seed.difference for seed in found.seeds] == pytest.approx([-2, 3, 8])
    assert found.difference == pytest.approx(3)
    for seed, one in zip(found.seeds, rows, strict=True):
        assert seed.p_value == mcnemar(*(int(np.sum(x[:, 0] > y[:, 0])) for x, y in ((plain, one), (one, plain))))
    # The t-test of one sample: only the trainings differ by chance.
    half = t.ppf(0.975, 2) * 5 / np.sqrt(3)
    assert found.interval == pytest.approx((3 - half, 3 + half))
    assert found.p_value == pytest.approx(2 * t.sf(3 / (5 / np.sqrt(3)), 2))
    [together] = paired_bootstrap_of_means([plain], rows, metric_named("accuracy").scores_of)
    assert found.together == together.p_value
    [turned] = compare_seeds(group("a"), group("plain"))
    assert turned.difference == pytest.approx(-3) and turned.interval == pytest.approx((-3 - half, -3 + half))
    assert turned.system.values == (62,)


def test_two_that_are_not_trained_have_no_seeds() -> None:
    for name in "xy":
        recorded_runs.record_baseline("trec", name, {"accuracy": 62.0})
    assert compare_seeds(group("x"), group("y")) == []


def test_runs_that_are_all_alike() -> None:
    rows = rows_of(0.5)
    for name in "ab":
        for seed in 1, 2:
            run(name, seed, rows)
    [found] = compare_seeds(group("a"), group("b"))
    assert (found.interval, found.p_value, found.together) == ((0, 0), 1, 1)


def test_statistics_of_other_sentences_are_not_compared() -> None:
    run("a", 1, rows_of(0.5))
    run("b", 1, rows_of(0.5, count=300))
    [found] = compare_seeds(group("a"), group("b"))
    assert found.seeds[0].p_value is None and found.together is None


def test_statistics_are_read_as_they_were_written() -> None:
    whole, broken = np.array([[0, 300], [1, 2]]), np.array([[0.5, 1.0]])
    path = run("a", 1, rows_of(0.5))
    recorded_runs.write(
        Record("trec", "a", seed=1, scores={"file": {}, "x y": {}}, train_seconds=1.0),
        statistics={"file": whole, "x y": broken},
    )
    found = recorded_runs.load(path)
    assert set(found.scores) == {"test", "file", "x y"}, "another set of the same training joins it"
    assert np.array_equal(found.statistics("file"), whole) and found.statistics("file").dtype == np.int64
    assert np.array_equal(found.statistics("x y"), broken)
    assert found.statistics("test").shape == (200, 2) and found.statistics("valid") is None
    before = path.with_suffix(".npz").read_bytes()
    recorded_runs.write(found, statistics={name: found.statistics(name) for name in found.scores})
    assert path.with_suffix(".npz").read_bytes() == before, "the same numbers make the same file"


def test_those_of_another_training_go() -> None:
    path = run("a", 1, rows_of(0.5))
    recorded_runs.write(Record("trec", "a", seed=1, scores={"test": {"accuracy": 1.0}}, train_seconds=2.0))
    assert recorded_runs.load(path).statistics("test") is None and not path.with_suffix(".npz").exists()


def test_those_of_a_running_text_are_not_kept() -> None:
    path = run("a", 1, np.ones((sentence_statistics.LARGEST + 1, 2)))
    assert recorded_runs.load(path).statistics("test") is None


def test_a_damaged_file_is_named() -> None:
    path = run("a", 1, rows_of(0.5))
    beside = path.with_suffix(".npz")
    beside.write_bytes(beside.read_bytes()[:100])
    with pytest.raises(InputError, match=r"seed_1.npz: not statistics of sentences \(.*\); record the run again"):
        recorded_runs.load(path).statistics("test")
