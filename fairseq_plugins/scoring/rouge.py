"""ROUGE-1, -2 and -L (Lin, 2004) by the package rouge-score, with confidence intervals and a signature."""

from __future__ import annotations

import argparse
import importlib.metadata
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .metrics import Column, Metric, Outputs, References, SampledMetric, check_lengths, register_metric
from .rouge_tokens import ENGLISH, TOKENIZERS, UNICODE, UnicodeTokenizer, choose_tokenizer
from .significance import SAMPLES, SEED, Interval

METRICS = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L"}
OF_SENTENCES = "rougeLsum"
# Between the sentences of a text that is one line, as summaries are prepared; a tokenizer may have cut it.
_SENTENCE_END = re.compile(r"\s*(?:<\s?n\s?>|\n)\s*")


@dataclass(frozen=True)
class RougeScores:
    """The scores of a corpus.

    Attributes:
        scores: ``rouge1``, ``rouge2``, ``rougeL``.
        signature: how they were computed, in sacreBLEU's manner.
    """

    scores: dict[str, Interval]
    signature: str

    def __str__(self) -> str:
        shown = [f"{METRICS[name]} {s.score:.2f} ({s.low:.2f}-{s.high:.2f})" for name, s in self.scores.items()]
        return f"{', '.join(shown)}; {self.signature}"


def sentence_rouge(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    stemmer: bool = False,
    tokenizer: str | None = None,
    names: Sequence[str] = tuple(METRICS),
) -> np.ndarray:
    """F1 in percent of every text against its best reference: (N, 3), ROUGE-1, -2 and -L.

    A text may be several sentences, with ``<n>`` or a line's end between them, which is no word. Those are what
    ``rougeLsum`` compares one by one, and the others do not part.

    Args and raises: as :func:`corpus_rouge`, whose scores are the means of these; ``names`` are rouge-score's.
    """
    check_lengths(hypotheses, references)
    if not hypotheses:
        raise ValueError("no hypotheses")
    # Not at the head of the file: it loads nltk, and every command imports this one.
    from nltk.stem.porter import PorterStemmer
    from rouge_score.rouge_scorer import RougeScorer

    tokenizer = tokenizer or choose_tokenizer("", references)[0]
    stem = PorterStemmer().stem if stemmer else None
    scorer = RougeScorer(
        list(names), use_stemmer=stemmer, tokenizer=UnicodeTokenizer(stem) if tokenizer == UNICODE else None
    )
    rows = []
    for texts in zip(hypotheses, *references, strict=True):
        hypothesis, *targets = (_SENTENCE_END.sub("\n", text) for text in texts)
        best = scorer.score_multi(targets, hypothesis)
        rows.append([best[name].fmeasure for name in names])
    return 100 * np.array(rows)


def signature(references: int, bootstrap: str, stemmer: bool = False, tokenizer: str = ENGLISH) -> str:
    """How scores were computed, in sacreBLEU's manner.

    Args:
        references: how many each sentence has.
        bootstrap: its samples and seed, as ``bs:1000|seed:12345``.
        stemmer: whether words were stemmed.
        tokenizer: one of :data:`.rouge_tokens.TOKENIZERS`.
    """
    return (
        f"nrefs:{references}|f1|stem:{'porter' if stemmer else 'no'}|tok:{TOKENIZERS[tokenizer]}|agg:mean|{bootstrap}"
        f"|rouge-score:{importlib.metadata.version('rouge-score')}"
    )


def corpus_rouge(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    stemmer: bool = False,
    seed: int = SEED,
    tokenizer: str | None = None,
) -> RougeScores:
    """Mean F1 over the sentences, each against its best reference, with bootstrap intervals over sentences.

    An empty side scores 0.

    Args:
        hypotheses: N sentences.
        references: one or several for each: lists of N.
        stemmer: Porter's, which the papers do not use.
        seed: of the bootstrap.
        tokenizer: one of :data:`.rouge_tokens.TOKENIZERS`; None for what the references' letters want.

    Raises:
        ValueError: no sentences, or lists of different length.
    """
    tokenizer = tokenizer or choose_tokenizer("", references)[0]
    values = sentence_rouge(hypotheses, references, stemmer, tokenizer)
    generator = np.random.default_rng(seed)
    samples = [values[generator.integers(len(values), size=len(values))].mean(axis=0) for _ in range(SAMPLES)]
    low, high = np.percentile(samples, [2.5, 97.5], axis=0)
    scores = {
        name: Interval(float(mean), float(low[i]), float(high[i]))
        for i, (name, mean) in enumerate(zip(METRICS, values.mean(axis=0), strict=True))
    }
    return RougeScores(scores, signature(len(references), f"bs:{SAMPLES}|seed:{seed}", stemmer, tokenizer))


def tokenizer_remark(tokenizer: str, reason: str) -> str:
    """What ROUGE counts, and why, in a line."""
    counted = (
        "runs of a-z and 0-9, as rouge-score does"
        if tokenizer == ENGLISH
        else "words of all letters, and characters in scripts without spaces"
    )
    return f"ROUGE counts {counted}, since {reason} (--rouge-tokenize {'|'.join(TOKENIZERS)})"


class Rouge(Metric):
    """The three F1 scores of headlines and summaries."""

    name = "rouge"
    label = "ROUGE"
    columns = tuple(
        Column(key, label, signature="rouge_signature", paper=key, largest=100) for key, label in METRICS.items()
    )
    tokenize_option = "rouge-tokenize"
    tokenizers = tuple(TOKENIZERS)
    tokenize_help = (
        "what ROUGE counts: rouge-score (runs of a-z and 0-9) or unicode (words of all letters; characters in scripts "
        "without spaces); default: as the language of the references wants it"
    )

    @property
    def title(self) -> str:
        return "ROUGE-1 / -2 / -L F1"

    @property
    def main(self) -> Column:
        return self.columns[-1]

    @property
    def signature_labels(self) -> dict[str, str]:
        return {"rouge_signature": "ROUGE, F1 with 95 % intervals"}

    def statistics(self, outputs: Outputs, references: References) -> np.ndarray:
        places = [list(METRICS).index(column.key) for column in self.columns]
        values = sentence_rouge(outputs.text, references.text, tokenizer=self._choice(references)[0])[:, places]
        return np.column_stack([values, np.ones(len(values))])

    def scores_of(self, summed: np.ndarray) -> np.ndarray:
        scores: np.ndarray = summed[:-1] / summed[-1]
        return scores

    def signature(self, column: Column, references: References, bootstrap: str | None = None) -> str:
        bootstrap = bootstrap or f"bs:{SAMPLES}|seed:{SEED}"
        return signature(len(references.text), bootstrap, tokenizer=self._choice(references)[0])

    def configured(self, arguments: argparse.Namespace) -> Metric:
        return self.tokenized_by(getattr(arguments, "rouge_tokenize", None))

    def remarks(self, references: References) -> list[str]:
        remarks = [tokenizer_remark(*self._choice(references))]
        if _has_several_sentences(references):
            remarks.append("ROUGE-L takes a text of several sentences (<n>) as one; the metric rouge_lsum does not")
        return remarks

    def _choice(self, references: References) -> tuple[str, str]:
        """The tokenizer, and why it is this one."""
        if self.tokenizer is not None:
            return self.tokenizer, f"--{self.tokenize_option} says so"
        return choose_tokenizer(references.language, references.text)

    def scores(self, outputs: Outputs, references: References) -> dict[str, Any]:
        rouge = corpus_rouge(outputs.text, references.text, tokenizer=self._choice(references)[0])
        return {
            **{key: round(interval.score, 2) for key, interval in rouge.scores.items()},
            "rouge_intervals": {
                METRICS[key]: [round(bound, 2) for bound in (interval.low, interval.high) if bound is not None]
                for key, interval in rouge.scores.items()
            },
            "rouge_signature": rouge.signature,
        }


class RougeOfSentences(SampledMetric, Rouge):
    """ROUGE-Lsum: ROUGE-L of summaries of several sentences, each sentence of the reference by itself (Lin, 2004)."""

    name = "rouge_lsum"
    label = "ROUGE-Lsum"
    columns = (Column(OF_SENTENCES, "ROUGE-Lsum", largest=100),)

    @property
    def title(self) -> str:
        return self.label

    @property
    def signature_labels(self) -> dict[str, str]:
        return {self.main.signature: "ROUGE-Lsum, F1 with 95 % intervals"}

    def statistics(self, outputs: Outputs, references: References) -> np.ndarray:
        tokenizer = self._choice(references)[0]
        values = sentence_rouge(outputs.text, references.text, tokenizer=tokenizer, names=[OF_SENTENCES])
        return np.column_stack([values, np.ones(len(values))])

    def remarks(self, references: References) -> list[str]:
        remarks = [tokenizer_remark(*self._choice(references))]
        if not _has_several_sentences(references):
            remarks.append(
                "warning: ROUGE-Lsum is of texts of several sentences, with <n> between them; no reference has one, so "
                "that it equals ROUGE-L"
            )
        return remarks

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Those of ROUGE, which has added them."""


def _has_several_sentences(references: References) -> bool:
    return any(_SENTENCE_END.search(text) for lines in references.text for text in lines)


register_metric(Rouge())
register_metric(RougeOfSentences())
