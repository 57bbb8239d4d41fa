"""Beam search among few tokens finds what fairseq's generator finds over the whole vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq.models import FairseqEncoderDecoderModel
from fairseq.sequence_generator import SequenceGenerator
from fairseq.tasks import FairseqTask
from torch import Tensor

from fairseq_plugins.models import beam_search
from fairseq_plugins.models.beam_search import FewTokensGenerator, searches_faster, without_padding_words
from tests.models.tasks import WORDS, make_task, pad
from tests.models.test_generation import MODELS, of_fairseq

PAD, EOS = 1, 2
BATCH = [[5, 6, 7, 8, EOS], [9, EOS], [4, 10, 6, EOS], [7, 7, 4, 9, 10, EOS]]
PREFIXES = torch.tensor([[4, 9], [10, PAD], [7, 5], [6, EOS]])
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "beam 1": {"beam_size": 1},
    "a beam as large as the vocabulary": {"beam_size": 10},
    "lengths": {"min_len": 3, "max_len_b": 6, "max_len_a": 0.5},
    "to the last word": {"min_len": 7, "max_len_b": 7},
    "length penalty": {"len_penalty": 0.3},
    "unnormalised": {"normalize_scores": False},
    "unknown words": {"unk_penalty": 1.5},
    "rewarded unknown words": {"unk_penalty": -2.0},
    "temperature": {"temperature": 1.7},
    "no repeated n-grams": {"no_repeat_ngram_size": 1, "max_len_b": 6},
    "suppressed words": {"tokens_to_suppress": ("w1",)},
    "lengths of the sources": {"match_source_len": True},
    "prefixes": {"prefix_tokens": PREFIXES},
    "another first token": {"bos_token": 6},
}


def generate(
    generator: type[SequenceGenerator],
    models: Sequence[FairseqEncoderDecoderModel],
    options: Mapping[str, Any],
) -> list[list[dict[str, Tensor]]]:
    given = {name: options[name] for name in ("prefix_tokens", "bos_token") if name in options}
    options = {"beam_size": 4, "max_len_b": 9} | {name: x for name, x in options.items() if name not in given}
    source = pad(BATCH, "left", PAD, max(map(len, BATCH)))
    sample = {"net_input": {"src_tokens": source, "src_lengths": source.ne(PAD).sum(1)}}
    dictionary = make_task().target_dictionary
    found: list[list[dict[str, Tensor]]] = generator(list(models), dictionary, **options).generate(
        list(models), sample, **given
    )
    return found


def check_same(models: Sequence[FairseqEncoderDecoderModel], options: Mapping[str, Any]) -> None:
    expected = generate(SequenceGenerator, models, options)
    found = generate(FewTokensGenerator, models, options)
    assert [len(row) for row in found] == [len(row) for row in expected]
    for row, of_fairseq_ in zip(found, expected, strict=True):
        for hypothesis, other in zip(row, of_fairseq_, strict=True):
            assert hypothesis["tokens"].tolist() == other["tokens"].tolist()
            for name in "score", "positional_scores", "attention":
                torch.testing.assert_close(hypothesis[name], other[name], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("kind", ["mc_rnn", "dpn"])
def test_hypotheses_are_those_of_fairseqs_generator(kind: str, options: Mapping[str, Any]) -> None:
    # In float32 two hypotheses of so small a model may be as good as each other but for rounding.
    check_same([MODELS[kind](seed=3).double()], options)


@pytest.mark.parametrize("options", ["plain", "unknown words", "prefixes"])
def test_ensembles(options: str) -> None:
    check_same([make(seed=4).double() for make in MODELS.values()], OPTIONS[options])


@pytest.mark.parametrize("kind", MODELS)
def test_in_single_precision(kind: str) -> None:
    check_same([MODELS[kind](seed=5).float()], {})


def test_a_generator_goes_on_after_a_prefix() -> None:
    """Whether the table has all tokens is asked for each batch."""
    model = MODELS["mc_rnn"](seed=6).double()
    options: dict[str, Any] = {"beam_size": 4, "max_len_b": 9}
    generator = FewTokensGenerator([model], make_task().target_dictionary, **options)
    source = pad(BATCH, "left", PAD, max(map(len, BATCH)))
    sample = {"net_input": {"src_tokens": source, "src_lengths": source.ne(PAD).sum(1)}}
    runs = [generator.generate([model], sample, prefix_tokens=prefix) for prefix in (None, PREFIXES, None)]
    tokens = [[[hypothesis["tokens"].tolist() for hypothesis in row] for row in run] for run in runs]
    assert tokens[0] == tokens[2] != tokens[1]


def test_a_table_of_few_tokens_and_of_one_hypothesis_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """What makes it faster."""
    shapes, best_tokens = [], beam_search.best_tokens

    def noting(table: Tensor, first: int, count: int) -> tuple[Tensor, Tensor]:
        found = best_tokens(table, first, count)
        shapes.append((len(table), found[0].size(1)))
        return found

    monkeypatch.setattr(beam_search, "best_tokens", noting)
    generate(FewTokensGenerator, [MODELS["dpn"](seed=7)], {"beam_size": 2, "min_len": 5, "max_len_b": 5})
    assert shapes[:2] == [(len(BATCH), 4 + 4), (2 * len(BATCH), 4 + 4)]


@pytest.mark.parametrize(
    ("make", "options", "expected"),
    [
        (lambda: [MODELS["mc_rnn"](seed=1), MODELS["dpn"](seed=1)], {}, FewTokensGenerator),
        (lambda: [MODELS["mc_rnn"](seed=1)], {"print_alignment": "hard"}, None),
        (lambda: [of_fairseq("lstm")], {}, SequenceGenerator),
        (lambda: [MODELS["mc_rnn"](seed=1), of_fairseq("lstm")], {}, SequenceGenerator),
    ],
)
def test_fairseqs_tasks_choose_it_for_our_models_alone(
    make: Callable[[], list[FairseqEncoderDecoderModel]], options: dict[str, Any], expected: type | None
) -> None:
    models = make()
    task = SimpleNamespace(target_dictionary=make_task().target_dictionary)
    generator = FairseqTask.build_generator(task, models, SimpleNamespace(beam=3, **options))
    assert type(generator) is expected if expected else not isinstance(generator, FewTokensGenerator)
    assert searches_faster(models) is (expected is FewTokensGenerator or bool(options))
    assert generator.beam_size == 3


# ---------------------------------------------------------------------------------- words that pad a dictionary


def padded_task(count: int) -> SimpleNamespace:
    """A task of which two target words are named as those are that pad a dictionary."""
    task = make_task()
    dictionary = task.target_dictionary
    for place, number in enumerate((9, 10)):
        dictionary.symbols[number], dictionary.count[number] = f"madeupword{place:04d}", count
    return task


def translations(
    models: Sequence[FairseqEncoderDecoderModel], count: int = 0, **options: object
) -> list[list[dict[str, Tensor]]]:
    torch.manual_seed(2)
    task = padded_task(count)
    generator = FairseqTask.build_generator(task, models, SimpleNamespace(max_len_b=9, **options))
    source = pad(BATCH, "left", PAD, max(map(len, BATCH)))
    sample = {"net_input": {"src_tokens": source, "src_lengths": source.ne(PAD).sum(1)}}
    found: list[list[dict[str, Tensor]]] = generator.generate(models, sample)
    return found


def words_of(found: list[list[dict[str, Tensor]]]) -> set[int]:
    return {token for row in found for hypothesis in row for token in hypothesis["tokens"].tolist()}


SEARCHES: dict[str, dict[str, Any]] = {
    "beam": {"beam": 4},
    "n-grams": {"beam": 4, "no_repeat_ngram_size": 2},
    "sampling": {"beam": 6, "sampling": True},
    "the best 8": {"beam": 6, "sampling": True, "sampling_topk": 8},
    "the most probable": {"beam": 6, "sampling": True, "sampling_topp": 0.9},
    "groups": {"beam": 4, "diverse_beam_groups": 2},
}


@pytest.mark.parametrize("options", SEARCHES.values(), ids=SEARCHES)
@pytest.mark.parametrize(
    "make", [lambda: [MODELS["dpn"](seed=1)], lambda: [of_fairseq("transformer")]], ids=["ours", "fairseqs"]
)
@pytest.mark.parametrize("copies", [1, 2])
def test_no_word_that_pads_the_dictionary_is_written(
    make: Callable[[], list[FairseqEncoderDecoderModel]], copies: int, options: Mapping[str, Any]
) -> None:
    models = make() * copies
    assert not words_of(translations(models, **options)) & {9, 10}
    assert words_of(translations(models, count=1, **options)) & {9, 10}, "words of a text are words"


def test_what_is_drawn_is_drawn_of_the_others() -> None:
    """As probable as they are among themselves."""
    table = torch.randn(3, WORDS).log_softmax(1)
    ensemble = SimpleNamespace(padding_words=[9, 10], is_sampled=True)
    others = table[:, :9].log_softmax(1)
    found = without_padding_words(ensemble, table)
    torch.testing.assert_close(found[:, :9], others)
    assert found[:, 9:].exp().eq(0).all()
    ensemble.is_sampled = False
    assert without_padding_words(ensemble, table)[:, :9].equal(table[:, :9])


@pytest.mark.parametrize("beam", [1, 4])
def test_scores_of_beam_search_stay_as_they_are(beam: int) -> None:
    """Where no hypothesis would have had such a word."""
    model = MODELS["mc_rnn"](seed=3)
    forward = model.decoder.forward

    def forward_improbable(*arguments: Any, **options: Any) -> tuple[Tensor, dict[str, Any]]:
        logits, extra = forward(*arguments, **options)
        logits[..., 9:] -= 20
        return logits, extra

    model.decoder.forward = forward_improbable
    found, expected = (translations([model], count=count, beam=beam) for count in (0, 1))
    for row, other_row in zip(found, expected, strict=True):
        for hypothesis, other in zip(row, other_row, strict=True):
            assert hypothesis["tokens"].equal(other["tokens"])
            assert hypothesis["positional_scores"].equal(other["positional_scores"])
