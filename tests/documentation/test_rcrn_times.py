"""What RCRN takes beside BiLSTMs, from a recorded run of the benchmark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairseq_plugins.documentation import rcrn_times

RATIOS = {"3-layer BiLSTM": 1.0, "BiLSTM": 0.25, "RCRN": 0.75}


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    rows = [
        {
            "phase": phase,
            "words": words,
            "model": model,
            "ratio": ratio + (0.05 if (phase, words, model) == ("inference", 32, "RCRN") else 0),
            "paper_ratio": ratio,
            "parameters": 1000 * place,
        }
        for phase in rcrn_times.PHASES
        for words in (32, 16)
        for place, (model, ratio) in enumerate(RATIOS.items(), 1)
    ]
    path = tmp_path / "recorded.json"
    path.write_text(json.dumps({"versions": {}, "rows": rows}), encoding="utf-8")
    return path


def test_a_row_for_each_length(recorded: Path) -> None:
    lines = rcrn_times.table(recorded).splitlines()
    assert lines[0] == "| words | training: BiLSTM | training: RCRN | inference: BiLSTM | inference: RCRN |"
    assert lines[2:] == [
        "| 16 | 0.25 (0.25) | 0.75 (0.75) | 0.25 (0.25) | 0.75 (0.75) |",
        "| 32 | 0.25 (0.25) | 0.75 (0.75) | 0.25 (0.25) | 0.80 (0.75) |",
    ]


def test_sentences(recorded: Path) -> None:
    assert "3-layer BiLSTM 1,000, BiLSTM 2,000, RCRN 3,000." in rcrn_times.parameters(recorded)
    sentence = rcrn_times.times_as_long(recorded)
    assert "3.0 to 3.2 times as long as one" in sentence and "0.75 to 0.80 of the time of three" in sentence
