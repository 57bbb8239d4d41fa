"""Scorers that fairseq-generate asks; as whole commands in tests/system."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from fairseq.scoring import build_scorer

import fairseq_plugins
from fairseq_plugins.scoring.fairseq_scorers import RougeScorer

fairseq_plugins.register()


def test_rouge() -> None:
    scorer = RougeScorer(SimpleNamespace(rouge_stemmer=False))
    scorer.add_string("the cat is on the mat", "the cat sat on the mat")
    assert scorer.score() == pytest.approx(83.3333, abs=1e-3)
    assert scorer.result_string().startswith("ROUGE-1 83.33 (83.33-83.33), ROUGE-2 60.00 (60.00-60.00), ROUGE-L 83.33")


def test_subwords_are_not_scored() -> None:
    scorer = build_scorer("unscored", None)
    scorer.add_string("a@@ b", "a@@ b")
    assert scorer.result_string().startswith("not scored here, in subwords; scripts/evaluate.sh")
