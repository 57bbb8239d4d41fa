"""What is done to each line, by several processes."""

from __future__ import annotations

from multiprocessing.pool import Pool

import pytest

from fairseq_plugins.corpora.lines import map_lines


def test_workers_have_ended_when_all_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is told to end while it is being forked does not hear it, and who waits for it waits for ever."""
    alive = []
    terminate = Pool.terminate

    def noting(pool: Pool) -> None:
        alive.append([process.is_alive() for process in pool._pool])
        terminate(pool)

    monkeypatch.setattr(Pool, "terminate", noting)
    assert list(map_lines(str.upper, ["a", "b"], 2, "")) == [("a", "A"), ("b", "B")]
    assert alive == [[False, False]]
