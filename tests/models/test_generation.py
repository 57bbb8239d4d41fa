"""fairseq's beam search over our models: ensembles, prefixes, constraints and diverse groups, held to a greedy loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import pytest
import torch
from fairseq.models import FairseqEncoderDecoderModel
from fairseq.search import DiverseBeamSearch, LexicallyConstrainedBeamSearch, Search
from fairseq.sequence_generator import SequenceGenerator
from fairseq.token_generation_constraints import pack_constraints
from torch import Tensor

from fairseq_plugins.errors import InputError
from fairseq_plugins.modules import RECURRENT_KINDS
from tests.models.tasks import WORDS, build_architecture, make_task, pad
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
    "three_paths": lambda **given: make_double_path(encoder_paths="cnn,san,rnn", decoder_paths="cnn,san,rnn", **given),
}
SIZES = {
    f"{side}_{name}": 8 for side in ("encoder", "decoder") for name in ("embed_dim", "hidden_size", "ffn_embed_dim")
} | {"decoder_out_embed_dim": 8, "encoder_layers": 1, "decoder_layers": 1}
OF_FAIRSEQ: dict[str, dict[str, object]] = {
    "lstm": SIZES,
    "transformer": SIZES | {"encoder_attention_heads": 2, "decoder_attention_heads": 2},
    "fconv": SIZES | dict.fromkeys(("encoder_layers", "decoder_layers"), "[(8, 3)]"),
}
LEAST = {1: 7, 2: 12, 3: 16}
"""Order of n-grams → how many words an output has at least, so that a model that forbids nothing repeats some."""


def of_fairseq(architecture: str) -> FairseqEncoderDecoderModel:
    """One of fairseq's own models, untrained."""
    torch.manual_seed(9)
    return build_architecture(architecture, make_task(), **OF_FAIRSEQ[architecture]).eval()


def generate(
    models: Sequence[FairseqEncoderDecoderModel],
    batch: list[list[int]],
    beam: int = 1,
    search: Search | None = None,
    ids: Sequence[int] | None = None,
    limits: Mapping[str, int] | None = None,
    **given: Tensor,
) -> list[list[tuple[list[int], float]]]:
    """Tokens and scores of the hypotheses of each sentence, the best first."""
    limits = {"max_len_b": LONGEST, **(limits or {})}
    generator = SequenceGenerator(list(models), DICTIONARY, beam_size=beam, search_strategy=search, **limits)
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


@pytest.mark.system
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


def repeated(tokens: Sequence[int], size: int) -> list[tuple[int, ...]]:
    """The n-grams that are there more than once."""
    ngrams = Counter(tuple(tokens[start : start + size]) for start in range(len(tokens) - size + 1))
    return [ngram for ngram, times in ngrams.items() if times > 1]


REPEATING = {
    **{
        kind: lambda kind=kind: make_recurrent(encoder_recurrent_layer=kind, decoder_recurrent_layer=kind, seed=9)
        for kind in sorted(RECURRENT_KINDS)
    },
    "output attention": lambda: make_recurrent(decoder_attention="output", seed=9),
    "dpn": lambda: MODELS["dpn"](seed=9),
    **{name: lambda name=name: of_fairseq(name) for name in OF_FAIRSEQ},
}


@pytest.mark.system
@pytest.mark.parametrize("size", LEAST)
@pytest.mark.parametrize("kind", REPEATING)
def test_no_ngram_is_there_twice(kind: str, size: int) -> None:
    """By counting: in every hypothesis of every sentence, also where others of the batch are finished."""
    model = REPEATING[kind]()
    limits = {"max_len_b": LEAST[size] + 3, "min_len": LEAST[size]}
    batch = sorted(BATCH, key=len, reverse=True)  # fairseq's lstm wants it so
    for beam in 1, 4:
        free = generate([model], batch, beam, limits=limits)
        assert any(repeated(tokens, size) for row in free for tokens, _ in row), "there is something to forbid"
        found = generate([model], batch, beam, limits=limits | {"no_repeat_ngram_size": size})
        assert [len(row) for row in found] == [beam] * len(BATCH)
        assert [repeated(tokens, size) for row in found for tokens, _ in row] == [[]] * (beam * len(BATCH))
        assert all(tokens.index(EOS) == len(tokens) - 1 >= LEAST[size] for row in found for tokens, _ in row)


@pytest.mark.parametrize("kind", MODELS)
def test_ngrams_are_those_of_a_sentence_alone(kind: str) -> None:
    # Of which some sentences end before others.
    model = MODELS[kind](seed=12 if kind == "three_paths" else 11)
    limits = {"max_len_b": 14, "min_len": 2, "no_repeat_ngram_size": 2}
    together = generate([model], BATCH, 4, limits=limits)
    lengths = {max(len(tokens) for tokens, _ in row) for row in together}
    assert len(lengths) > 1, "one is finished before another"
    for row, sentence in zip(together, BATCH, strict=True):
        [alone] = generate([model], [sentence], 4, limits=limits)
        assert [tokens for tokens, _ in row] == [tokens for tokens, _ in alone]
        assert [score for _, score in row] == pytest.approx([score for _, score in alone], abs=1e-5)


@pytest.mark.parametrize("kind", MODELS)
def test_a_prefix_may_repeat_itself_and_is_not_repeated(kind: str) -> None:
    model = MODELS[kind](seed=11)
    prefixes = torch.tensor([[4, 4, 5], [6, 9, 6], [7, PAD, PAD]])
    limits = {"min_len": 6, "no_repeat_ngram_size": 1}
    for beam in 1, 4:
        found = generate([model], BATCH, beam, limits=limits, prefix_tokens=prefixes)
        for row, prefix in zip(found, prefixes.tolist(), strict=True):
            forced = [word for word in prefix if word != PAD]
            for tokens, score in row:
                written = tokens[len(forced) :]
                assert tokens[: len(forced)] == forced and score > float("-inf")
                assert len(set(written)) == len(written) and not set(written) & set(forced)
