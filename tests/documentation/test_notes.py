"""The tables of the notes are made of their data."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fairseq_plugins.documentation import notes
from fairseq_plugins.experiments.records import Record


def rows(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]


def test_first_updates_are_a_row_for_each_network(tmp_path: Path) -> None:
    runs = [
        {"network": "RNNSearch", "options": "", "seed": 1, "perplexity": {"250": 10.0, "500": 3.0}},
        {"network": "MC-RNN-3", "options": "--connection-rate 1", "seed": 1, "perplexity": {"250": 10.0, "500": 3.0}},
        {"network": "MC-RNN-3", "options": "--connection-rate 1", "seed": 2, "perplexity": {"250": 11.5, "500": 3.5}},
        {"network": "MC-RNN-3", "options": "--connection-rate 1", "seed": 3, "perplexity": {"250": 12.0}},
    ]
    (tmp_path / "data.json").write_text(json.dumps({"runs": runs}), encoding="utf-8")
    header, _, first, second = rows(notes.first_updates(tmp_path / "data.json"))
    assert header == ["network", "options", "250 updates", "500 updates"]
    assert first == ["RNNSearch", "–", "10.00", "3.00"]
    perplexities = ["10.00 to 12.00 (11.17, 3 seeds)", "3.00 to 3.50 (3.25, 2 seeds)"]
    assert second == ["MC-RNN-3", "`--connection-rate 1`", *perplexities]


def test_first_epochs_are_a_row_for_each_run(tmp_path: Path) -> None:
    common = {"hidden_size": 256, "network": "RNNSearch", "options": ""}
    runs = [
        {**common, "seed": 1, "training_bits": {"100": 8.0, "200": 6.5}, "development_bits": [4.75, 4.0]},
        {**common, "seed": 2, "seed_of_initial_weights": 11, "training_bits": {"100": 8.0, "200": 6.25, "300": 6.0}},
        {**common, "hidden_size": 128, "seed": 3, "training_bits": {"100": 9.0}},
    ]
    (tmp_path / "data.json").write_text(json.dumps({"runs": runs}), encoding="utf-8")
    header, _, *found = rows(notes.first_epochs(256, tmp_path / "data.json"))
    assert header[2:] == ["seed", "101 to 200", "201 to 300", "development, epoch 1", "development, epoch 2"]
    assert [row[2:] for row in found] == [
        ["1", "6.50", "–", "4.750", "4.000"],
        ["2, weights 11", "6.25", "6.00", "–", "–"],
    ]


def test_epochs_are_a_column_each(tmp_path: Path) -> None:
    common = {"network": "RNNSearch", "seed": 1}
    runs = [
        {**common, "options": "--lr 3e-3", "development_bits": [4.156, 3.548]},
        {**common, "options": "", "development_bits": [4.7]},
    ]
    (tmp_path / "data.json").write_text(json.dumps({"runs": runs}), encoding="utf-8")
    header, _, *found = rows(notes.epochs(tmp_path / "data.json"))
    assert header == ["network", "options", "seed", "epoch 1", "epoch 2"]
    assert found == [["RNNSearch", "`--lr 3e-3`", "1", "4.16", "3.55"], ["RNNSearch", "–", "1", "4.70", "–"]]


def test_validation_losses_are_those_of_the_records() -> None:
    short = Record("iwslt14_sample", "dpn", seed=1, validation_loss={"761": 5.653, "1522": 4.7})
    records = [
        replace(short, system="rnnsearch", seed=2, validation_loss={"761": 5.671}),
        short,
        replace(short, checkpoint="mean of the last 5 epochs"),
        replace(short, seed=3, validation_loss={}),
        replace(short, dataset="trec"),
    ]
    assert rows(notes.validation_losses(records, "iwslt14_sample")) == [
        ["system", "seed", "761", "1,522"],
        ["---"] * 4,
        ["`rnnsearch`", "2", "5.67", "–"],
        ["`dpn`", "1", "5.65", "4.70"],
    ]
    assert notes.validation_losses(records[2:], "iwslt14_sample") == "Not recorded yet."


def test_overlong_translations_are_counted_over_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    # Tokens of the translation and of the reference: 40 and 41 of 10, 200 of 30.
    kept = {1: [[40, 10], [41, 10]], 2: [[200, 30], [8, 9]], 3: None, 4: [[9, 9]]}
    monkeypatch.setattr(
        Record,
        "statistics",
        lambda record, subset: (
            None if kept[record.seed] is None else np.array([[*row, 0] for row in kept[record.seed]])
        ),
    )
    one = Record("iwslt14_sample", "dpn", seed=1, scores={"test": {}, "test1": {}})
    fine = replace(one, system="fine", seed=4)
    unknown = replace(one, system="unknown", seed=3)
    other = replace(one, differs={"generate": {"max-len-b": "10"}})
    found = rows(
        notes.overlong([one, replace(one, seed=2), replace(one, seed=3), fine, unknown, other], "iwslt14_sample")
    )
    assert found[0] == ["system", "checkpoint", "far too long", "translations"]
    assert found[2:] == [["`dpn`", "best", "4", "8"], ["`fine`", "best", "0", "2"]]
    assert notes.overlong([unknown], "iwslt14_sample") == "Not recorded yet."


def test_of_validation_losses_there_are_those_of_the_longest_run() -> None:
    whole = Record("iwslt14_sample", "dpn", seed=1, validation_loss={"100": 5.0, "200": 4.0})
    shorter = replace(whole, differs={"train": {"max-epoch": "1"}}, validation_loss={"100": 5.1})
    others = [replace(shorter, seed=2), replace(whole, seed=3, differs={"train": {"max-epoch": "2", "lr": "1"}})]
    for records in ([shorter, whole, *others], [whole, shorter, *others]):
        _, _, *found = rows(notes.validation_losses(records, "iwslt14_sample"))
        assert found == [["`dpn`", "1", "5.00", "4.00"], ["`dpn`", "2", "5.10", "–"]]


def test_validation_perplexities_are_of_bits_by_epoch() -> None:
    long = Record("ptb_small", "lstm", seed=1, validation_loss={"100": 8.0, "200": 7.0, "300": 6.5})
    schedule = {"train": {"lr-scheduler": "reduce_lr_on_plateau"}}
    worse = {"100": 7.0, "200": 7.5, "300": 6.5}
    records = [
        long,
        replace(long, seed=2, options=schedule, validation_loss=worse),
        replace(long, system="rcrn", validation_loss={"100": 7.5}),
        replace(long, differs={"evaluate": {"cache": "true"}}),
        replace(long, dataset="trec"),
    ]
    assert rows(notes.validation_perplexities(records, "ptb_small", (1, 3))) == [
        ["network", "seed", "epoch 1", "epoch 3", "rate first reduced after"],
        ["---"] * 5,
        ["`lstm`", "1", "256.00", "90.51", "–"],
        ["`lstm`", "2", "128.00", "90.51", "epoch 2"],
        ["`rcrn`", "1", "181.02", "–", "–"],
    ]
    assert notes.validation_perplexities(records[4:], "ptb_small", (1,)) == "Not recorded yet."


def test_a_small_table_has_a_column_for_each_recipe(tmp_path: Path) -> None:
    row = {"system": "M1", "encoder": "CNN", "decoder": "CNN"}
    content = {"rows": [{**row, "bleu": {"NAG": 94.84}}, {**row, "bleu": {"Adam": 77.353}}]}
    (tmp_path / "data.json").write_text(json.dumps(content), encoding="utf-8")
    header, _, *found = rows(notes.small_table(tmp_path / "data.json"))
    assert header == ["system", "encoder", "decoder", "NAG", "Adam"]
    assert [row[3:] for row in found] == [["94.84", "–"], ["–", "77.35"]]
