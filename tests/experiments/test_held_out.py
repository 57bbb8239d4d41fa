"""What the quick start's models make of the held-out sentences: kept with what it depends on, and recorded."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from fairseq_plugins.corpora import builtin
from fairseq_plugins.decoding import translation
from fairseq_plugins.experiments import configuration as configurations
from fairseq_plugins.experiments import held_out, quickstart, recorded_runs
from fairseq_plugins.experiments.run import Run

TASK = quickstart.TASKS["translation"]


def test_translations_are_kept_with_checksums(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = SimpleNamespace(translate=lambda lines: [line.upper() for line in lines])
    monkeypatch.setattr(translation, "load", lambda folder: model)
    configuration = configurations.load(quickstart.preset(TASK, "RNNSearch"))
    run = Run(tmp_path)
    texts = held_out.translate_held_out(run, configuration)
    assert texts == [pair.source.upper() for pair in builtin.held_out()]
    kept = Run(tmp_path).results["held_out"]
    assert kept == {**held_out.checksums(configuration), "translations": texts}


def test_checksums_are_of_the_corpus_and_the_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (configurations.load(quickstart.preset(TASK, name)) for name in quickstart.SYSTEMS)
    checksums = held_out.checksums(first)
    others = held_out.checksums(second)
    assert checksums["corpus"] == others["corpus"] and checksums["configuration"] != others["configuration"]
    texts = builtin.read("translation")
    monkeypatch.setattr(builtin, "read", lambda task: {**texts, "train.de": texts["train.de"] + "Ja.\n"})
    changed = held_out.checksums(first)
    assert changed["corpus"] != checksums["corpus"] and changed["configuration"] == checksums["configuration"]


def test_recorded_runs_have_the_translations_of_today(monkeypatch: pytest.MonkeyPatch) -> None:
    """A corpus, a list or a configuration that has changed needs new runs."""
    monkeypatch.delenv(recorded_runs.VARIABLE, raising=False)
    records = recorded_runs.load_all()
    for name, model in quickstart.SYSTEMS.items():
        configuration = configurations.load(quickstart.preset(TASK, name))
        runs = [record for record in records if (record.dataset, record.system) == ("quickstart", model)]
        [first] = [run for run in runs if run.seed == 1]
        right, total = held_out.counts(first.held_out["translations"])["plain"]
        assert right >= 0.9 * total, "a newcomer's sentences"
        for run in runs:
            checksums = {key: value for key, value in run.held_out.items() if key != "translations"}
            assert checksums == held_out.checksums(configuration), run.path
            assert len(run.held_out["translations"]) == len(builtin.held_out()), run.path
