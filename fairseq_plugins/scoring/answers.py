"""Answers to questions on a text: BLEU, METEOR and ROUGE-L of free answers, exact match and F1 of SQuAD's.

Free answers are scored as NarrativeQA's are, by the rules of the scripts for image captions (``pycocoevalcap``): all
references of an answer together, in lower case, without punctuation. METEOR is nltk's, which has the parameters of
2005, a mean over the answers; the scripts' METEOR 1.5 has others. Its synonyms need nltk's WordNet: where that is not
there, words match by form and by stem alone, and the signature says so.
"""

from __future__ import annotations

import functools
import math
import re
import string
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, ClassVar

import numpy as np

from fairseq_plugins.languages import sentence_splitter

from .bleu import bleu, score_of_statistics, sentence_statistics
from .metrics import Column, Metric, Outputs, References, check_lengths, register_metric
from .rouge_l import BETA, rouge_l

PUNCTUATION = frozenset(
    ["''", "'", "``", "`", '"', "(", ")", "-LRB-", "-RRB-", "-LCB-", "-RCB-"]
    + [".", "?", "!", ",", ":", "-", "--", "...", ";"]
)
_TYPEWRITTEN = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "–": "--", "—": "--", "…": "..."})
_BLEU = slice(0, 10)
_SIGNATURE = "answers_signature"


class FreeAnswers(Metric):
    """BLEU-1, BLEU-4, METEOR and ROUGE-L, in percent."""

    name: ClassVar[str] = "answers"
    label: ClassVar[str] = "BLEU-1, BLEU-4, METEOR and ROUGE-L of answers"
    columns = (
        Column("answer_bleu1", "BLEU-1", signature=_SIGNATURE, paper="bleu1", largest=100),
        Column("answer_bleu4", "BLEU-4", signature=_SIGNATURE, paper="bleu4", largest=100),
        Column("answer_meteor", "METEOR", signature=_SIGNATURE, paper="meteor", largest=100),
        Column("answer_rougeL", "ROUGE-L", signature=_SIGNATURE, paper="rougeL", largest=100),
    )
    decoding: ClassVar[str] = "answers"
    unit: ClassVar[str] = "questions"

    @property
    def main(self) -> Column:
        return self.columns[-1]

    @property
    def signature_labels(self) -> dict[str, str]:
        return {_SIGNATURE: self.label}

    def statistics(self, outputs: Outputs, references: References) -> np.ndarray:
        """(N, 13): what BLEU sums (:func:`.bleu.sentence_statistics`), METEOR, ROUGE-L, and 1.

        Raises:
            ValueError: not one output for each reference.
        """
        check_lengths(outputs.text, references.text)
        answers = list(map(answer_tokens, outputs.text))
        targets = [list(map(answer_tokens, texts)) for texts in references.text]
        counts = sentence_statistics(
            bleu(), [" ".join(answer) for answer in answers], [[" ".join(words) for words in one] for one in targets]
        )
        keys = {column.key for column in self.columns}
        rows = [
            [
                meteor(answer, of_answer) if "answer_meteor" in keys else 0.0,
                rouge_l(answer, of_answer) if "answer_rougeL" in keys else 0.0,
                1.0,
            ]
            for answer, *of_answer in zip(answers, *targets, strict=True)
        ]
        return np.column_stack([counts, np.array(rows).reshape(-1, 3)])

    def scores_of(self, summed: np.ndarray) -> np.ndarray:
        counts, (of_meteor, of_rouge, answers) = summed[_BLEU], summed[10:]
        values = {
            "answer_bleu1": 100 * _unigram_bleu(counts),
            "answer_bleu4": score_of_statistics(bleu(), counts.astype(np.int64)),
            "answer_meteor": 100 * of_meteor / answers,
            "answer_rougeL": 100 * of_rouge / answers,
        }
        return np.array([values[column.key] for column in self.columns])

    def signature(self, column: Column, references: References, bootstrap: str | None = None) -> str:
        parts = [
            super().signature(column, references, bootstrap),
            "tok:punkt-treebank|case:lc|punct:no",
            f"bleu:smooth-none,sacrebleu-{version('sacrebleu')}",
            f"meteor:{_matches()},0.9,3,0.5,agg-mean,nltk-{version('nltk')}",
            f"rougeL:beta-{BETA},agg-mean",
        ]
        return "|".join(parts)


class SquadAnswers(Metric):
    """Exact match and F1 of Rajpurkar et al. (2016), by the rules of SQuAD 1.1's own script, in percent."""

    name: ClassVar[str] = "squad"
    label: ClassVar[str] = "exact match and F1 of answers"
    columns = (
        Column("squad_exact_match", "exact match", signature="squad_signature", largest=100),
        Column("squad_f1", "F1", signature="squad_signature", largest=100),
    )
    decoding: ClassVar[str] = "answers"
    unit: ClassVar[str] = "questions"

    @property
    def signature_labels(self) -> dict[str, str]:
        return {"squad_signature": self.label}

    def statistics(self, outputs: Outputs, references: References) -> np.ndarray:
        """(N, 3): whether an answer is a reference, its F1, and 1.

        Raises:
            ValueError: not one output for each reference.
        """
        check_lengths(outputs.text, references.text)
        rows = []
        for answer, *targets in zip(
            *(map(_squad_words, texts) for texts in (outputs.text, *references.text)), strict=True
        ):
            rows.append([float(answer in targets), max(_f1(answer, target) for target in targets), 1.0])
        return np.array(rows).reshape(-1, 3)

    def scores_of(self, summed: np.ndarray) -> np.ndarray:
        values = dict(zip(("squad_exact_match", "squad_f1"), 100 * summed[:2] / summed[2], strict=True))
        return np.array([values[column.key] for column in self.columns])

    def signature(self, column: Column, references: References, bootstrap: str | None = None) -> str:
        return f"{super().signature(column, references, bootstrap)}|case:lc|punct:no|articles:no"


@functools.cache
def _tokenizer() -> Any:
    # Not at the head of the file: nltk takes a moment.
    from nltk.tokenize import NLTKWordTokenizer

    return NLTKWordTokenizer()


def answer_tokens(text: str) -> list[str]:
    """The words of a free answer as they are compared: the Treebank's, in lower case, without punctuation."""
    words = []
    # A sentence at a time: the Treebank's tokenizer knows a full stop by the end of the text.
    for sentence in sentence_splitter().tokenize(text.translate(_TYPEWRITTEN)):
        of_sentence = _tokenizer().tokenize(sentence.lower())
        if of_sentence[-1:] == ["."] and "." in "".join(of_sentence[-2:-1]):
            of_sentence[-2:] = [of_sentence[-2] + "."]  # "U.S." is one word at the end, too
        words += [word for word in of_sentence if word not in PUNCTUATION]
    return words


class _NoWordNet:
    """Knows no synonym."""

    def synsets(self, word: str) -> list[Any]:
        return []


@functools.cache
def _wordnet() -> Any:
    """nltk's WordNet, where its data is installed (``python -m nltk.downloader wordnet``)."""
    from nltk.corpus import wordnet

    try:
        wordnet.ensure_loaded()
    except LookupError:
        return _NoWordNet()
    return wordnet


def _matches() -> str:
    return "exact-stem" if isinstance(_wordnet(), _NoWordNet) else "exact-stem-wordnet"


@functools.cache
def _stemmer() -> Any:
    from nltk.stem.porter import PorterStemmer

    return PorterStemmer()


def meteor(answer: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """METEOR between 0 and 1 (Banerjee and Lavie 2005), of the best reference."""
    from nltk.translate.meteor_score import meteor_score

    return float(meteor_score(references, answer, stemmer=_stemmer(), wordnet=_wordnet()))


def _unigram_bleu(counts: np.ndarray) -> float:
    """BLEU-1 between 0 and 1 of what :func:`.bleu.sentence_statistics` counts."""
    length, reference_length, matching, words = (float(counts[place]) for place in (0, 1, 2, 6))
    if not words:
        return 0.0
    return min(1.0, math.exp(1 - reference_length / length)) * matching / words


def _squad_words(text: str) -> list[str]:
    without_punctuation = "".join(character for character in text.lower() if character not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", without_punctuation).split()


def _f1(answer: list[str], reference: list[str]) -> float:
    common = sum((Counter(answer) & Counter(reference)).values())
    return 2 * common / (len(answer) + len(reference)) if common else 0.0


register_metric(FreeAnswers())
register_metric(SquadAnswers())
