"""German-English sentence pairs, headline pairs, a text and labelled sentences, out of grammars.

``benchmarks/builtin_corpus.py`` makes the built-in corpora of them.

==================  =================================================================================================
``words/*.tsv``     the vocabulary; ``vocabulary`` reads it
``lexicon``         nouns, verbs, adjectives and adverbs of both languages, with their inflection
``meaning``         what a sentence says, in neither language
``german``          cases, articles, adjective endings, verb-second and verb-final order, separable verbs, numbers
``english``         the same meaning in English: do-support, word order, articles, plurals
``phrases``         draws words and noun phrases
``clauses``         draws clauses that make sense
``sentences``       draws sentences and puts them into both languages
``gloss``           the word-for-word translation, which a model has to beat
``headlines``       first sentences of news articles with their headlines
``facts``           labelled sentences, in which word order decides
``splits``          training, validation and test sets without near copies of each other
==================  =================================================================================================
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from . import splits
from .gloss import word_for_word
from .headlines import HeadlineSampler
from .sentences import Sampler
from .splits import SIZES, Pair, tokens

__all__ = [
    "SIZES",
    "generate_summarization",
    "generate_text",
    "generate_translation",
    "tokens",
    "word_for_word",
]

_SOURCE_TOKENS = range(8, 20)
_ARTICLE_TOKENS = range(15, 61)
_HEADLINE_WORDS = range(5, 10)


def generate_translation(seed: int = 1, sizes: Mapping[str, int] | None = None) -> dict[str, list[Pair]]:
    """German-English pairs by split (``train``, ``valid``, ``test``; ``sizes`` defaults to 12,000, 500 and 500).

    Sources have 8 to 19 tokens and are unique; no source of training differs from a held-out one by one word alone.
    The same seed and sizes give the same corpus everywhere.

    Raises:
        ValueError: the grammar has fewer pairs.
    """
    sampler = Sampler(random.Random(seed))
    return splits.split(sampler.sentence, lambda pair: len(tokens(pair[0])) in _SOURCE_TOKENS, sizes)


def generate_summarization(seed: int = 1, sizes: Mapping[str, int] | None = None) -> dict[str, list[Pair]]:
    """Pairs of an article's first sentence and its headline (5 to 9 words), split like :func:`generate_translation`.

    Raises:
        ValueError: the grammar has fewer pairs.
    """
    sampler = HeadlineSampler(random.Random(seed))

    def fits(pair: Pair) -> bool:
        return len(tokens(pair[0])) in _ARTICLE_TOKENS and len(pair[1].split()) in _HEADLINE_WORDS

    return splits.split(sampler.pair, fits, sizes)


def generate_text(seed: int = 1, sizes: Mapping[str, int] | None = None) -> dict[str, list[str]]:
    """Lines of English by split: the targets of :func:`generate_translation`, as lower-cased tokens between spaces.

    Raises:
        ValueError: the grammar has fewer lines.
    """
    pairs = generate_translation(seed, sizes)
    return {split: [" ".join(tokens(target)) for _, target in rows] for split, rows in pairs.items()}
