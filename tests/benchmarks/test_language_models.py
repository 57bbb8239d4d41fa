"""The benchmark of language models runs and prints its ratios. It is never timed here."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_prints_ratios_and_writes_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(CHECKOUT / "benchmarks"))
    import language_models

    sizes = {"decoder_embed_dim": 6, "decoder_hidden_size": 8}
    language_models.compare(1, "cpu", 2, 20, tmp_path / "rows.json", streams=2, window=3, sizes=sizes)
    assert "tokens/s" in capsys.readouterr().out
    rows = json.loads((tmp_path / "rows.json").read_text())["rows"]
    assert [row["arch"] for row in rows] == ["plain loop", "awd_lstm_ptb", "mc_rnn_lm_ptb"]
    assert rows[0]["ratio_to_peer"] == 1
    assert rows[0]["parameters"] == rows[1]["parameters"] < rows[2]["parameters"]
    assert all(row["speed"] > 0 for row in rows)
    del sys.modules["language_models"]
