"""Scorers that fairseq-generate asks; as whole commands in tests/system."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.options import get_generation_parser, parse_args_and_arch
from fairseq.scoring import build_scorer

import fairseq_plugins
from fairseq_plugins.scoring.fairseq_scorers import RougeScorer

fairseq_plugins.register()


def test_rouge() -> None:
    scorer = RougeScorer(SimpleNamespace(rouge_stemmer=False))
    scorer.add_string("the cat is on the mat", "the cat sat on the mat")
    assert scorer.score() == pytest.approx(83.3333, abs=1e-3)
    assert scorer.result_string().startswith("ROUGE-1 83.33 (83.33-83.33), ROUGE-2 60.00 (60.00-60.00), ROUGE-L 83.33")


@pytest.mark.system
@pytest.mark.parametrize(
    ("options", "score", "tokens", "reason"),
    [
        (["--target-lang", "deu"], 50, "nfc,lc,unicode-words,unspaced-characters", "the target language is 'deu'"),
        (["--target-lang", "en"], 80, "lc,a-z0-9", "the target language is 'en'"),
        (["--target-lang", "sum"], 80, "lc,a-z0-9", "'sum' is no language, and nine tenths"),
        ([], 80, "lc,a-z0-9", "the target language is not known, and nine tenths"),
        (
            ["--target-lang", "en", "--rouge-tokenize", "unicode"],
            50,
            "nfc,lc,unicode-words,unspaced-characters",
            "--rouge-tokenize says so",
        ),
    ],
)
def test_rouge_by_the_language_of_the_command(options: list[str], score: float, tokens: str, reason: str) -> None:
    parser = get_generation_parser()
    command = ["data", "--path", "checkpoint_best.pt", "--scoring", "rouge", *options]
    scorer = build_scorer(convert_namespace_to_omegaconf(parse_args_and_arch(parser, command)).scoring, None)
    # To rouge-score "grün" is "gr" and "n": two of two and three words match. As a whole it does not match.
    scorer.add_string("grün abcdefghijklmn", "gr abcdefghijklmn")
    assert scorer.score() == pytest.approx(score)
    assert f"|tok:{tokens}|" in scorer.result_string() and reason in scorer.result_string()


def test_subwords_are_not_scored() -> None:
    scorer = build_scorer("unscored", None)
    scorer.add_string("a@@ b", "a@@ b")
    assert scorer.result_string().startswith("not scored here, in subwords; 'fairseq-plugins evaluate'")
