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
