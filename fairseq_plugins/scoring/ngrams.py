"""What a neural language model has to beat: n-gram models of the training text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ..symbols import END


def ngram_log_probabilities(train: Sequence[str], test: Sequence[str], order: int) -> list[list[float]]:
    """The natural logarithm of each token's probability, by line of ``test``, the lines' ends included.

    Words that are not in ``train`` are one unknown word. Of order 1 it is Laplace's estimate, of others Witten and
    Bell's, interpolated (``nltk.lm``), by which the unknown word has no probability: minus infinity. The text is one
    stream: a line's first word follows the end of the line before.

    Args:
        train, test: lines of tokens between spaces
        order: n
    """
    # Not at the head of the file: it takes a moment, and only the quick start needs it.
    from nltk.lm import Laplace, Vocabulary, WittenBellInterpolated
    from nltk.util import everygrams

    stream = [token for line in train for token in _tokens(line)]
    vocabulary = Vocabulary(stream, unk_cutoff=1)
    model = (Laplace if order == 1 else WittenBellInterpolated)(order, vocabulary=vocabulary)
    model.fit([everygrams([END, *stream] if order > 1 else stream, max_len=order)])
    history = [END]
    probabilities: dict[tuple[str, ...], float] = {}
    log_probabilities = []
    for line in test:
        values = []
        for token in _tokens(line):
            ngram = (*history[len(history) - order + 1 :], token) if order > 1 else (token,)
            if ngram not in probabilities:
                probability = model.score(token, ngram[:-1])
                probabilities[ngram] = math.log(probability) if probability > 0 else -math.inf
            values.append(probabilities[ngram])
            history.append(token)
        log_probabilities.append(values)
    return log_probabilities


def _tokens(line: str) -> Iterator[str]:
    yield from line.split()
    yield END
