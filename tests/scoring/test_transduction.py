"""Exact match and character error rate."""

from __future__ import annotations

import pytest

from fairseq_plugins.scoring.metrics import Outputs, References, metric_named

REFERENCES = References([], [["straße", "caf\u00e9 au lait", "run", "Ost"], ["strasse", "tea", "ran", "ost"]])
TEXTS = ["strasse", "cafe\u0301  au lait", "rain", "OST"]


def scores(name: str, texts: list[str] = TEXTS, references: References = REFERENCES) -> dict:
    return metric_named(name).scores(Outputs([], texts), references)


def test_exact_match() -> None:
    """Of two references either will do, composed or not, and spaces are one space."""
    assert scores("exact_match")["exact_match"] == 50
    lower = References([], REFERENCES.text, lowercase=True)
    assert scores("exact_match", references=lower)["exact_match"] == 75
    result = scores("exact_match")
    assert result["exact_match_signature"].startswith("nrefs:2|bs:1000|seed:12345|exact_match|case:mixed|norm:nfc")
    low, high = result["exact_match_intervals"]["exact match (%)"]
    assert 0 <= low < 50 < high <= 100


def test_character_error_rate() -> None:
    """``rain`` is one insertion from ``ran``, ``OST`` two replacements from ``Ost``."""
    assert scores("cer")["cer"] == pytest.approx(100 * (0 + 0 + 1 + 2) / (7 + 12 + 3 + 3), abs=0.005)
    single = References([], [["kitten", "saturday"]])
    assert scores("cer", ["sitting", "sunday"], single)["cer"] == pytest.approx(100 * (3 + 3) / 14, abs=0.005)
    assert scores("cer", ["", "saturday"], single)["cer"] == pytest.approx(100 * 6 / 14, abs=0.005)


def test_systems_are_compared() -> None:
    words = [f"word{number}" for number in range(40)]
    references = References([], [words])
    baseline, system = Outputs([], [f"{word}x" for word in words]), Outputs([], words)
    for name, difference in ("exact_match", 100), ("cer", -100 * 40 / sum(map(len, words))):
        compared = metric_named(name).compare(baseline, system, references, samples=100)[name]
        assert compared.difference == pytest.approx(difference)
        assert compared.p_value < 0.05
