"""fairseq's beam search with less work at each step, for models whose hypotheses share their sentence
(``beam_groups.py``). What it finds is what fairseq's generator finds.

- fairseq passes over a table of all hypotheses and the whole vocabulary some ten times a step: softmax, what must not
  be chosen, sums of scores, the best ones. At most 2 K tokens of a hypothesis can be among the 2 K best of its
  sentence, K being the size of the beam. Here the table has these alone, and before them the tokens of which fairseq's
  generator speaks by their numbers: padding, end of sentence, unknown word.
- At the first step all hypotheses of a sentence are the same: one is computed.

What names tokens of the whole vocabulary gets the whole table: prefixes, constraints, n-grams that must not be
repeated, another search than :class:`BeamSearch`, a language model.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import BaseFairseqModel
from fairseq.search import BeamSearch, Search
from fairseq.sequence_generator import EnsembleModel, SequenceGenerator
from torch import Tensor, nn

from ..kernels.best_tokens import best_tokens
from .double_path import DoublePathModel
from .recurrent_seq2seq import RecurrentSeq2SeqModel

EncoderOut = dict[str, list[Tensor]]
IncrementalState = dict[str, dict[str, Any]]


def searches_faster(models: Sequence[nn.Module]) -> bool:
    """Whether :class:`FewTokensGenerator` takes all of them."""
    return all(isinstance(model, RecurrentSeq2SeqModel | DoublePathModel) for model in models)


def without_padding_words(ensemble: EnsembleModel, table: Tensor) -> Tensor:
    """Log-probabilities (B, V) of an ensemble, where the words that pad its dictionary have none.

    Where words are drawn, the others' are those of a vocabulary without them; beam search has them as they are.
    """
    words = getattr(ensemble, "padding_words", [])
    if not words:
        return table
    places = _tensor_of(tuple(words), table.device)
    if ensemble.is_sampled:
        table = table - torch.log1p(-table[:, places].exp().sum(1, keepdim=True))
    return table.index_fill(1, places, -torch.inf)


@functools.lru_cache(maxsize=8)
def _tensor_of(words: tuple[int, ...], device: torch.device) -> Tensor:
    # Once for all steps: a GPU would wait for each copy.
    return torch.tensor(words, device=device)


class FewTokensGenerator(SequenceGenerator):
    """See the head of this file.

    Args:
        models: for which :func:`searches_faster` holds.
        tgt_dict: the target's dictionary.
        options: of fairseq's generator.
    """

    model: _Ensemble
    search: Search
    vocab_size: int

    def __init__(self, models: Sequence[BaseFairseqModel], tgt_dict: Dictionary, **options: Any) -> None:
        super().__init__(_Ensemble(models), tgt_dict, **options)
        self._first = max(self.pad, self.eos, self.unk) + 1
        self._whole_size = self.vocab_size
        is_plain = type(self.search) is BeamSearch and self.lm_model is None and self.repeat_ngram_blocker is None
        self._takes_few = is_plain and self.token_indices_to_suppress is None
        if self._takes_few:
            self.search = _FewTokensSearch(tgt_dict, self.model)

    def _generate(self, sample: dict[str, Any], prefix_tokens: Tensor | None = None, *rest: Any, **others: Any) -> Any:
        takes_few = self._takes_few and prefix_tokens is None
        # So many that enough are left without those that pad the dictionary.
        count = min(2 * self.beam_size + len(self.model.padding_words), self._whole_size - self._first)
        with self.model.searching(self.beam_size, (self._first, count) if takes_few and count > 0 else None) as width:
            self.vocab_size = self._whole_size if width is None else width
            return super()._generate(sample, prefix_tokens, *rest, **others)


class _Ensemble(EnsembleModel):
    """Gives log-probabilities (B, F + K) of the tokens :attr:`tokens` (B, F + K), or of all (B, V)."""

    def __init__(self, models: Sequence[BaseFairseqModel]) -> None:
        super().__init__(models)
        self.tokens: Tensor | None = None
        self.padding_words: list[int] = []
        self._beam_size = 1
        self._few: tuple[int, int] | None = None

    @contextmanager
    def searching(self, beam_size: int, few: tuple[int, int] | None) -> Iterator[int | None]:
        """How beam search goes on until it ends: the size of the beam, and how many tokens there are to choose from
        (:func:`.best_tokens`), None for all."""
        self._beam_size, self._few = beam_size, few
        try:
            yield None if few is None else sum(few)
        finally:
            self.tokens = None

    def forward_decoder(
        self,
        tokens: Tensor,
        encoder_outs: list[EncoderOut],
        incremental_states: list[IncrementalState],
        temperature: float = 1.0,
    ) -> tuple[Tensor, Tensor | None]:
        """As fairseq's."""
        is_first = tokens.size(1) == 1
        if is_first:
            tokens = tokens[:: self._beam_size]
            one = torch.arange(tokens.size(0), device=tokens.device) * self._beam_size
            encoder_outs = self.reorder_encoder_out(encoder_outs, one)
        tables, attentions = [], []
        for model, encoder_out, state in zip(self.models, encoder_outs, incremental_states, strict=True):
            logits, extra = model.decoder(tokens, encoder_out=encoder_out, incremental_state=state)
            logits = logits[:, -1] if temperature == 1 else logits[:, -1] / temperature
            # The softmax of one model alone is best_tokens', which has no table of it.
            is_left_out = self.models_size == 1 and self._few is not None
            tables.append(logits if is_left_out else model.get_normalized_probs((logits, None), log_probs=True))
            attentions += [weights[:, -1] for weights in extra["attn"] if weights is not None]
        table = tables[0]
        if self.models_size > 1:
            table = torch.logsumexp(torch.stack(tables), dim=0) - math.log(self.models_size)
        if self._few is not None:
            table, self.tokens = best_tokens(table, *self._few)
            if self.padding_words:
                words = _tensor_of(tuple(self.padding_words), table.device)
                table = table.masked_fill(torch.isin(self.tokens, words), -torch.inf)
        else:
            table = without_padding_words(self, table)
        attention = torch.stack(attentions).sum(0) / self.models_size if attentions else None
        if is_first:
            rows = torch.arange(len(table), device=table.device).repeat_interleave(self._beam_size)
            self.reorder_incremental_state(incremental_states, rows)
            table = table.index_select(0, rows)
            attention = None if attention is None else attention.index_select(0, rows)
            self.tokens = None if self.tokens is None else self.tokens.index_select(0, rows)
        return table, attention

    def reorder_incremental_state(self, incremental_states: list[IncrementalState], new_order: Tensor) -> None:
        """As fairseq's, which asks every module of a decoder for a state; the decoder itself keeps all of ours."""
        for model, state in zip(self.models, incremental_states, strict=True):
            model.decoder.reorder_incremental_state(state, new_order)


class _FewTokensSearch(BeamSearch):
    """Chooses among the few tokens of an ensemble's last step, or among all."""

    def __init__(self, tgt_dict: Dictionary, ensemble: _Ensemble) -> None:
        super().__init__(tgt_dict)
        # Not as a part of this module: the generator has it already.
        self._ensemble = (ensemble,)

    def step(self, step: int, lprobs: Tensor, *rest: Any, **options: Any) -> tuple[Tensor, Tensor, Tensor]:
        """As fairseq's."""
        scores, columns, beams = super().step(step, lprobs, *rest, **options)
        tokens = self._ensemble[0].tokens
        if tokens is not None:
            columns = tokens.view(lprobs.size(0), -1).gather(1, beams * lprobs.size(2) + columns)
        return scores, columns, beams
