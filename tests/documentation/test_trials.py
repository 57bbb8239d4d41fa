"""The trials of a network are those whose validation set is recorded."""

from __future__ import annotations

import math
from dataclasses import replace

from fairseq_plugins.documentation import trials
from fairseq_plugins.experiments.records import Record

OPTIONS = {"dropout": "dropout", "learning rate": "lr"}
LOSSES = {str(100 * epoch): math.log2(perplexity) for epoch, perplexity in enumerate((200, 150, 140), 1)}
TRIAL = Record(
    "ptb_small",
    "lstm",
    seed=1,
    options={"train": {"dropout": "0.2", "lr": "20"}},
    scores={"valid": {"perplexity": 140.0}},
    validation_loss=LOSSES,
)


def test_a_row_for_each_trial() -> None:
    shorter = replace(TRIAL, options={"train": {"lr": "10"}}, validation_loss={"100": LOSSES["100"]})
    tested = replace(TRIAL, scores={"test": {"perplexity": 130.0}})
    found = trials.table([TRIAL, shorter, tested, replace(TRIAL, dataset="ptb")], "ptb_small", OPTIONS, 2)
    assert found.splitlines() == [
        "| network | dropout | learning rate | after 2 epochs | best | epochs |",
        "| --- | --- | --- | --- | --- | --- |",
        "| `lstm` | 0.2 | 20 | 150.00 | 140.00 | 3 |",
        "| `lstm` | – | 10 | – | 140.00 | 1 |",
    ]
    assert trials.table([tested], "ptb_small", OPTIONS, 2) == "Not recorded yet."


def test_rows_are_in_the_order_of_their_settings() -> None:
    settings = [("0.5", "20"), ("0.35", "20"), ("0.35", "10"), ("0.2", "1e-1")]
    runs = [replace(TRIAL, options={"train": {"dropout": dropout, "lr": rate}}) for dropout, rate in settings]
    large = replace(TRIAL, system="lstm_large")
    rows = trials.table([large, *runs, TRIAL], "ptb_small", OPTIONS, 2).splitlines()[2:]
    assert [tuple(cell.strip() for cell in row.split("|")[1:4]) for row in rows] == [
        ("`lstm`", "0.2", "1e-1"),
        ("`lstm`", "0.2", "20"),
        ("`lstm`", "0.35", "10"),
        ("`lstm`", "0.35", "20"),
        ("`lstm`", "0.5", "20"),
        ("`lstm_large`", "0.2", "20"),
    ]


def test_a_trial_that_went_on_has_one_row() -> None:
    stopped = replace(TRIAL, scores={"valid": {"perplexity": 150.0}}, validation_loss=dict([*LOSSES.items()][:2]))
    for records in ([stopped, TRIAL], [TRIAL, stopped]):
        (row,) = trials.table(records, "ptb_small", OPTIONS, 2).splitlines()[2:]
        assert row == "| `lstm` | 0.2 | 20 | 150.00 | 140.00 | 3 |"
