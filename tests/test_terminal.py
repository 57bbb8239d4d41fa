"""Tables for the terminal."""

from __future__ import annotations

import pytest

from fairseq_plugins.terminal import table


def test_layout() -> None:
    rows = [
        {"system": "MC-RNN", "BLEU": 32.226, "n": 6750, "p": "0.001"},
        {"system": "a", "BLEU": None, "n": 1, "p": ""},
    ]
    assert table(rows) == "system   BLEU      n  p\nMC-RNN  32.23  6,750  0.001\na           -      1"


@pytest.mark.parametrize(
    ("label", "places"), [("正面", 4), ("cafe\u0301", 4), ("नमस्ते", 4), ("good\u200b", 4), ("ｇｏ", 4), ("gut", 3)]
)
def test_columns_stand_below_each_other_in_every_script(label: str, places: int) -> None:
    rows = [{"label": label, "n": 1}, {"label": "negative", "n": 12}]
    assert table(rows).splitlines()[1:] == [f"{label}{' ' * (8 - places)}   1", "negative  12"]


@pytest.mark.parametrize(("label", "places"), [("שלום", 4), ("مرحبا", 5)])
def test_text_from_right_to_left_takes_nothing_along(label: str, places: int) -> None:
    """A terminal that turns it round would turn the number beside it too."""
    rows = [{"label": label, "n": 1}, {"label": "negative", "n": 12}]
    assert table(rows).splitlines()[1] == f"\u2068{label}\u2069{' ' * (8 - places)}   1"
