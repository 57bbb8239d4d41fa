"""The papers' tables as data, and what small scale makes of their configurations."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from fairseq_plugins.decoding.prepared_data import PreparedData
from fairseq_plugins.errors import InputError
from fairseq_plugins.experiments import fairseq_commands as commands
from fairseq_plugins.experiments.configuration import Configuration
from fairseq_plugins.experiments.run import Run
from fairseq_plugins.package_files import ROOT
from fairseq_plugins.tables.measures import Scores
from fairseq_plugins.tables.rows import SeededRun, p_over_seeds, results_of
from fairseq_plugins.tables.tables import TABLES, SmallScale, as_arguments, load_small_scale, load_table, trainable

NAMES = sorted(path.stem for path in TABLES.glob("*.yaml"))
# One of several data sets stands for all.
CONFIGURATIONS = {one.path: one for name in NAMES for one in load_table(name).systems.values()}.values()


def test_the_tables_that_can_be_reproduced() -> None:
    dilated = [*(f"dilated_rnn_figure_{i}" for i in range(3, 7)), "dilated_rnn_table_1", "dilated_rnn_table_2"]
    assert set(dilated) <= set(NAMES) and {f"rcrn_table_{i}" for i in range(1, 9)} <= set(NAMES)
    others = [name for name in NAMES if not name.startswith(("dilated_rnn", "rcrn"))]
    assert others == [*(f"dpn_table_{i}" for i in range(1, 6)), *(f"mc_rnn_table_{i}" for i in range(2, 6))]


@pytest.mark.parametrize("name", NAMES)
def test_rows_have_a_configuration_or_say_why_not(name: str) -> None:
    table = load_table(name)
    assert table.title and table.rows
    assert (ROOT / table.verdict).is_file(), "the page that says what holds of the paper's claims"
    systems = [row.system for row in table.rows]
    assert len(set(systems)) == len(systems)
    for row in table.rows:
        # DilatedRNN's figures are curves without numbers, and some networks of its table have none either.
        assert row.figures or row.configuration is not None or name.startswith("dilated_rnn")
        assert set(row.figures) <= set(table.measure.columns)
        assert row.configuration is None or row.missing is None
    if table.measure.name == "entropy":
        assert [row.flow for row in table.rows] == ["cc", "ca", "ac", "aa"]
    elif table.baselines:
        named = {baseline for each in table.rows for baseline in each.baselines}
        baselines = [row for row in table.rows if row.system in named]
        assert baselines and all(row.configuration is not None or row.average is not None for row in baselines)


@pytest.mark.system
@pytest.mark.parametrize("name", NAMES)
def test_figures_are_those_that_configurations_name(name: str) -> None:
    table = load_table(name)
    for row in table.rows:
        paper = row.configuration.paper if row.configuration else {}
        if paper and paper["table"].text == name and row.variant is None:
            assert paper["row"].text.casefold() == row.system.casefold()
            named = row.configuration.paper_row()
            assert {key: named[key] for key in row.figures} == row.figures
            assert named.get("params") == row.parameters
            assert "config" not in named


def test_some_of_the_papers_figures() -> None:
    rows = {row.system: row for row in load_table("mc_rnn_table_2").rows}
    assert rows["MC-RNN-3"].figures == {"bleu": 32.23} and rows["MC-RNN-3"].parameters == 29
    assert rows["HM-RNN"].configuration and rows["Actor-critic"].configuration is None
    dpn = load_table("dpn_table_2")
    assert list(dpn.measure.columns) == ["nist04", "nist05", "nist06", "nist08", "nist12"]
    assert {row.system: row.figures for row in dpn.rows}["DPN-S2S"]["nist12"] == 31.17
    assert [row.uncertain for row in load_table("dpn_table_5").rows] == [False, True, True, False]


def test_a_table_that_does_not_exist() -> None:
    with pytest.raises(InputError, match="there is no table 'mc_rnn_table_9'; did you mean 'mc_rnn_table_[2345]'"):
        load_table("mc_rnn_table_9")


def test_of_several_patterns_the_last_one_wins() -> None:
    small = SmallScale("translation", {}, {"a": 1, "b": 1}, {}, {"dpn*": {"b": 2, "c": 2}, "dpn_m1": {"c": 3}})
    assert small.train_options("dpn_m1") == {"a": 1, "b": 2, "c": 3}
    assert small.train_options("dpn") == {"a": 1, "b": 2, "c": 2}
    assert small.train_options("cnn") == {"a": 1, "b": 1}


@pytest.mark.system
@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=lambda one: f"{one.dataset}/{one.model}")
def test_fairseq_takes_the_options_of_small_scale(
    configuration: Configuration, data_for: Callable[[Configuration], PreparedData], tmp_path: Path
) -> None:
    small = load_small_scale(configuration.dataset)
    data = data_for(configuration)
    extra = as_arguments({**small.train_options(configuration.model), "seed": 2})
    command = commands.train_command(configuration, data, tmp_path, 0, extra).words
    assert commands.option(command, "--max-update") == str(small.train["max-update"])
    # fairseq ends a training whose learning rate is not above --stop-min-lr, before its first update too.
    # A warmup begins at 0 unless it is told where.
    first = "--warmup-init-lr" if commands.option(command, "--warmup-updates") else "--lr"
    assert float(commands.option(command, first) or 0) > float(commands.option(command, "--stop-min-lr") or -1)
    if data.preparation.kind == "pairs":
        commands.decoding_options("generate", data, configuration.generate, as_arguments(small.generate))


def test_rows_whose_data_are_not_prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = property(lambda configuration: tmp_path / configuration.dataset)
    monkeypatch.setattr(Configuration, "data_folder", folder)

    def prepare(folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "preparation.json").write_text("{}", encoding="utf-8")

    table = load_table("rcrn_table_8")
    with pytest.raises(InputError, match="nothing of it can be trained here: not trained: .*wikiqa is not there; prep"):
        trainable(table)
    prepare(tmp_path / "wikiqa")
    missing = [row for row in trainable(table).rows if row.configuration is None]
    assert [row.system for row in missing] == [row.system for row in table.rows if "TrecQA" in row.system]
    remedy = f"not trained: {tmp_path / 'trecqa'} is not there; prepare it as configs/trecqa/_base*.yaml says"
    assert {row.missing for row in missing} == {remedy}
    prepare(tmp_path / "own")
    assert trainable(table, tmp_path / "own") == table
    prepare(tmp_path / "trecqa")
    assert trainable(table) == table


def test_p_over_seeds() -> None:
    def runs(*figures: float) -> list[dict[str, float]]:
        return [{"accuracy": figure} for figure in figures]

    assert p_over_seeds(runs(1.0, 2.0), runs(3.0, 4.0), ["accuracy"]) == {}, "two seeds are too few"
    assert p_over_seeds(runs(5.0, 5.0, 5.0), runs(5.0, 5.0, 5.0), ["accuracy"]) == {"accuracy": 1.0}
    found = p_over_seeds(runs(1.0, 2.0, 3.0), runs(2.0, 3.0, 4.0), ["accuracy"])["accuracy"]
    # t = -1 / sqrt(1 / 3 + 1 / 3) with 4 degrees of freedom.
    assert found == pytest.approx(0.2879, abs=1e-4)
    assert p_over_seeds(runs(90.0, 90.1, 90.2), runs(95.0, 95.1, 95.2), ["accuracy"])["accuracy"] < 1e-5


def test_averages_and_two_baselines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scores, "compared", lambda self, baseline, run, columns: {})
    table = load_table("rcrn_table_1")
    accuracies = {"BiLSTM": [70.0, 71.0, 72.0], "3L-BiLSTM": [75.0, 77.0, 76.0], "RCRN": [80.0, 82.0, 81.0]}

    def runs(*sets: str) -> dict[str, list[SeededRun]]:
        run = Run(Path())
        run.results = {"parameters": 1, "updates": 1, "train_seconds": 1}
        return {
            f"{name}, {system}": [
                SeededRun(seed, run, {"accuracy": figure + 2 * place}) for seed, figure in enumerate(figures)
            ]
            for place, name in enumerate(sets)
            for system, figures in accuracies.items()
        }

    some = dataclasses.replace(
        table,
        rows=tuple(
            row if row.system in runs("Camera", "Video") else dataclasses.replace(row, configuration=None)
            for row in table.rows
        ),
    )
    rows = {row.system: row for row in results_of(some, runs("Camera", "Video"), "paper")}
    average = rows["Macro average, RCRN"]
    assert average.seeds == {0: {"accuracy": 81.0}, 1: {"accuracy": 83.0}, 2: {"accuracy": 82.0}}
    assert average.ours == {"accuracy": 82.0} and average.deviation["accuracy"] == pytest.approx(1)
    assert average.note == "the mean of 2 of the 16 sets" and average.difference == {}
    assert set(average.over_seeds) == {"Macro average, BiLSTM", "Macro average, 3L-BiLSTM"}
    assert set(rows["Camera, RCRN"].over_seeds) == {"Camera, BiLSTM", "Camera, 3L-BiLSTM"}
    of_baseline, of_system = ([{"accuracy": one + 1} for one in accuracies[name]] for name in ("BiLSTM", "RCRN"))
    expected = p_over_seeds(of_baseline, of_system, ["accuracy"])
    assert average.over_seeds["Macro average, BiLSTM"] == pytest.approx(expected)
    every = runs(*(row.system.partition(",")[0] for row in table.rows if row.system.endswith(", BiLSTM")))
    whole = {row.system: row for row in results_of(table, every, "paper")}["Macro average, RCRN"]
    assert whole.note == "" and whole.difference["accuracy"] == pytest.approx(whole.ours["accuracy"] - 88.6)
