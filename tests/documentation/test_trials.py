"""The trials of a network are those whose validation set is recorded."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
import torch

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
        "| network | dropout | learning rate | after 2 epochs | best | epochs | rate first reduced after |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        "| `lstm` | 0.2 | 20 | 150.00 | 140.00 | 3 | – |",
        "| `lstm` | – | 10 | – | 140.00 | 1 | – |",
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
        assert row == "| `lstm` | 0.2 | 20 | 150.00 | 140.00 | 3 | – |"


@pytest.mark.parametrize(
    ("losses", "options", "found"),
    [
        ((7.0, 6.9, 6.95, 6.8), {}, 3),
        ((7.0, 6.9, 6.8), {}, None),
        ((7.0, 6.9995, 6.8), {}, 2),
        ((7.0, 6.9, 6.8), {"lr-threshold": "0.1"}, 2),
    ],
)
def test_the_first_reduction_of_the_learning_rate_is_pytorchs(
    losses: tuple[float, ...], options: dict[str, str], found: int | None
) -> None:
    assert trials.first_reduction(of_losses(losses, options)) == found
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=1)
    threshold = float(options.get("lr-threshold", 1e-4))
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, threshold=threshold)
    reduced = []
    for epoch, loss in enumerate(losses, start=1):
        scheduler.step(loss)
        if optimizer.param_groups[0]["lr"] < 1:
            reduced.append(epoch)
    assert next(iter(reduced), None) == found


@pytest.mark.parametrize("options", [{"lr-patience": "1"}, {"lr-scheduler": "fixed"}])
def test_nothing_is_said_of_other_schedules(options: dict[str, str]) -> None:
    assert trials.first_reduction(of_losses((7.0, 7.0, 7.0), options)) is None


def test_a_reduction_is_shown_with_what_came_of_it() -> None:
    losses = [math.log2(perplexity) for perplexity in (150, 120, 121, 110)]
    for number, cell in (4, "epoch 3: 121.00, then 110.00"), (3, "epoch 3: 121.00"), (2, "–"):
        trial = of_losses(losses[:number])
        (row,) = trials.table([trial], "ptb_small", OPTIONS, 2).splitlines()[2:]
        assert row.endswith(f"| {number} | {cell} |")


def of_losses(losses: Sequence[float], options: Mapping[str, str] | None = None) -> Record:
    """A trial with a schedule that waits for no epoch."""
    train = {"lr-scheduler": "reduce_lr_on_plateau", "lr-patience": "0", **(options or {})}
    bits = {str(100 * epoch): loss for epoch, loss in enumerate(losses, start=1)}
    return replace(TRIAL, options={"train": train}, validation_loss=bits)
