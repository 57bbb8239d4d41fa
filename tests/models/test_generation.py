"""fairseq's beam search over our models: ensembles, prefixes, constraints and diverse groups, held to a greedy loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch
from fairseq.models import FairseqEncoderDecoderModel
from fairseq.search import DiverseBeamSearch, LexicallyConstrainedBeamSearch, Search
from fairseq.sequence_generator import SequenceGenerator
from fairseq.token_generation_constraints import pack_constraints
from torch import Tensor

from fairseq_plugins.errors import InputError
from tests.models.tasks import WORDS, make_task, pad
from tests.models.test_double_path import make_model as make_double_path
from tests.models.test_recurrent_language_model import make_model as make_language_model
from tests.models.test_recurrent_seq2seq import make_model as make_recurrent

DICTIONARY = make_task().target_dictionary
PAD, EOS, LONGEST = 1, 2, 8
BATCH = [[5, 6, 7, 8, EOS], [9, EOS], [4, 10, 6, EOS]]
MODELS: dict[str, Callable[..., FairseqEncoderDecoderModel]] = {
    "mc_rnn": lambda **given: make_recurrent(
        encoder_recurrent_layer="mc_rnn", decoder_recurrent_layer="mc_rnn", decoder_layers=2, **given
    ),
    "ho_rnn": lambda **given: make_recurrent(
        encoder_recurrent_layer="ho_rnn", decoder_recurrent_layer="ho_rnn", decoder_attention="output", **given
    ),
    "dpn": lambda **given: make_double_path(encoder_paths="cnn,san", decoder_paths="cnn,san", **given),
}


def generate(
    models: Sequence[FairseqEncoderDecoderModel],
    batch: list[list[int]],
    beam: int = 1,
    search: Search | None = None,
    ids: Sequence[int] | None = None,
    **given: Tensor,
) -> list[list[tuple[list[int], float]]]:
    """Tokens and scores of the hypotheses of each sentence, the best first."""
    generator = SequenceGenerator(list(models), DICTIONARY, beam_size=beam, max_len_b=LONGEST, search_strategy=search)
    source = pad(batch, "left", PAD, max(map(len, batch)))
    sample = {"net_input": {"src_tokens": source, "src_lengths": source.ne(PAD).sum(1)}}
    sample["id"] = torch.tensor(list(ids or range(len(batch))))
    return [
        [(hypothesis["tokens"].tolist(), float(hypothesis["score"])) for hypothesis in row]
        for row in generator.generate(list(models), sample, **given)
    ]


def greedy(models: Sequence[FairseqEncoderDecoderModel], sentence: list[int], prefix: Sequence[int] = ()) -> list[int]:
    """The likeliest word after the other, by the mean of the models' probabilities, without incremental decoding."""
    tokens = [EOS, *prefix]
    while True:
        logits = [model(torch.tensor([sentence]), None, torch.tensor([tokens]))[0][0, -1] for model in models]
        probabilities = torch.stack([one.softmax(-1) for one in logits]).mean(0)
        probabilities[PAD] = 0
        if len(tokens) == 1:
            probabilities[EOS] = 0
        last = len(tokens) > LONGEST
        tokens.append(EOS if last else int(probabilities.argmax()))
        if tokens[-1] == EOS:
            return tokens[1:]


@pytest.mark.parametrize("kind", MODELS)
def test_an_ensemble_takes_the_mean_of_probabilities(kind: str) -> None:
    models = [MODELS[kind](seed=seed) for seed in (1, 2, 3)]
    for number in 1, 3:
        found = [row[0][0] for row in generate(models[:number], BATCH)]
        assert found == [greedy(models[:number], sentence) for sentence in BATCH]
    assert generate(models[:1] * 2, BATCH, beam=4) == [
        [(tokens, pytest.approx(score, abs=1e-5)) for tokens, score in row]
        for row in generate(models[:1], BATCH, beam=4)
    ]


@pytest.mark.parametrize("kind", MODELS)
def test_dropout_in_generation_is_refused(kind: str) -> None:
    with pytest.raises(InputError, match="--retain-dropout: this model has no dropout but in training"):
        MODELS[kind]().make_generation_fast_(retain_dropout=True)
    with pytest.raises(InputError, match="--retain-dropout"):
        make_language_model().make_generation_fast_(retain_dropout=True)


def test_an_ensemble_of_different_architectures() -> None:
    models = [make(seed=4) for make in MODELS.values()]
    assert [row[0][0] for row in generate(models, BATCH)] == [greedy(models, sentence) for sentence in BATCH]


@pytest.mark.parametrize("kind", MODELS)
def test_a_prefix_is_gone_on_from(kind: str) -> None:
    model = MODELS[kind](seed=5)
    prefixes = [[4, 9], [10, 10], [7, 5]]
    for beam in 1, 3:
        found = generate([model], BATCH, beam=beam, prefix_tokens=torch.tensor(prefixes))
        for row, prefix in zip(found, prefixes, strict=True):
            assert all(tokens[:2] == prefix for tokens, _ in row)
        if beam == 1:
            expected = [greedy([model], *given) for given in zip(BATCH, prefixes, strict=True)]
            assert [row[0][0] for row in found] == expected


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("representation", ["ordered", "unordered"])
def test_constraints_are_met(kind: str, representation: str) -> None:
    model = MODELS[kind](seed=6)
    wanted = [[[6], [9, 4]], [], [[10]]]
    constraints = pack_constraints([[torch.tensor(words) for words in row] for row in wanted])
    search = LexicallyConstrainedBeamSearch(DICTIONARY, representation)
    found = generate([model], BATCH, beam=5, search=search, constraints=constraints)
    for row, phrases in zip(found, wanted, strict=True):
        best = row[0][0]
        places = [
            next(i for i in range(len(best)) if best[i : i + len(phrase)] == phrase) for phrase in phrases
        ]  # StopIteration: it is not there
        assert representation == "unordered" or places == sorted(places)
    free = generate([model], BATCH, beam=5)
    assert found[1][0][0] == free[1][0][0], "a sentence without constraints"


@pytest.mark.parametrize("kind", MODELS)
def test_the_best_of_many_are_those_of_each_alone(kind: str) -> None:
    model = MODELS[kind](seed=7)
    many = [
        [4 + (first + step) % (WORDS - 4) for step in range(length)] + [EOS] for first in range(6) for length in (1, 4)
    ]
    for row, sentence in zip(generate([model], many, beam=5), many, strict=True):
        [alone] = generate([model], [sentence], beam=5)
        assert [tokens for tokens, _ in row] == [tokens for tokens, _ in alone]
        assert [score for _, score in row] == pytest.approx([score for _, score in alone], abs=1e-5)
        assert [score for _, score in row] == sorted((score for _, score in row), reverse=True)
        assert len({tuple(tokens) for tokens, _ in row}) == len(row)


@pytest.mark.parametrize("kind", MODELS)
def test_diverse_groups_over_several_batches(kind: str) -> None:
    model = MODELS[kind](seed=8)

    def hypotheses(batch: list[list[int]], ids: Sequence[int]) -> list[list[list[int]]]:
        search = DiverseBeamSearch(DICTIONARY, num_groups=2, diversity_strength=0.5)
        return [[tokens for tokens, _ in row] for row in generate([model], batch, beam=4, search=search, ids=ids)]

    expected = [hypotheses([sentence], [0])[0] for sentence in BATCH]
    assert hypotheses(BATCH, [0, 1, 2]) == expected
    assert hypotheses(BATCH, [7, 3, 11]) == expected, "the second batch of a set"
