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
``plain``           draws plain sentences of at most six words
``gloss``           the word-for-word translation, which a model has to beat
``headlines``       first sentences of news articles with their headlines
``facts``           labelled sentences, in which word order decides
``splits``          training, validation and test sets without near copies of each other
==================  =================================================================================================
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping

from . import splits
from .gloss import word_for_word
from .headlines import HeadlineSampler
from .plain import PlainSampler
from .sentences import Sampler
from .splits import SIZES, Pair, tokens

__all__ = [
    "SIZES",
    "TRANSLATION_SIZES",
    "generate_summarization",
    "generate_text",
    "generate_translation",
    "tokens",
    "word_for_word",
]

TRANSLATION_SIZES: Mapping[str, int] = {"train": 15000, "valid": 500, "test": 500}
_SOURCE_TOKENS = range(8, 16)
_TEXT_TOKENS = range(8, 20)
_ARTICLE_TOKENS = range(15, 61)
_HEADLINE_WORDS = range(4, 10)


def generate_translation(
    seed: int = 1, sizes: Mapping[str, int] | None = None, excluded: Iterable[str] = ()
) -> dict[str, list[Pair]]:
    """German-English pairs by split (``train``, ``valid``, ``test``; ``sizes`` defaults to 15,000, 500 and 500).

    Every third is plain, of at most six words; the others have 8 to 15 tokens. Sources are unique, and none is
    ``excluded``. No longer source of training differs from a held-out one by one word alone. The same seed and sizes
    give the same corpus everywhere.

    Raises:
        ValueError: the grammar has fewer pairs.
    """
    sizes, excluded = {**TRANSLATION_SIZES, **(sizes or {})}, list(excluded)
    plain_sizes = {name: size // 3 for name, size in sizes.items()}
    long_sizes = {name: size - plain_sizes[name] for name, size in sizes.items()}
    generator = random.Random(seed)
    long = splits.split(Sampler(generator, has_round_numbers=True).sentence, _is_long, long_sizes, excluded)
    plain = splits.split(PlainSampler(generator).sentence, _is_right, plain_sizes, excluded, has_near_copies=True)
    pairs = {name: [*long[name], *plain[name]] for name in sizes}
    for name in sizes:
        generator.shuffle(pairs[name])
    return pairs


def _is_long(pair: Pair) -> bool:
    words = tokens(pair[0])
    # So many compounds of days and parts of them would come up once or twice.
    is_frequent = not any(word.endswith("nachmittag") for word in words)
    return len(words) in _SOURCE_TOKENS and is_frequent and _is_right(pair)


def _is_right(pair: Pair) -> bool:
    # A "schwerer Fehler" is a serious mistake. The table of contradictions would change the text for language models.
    return not ("mistake" in pair[1] and "difficult" in pair[1])


def generate_summarization(seed: int = 1, sizes: Mapping[str, int] | None = None) -> dict[str, list[Pair]]:
    """Pairs of an article's first sentence and its headline (4 to 9 words), split like :func:`generate_translation`.

    Raises:
        ValueError: the grammar has fewer pairs.
    """
    sampler = HeadlineSampler(random.Random(seed))

    def fits(pair: Pair) -> bool:
        return len(tokens(pair[0])) in _ARTICLE_TOKENS and len(pair[1].split()) in _HEADLINE_WORDS

    return splits.split(sampler.pair, fits, sizes)


def generate_text(seed: int = 1, sizes: Mapping[str, int] | None = None) -> dict[str, list[str]]:
    """Lines of English by split, as lower-cased tokens between spaces: translations of 8 to 19 German tokens.

    Raises:
        ValueError: the grammar has fewer lines.
    """
    sampler = Sampler(random.Random(seed))
    pairs = splits.split(sampler.sentence, lambda pair: len(tokens(pair[0])) in _TEXT_TOKENS, sizes)
    return {split: [" ".join(tokens(target)) for _, target in rows] for split, rows in pairs.items()}
