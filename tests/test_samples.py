"""Which examples are shown."""

from __future__ import annotations

from fairseq_plugins.samples import spread


def test_samples_are_spread_evenly() -> None:
    assert spread(10, 5) == [0, 2, 4, 6, 8]
    assert spread(9, 5) == [0, 1, 3, 5, 7], "not the first five"
    assert spread(3, 5) == [0, 1, 2]
    assert spread(0, 5) == []
