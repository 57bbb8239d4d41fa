"""Beam search finds what fairseq's generator finds, for a model that knows the last word and its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqEncoder, FairseqEncoderDecoderModel, FairseqIncrementalDecoder
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor

from fairseq_plugins.exported.beam_search import Chosen, Hypothesis, SearchOptions, Step, padded, search
from fairseq_plugins.patches.repeated_ngrams import repair_repeated_ngrams
from tests.models.tasks import WORDS, make_task

SOURCES = [[4, 5, 6, 2], [7, 2], [8, 9, 10, 4, 5, 2], [2]]
LONGEST = 12


class Bigrams(FairseqEncoderDecoderModel):
    """Log-probabilities (place, first source word, last word, next word), and attention that the last word chooses.
    Without the place hypotheses of the same pairs of words in another order would tie."""

    def __init__(self, table: Tensor, dictionary: Dictionary) -> None:
        super().__init__(_Encoder(dictionary), _Decoder(table, dictionary))

    def get_normalized_probs(self, net_output: Any, log_probs: bool, sample: Any = None) -> Tensor:
        return net_output[0]

    def max_decoder_positions(self) -> int:
        return LONGEST


class _Encoder(FairseqEncoder):
    def forward(self, src_tokens: Tensor, **_: Any) -> Tensor:
        return src_tokens

    def reorder_encoder_out(self, encoder_out: Tensor, new_order: Tensor) -> Tensor:
        return encoder_out.index_select(0, new_order)


class _Decoder(FairseqIncrementalDecoder):
    def __init__(self, table: Tensor, dictionary: Dictionary) -> None:
        super().__init__(dictionary)
        self.table = table

    def forward(self, tokens: Tensor, encoder_out: Tensor, **_: Any) -> tuple[Tensor, dict[str, list[Tensor]]]:
        scores, weights = step(self.table[tokens.size(1) - 1], encoder_out, tokens[:, -1])
        return scores[:, None], {"attn": [weights[:, None]]}


def step(table: Tensor, sources: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
    """Log-probabilities (B, V) and attention (B, S)."""
    weights = torch.nn.functional.one_hot(last % sources.size(1), sources.size(1)).float()
    return table[sources[:, 0], last], weights


class NumPyDecoder:
    """The same as beam search here has it. The state of a row is all that it has read, so that a wrong row shows."""

    padding, end, unknown, types, longest_target = 1, 2, 3, WORDS, LONGEST

    def __init__(self, table: Tensor, impossible: Sequence[int] = ()) -> None:
        self.table, self.impossible = table, [self.padding, *impossible]

    def encode(self, tokens: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        return {"sources": tokens}, {"read": tokens[:, :1]}

    def choose(self, asked: Step) -> Chosen:
        read = np.concatenate([asked.states["read"][asked.rows.ravel()], asked.tokens.reshape(-1, 1)], axis=1)
        assert read.shape[1] == asked.position + 2
        sources = np.repeat(asked.memory["sources"], asked.tokens.shape[1], axis=0)
        assert (read[:, 0] == sources[:, 0]).all()
        scores, weights = step(self.table[asked.position], torch.from_numpy(sources), torch.from_numpy(read[:, -1]))
        scores = scores.clone()
        ends = scores[:, self.end].clone()
        for (row, token), change in zip(asked.changed, asked.changes, strict=True):
            scores[row, token] += change
        best = scores.topk(asked.candidates)
        shape = asked.tokens.shape
        return Chosen(
            best.values.view(*shape, -1).numpy(),
            best.indices.view(*shape, -1).numpy(),
            ends.view(shape).numpy(),
            weights.view(*shape, -1).numpy() if asked.need_attention else None,
            {"read": read},
        )

    def keep(self, memory: dict[str, Any], sentences: Any) -> dict[str, Any]:
        return {"sources": memory["sources"][sentences]}


def of_fairseq(table: Tensor, options: SearchOptions, max_len_b: int) -> list[list[dict[str, Any]]]:
    dictionary = make_task().target_dictionary
    repair_repeated_ngrams()
    generator = SequenceGenerator(
        [Bigrams(table, dictionary)],
        dictionary,
        beam_size=options.beam,
        max_len_b=max_len_b,
        min_len=options.min_len,
        len_penalty=options.length_penalty,
        unk_penalty=options.unknown_penalty,
        no_repeat_ngram_size=options.no_repeat_ngram_size,
    )
    tokens = torch.from_numpy(padded(SOURCES, 1))
    return generator.generate(None, {"net_input": {"src_tokens": tokens, "src_lengths": tokens.ne(1).sum(1)}})


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"beam": 1},
        {"beam": 4, "length_penalty": 0.3},
        {"beam": 3, "length_penalty": 2.0, "min_len": 4},
        {"beam": 20},
        {"beam": 20, "min_len": 0},
        {"beam": 4, "no_repeat_ngram_size": 1},
        {"beam": 4, "no_repeat_ngram_size": 2, "unknown_penalty": 3.0},
        {"beam": 4, "max_len_b": 3},
    ],
    ids=str,
)
@pytest.mark.parametrize("seed", range(5))
def test_it_finds_what_fairseq_finds(options: dict[str, Any], seed: int) -> None:
    torch.manual_seed(seed)
    table = torch.log_softmax(2 * torch.randn(LONGEST, WORDS, WORDS, WORDS), dim=-1)
    chosen = SearchOptions(**{"max_len_a": 0.0, "max_len_b": 200, **options})
    result = search(NumPyDecoder(table), SOURCES, chosen, need_attention=True)
    expected = of_fairseq(table, chosen, chosen.max_len_b)
    for hypotheses, right, source in zip(result, expected, SOURCES, strict=True):
        assert len(hypotheses) == len(right)
        for hypothesis, other in zip(hypotheses, right, strict=True):
            assert [*hypothesis.tokens, 2] == other["tokens"].tolist()
            assert hypothesis.score == pytest.approx(float(other["score"]), abs=1e-5)
            np.testing.assert_allclose(hypothesis.log_probabilities, other["positional_scores"], atol=1e-5)
            assert hypothesis.attention is not None
            np.testing.assert_array_equal(hypothesis.attention, other["attention"].t()[:, : len(source)])


def test_a_translation_does_not_depend_on_the_others() -> None:
    """fairseq's limit is that of the longest sentence of the batch."""
    torch.manual_seed(0)
    table = torch.log_softmax(torch.randn(LONGEST, WORDS, WORDS, WORDS), dim=-1)
    table[..., 2] = -40  # so that none ends before its limit
    options = SearchOptions(max_len_a=1.0, max_len_b=1)
    together = search(NumPyDecoder(table), SOURCES, options)
    alone = [search(NumPyDecoder(table), [source], options)[0] for source in SOURCES]

    def found(hypotheses: list[Hypothesis]) -> list[list[int]]:
        return [hypothesis.tokens for hypothesis in hypotheses]

    assert list(map(found, together)) == list(map(found, alone))
    assert [len(hypotheses[0].tokens) for hypotheses in together] == [len(source) + 1 for source in SOURCES]


def test_words_that_pad_the_dictionary_are_never_written() -> None:
    torch.manual_seed(1)
    table = torch.log_softmax(2 * torch.randn(LONGEST, WORDS, WORDS, WORDS), dim=-1)

    def words(*impossible: int) -> set[int]:
        found = search(NumPyDecoder(table, impossible), SOURCES, SearchOptions(beam=4))
        return {token for hypotheses in found for hypothesis in hypotheses for token in hypothesis.tokens}

    assert words() & {9, 10}
    assert not words(9, 10) & {9, 10}
