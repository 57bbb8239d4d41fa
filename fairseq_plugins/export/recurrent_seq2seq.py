"""The exported form of ``recurrent_seq2seq``, and of additive attention."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..models.recurrent_seq2seq import RecurrentSeq2SeqModel
from ..modules.attention import AdditiveAttention
from .contract import Encoded, ExportedModel, Named, Stepped, by_beam, flat, nested
from .recurrences import with_exported_layers


class ExportedRecurrentSeq2Seq(ExportedModel):
    """``recurrent_seq2seq``."""

    model: Any

    def __init__(self, model: RecurrentSeq2SeqModel) -> None:
        super().__init__()
        self.model = with_exported_layers(model)

    def encode(self, tokens: Tensor) -> Encoded:
        encoder, decoder = self.model.encoder, self.model.decoder
        source = tokens.ne(encoder.padding_idx)
        lengths = source.sum(dim=1)
        result = encoder.stack(encoder.embed_tokens(tokens).transpose(0, 1), lengths)
        summaries = encoder.stack.summaries(result, lengths)
        states, query = decoder._initial_states(summaries, torch.arange(tokens.size(0)))
        memory = _memory(decoder.attention, result.output.transpose(0, 1), source)
        return Encoded(memory, {"query": query, **flat(states)})

    def step(self, tokens: Tensor, position: Tensor | None, memory: Named, states: Named) -> Stepped:
        decoder = self.model.decoder
        sentences, hypotheses = tokens.shape
        embedded = decoder.embed_tokens(tokens)
        step, before = decoder.stack.stepper(0), nested(states, len(decoder.stack.layers))
        if decoder.feeds_context:
            context, weights = _attend(decoder.attention, by_beam(states["query"], tokens), memory)
            read = torch.cat([embedded, context], dim=-1)
        else:
            read = embedded
        output, after = step(read.flatten(0, 1), before)
        outputs = by_beam(output, tokens)
        if not decoder.feeds_context:
            context, weights = _attend(decoder.attention, outputs, memory)
        features = torch.tanh(decoder.readout(torch.cat([outputs, context, embedded], dim=-1)))
        log_probabilities = F.log_softmax(decoder.output_layer(features), dim=-1)
        return Stepped(log_probabilities, weights, {"query": output, **flat(after)})


def _memory(attention: AdditiveAttention, values: Tensor, source: Tensor) -> Named:
    """What additive attention reads of values (N, S, E), real where source (N, S) is True."""
    keys = attention.project_keys(values)
    return {"keys": keys, "values": values.masked_fill(~source.unsqueeze(-1), 0), "source": source}


def _attend(attention: AdditiveAttention, query: Tensor, memory: Named) -> tuple[Tensor, Tensor]:
    """The exported form of additive attention: query (N, K, H) -> context (N, K, E) and weights (N, K, S)."""
    projected = attention.query_projection(query)
    energies = attention.score(torch.tanh(projected.unsqueeze(2) + memory["keys"].unsqueeze(1))).squeeze(-1)
    weights = F.softmax(energies.masked_fill(~memory["source"].unsqueeze(1), float("-inf")), dim=-1)
    return weights @ memory["values"], weights
