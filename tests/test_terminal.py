"""Tables for the terminal."""

from __future__ import annotations

from fairseq_plugins.terminal import table


def test_layout() -> None:
    rows = [
        {"system": "MC-RNN", "BLEU": 32.226, "n": 6750, "p": "0.001"},
        {"system": "a", "BLEU": None, "n": 1, "p": ""},
    ]
    assert table(rows) == "system   BLEU      n  p\nMC-RNN  32.23  6,750  0.001\na           -      1"
