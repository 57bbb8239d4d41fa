"""BLEU as this project reports it, and the counts of n-grams that it is made of, for every sentence.

'tokenised BLEU' (``none``) is that of Moses' multi-bleu.perl on the tokens, which the papers report: sacrebleu without
tokenisation and smoothing. 'sacreBLEU' is that of the text, as sacrebleu's own command computes it for the target
language: by ``13a``, and Chinese, Japanese and Korean by tokenizers of their own. Both use all of several references,
with the reference length that is closest to a hypothesis' own, as mteval does.
"""

from __future__ import annotations

import argparse
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache

import numpy as np
from sacrebleu.metrics import BLEU

from ..errors import InputError, last_words
from ..languages import language_code
from .metrics import Column, Metric, Outputs, References, check_lengths, register_metric
from .rouge_tokens import unicode_tokens

DEFAULT = BLEU.TOKENIZER_DEFAULT
SACREBLEU_TOKENIZERS = (DEFAULT, *(name for name in BLEU.TOKENIZERS if name not in (DEFAULT, "none")))
_PACKAGES = {"ja-mecab": "sacrebleu[ja]", "ko-mecab": "sacrebleu[ko]"}
# Where there is so much between two spaces on the average, it is no word.
_MOST_TOKENS, _MOST_LETTERS = 5, 15


def bleu(tokenize: str = "none", lowercase: bool = False) -> BLEU:
    """The metric of one of the two figures.

    Args:
        tokenize: ``none`` for tokenised BLEU; for sacreBLEU one of its tokenizers.
        lowercase: both sides.

    Raises:
        ValueError: another tokenizer.
        InputError: its packages are not installed.
    """
    if tokenize == "none":
        # Tokens are meant to look tokenised: sacrebleu would warn of them.
        return BLEU(tokenize="none", smooth_method="none", force=True, lowercase=lowercase)
    if tokenize not in SACREBLEU_TOKENIZERS:
        raise ValueError(f"tokenize is {tokenize!r}, but may be none or {', '.join(SACREBLEU_TOKENIZERS)}")
    return _sacrebleu(tokenize, lowercase)


def _sacrebleu(tokenize: str, lowercase: bool, is_of_sentences: bool = False) -> BLEU:
    """sacrebleu's metric: of a corpus, or of single sentences, which have no n-grams longer than they are.

    Raises:
        InputError: the tokenizer's packages are not installed, or its model cannot be had.
    """
    try:
        return BLEU(tokenize=tokenize, lowercase=lowercase, force=is_of_sentences, effective_order=is_of_sentences)
    except (RuntimeError, ImportError) as error:
        package = _PACKAGES.get(tokenize)
        remedy = f"run pip install '{package}'" if package else f"it says: {last_words(str(error).splitlines())}"
        raise InputError(
            f"sacreBLEU's tokenizer {tokenize} is not installed: {remedy}, or name another by --sacrebleu-tokenize "
            f"(char: by characters)"
        ) from None
    except OSError as error:
        raise InputError(
            f"sacreBLEU's tokenizer {tokenize} needs a model that it fetches, and cannot: {error}; name another by "
            f"--sacrebleu-tokenize"
        ) from None


def tokenizer_of(language: str) -> str:
    """The tokenizer of sacreBLEU for a target language, as sacrebleu's own command has it.

    Args:
        language: the name of the target's side, such as ``zh``; it need be none of a language
    """
    return BLEU._TOKENIZER_MAP.get(language_code(language) or "", DEFAULT)


def has_hardly_spaces(lines: Iterable[str]) -> bool:
    """Whether what is between the spaces of lines is no words, but whole phrases or sentences.

    That is five tokens or more of what ROUGE counts, which are characters in scripts without spaces, or 15 letters.
    """
    pieces = tokens = letters = 0
    for line in lines:
        pieces += len(line.split())
        tokens += len(unicode_tokens(line))
        letters += sum(unicodedata.category(character)[0] in "LM" for character in line)
    return 0 < pieces and (tokens >= pieces * _MOST_TOKENS or letters >= pieces * _MOST_LETTERS)


def sentence_statistics(metric: BLEU, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> np.ndarray:
    """What corpus BLEU sums over the sentences.

    Args:
        metric: of :func:`bleu`.
        hypotheses: N sentences.
        references: one or several for each: lists of N.

    Returns:
        (N, 10) integers: length in tokens, length of the closest reference, matching n-grams of orders 1 to 4, all
        n-grams of orders 1 to 4.

    Raises:
        ValueError: lists of different length.
    """
    check_lengths(hypotheses, references)
    return np.array(metric._extract_corpus_statistics(hypotheses, references), dtype=np.int64)


def score_of_statistics(metric: BLEU, summed: np.ndarray) -> float:
    """BLEU in percent of what :func:`sentence_statistics` gives, summed over some sentences: (10,) integers."""
    return float(metric._compute_score_from_stats(summed.tolist()).score)


def sentence_bleu(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], tokenize: str = "none", lowercase: bool = False
) -> np.ndarray:
    """BLEU in percent of every sentence by itself, (N,): sacrebleu's, smoothed, orders longer than it left out.

    Args: as for :func:`sentence_statistics` and :func:`bleu`.
    """
    metric = _sacrebleu(tokenize, lowercase, is_of_sentences=True)
    pairs = zip(hypotheses, *references, strict=True)
    return np.array([metric.sentence_score(hypothesis, targets).score for hypothesis, *targets in pairs])


TOKENIZED = Column(
    "bleu_tokenized", "BLEU (tokenised)", "BLEU", signature="bleu_tokenized_signature", paper="bleu", largest=100
)
SACREBLEU = Column("bleu_sacrebleu", "sacreBLEU", "BLEU", signature="sacrebleu_signature", largest=100)
_COLUMNS = {"none": TOKENIZED, DEFAULT: SACREBLEU}


class Bleu(Metric):
    """Both figures of translations: of tokens, which the papers report, and of text."""

    name = "bleu"
    label = "BLEU"
    columns = (TOKENIZED, SACREBLEU)
    tokenize_option = "sacrebleu-tokenize"
    tokenizers = SACREBLEU_TOKENIZERS
    tokenize_help = f"sacreBLEU of text, by {', '.join(SACREBLEU_TOKENIZERS)}"
    options = {
        "tokenize": {
            "choices": tuple(_COLUMNS),
            "help": "none (default): BLEU of the tokens as they are; 13a: sacreBLEU of text, by 13a or what the "
            "language of the references wants",
        },
        "lowercase": {"action": "store_true", "help": "BLEU without regard to case"},
    }

    @property
    def title(self) -> str:
        return "tokenised BLEU"

    @property
    def sentence_label(self) -> str:
        return "sentence BLEU"

    def statistics(self, outputs: Outputs, references: References) -> np.ndarray:
        return np.concatenate(
            [
                sentence_statistics(
                    bleu(self._tokenize(column, references), references.lowercase), *_read(column, outputs, references)
                )
                for column in self.columns
            ],
            axis=1,
        )

    def scores_of(self, summed: np.ndarray) -> np.ndarray:
        parts = summed.reshape(len(self.columns), -1)
        return np.array(
            [score_of_statistics(_scorer(column), part) for column, part in zip(self.columns, parts, strict=True)]
        )

    def signature(self, column: Column, references: References, bootstrap: str | None = None) -> str:
        scorer = bleu(self._tokenize(column, references), references.lowercase)
        scorer.num_refs = len(references.text)
        signature = scorer.get_signature()
        for part in bootstrap.split("|") if bootstrap else ():
            signature.update(*part.split(":"))
        return str(signature)

    def sentence_scores(self, outputs: Outputs, references: References) -> np.ndarray:
        tokenize = self._tokenize(self.main, references)
        return sentence_bleu(*_read(self.main, outputs, references), tokenize, references.lowercase)

    def configured(self, arguments: argparse.Namespace) -> Metric:
        tokenizer = getattr(arguments, "sacrebleu_tokenize", None)
        if tokenizer is not None and arguments.tokenize == "none":
            raise InputError("--sacrebleu-tokenize is for sacreBLEU, and --tokenize none for tokens; leave one out")
        default = "none" if tokenizer is None else DEFAULT
        return self.tokenized_by(tokenizer).only(_COLUMNS[arguments.tokenize or default].key)

    def remarks(self, references: References) -> list[str]:
        for column in self.columns:
            bleu(self._tokenize(column, references))
        remarks = []
        if SACREBLEU in self.columns and self.tokenizer is None:
            tokenizer, language = tokenizer_of(references.language), references.language
            if tokenizer != DEFAULT:
                remarks.append(
                    f"sacreBLEU cuts text by {tokenizer}, since the target language is '{language}' "
                    f"(--sacrebleu-tokenize names another)"
                )
            elif has_hardly_spaces(line for lines in references.text for line in lines):
                remarks.append(
                    f"warning: sacreBLEU cuts text by {DEFAULT}, which wants words between spaces, and the references "
                    f"have hardly a space: name another by --sacrebleu-tokenize (zh for Chinese, char for Thai and "
                    f"others)"
                )
        if TOKENIZED in self.columns and has_hardly_spaces(line for lines in references.tokens for line in lines):
            remarks.append(
                "warning: tokenised BLEU is of what is between spaces, and the references' tokens have hardly a space: "
                "go by sacreBLEU (--sacrebleu-tokenize), or prepare text that is cut into words"
            )
        return remarks

    def _tokenize(self, column: Column, references: References) -> str:
        """What one of the figures is cut by."""
        return "none" if column == TOKENIZED else self.tokenizer or tokenizer_of(references.language)


def _read(column: Column, outputs: Outputs, references: References) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """The side of outputs and references that one of the figures is of."""
    return (outputs.tokens, references.tokens) if column == TOKENIZED else (outputs.text, references.text)


@cache
def _scorer(column: Column) -> BLEU:
    """Of sums alone: case and tokenizer are gone from them."""
    return bleu("none" if column == TOKENIZED else DEFAULT)


register_metric(Bleu())
