"""Tasks with labels, and batches of texts, for the tests of the models that read them."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from fairseq.data import Dictionary
from hypothesis import strategies as st
from torch import Tensor

import fairseq_plugins

fairseq_plugins.register()

WORDS = 12
LABELS = ["left", "middle", "right"]
PAD = 1

texts = st.lists(st.lists(st.integers(4, WORDS - 1), min_size=1, max_size=7), min_size=1, max_size=4)


def labelled_task(inputs: int = 1, tags: bool = False, has_candidates: bool = False) -> SimpleNamespace:
    """A task of so many texts, with words ``w0`` … and three labels."""
    dictionary, of_tags = Dictionary(), Dictionary()
    for number in range(WORDS - len(dictionary)):
        dictionary.add_symbol(f"w{number}")
    for tag in "NN", "VB":
        of_tags.add_symbol(tag)
    return SimpleNamespace(
        source_dictionary=dictionary,
        tag_dictionary=of_tags if tags else None,
        labels=LABELS,
        inputs=[f"input{number}" for number in range(inputs)],
        has_candidates=has_candidates,
    )


def reading_task() -> SimpleNamespace:
    """A task of passages and questions of these words."""
    task = labelled_task()
    task.data_kind = "reading_comprehension"
    return task


def batch(rows: list[list[int]], more_padding: int = 0) -> tuple[Tensor, Tensor]:
    """Right-padded tokens (B, T) and lengths (B,)."""
    width = max(map(len, rows)) + more_padding
    tokens = torch.tensor([row + [PAD] * (width - len(row)) for row in rows])
    return tokens, torch.tensor([len(row) for row in rows])
