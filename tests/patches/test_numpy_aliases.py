"""Names of numpy that are gone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary, LanguagePairDataset, TokenBlockDataset, bucket_pad_length_dataset, data_utils

from fairseq_plugins.patches.numpy_aliases import restore_numpy_aliases

from .unpatched import fault_of, needless, original_of


def test_numpy_names_in_bucketed_language_pairs() -> None:
    dictionary = Dictionary()
    sentences = [torch.tensor([5] * length + [2]) for length in (1, 4, 7, 7)]
    sizes = np.array([len(sentence) for sentence in sentences])
    dataset = LanguagePairDataset(sentences, sizes, dictionary, num_buckets=2)  # --num-batch-buckets
    assert [size for _, size in dataset.buckets] == sorted({dataset.num_tokens(index) for index in range(4)})


def test_numpy_names_in_token_block_dataset() -> None:
    sizes = [3, 2]
    blocks = TokenBlockDataset([torch.arange(size) for size in sizes], sizes, None, pad=1, eos=2, break_mode="eos")
    assert [block.tolist() for block in blocks] == [[0, 1, 2], [0, 1]]


def test_numpy_names_in_mask_indices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np.random, "default_rng", np.random.RandomState)  # whose randint fairseq wants, as in 0.12.2
    mask = data_utils.compute_mask_indices((2, 20), None, mask_prob=0.5, mask_length=3, no_overlap=True, min_masks=1)
    assert mask.shape == (2, 20) and mask.any()


def test_numpy_names_in_conditional_random_field() -> None:
    from fairseq.modules.dynamic_crf_layer import DynamicCRF

    torch.manual_seed(1)
    layer = DynamicCRF(num_embedding=12, low_rank=2, beam_size=4)
    emissions, targets = torch.randn(2, 3, 12), torch.randint(0, 12, (2, 3))
    likelihood = layer(emissions, targets, torch.ones(2, 3, dtype=torch.bool), beam=4)
    assert torch.isfinite(likelihood).all()


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("int", lambda: data_utils.compute_mask_indices((2, 20), None, 0.5, 3, no_overlap=True, min_masks=1)),
        ("float", test_numpy_names_in_conditional_random_field),
        ("compat", test_numpy_names_in_token_block_dataset),
    ],
)
def test_fairseq_uses_names_that_are_gone(
    name: str, use: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(np, name)
    with fault_of(restore_numpy_aliases, AttributeError):
        use()


def test_fairseq_uses_an_argument_that_is_gone() -> None:
    for module in data_utils, bucket_pad_length_dataset:
        assert "interpolation" in original_of(module, "get_buckets").__code__.co_consts[-1], needless(
            restore_numpy_aliases
        )
