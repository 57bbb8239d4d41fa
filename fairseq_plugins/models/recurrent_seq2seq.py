"""RNNSearch with any recurrent layer: Bahdanau, Cho and Bengio (2015), "Neural machine translation by jointly learning
to align and translate", for any number of layers; with ``mc_rnn`` layers it is MC-RNN (AAAI 2019, Section 4.1),
with ``ho_rnn`` layers its peer HO-RNN.

What the papers leave open, and what is done here:

- Decoder layer l starts from encoder layer l (the top one if the encoder has fewer layers): with e the last real
  output forwards and the first output backwards, h0 = tanh(A e + a) and c0 = B e + b.
- ``--decoder-attention input-feed`` (Bahdanau): layer 1 reads [embedding of y(t-1); context(t)], the query of step t
  is the top layer's output at t - 1 (at first its h0). ``output`` (Luong, no input feeding): layer 1 reads the
  embedding, and the query is the top layer's output at t, so that the whole decoder recurrence runs in one call.
- Readout tanh(W [state; context; embedding]) of embedding size, then the output layer with bias.
- Dropout on embeddings, between layers and on the readout, never on the recurrence.

Symbols: B batch, S source tokens, T target tokens, E embedding size, H hidden size, V vocabulary.
"""

# No postponed evaluation of annotations here: fairseq reads the types of the configuration's fields.
from argparse import Namespace
from dataclasses import dataclass, field
from typing import Any, Optional

import torch
import torch.nn.functional as F
from fairseq import utils
from fairseq.data import Dictionary
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.models import (
    FairseqEncoder,
    FairseqEncoderDecoderModel,
    FairseqIncrementalDecoder,
    register_model,
    register_model_architecture,
)
from fairseq.tasks import FairseqTask
from torch import Tensor, nn

from ..errors import InputError
from ..modules import (
    RECURRENT_LAYERS,
    AdditiveAttention,
    LayerOptions,
    RecurrentStack,
    RecurrentState,
    reorder_states,
)
from ..modules.connected_rnn import CELLS, CONNECTIONS
from ..modules.multi_channel_rnn import CONNECTION_INITS
from ..modules.recurrent_stack import StackOutput
from .architectures import complete, set_defaults
from .beam_groups import regroup, reorder_encoder_out

_LAYERS = ChoiceEnum(list(RECURRENT_LAYERS))
_CELLS = ChoiceEnum(list(CELLS))
_CONNECTIONS = ChoiceEnum(list(CONNECTIONS))
_CONNECTION_INITS = ChoiceEnum(list(CONNECTION_INITS))
_DECODER_ATTENTIONS = ChoiceEnum(["input-feed", "output"])


@dataclass
class RecurrentSeq2SeqConfig(FairseqDataclass):
    """The options of ``recurrent_seq2seq``; the defaults are those of the IWSLT'14 German-English baseline."""

    encoder_embed_dim: int = field(default=256, metadata={"help": "size of the source embeddings"})
    encoder_embed_path: Optional[str] = field(  # noqa: UP045
        default=None,
        metadata={"help": "pre-trained source embeddings: a header line, then a token and its vector on each line"},
    )
    encoder_freeze_embed: bool = field(default=False, metadata={"help": "do not train the source embeddings"})
    encoder_hidden_size: int = field(default=256, metadata={"help": "hidden size of each direction of the encoder"})
    encoder_layers: int = field(default=2, metadata={"help": "number of encoder layers, each with two directions"})
    encoder_recurrent_layer: _LAYERS = field(default="lstm", metadata={"help": "kind of the encoder's layers"})
    decoder_embed_dim: int = field(default=256, metadata={"help": "size of the target embeddings and of the readout"})
    decoder_embed_path: Optional[str] = field(  # noqa: UP045
        default=None, metadata={"help": "pre-trained target embeddings, in the form of --encoder-embed-path"}
    )
    decoder_freeze_embed: bool = field(default=False, metadata={"help": "do not train the target embeddings"})
    decoder_hidden_size: int = field(default=256, metadata={"help": "hidden size of the decoder"})
    decoder_layers: int = field(default=2, metadata={"help": "number of decoder layers"})
    decoder_recurrent_layer: _LAYERS = field(default="lstm", metadata={"help": "kind of the decoder's layers"})
    decoder_attention: _DECODER_ATTENTIONS = field(
        default="input-feed",
        metadata={"help": "input-feed: the context enters the recurrence (Bahdanau); output: only the readout (Luong)"},
    )
    channels: int = field(default=3, metadata={"help": "channels of mc_rnn layers: block size minus one"})
    order: int = field(default=3, metadata={"help": "earlier outputs that ho_rnn layers read at every step"})
    cell: _CELLS = field(default="lstm", metadata={"help": "cell inside mc_rnn and ho_rnn layers"})
    connection: _CONNECTIONS = field(
        default="state",
        metadata={
            "help": "connections of mc_rnn and ho_rnn layers: between outputs (state, Eq. 2) or into the gates (gate)"
        },
    )
    connection_init: _CONNECTION_INITS = field(
        default="identity", metadata={"help": "how the connections of mc_rnn layers start (--connection state)"}
    )
    dropout: float = field(
        default=0.3, metadata={"help": "probability of dropout on embeddings, between layers and on the readout"}
    )
    share_decoder_input_output_embed: bool = field(
        default=False, metadata={"help": "one table for target embeddings and output layer"}
    )
    share_all_embeddings: bool = field(
        default=False,
        metadata={"help": "one table for source embeddings, target embeddings and output layer (joined dictionary)"},
    )
    max_source_positions: int = field(default=100_000, metadata={"help": "longest source in tokens"})
    max_target_positions: int = field(default=100_000, metadata={"help": "longest target in tokens"})


@register_model("recurrent_seq2seq", dataclass=RecurrentSeq2SeqConfig)
class RecurrentSeq2SeqModel(FairseqEncoderDecoderModel):
    """Encoder in two directions, additive attention, decoder; see the head of this file."""

    @classmethod
    def build_model(cls, cfg: RecurrentSeq2SeqConfig, task: FairseqTask) -> "RecurrentSeq2SeqModel":
        """Raises InputError if the options contradict each other or the task's dictionaries."""
        complete(cfg, RecurrentSeq2SeqConfig)
        _check(cfg, task)
        source, target = task.source_dictionary, task.target_dictionary
        encoder_embed = _embedding(source, cfg.encoder_embed_dim, cfg.encoder_embed_path, cfg.encoder_freeze_embed)
        if cfg.share_all_embeddings:
            decoder_embed = encoder_embed
        else:
            decoder_embed = _embedding(target, cfg.decoder_embed_dim, cfg.decoder_embed_path, cfg.decoder_freeze_embed)
        encoder = RecurrentEncoder(source, encoder_embed, cfg)
        decoder = RecurrentDecoder(target, decoder_embed, encoder.output_size, cfg)
        return cls(encoder, decoder)

    def show_channel_attention(self, src_tokens: Tensor) -> list[Tensor] | None:
        """The encoder's attention over channels; see :meth:`RecurrentEncoder.channel_attention`."""
        return self.encoder.channel_attention(src_tokens)


class RecurrentEncoder(FairseqEncoder):
    """A bidirectional stack of recurrent layers. Sources may be padded on either side."""

    def __init__(self, dictionary: Dictionary, embed_tokens: nn.Embedding, cfg: RecurrentSeq2SeqConfig) -> None:
        super().__init__(dictionary)
        self.padding_idx = dictionary.pad()
        self.dropout = cfg.dropout
        self.embed_tokens = embed_tokens
        self.stack = RecurrentStack(
            cfg.encoder_recurrent_layer,
            embed_tokens.embedding_dim,
            cfg.encoder_hidden_size,
            cfg.encoder_layers,
            bidirectional=True,
            dropout=cfg.dropout,
            options=_layer_options(cfg),
        )
        self.output_size = self.stack.output_size
        self._max_source_positions = cfg.max_source_positions

    def forward(self, src_tokens: Tensor, src_lengths: Tensor | None = None, **unused: Any) -> dict[str, list[Tensor]]:
        """Encodes a batch.

        Args:
            src_tokens: (B, S), padded on the left or on the right.
            src_lengths: not needed; the padding says it.

        Returns:
            a dictionary of lists of tensors, all with the batch first and the real tokens of each sentence to the left:
            ``encoder_out`` [(B, S, 2H)], ``encoder_padding_mask`` [(B, S)] (True at padding), ``summaries`` [(B, 2H)]
            of each layer (last real output forwards, first output backwards), ``source_positions`` [(B, S)]: where
            each position of ``src_tokens`` stands in ``encoder_out``; and ``sentences`` [(B,)], where each row of the
            decoder finds its sentence in them.
        """
        size = src_tokens.size(1)
        lengths, left_padding = self._padding(src_tokens)
        result = self._read(src_tokens, lengths, left_padding)
        position = torch.arange(size, device=src_tokens.device)

        hidden_size = self.stack.hidden_size
        rows = torch.arange(len(lengths), device=lengths.device)
        summaries = [
            torch.cat([output[lengths - 1, rows, :hidden_size], output[0, :, hidden_size:]], dim=-1)
            for output in result.layer_outputs
        ]
        return {
            "encoder_out": [result.output.transpose(0, 1)],
            "encoder_padding_mask": [position >= lengths.unsqueeze(1)],
            "summaries": summaries,
            "source_positions": [(position - left_padding) % size],
            "sentences": [rows],
        }

    def channel_attention(self, src_tokens: Tensor) -> list[Tensor] | None:
        """The weights of Eq. 5 of MC-RNN for each layer, forwards and backwards in turn.

        Each is (B, S, C), channels 1 to C, in the order of ``src_tokens`` (B, S), zero at padding. None where the
        layers have no channels.
        """
        lengths, left_padding = self._padding(src_tokens)
        attention = self._read(src_tokens, lengths, left_padding, need_channel_attention=True).channel_attention
        if attention is None:
            return None
        size = src_tokens.size(1)
        positions = (torch.arange(size, device=src_tokens.device) - left_padding) % size
        return [
            weights.transpose(0, 1).gather(1, positions.unsqueeze(-1).expand(-1, -1, weights.size(-1)))
            for weights in attention
        ]

    def _padding(self, src_tokens: Tensor) -> tuple[Tensor, Tensor]:
        """The numbers of real tokens (B,), and of positions before the first of them (B, 1)."""
        real = src_tokens.ne(self.padding_idx)
        return real.sum(dim=1), real.long().argmax(dim=1, keepdim=True)

    def _read(
        self, src_tokens: Tensor, lengths: Tensor, left_padding: Tensor, need_channel_attention: bool = False
    ) -> StackOutput:
        """Runs the stack over the sentences, real tokens to the left."""
        size = src_tokens.size(1)
        tokens = src_tokens.gather(1, (torch.arange(size, device=src_tokens.device) + left_padding) % size)
        x = F.dropout(self.embed_tokens(tokens), self.dropout, self.training)
        return self.stack(x.transpose(0, 1), lengths, need_channel_attention=need_channel_attention)

    def reorder_encoder_out(self, encoder_out: dict[str, list[Tensor]], new_order: Tensor) -> dict[str, list[Tensor]]:
        return reorder_encoder_out(encoder_out, new_order)

    def max_positions(self) -> int:
        return self._max_source_positions


class RecurrentDecoder(FairseqIncrementalDecoder):
    """A stack of recurrent layers with additive attention to the encoder."""

    def __init__(
        self, dictionary: Dictionary, embed_tokens: nn.Embedding, encoder_size: int, cfg: RecurrentSeq2SeqConfig
    ) -> None:
        super().__init__(dictionary)
        self.dropout = cfg.dropout
        self.need_attn = True
        self.feeds_context = cfg.decoder_attention == "input-feed"
        self._max_target_positions = cfg.max_target_positions

        embed_dim, hidden_size = embed_tokens.embedding_dim, cfg.decoder_hidden_size
        self.embed_tokens = embed_tokens
        self.stack = RecurrentStack(
            cfg.decoder_recurrent_layer,
            embed_dim + encoder_size if self.feeds_context else embed_dim,
            hidden_size,
            cfg.decoder_layers,
            dropout=cfg.dropout,
            options=_layer_options(cfg),
        )
        self.initial_hidden = nn.ModuleList(_linear(encoder_size, hidden_size) for _ in self.stack.layers)
        self.initial_memory = nn.ModuleList(
            _linear(encoder_size, hidden_size) for layer in self.stack.layers if layer.has_memory
        )
        self.attention = AdditiveAttention(hidden_size, encoder_size, hidden_size)
        self.readout = _linear(hidden_size + encoder_size + embed_dim, embed_dim)
        self.output_projection = _linear(embed_dim, len(dictionary))
        if cfg.share_decoder_input_output_embed or cfg.share_all_embeddings:
            self.output_projection.weight = embed_tokens.weight

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: dict[str, list[Tensor]] | None = None,
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
        return (features if features_only else self.output_layer(features)), extra

    def extract_features(
        self,
        prev_output_tokens: Tensor,
        encoder_out: dict[str, list[Tensor]] | None = None,
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
        if cached is None:
            states, query = self._initial_states(encoder_out["summaries"], sentences)
            keys = self.attention.project_keys(encoder_out["encoder_out"][0])
            step = self.stack.stepper(query.size(0)) if self.feeds_context or incremental_state is not None else None
        else:
            states, query, keys, step = cached["states"], cached["query"], cached["keys"], cached["step"]

        # Of N sentences, a row each; the decoder's B rows are the hypotheses of their beams.
        values, padding_mask = encoder_out["encoder_out"][0], encoder_out["encoder_padding_mask"][0]

        def attend(query: Tensor) -> tuple[Tensor, Tensor]:
            """(B, T, H) -> context (B, T, 2H) and weights (B, T, S)."""
            by_sentence = query.reshape(values.size(0), -1, query.size(-1))
            context, weights = self.attention(by_sentence, keys, values, padding_mask)
            return context.view(*query.shape[:2], -1), weights.view(*query.shape[:2], -1)

        embedded = F.dropout(self.embed_tokens(prev_output_tokens), self.dropout, self.training)
        if self.feeds_context:
            outputs, contexts, weights = [], [], []
            for token in embedded.unbind(1):
                context, step_weights = attend(query.unsqueeze(1))
                query, states = step(torch.cat([token, context.squeeze(1)], dim=-1), states)
                outputs.append(query)
                contexts.append(context)
                weights.append(step_weights)
            output, context, weights = (
                torch.stack(outputs, dim=1),
                torch.cat(contexts, dim=1),
                torch.cat(weights, dim=1),
            )
        else:
            if incremental_state is not None:
                query, states = step(embedded.squeeze(1), states)
                output = query.unsqueeze(1)
            else:
                output = self.stack(embedded.transpose(0, 1), None, states).output.transpose(0, 1)
            context, weights = attend(output)

        if incremental_state is not None:
            cached = {"states": states, "query": query, "keys": keys, "step": step, "sentences": sentences}
            self.set_incremental_state(incremental_state, "decoder", cached)
        x = torch.tanh(self.readout(torch.cat([output, context, embedded], dim=-1)))
        x = F.dropout(x, self.dropout, self.training)
        if self.training or not self.need_attn:
            return x, {"attn": [None]}
        positions = encoder_out["source_positions"][0].index_select(0, sentences)
        return x, {"attn": [weights.gather(-1, positions.unsqueeze(1).expand_as(weights))]}

    def output_layer(self, features: Tensor, **unused: Any) -> Tensor:
        """Readout (B, T, E) -> logits (B, T, V)."""
        return self.output_projection(features)

    def reorder_incremental_state(self, incremental_state: dict[str, dict[str, Any]], new_order: Tensor) -> None:
        cached = self.get_incremental_state(incremental_state, "decoder")
        if cached is not None:
            rows, kept = regroup(cached["sentences"], new_order)
            reordered = {
                "states": reorder_states(cached["states"], new_order),
                "query": cached["query"].index_select(0, new_order),
                "keys": cached["keys"] if kept is None else cached["keys"].index_select(0, kept),
                "step": cached["step"],
                "sentences": rows,
            }
            self.set_incremental_state(incremental_state, "decoder", reordered)

    def make_generation_fast_(self, need_attn: bool = False, **unused: Any) -> None:
        self.need_attn = need_attn

    def max_positions(self) -> int:
        return self._max_target_positions

    def _initial_states(self, summaries: list[Tensor], sentences: Tensor) -> tuple[tuple[RecurrentState, ...], Tensor]:
        """The rows' states before the first token, and the first query: the top layer's h0 (B, H)."""
        states = []
        for i, layer in enumerate(self.stack.layers):
            summary = summaries[min(i, len(summaries) - 1)].index_select(0, sentences)
            h0 = torch.tanh(self.initial_hidden[i](summary))
            c0 = self.initial_memory[i](summary) if layer.has_memory else None
            states.append(layer.initial_state(summary.size(0), h0, c0))
        return tuple(states), h0


def _layer_options(cfg: RecurrentSeq2SeqConfig) -> LayerOptions:
    # fairseq's choices are no strings, though they look like them.
    return LayerOptions(cfg.channels, cfg.order, str(cfg.cell), str(cfg.connection), str(cfg.connection_init))


def _check(cfg: RecurrentSeq2SeqConfig, task: FairseqTask) -> None:
    for side in ("encoder", "decoder"):
        for name in ("embed_dim", "hidden_size", "layers"):
            if getattr(cfg, f"{side}_{name}") < 1:
                option = f"--{side}-{name}".replace("_", "-")
                raise InputError(f"{option} must be at least 1, not {getattr(cfg, f'{side}_{name}')}")
    for name in ("channels", "order"):
        if getattr(cfg, name) < 1:
            raise InputError(f"--{name} must be at least 1, not {getattr(cfg, name)}")
    if getattr(task.cfg, "left_pad_target", False):
        raise InputError("--left-pad-target is not supported: the decoder's recurrence starts at the first position")
    if not cfg.share_all_embeddings:
        return
    if task.source_dictionary != task.target_dictionary:
        raise InputError("--share-all-embeddings needs a joined dictionary (fairseq-preprocess --joined-dictionary)")
    if cfg.encoder_embed_dim != cfg.decoder_embed_dim:
        raise InputError(
            f"--share-all-embeddings needs equal sizes, not --encoder-embed-dim {cfg.encoder_embed_dim} "
            f"and --decoder-embed-dim {cfg.decoder_embed_dim}"
        )
    if cfg.decoder_embed_path not in (None, cfg.encoder_embed_path):
        raise InputError(
            "--share-all-embeddings takes its table from --encoder-embed-path; leave out --decoder-embed-path"
        )


def _embedding(dictionary: Dictionary, embed_dim: int, path: str | None, freeze: bool) -> nn.Embedding:
    embedding = nn.Embedding(len(dictionary), embed_dim, padding_idx=dictionary.pad())
    nn.init.uniform_(embedding.weight, -0.1, 0.1)
    nn.init.zeros_(embedding.weight[dictionary.pad()])
    if path is not None:
        try:
            vectors = utils.parse_embedding(path)
        except (OSError, ValueError, StopIteration) as error:
            raise InputError(
                f"{path}: cannot be read as embeddings (a header line, then a token and its vector a line): {error}"
            ) from error
        for token, vector in vectors.items():
            if len(vector) != embed_dim:
                size = len(vector)
                raise InputError(f"{path}: the vector of {token!r} has {size} numbers, the embeddings {embed_dim}")
        utils.print_embed_overlap(vectors, dictionary)
        utils.load_embedding(vectors, dictionary, embedding)
    embedding.weight.requires_grad = not freeze
    return embedding


def _linear(in_features: int, out_features: int) -> nn.Linear:
    linear = nn.Linear(in_features, out_features)
    nn.init.uniform_(linear.weight, -0.1, 0.1)
    nn.init.zeros_(linear.bias)
    return linear


def _set_layer(args: Namespace, kind: str) -> None:
    set_defaults(args, encoder_recurrent_layer=kind, decoder_recurrent_layer=kind)


@register_model_architecture("recurrent_seq2seq", "rnnsearch_iwslt_de_en")
def rnnsearch_iwslt_de_en(args: Namespace) -> None:
    """Baseline-RNN of MC-RNN's Table 2: two LSTM layers, embeddings and hidden size 256."""
    _set_layer(args, "lstm")
    set_defaults(args, encoder_layers=2, decoder_layers=2, encoder_hidden_size=256, decoder_hidden_size=256)


@register_model_architecture("recurrent_seq2seq", "rnnsearch_large_iwslt_de_en")
def rnnsearch_large_iwslt_de_en(args: Namespace) -> None:
    """Baseline-RNN-large of MC-RNN's Table 5: hidden size 286."""
    set_defaults(args, encoder_hidden_size=286, decoder_hidden_size=286)
    rnnsearch_iwslt_de_en(args)


@register_model_architecture("recurrent_seq2seq", "rnnsearch_deep_iwslt_de_en")
def rnnsearch_deep_iwslt_de_en(args: Namespace) -> None:
    """Baseline-RNN-deep of MC-RNN's Table 5: three layers."""
    set_defaults(args, encoder_layers=3, decoder_layers=3)
    rnnsearch_iwslt_de_en(args)


@register_model_architecture("recurrent_seq2seq", "rnnsearch_gigaword")
def rnnsearch_gigaword(args: Namespace) -> None:
    """Baseline-RNN of MC-RNN's Table 3: four layers."""
    set_defaults(args, encoder_layers=4, decoder_layers=4)
    rnnsearch_iwslt_de_en(args)


@register_model_architecture("recurrent_seq2seq", "mc_rnn_iwslt_de_en")
def mc_rnn_iwslt_de_en(args: Namespace) -> None:
    """MC-RNN-3 of MC-RNN's Table 2."""
    _set_layer(args, "mc_rnn")
    set_defaults(args, channels=3)
    rnnsearch_iwslt_de_en(args)


@register_model_architecture("recurrent_seq2seq", "mc_rnn_2_iwslt_de_en")
def mc_rnn_2_iwslt_de_en(args: Namespace) -> None:
    """MC-RNN-2 of MC-RNN's Table 2."""
    set_defaults(args, channels=2)
    mc_rnn_iwslt_de_en(args)


@register_model_architecture("recurrent_seq2seq", "mc_rnn_4_iwslt_de_en")
def mc_rnn_4_iwslt_de_en(args: Namespace) -> None:
    """MC-RNN-4 of MC-RNN's Table 2."""
    set_defaults(args, channels=4)
    mc_rnn_iwslt_de_en(args)


@register_model_architecture("recurrent_seq2seq", "mc_rnn_gigaword")
def mc_rnn_gigaword(args: Namespace) -> None:
    """MC-RNN-3 of MC-RNN's Table 3."""
    _set_layer(args, "mc_rnn")
    set_defaults(args, channels=3)
    rnnsearch_gigaword(args)


@register_model_architecture("recurrent_seq2seq", "mc_rnn_2_gigaword")
def mc_rnn_2_gigaword(args: Namespace) -> None:
    """MC-RNN-2 of MC-RNN's Table 3."""
    set_defaults(args, channels=2)
    mc_rnn_gigaword(args)


@register_model_architecture("recurrent_seq2seq", "mc_rnn_4_gigaword")
def mc_rnn_4_gigaword(args: Namespace) -> None:
    """MC-RNN-4 of MC-RNN's Table 3."""
    set_defaults(args, channels=4)
    mc_rnn_gigaword(args)


@register_model_architecture("recurrent_seq2seq", "ho_rnn_iwslt_de_en")
def ho_rnn_iwslt_de_en(args: Namespace) -> None:
    """HO-RNN of MC-RNN's Table 2."""
    _set_layer(args, "ho_rnn")
    rnnsearch_iwslt_de_en(args)


@register_model_architecture("recurrent_seq2seq", "ho_rnn_gigaword")
def ho_rnn_gigaword(args: Namespace) -> None:
    """HO-RNN of MC-RNN's Table 3."""
    _set_layer(args, "ho_rnn")
    rnnsearch_gigaword(args)
