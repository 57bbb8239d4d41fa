"""Word vectors from a file in GloVe's or word2vec's format: of classifiers, encoders and decoders alike."""

from __future__ import annotations

import logging
import math
from pathlib import Path

import torch
from fairseq.data import Dictionary
from torch import Tensor

from ..errors import InputError
from ..vector_files import vectors_of_words

logger = logging.getLogger(__name__)


def read_word_vectors(path: str, dictionary: Dictionary, size: int, option: str) -> tuple[Tensor, Tensor]:
    """The vectors of a file for words of a dictionary.

    The file is read by :func:`.vectors_of_words`. Padding has no vector.

    Args:
        path: of the file
        dictionary: fairseq's
        size: of a vector
        option: that which says the size, in errors

    Returns:
        The words' numbers in the dictionary (N,), and their vectors (N, size).

    Raises:
        InputError: the file cannot be read, a vector is of another size or not of finite numbers, or no word of the
            dictionary has one.
    """
    if not Path(path).exists():
        raise InputError(f"{path}: no such file of word vectors; name another, in GloVe's or word2vec's format")
    indices, rows = [], []
    for number, word, numbers in vectors_of_words(Path(path), size, option):
        if word not in dictionary or dictionary.index(word) == dictionary.pad():
            continue
        try:
            rows.append([float(text) for text in numbers])
        except ValueError as error:
            raise InputError(f"{path}, line {number}: {error}; numbers between spaces were expected") from None
        if not all(map(math.isfinite, rows[-1])):
            raise InputError(f"{path}, line {number}: the vector of {word!r} is not of finite numbers; remove the line")
        indices.append(dictionary.index(word))
    if not indices:
        raise InputError(f"{path}: none of its words is in the dictionary; is it of the same language and case?")
    logger.info(f"{path}: vectors of {len({*indices}):,} of the dictionary's {len(dictionary):,} types")
    return torch.tensor(indices), torch.tensor(rows)
