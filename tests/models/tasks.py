"""Tasks, batches and models by architecture, for the tests of the models."""

from __future__ import annotations

from argparse import Namespace
from types import SimpleNamespace

import torch
from fairseq.data import Dictionary
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.models import ARCH_CONFIG_REGISTRY, BaseFairseqModel, build_model
from hypothesis import strategies as st
from torch import Tensor

import fairseq_plugins  # noqa: F401 - registers the architectures

WORDS = 11

sentences = st.lists(
    st.lists(st.integers(4, WORDS - 1), min_size=0, max_size=7).map(lambda words: [*words, 2]), min_size=1, max_size=4
)


def make_task(source_types: int = WORDS, target_types: int | None = None, **cfg: bool) -> SimpleNamespace:
    """A task with dictionaries of the given numbers of types, fairseq's four special symbols included."""

    def dictionary(types: int) -> Dictionary:
        made = Dictionary()
        for i in range(types - len(made)):
            made.add_symbol(f"w{i}")
        return made

    source = dictionary(source_types)
    target = source if target_types is None else dictionary(target_types)
    return SimpleNamespace(source_dictionary=source, target_dictionary=target, cfg=SimpleNamespace(**cfg))


def pad(sentences: list[list[int]], side: str, pad_index: int, width: int) -> Tensor:
    rows = []
    for sentence in sentences:
        padding = [pad_index] * (width - len(sentence))
        rows.append(padding + sentence if side == "left" else sentence + padding)
    return torch.tensor(rows)


def build_architecture(name: str, task: SimpleNamespace) -> BaseFairseqModel:
    # max_*_positions: what the translation task adds by default.
    args = Namespace(
        arch=name,
        task="translation",
        criterion="cross_entropy",
        optimizer="adam",
        lr_scheduler="fixed",
        data="",
        max_source_positions=1024,
        max_target_positions=1024,
    )
    ARCH_CONFIG_REGISTRY[name](args)
    return build_model(convert_namespace_to_omegaconf(args).model, task)
