"""RNNSearch with any recurrent layer: Bahdanau, Cho and Bengio (2015), "Neural machine translation by jointly learning
to align and translate", for any number of layers; with ``mc_rnn`` layers it is MC-RNN (AAAI 2019, Section 4.1),
with ``ho_rnn`` layers its peer HO-RNN.

What the papers leave open, and what is done here:

- Decoder layer l starts from encoder layer l (the top one if the encoder has fewer layers): with e the last real
  output forwards and the first output backwards, h0 = tanh(A e + a) and c0 = B e + b.
- ``--decoder-attention input-feed`` (Bahdanau): layer 1 reads [embedding of y(t-1); context(t)], the query of step t
  is the top layer's output at t - 1 (at first its h0). ``output`` (Luong, no input feeding): layer 1 reads the
  embedding, and the query is the top layer's output at t, so that the whole decoder recurrence runs in one call.
- Embeddings start at a standard deviation of 0.2 (``--embed-init-std``). From much less a word hardly moves a layer's
  gates, every position looks alike, and it is a lottery when the decoder finds its alignment. From much more rare words
  stay what they were drawn as. A table that is the output layer too starts at N(0, 1 / E). See
  docs/notes/starting_scales.md.
- Readout tanh(W [state; context; embedding]) of embedding size, then the output layer with bias.
- Dropout on embeddings, between layers and on the readout, never on the recurrence.

Symbols: B batch, S source tokens, T target tokens, E embedding size, H hidden size, V vocabulary.
"""

# No postponed evaluation of annotations here: fairseq reads the types of the configuration's fields.
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Optional

import torch
from fairseq.data import Dictionary
from fairseq.dataclass import ChoiceEnum
from fairseq.models import FairseqEncoder, FairseqEncoderDecoderModel, FairseqIncrementalDecoder, register_model
from fairseq.tasks import FairseqTask
from torch import Tensor, nn

from ..errors import InputError
from ..kernels.dropout import dropout
from ..kernels.linear import prepared_linear
from ..modules import (
    AdditiveAttention,
    Linear,
    RecurrentNetwork,
    RecurrentStack,
    RecurrentState,
    StackOutput,
    reorder_states,
)
from ..modules.dropout import Dropout
from ..modules.input_feeding import feeds_in_graphs, input_feeding
from ..modules.recurrent.stack import initial_states, of_levels
from .beam_groups import regroup, reorder_encoder_out
from .options import (
    PretrainedEmbeddingOptions,
    SharingOptions,
    build_embeddings,
    check_deviation,
    check_dropouts,
    check_layer_options,
    check_sharing,
    check_sizes,
    complete,
    is_from_checkpoint,
    position_options,
    recurrent_layer,
    recurrent_layer_options,
    refuse_dropout,
    tie_output,
)
from .word_vectors import read_word_vectors

_DECODER_ATTENTIONS = ChoiceEnum(["input-feed", "output"])
EMBED_INIT_STD = 0.2
"""Standard deviation of embeddings at the start: what learned best on real text (docs/notes/starting_scales.md)."""


@dataclass
class RecurrentSeq2SeqConfig(
    PretrainedEmbeddingOptions,
    SharingOptions,
    recurrent_layer_options("encoder", "decoder"),  # type: ignore[misc]  # fairseq wants one class of all options
    position_options(100_000),  # type: ignore[misc]  # fairseq wants one class of all options
):
    """The options of ``recurrent_seq2seq``; the defaults are those of the IWSLT'14 German-English baseline."""

    encoder_hidden_size: int = field(default=256, metadata={"help": "hidden size of each direction of the encoder"})
    encoder_layers: int = field(default=2, metadata={"help": "number of encoder layers, each with two directions"})
    decoder_hidden_size: int = field(default=256, metadata={"help": "hidden size of the decoder"})
    decoder_layers: int = field(default=2, metadata={"help": "number of decoder layers"})
    decoder_attention: _DECODER_ATTENTIONS = field(  # type: ignore[valid-type]  # fairseq makes the class
        default="input-feed",
        metadata={"help": "input-feed: the context enters the recurrence (Bahdanau); output: only the readout (Luong)"},
    )
    embed_init_std: Optional[float] = field(  # noqa: UP045
        default=None,
        metadata={
            "help": f"standard deviation of the embeddings at the start; default: {EMBED_INIT_STD}, "
            "or 1 / sqrt(embedding size) where the output layer shares their table"
        },
    )
    dropout: float = field(
        default=0.3, metadata={"help": "probability of dropout on embeddings, between layers and on the readout"}
    )


@register_model("recurrent_seq2seq", dataclass=RecurrentSeq2SeqConfig)
class RecurrentSeq2SeqModel(FairseqEncoderDecoderModel):
    """Encoder in two directions, additive attention, decoder; see the head of this file."""

    encoder: "RecurrentEncoder"

    @classmethod
    def build_model(cls, cfg: RecurrentSeq2SeqConfig, task: FairseqTask) -> "RecurrentSeq2SeqModel":
        """Raises InputError if the options contradict each other or the task's dictionaries."""
        complete(cfg, RecurrentSeq2SeqConfig)
        _check(cfg, task)
        encoder_embed, decoder_embed = build_embeddings(
            cfg, task, lambda dictionary, side: _embedding(cfg, side, dictionary, not is_from_checkpoint(task))
        )
        encoder = RecurrentEncoder(task.source_dictionary, encoder_embed, cfg)
        stack = encoder.stack
        decoder = RecurrentDecoder(task.target_dictionary, decoder_embed, stack.output_size, stack.summary_sizes, cfg)
        return cls(encoder, decoder)

    def show_layer_details(self, src_tokens: Tensor) -> dict[str, Tensor]:
        """What happens inside the encoder's layers; see :meth:`RecurrentEncoder.details`."""
        return self.encoder.details(src_tokens)


class RecurrentEncoder(FairseqEncoder):
    """A bidirectional stack of recurrent layers. Sources may be padded on either side."""

    def __init__(self, dictionary: Dictionary, embed_tokens: nn.Embedding, cfg: RecurrentSeq2SeqConfig) -> None:
        super().__init__(dictionary)
        self.padding_idx = dictionary.pad()
        self.dropout = cfg.dropout
        self.embed_tokens = embed_tokens
        self.stack = _stack(cfg, "encoder", embed_tokens.embedding_dim, bidirectional=True)
        self._max_source_positions: int = cfg.max_source_positions

    def forward(self, src_tokens: Tensor, src_lengths: Tensor | None = None, **unused: Any) -> dict[str, list[Tensor]]:
        """Encodes a batch.

        Args:
            src_tokens: (B, S), padded on the left or on the right.
            src_lengths: not needed; the padding says it.

        Returns:
            a dictionary of lists of tensors, all with the batch first and the real tokens of each sentence to the left:
            ``encoder_out`` [(B, S, 2H)], ``encoder_padding_mask`` [(B, S)] (True at padding), ``summaries`` [(B, 2H)]
            of each layer (last real output forwards, first output backwards), ``source_positions`` [(B, S)]: where
            each position of ``src_tokens`` is in ``encoder_out``; and ``sentences`` [(B,)], where each row of the
            decoder finds its sentence in them.
        """
        size = src_tokens.size(1)
        lengths, left_padding = self._padding(src_tokens)
        result = self._read(src_tokens, lengths, left_padding)
        position = torch.arange(size, device=src_tokens.device)

        return {
            "encoder_out": [result.output.transpose(0, 1)],
            "encoder_padding_mask": [position >= lengths.unsqueeze(1)],
            "summaries": self.stack.summaries(result, lengths),
            "source_positions": [(position - left_padding) % size],
            "sentences": [torch.arange(len(lengths), device=lengths.device)],
        }

    def details(self, src_tokens: Tensor) -> dict[str, Tensor]:
        """What happens inside the layers (``StackOutput.details``): each (B, S, ...), in the order of ``src_tokens``
        (B, S), zero at padding."""
        lengths, left_padding = self._padding(src_tokens)
        details = self._read(src_tokens, lengths, left_padding, need_details=True).details
        size = src_tokens.size(1)
        positions = (torch.arange(size, device=src_tokens.device) - left_padding) % size
        return {
            name: value.transpose(0, 1).gather(1, positions.unsqueeze(-1).expand(-1, -1, value.size(-1)))
            for name, value in details.items()
        }

    def _padding(self, src_tokens: Tensor) -> tuple[Tensor, Tensor]:
        """The numbers of real tokens (B,), and of positions before the first of them (B, 1)."""
        real = src_tokens.ne(self.padding_idx)
        return real.sum(dim=1), real.long().argmax(dim=1, keepdim=True)

    def _read(
        self, src_tokens: Tensor, lengths: Tensor, left_padding: Tensor, need_details: bool = False
    ) -> StackOutput:
        """Runs the stack over the sentences, real tokens to the left."""
        size = src_tokens.size(1)
        tokens = src_tokens.gather(1, (torch.arange(size, device=src_tokens.device) + left_padding) % size)
        x = dropout(self.embed_tokens(tokens), self.dropout, self.training)
        result: StackOutput = self.stack(x.transpose(0, 1), lengths, need_details=need_details)
        return result

    def reorder_encoder_out(self, encoder_out: dict[str, list[Tensor]], new_order: Tensor) -> dict[str, list[Tensor]]:
        return reorder_encoder_out(encoder_out, new_order)

    def max_positions(self) -> int:
        return self._max_source_positions


class RecurrentDecoder(FairseqIncrementalDecoder):
    """A stack of recurrent layers with additive attention to the encoder."""

    def __init__(
        self,
        dictionary: Dictionary,
        embed_tokens: nn.Embedding,
        encoder_size: int,
        summary_sizes: Sequence[int],
        cfg: RecurrentSeq2SeqConfig,
    ) -> None:
        super().__init__(dictionary)
        self.dropout = cfg.dropout
        self.need_attn = True
        self.feeds_context = cfg.decoder_attention == "input-feed"
        self._max_target_positions: int = cfg.max_target_positions

        embed_dim = embed_tokens.embedding_dim
        self.embed_tokens = embed_tokens
        self.stack = _stack(cfg, "decoder", embed_dim + encoder_size if self.feeds_context else embed_dim)
        layers = list(zip(self._layers, of_levels(summary_sizes, len(self._layers)), strict=True))
        self.initial_hidden = nn.ModuleList(_linear(size, layer.output_size) for layer, size in layers)
        self.initial_memory = nn.ModuleList(
            _linear(size, layer.output_size) for layer, size in layers if layer.has_cell_state
        )
        hidden_size = self.stack.output_size
        self.attention = AdditiveAttention(hidden_size, encoder_size, hidden_size)
        self.readout = _linear(hidden_size + encoder_size + embed_dim, embed_dim)
        self.output_projection = _linear(embed_dim, len(dictionary))
        tie_output(cfg, self.output_projection, embed_tokens)

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: dict[str, list[Tensor]],
        incremental_state: dict[str, dict[str, Any]] | None = None,
        features_only: bool = False,
        **unused: Any,
    ) -> tuple[Tensor, dict[str, list[Tensor | None]]]:
        """Scores the next token after each of ``prev_output_tokens`` (B, T); with ``incremental_state`` after the last.

        Returns:
            logits (B, T, V), T = 1 with ``incremental_state``, and ``{"attn": [weights or None]}``: weights (B, T, S)
            in the order of ``src_tokens``, outside training only.
        """
        features, extra = self.extract_features(prev_output_tokens, encoder_out, incremental_state)
        if features_only:
            return features, extra
        if incremental_state is not None:
            products = self.get_incremental_state(incremental_state, "decoder")["products"]
            if products is not None:
                return products.output(features.squeeze(1)).unsqueeze(1), extra
        return self.output_layer(features), extra

    def extract_features(
        self,
        prev_output_tokens: Tensor,
        encoder_out: dict[str, list[Tensor]],
        incremental_state: dict[str, dict[str, Any]] | None = None,
        **unused: Any,
    ) -> tuple[Tensor, dict[str, list[Tensor | None]]]:
        """The readout (B, T, E), and attention as :meth:`forward` returns it."""
        if incremental_state is not None:
            prev_output_tokens = prev_output_tokens[:, -1:]
            cached = self.get_incremental_state(incremental_state, "decoder")
        else:
            cached = None
        sentences = encoder_out["sentences"][0]
        # A GPU has the steps of a training's targets as graphs, which tell nothing of the weights.
        in_graphs = (
            self.training
            and self.feeds_context
            and incremental_state is None
            and encoder_out["encoder_out"][0].size(0) == prev_output_tokens.size(0)  # a row for each sentence
            and feeds_in_graphs(self.stack, encoder_out["encoder_out"][0])
        )
        if cached is None:
            states, query = self._initial_states(encoder_out["summaries"], sentences)
            keys, attend, products = self.attention.project_keys(encoder_out["encoder_out"][0]), None, None
            is_by_step = not in_graphs and (self.feeds_context or incremental_state is not None)
            step = self.stack.stepper(query.size(0)) if is_by_step else None
        else:
            states, query, keys = cached["states"], cached["query"], cached["keys"]
            step, attend, products = cached["step"], cached["attend"], cached["products"]
            if step is None:
                step = self.stack.stepper(query.size(0))
            if products is None and not torch.is_grad_enabled():
                products = _Products.of(self, query.size(0))

        # Of N sentences, a row each; the decoder's B rows are the hypotheses of their beams.
        values, padding_mask = encoder_out["encoder_out"][0], encoder_out["encoder_padding_mask"][0]
        if attend is None:
            attend = self.attention.attending(keys, values, padding_mask, products and products.query)

        def attend_by_sentence(query: Tensor) -> tuple[Tensor, Tensor]:
            """(B, T, H) -> context (B, T, 2H) and weights (B, T, S)."""
            context, weights = attend(query.reshape(values.size(0), -1, query.size(-1)))
            return context.view(*query.shape[:2], -1), weights.view(*query.shape[:2], -1)

        embedded = dropout(self.embed_tokens(prev_output_tokens), self.dropout, self.training)
        weights: Tensor | None = None
        if in_graphs:
            output, context = input_feeding(
                self, self.stack, self.attention, embedded, query, states, keys, values, padding_mask
            )
        elif step is None:
            output = self.stack(embedded.transpose(0, 1), None, states).output.transpose(0, 1)
            context, weights = attend_by_sentence(output)
        elif self.feeds_context:
            outputs, contexts, attentions = [], [], []
            for token in embedded.unbind(1):
                context, weights = attend_by_sentence(query.unsqueeze(1))
                query, states = step(torch.cat([token, context.squeeze(1)], dim=-1), states)
                outputs.append(query)
                contexts.append(context)
                attentions.append(weights)
            output, context, weights = (
                torch.stack(outputs, dim=1),
                torch.cat(contexts, dim=1),
                torch.cat(attentions, dim=1),
            )
        else:
            query, states = step(embedded.squeeze(1), states)
            output = query.unsqueeze(1)
            context, weights = attend_by_sentence(output)

        if incremental_state is not None:
            cached = {"states": states, "query": query, "keys": keys, "sentences": sentences}
            cached |= {"step": step, "attend": attend if products else None, "products": products}
            self.set_incremental_state(incremental_state, "decoder", cached)
        x = torch.cat([output, context, embedded], dim=-1)
        x = torch.tanh(self.readout(x) if products is None else products.readout(x.squeeze(1)).unsqueeze(1))
        x = dropout(x, self.dropout, self.training)
        if self.training or not self.need_attn or weights is None:
            return x, {"attn": [None]}
        positions = encoder_out["source_positions"][0].index_select(0, sentences)
        return x, {"attn": [weights.gather(-1, positions.unsqueeze(1).expand_as(weights))]}

    def output_layer(self, features: Tensor, **unused: Any) -> Tensor:
        """Readout (B, T, E) -> logits (B, T, V)."""
        logits: Tensor = self.output_projection(features)
        return logits

    def output_parameters(self) -> tuple[Tensor, Tensor | None]:
        """Weight (V, E) and bias (V,) of :meth:`output_layer`, for criterions that compute it with the loss."""
        return self.output_projection.weight, self.output_projection.bias

    def reorder_incremental_state(self, incremental_state: dict[str, dict[str, Any]], new_order: Tensor) -> None:
        cached = self.get_incremental_state(incremental_state, "decoder")
        if cached is not None:
            rows, kept = regroup(cached["sentences"], new_order)
            # They are made for about so many rows, and fewer when sentences have left.
            are_more = len(rows) > len(cached["sentences"])
            reordered = {
                "states": reorder_states(cached["states"], new_order),
                "query": cached["query"].index_select(0, new_order),
                "keys": cached["keys"] if kept is None else cached["keys"].index_select(0, kept),
                "step": None if are_more else cached["step"],
                "attend": None if are_more or kept is not None else cached["attend"],
                "products": None if are_more else cached["products"],
                "sentences": rows,
            }
            self.set_incremental_state(incremental_state, "decoder", reordered)

    def make_generation_fast_(self, need_attn: bool = False, retain_dropout: bool = False, **unused: Any) -> None:
        """Raises InputError if dropout is wanted in generation."""
        refuse_dropout(retain_dropout)
        self.need_attn = need_attn

    def max_positions(self) -> int:
        return self._max_target_positions

    @property
    def _layers(self) -> Sequence[RecurrentNetwork[Any]]:
        return self.stack.layers

    def _initial_states(self, summaries: list[Tensor], sentences: Tensor) -> tuple[tuple[RecurrentState, ...], Tensor]:
        """The rows' states before the first token, and the first query: the top layer's h0 (B, H)."""
        levels = [level.index_select(0, sentences) for level in of_levels(summaries, len(self._layers))]
        return initial_states(self._layers, self.initial_hidden, self.initial_memory, levels)


class _Products(NamedTuple):
    """What the steps of a decoder multiply by without gradients, prepared once.

    Attributes:
        query: (B, H) -> (B, H), of the attention.
        readout: (B, .) -> (B, E), before the tanh.
        output: (B, E) -> (B, V).
    """

    query: Callable[[Tensor], Tensor]
    readout: Callable[[Tensor], Tensor]
    output: Callable[[Tensor], Tensor]

    @classmethod
    def of(cls, decoder: RecurrentDecoder, rows: int) -> "_Products":
        """For about so many rows."""
        layers = decoder.attention.query_projection, decoder.readout, decoder.output_projection
        return cls(*(prepared_linear(layer.weight, layer.bias, rows) for layer in layers))


def _stack(cfg: RecurrentSeq2SeqConfig, side: str, input_size: int, bidirectional: bool = False) -> RecurrentStack:
    """Raises InputError if the kind of layer does not take these sizes, or does not run on this side."""
    kind, options = recurrent_layer(cfg, side)
    sizes = [getattr(cfg, f"{side}_hidden_size")] * getattr(cfg, f"{side}_layers")
    try:
        stack = RecurrentStack(kind, input_size, sizes, bidirectional, Dropout(cfg.dropout), options)
    except ValueError as error:
        raise InputError(f"--{side}-recurrent-layer {kind}: {error}") from error
    if side == "decoder" and not stack.is_steppable:
        raise InputError(f"--decoder-recurrent-layer {kind}: these layers do not run step by step; choose others")
    return stack


def _check(cfg: RecurrentSeq2SeqConfig, task: FairseqTask) -> None:
    check_sizes(
        cfg, [f"{side}_{name}" for side in ("encoder", "decoder") for name in ("embed_dim", "hidden_size", "layers")]
    )
    check_dropouts(cfg, ("dropout",))
    if cfg.embed_init_std is not None:
        check_deviation(cfg, "embed_init_std")
    # fairseq's older tasks have their options elsewhere, and as text.
    is_left_padded = getattr(task.cfg or getattr(task, "args", None), "left_pad_target", False)
    if str(is_left_padded) == "True":
        raise InputError("--left-pad-target is not supported: the decoder's recurrence starts at the first position")
    check_sharing(cfg, task)
    check_layer_options(cfg, task, "encoder", "decoder")


def _embedding(cfg: RecurrentSeq2SeqConfig, side: str, dictionary: Dictionary, reads_files: bool) -> nn.Embedding:
    embed_dim, path, freeze = (getattr(cfg, f"{side}_{name}") for name in ("embed_dim", "embed_path", "freeze_embed"))
    embedding = nn.Embedding(len(dictionary), embed_dim, padding_idx=dictionary.pad())
    std = cfg.embed_init_std
    if std is None:
        is_output = cfg.share_all_embeddings or (side == "decoder" and cfg.share_decoder_input_output_embed)
        std = embed_dim**-0.5 if is_output else EMBED_INIT_STD
    nn.init.normal_(embedding.weight, std=std)
    nn.init.zeros_(embedding.weight[dictionary.pad()])
    if path is not None and reads_files:
        words, vectors = read_word_vectors(path, dictionary, embed_dim, f"--{side}-embed-dim")
        with torch.no_grad():
            embedding.weight[words] = vectors
    embedding.weight.requires_grad = not freeze
    return embedding


def _linear(in_features: int, out_features: int) -> Linear:
    linear = Linear(in_features, out_features)
    nn.init.uniform_(linear.weight, -0.1, 0.1)
    nn.init.zeros_(linear.bias)
    return linear
