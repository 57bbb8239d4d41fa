"""Diverse beam search over batches of a set, alignments of padded sentences, and fairseq 0.12.2's transformer."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch
from fairseq import utils
from fairseq.data import Dictionary
from fairseq.modules.transformer_layer import TransformerEncoderLayerBase
from fairseq.search import DiverseBeamSearch
from fairseq.sequence_generator import EnsembleModel
from fairseq.tasks import FairseqTask
from torch import Tensor

from fairseq_plugins.patches.decoding import (
    _avoid_fast_path,
    avoid_transformer_fast_path,
    repair_alignments,
    repair_diverse_beam_search,
    search_among_few_tokens,
    write_no_padding_words,
)
from tests.models.tasks import WORDS, make_task
from tests.models.test_beam_search import translations, words_of
from tests.models.test_generation import of_fairseq
from tests.models.test_recurrent_seq2seq import make_model as make_recurrent

from .unpatched import fault_of, needless, original_of


def steps(numbers: list[int], kept: list[int]) -> list[tuple[Tensor, ...]]:
    """Three steps of a batch of sentences with these numbers, of which ``kept`` are left for the last one."""
    torch.manual_seed(1)
    dictionary = Dictionary()
    for number in range(9):
        dictionary.add_symbol(f"word{number}")
    search = DiverseBeamSearch(dictionary, num_groups=2, diversity_strength=5.0)
    ids, beam = torch.tensor(numbers), 4
    lprobs = torch.randn(3, len(numbers), beam, len(dictionary)).log_softmax(-1)
    scores = torch.randn(len(numbers), beam, 3).cumsum(-1)
    tokens = torch.zeros(len(numbers), 3, dtype=torch.long)
    first = search.step(0, lprobs[0], scores[:, :, :0], tokens, ids)
    second = search.step(1, lprobs[1], scores[:, :, :1], tokens, ids)
    third = search.step(2, lprobs[2][kept], scores[kept][:, :, :2], tokens[kept], ids[kept])
    return [first, second, third]


@pytest.mark.parametrize("numbers", [[0, 1, 2], [7, 3, 11], [2, 0, 1], [1 << 40, 5, 0]])
def test_the_numbers_of_sentences_do_not_matter(numbers: list[int]) -> None:
    for found, expected in zip(steps(numbers, [0, 2]), steps([0, 1, 2], [0, 2]), strict=True):
        for mine, other in zip(found, expected, strict=True):
            assert torch.equal(mine, other)


def test_groups_differ() -> None:
    """What the repair must not undo: the groups of a sentence begin with different words."""
    _, words, _ = steps([7, 3, 11], [0])[0]
    for row in words.view(3, -1, 2):
        assert not set(row[:, 0].tolist()) & set(row[:, 1].tolist())


def test_fairseq_knows_the_sentences_of_the_first_batch_alone(unpatch: Callable[[object, str], None]) -> None:
    unpatch(DiverseBeamSearch, "step")
    with fault_of(repair_diverse_beam_search, IndexError):
        steps([7, 3, 11], [0])


def test_fairseq_passes_over_the_whole_vocabulary(unpatch: Callable[[object, str], None]) -> None:
    model = make_recurrent()
    shapes: list[torch.Size] = []
    task = SimpleNamespace(target_dictionary=make_task().target_dictionary)
    sample = {"net_input": {"src_tokens": torch.tensor([[5, 6, 2]])}}

    def generate() -> None:
        shapes.clear()
        generator = FairseqTask.build_generator(task, [model], SimpleNamespace(beam=2, max_len_b=4))
        step = generator.search.step
        generator.search.step = lambda number, lprobs, *rest: shapes.append(lprobs.shape) or step(number, lprobs, *rest)
        generator.generate([model], sample)

    generate()
    assert {shape[-1] for shape in shapes} == {4 + 2 * 2}, "special symbols, and two beams of words"
    unpatch(FairseqTask, "build_generator")
    generate()
    assert {shape[-1] for shape in shapes} == {WORDS}, needless(search_among_few_tokens)


def test_fairseq_draws_words_that_pad_the_dictionary(unpatch: Callable[[object, str], None]) -> None:
    options = {"beam": 6, "sampling": True}
    assert not words_of(translations([of_fairseq("transformer")], **options)) & {9, 10}
    unpatch(EnsembleModel, "forward_decoder")
    assert words_of(translations([of_fairseq("transformer")], **options)) & {9, 10}, needless(write_no_padding_words)


PADDING = 1


def attention_padded(side: str) -> Tensor:
    """(3, 5): of three target tokens over three source tokens and two of padding."""
    weights = torch.tensor([[0.1, 0.8, 0.1], [0.7, 0.2, 0.1], [0.3, 0.3, 0.4]])
    padding = torch.zeros(3, 2)
    return torch.cat([padding, weights] if side == "left" else [weights, padding], dim=1)


@pytest.mark.parametrize("source", [[1, 1, 7, 8, 2], [7, 8, 2, 1, 1]], ids=["left-padded", "right-padded"])
@pytest.mark.parametrize("shown", ["left", "right"])
def test_alignments_do_not_depend_on_the_padding_side(source: list[int], shown: str) -> None:
    weights, target = attention_padded(shown), torch.tensor([9, 9, 2])
    assert utils.extract_hard_alignment(weights, torch.tensor(source), target, pad=PADDING, eos=2) == [(1, 0), (0, 1)]
    soft = utils.extract_soft_alignment(weights, torch.tensor(source), target, pad=PADDING, eos=2)
    assert soft[0] == ["0.100000", "0.800000", "0.100000"]


def test_fairseq_takes_padding_for_words_where_the_sides_differ(unpatch: Callable[[object, str], None]) -> None:
    unpatch(utils, "extract_hard_alignment")
    source, target = torch.tensor([PADDING, PADDING, 7, 8, 2]), torch.tensor([9, 9, 2])
    alignment = utils.extract_hard_alignment(attention_padded("right"), source, target, pad=PADDING, eos=2)
    assert alignment != [(1, 0), (0, 1)], needless(repair_alignments)


def test_the_transformers_fast_path_is_not_taken() -> None:
    class Layer:  # as in fairseq 0.12.2
        def __init__(self, size: int, normalize_before: bool = False) -> None:
            self.size = size
            self.can_use_fastpath = not normalize_before

    _avoid_fast_path(Layer)
    assert Layer(3).can_use_fastpath is False and Layer(3).size == 3
    init = Layer.__init__
    _avoid_fast_path(Layer)
    assert Layer.__init__ is init


def test_layers_without_a_fast_path_are_left_alone() -> None:
    class Layer:
        def __init__(self) -> None:
            self.size = 3

    init = Layer.__init__
    _avoid_fast_path(Layer)
    assert Layer.__init__ is init


def test_fairseq_has_a_fast_path() -> None:
    try:
        importlib.metadata.version("fairseq-fixed")
    except importlib.metadata.PackageNotFoundError:
        init = original_of(TransformerEncoderLayerBase, "__init__")
        assert "can_use_fastpath" in init.__code__.co_names, needless(avoid_transformer_fast_path)
    else:
        pytest.skip("avoid_transformer_fast_path is for fairseq 0.12.2")
