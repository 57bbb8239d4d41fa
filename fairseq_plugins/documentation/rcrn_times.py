"""The parts of pages that tell what RCRN takes beside BiLSTMs: a recorded run of ``benchmarks/rcrn_table_10.py``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..package_files import ROOT
from ..tables.writing import markdown

RECORDED = ROOT / "benchmarks" / "results" / "rcrn_table_10.json"
REFERENCE, SINGLE, OURS = "3-layer BiLSTM", "BiLSTM", "RCRN"
PHASES = ("training", "inference")


def table(path: Path = RECORDED) -> str:
    """A row for each length: the share of the 3-layer BiLSTM's time that the others take, the paper's in brackets."""
    found = _rows(path)
    lengths = sorted({length for _, length, _ in found})
    columns: dict[str, list[str]] = {"words": [str(length) for length in lengths]}
    for phase in PHASES:
        for model in SINGLE, OURS:
            rows = [found[phase, length, model] for length in lengths]
            columns[f"{phase}: {model}"] = [f"{row['ratio']:.2f} ({row['paper_ratio']:.2f})" for row in rows]
    return "\n".join(markdown(columns))


def parameters(path: Path = RECORDED) -> str:
    """How many parameters each model trains, word vectors left out."""
    found = {model: row["parameters"] for (_, _, model), row in _rows(path).items()}
    return f"Trained parameters without word vectors: {', '.join(f'{name} {found[name]:,}' for name in found)}."


def times_as_long(path: Path = RECORDED) -> str:
    """RCRN's time beside the others', over the lengths, in training and inference."""
    found = _rows(path)
    own = {(phase, words): row["ratio"] for (phase, words, model), row in found.items() if model == OURS}
    single = [ratio / found[phase, words, SINGLE]["ratio"] for (phase, words), ratio in own.items()]
    return (
        "Measured at 16 to 256 words, in training and inference, RCRN takes "
        f"{min(single):.1f} to {max(single):.1f} times as long as one BiLSTM layer, and "
        f"{min(own.values()):.2f} to {max(own.values()):.2f} of the time of three."
    )


def _rows(path: Path) -> dict[tuple[str, int, str], dict[str, Any]]:
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    return {(row["phase"], row["words"], row["model"]): row for row in rows}
