"""DPN-S2S: Song, Tan, He, Lu, Qin and Liu (2018), "Double Path Networks for Sequence to Sequence Learning", for any
number of paths.

The paper has a convolutional (``cnn``) and a self-attention path (``san``) on either side; every layer of a decoder
path attends to every encoder path and fuses what it gets by a gate (Eq. 8 and 9); a gate fuses the decoder's paths
(Eq. 10).
Any non-empty subset of the paths on either side is a model (the paper's Table 4). A recurrent path (``rnn``) can stand
beside them, and a user's own (``modules/multi_path/registry.py``), which the paper leaves for future work: then the
gates are a softmax over the paths.

What the paper leaves open, and what is done here:

- E = token embedding + position, with dropout, N(0, 0.1). The CNN paths read E, the SAN paths sqrt(d) E
  (``--san-input-scale``): beside residual branches with weights U(-0.1, 0.1) words of 0.1 would be lost. The recurrent
  paths read 2 E (``--rnn-input-scale``), as RNNSearch's embeddings start at 0.2.
- A decoder path reads an encoder path's memory at its own scale (``--cross-memory``): the CNN decoder 0.1 M_a, the SAN
  decoder M_c under a layer norm without parameters. As they are, the contexts that Eq. 9 fuses start at standard
  deviations that differ by 10 to 20; while attention is uniform a context is mostly noise, and the gates turn to the
  quieter one for good within a hundred updates.
- One self-attention layer to two convolutions ("depth consistency"); the stacks are otherwise independent.
- The SAN paths' final layer norms start with gains of 1 (``--encoder-san-output-norm-init``,
  ``--decoder-san-output-norm-init``).
- The gradient into the CNN encoder is divided by twice the CNN decoder's layers, as in ConvS2S.
- With one decoder path Eq. 10 is left out, with one encoder path Eq. 9.
- A decoder path's own memory is that of its kind; where the encoder has no path of its kind, the first one's.

Symbols: B batch, S source tokens, T target tokens, d embedding size, V vocabulary.
"""

# No postponed evaluation of annotations here: fairseq reads the types of the configuration's fields.
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, cast

import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqEncoder, FairseqEncoderDecoderModel, FairseqIncrementalDecoder, register_model
from fairseq.modules.grad_multiply import GradMultiply
from fairseq.tasks import FairseqTask
from torch import Tensor, nn

from ..errors import InputError
from ..kernels.dropout import dropout
from ..kernels.linear import prepared_linear
from ..modules.attention import Memory
from ..modules.convolution import remove_weight_norm
from ..modules.linear import Linear
from ..modules.multi_path.contract import DecoderPath, EncoderPath, Fusion, LayerState, PathOutput
from ..modules.multi_path.gate import ScalarGate, fuse
from ..modules.multi_path.registry import PATH_KINDS, PathKind, PathSizes
from .beam_groups import regroup, reorder_encoder_out
from .double_path_options import DoublePathConfig, check, kinds_of, option_name, paths_of
from .options import (
    build_embeddings,
    complete,
    recurrent_layer,
    refuse_dropout,
    tie_output,
)
from .positions import Positions
from .shown_attention import ShownAttention


@register_model("double_path", dataclass=DoublePathConfig)
class DoublePathModel(FairseqEncoderDecoderModel):
    """Encoder paths, gated cross attention, decoder paths; see the head of this file."""

    @classmethod
    def build_model(cls, cfg: DoublePathConfig, task: FairseqTask) -> "DoublePathModel":
        """Raises InputError if the options contradict each other or the task's dictionaries."""
        complete(cfg, DoublePathConfig)
        check(cfg, task)
        # Both sides have one width.
        encoder_embed, decoder_embed = build_embeddings(
            cfg, task, lambda dictionary, _: _embedding(dictionary, cfg.encoder_embed_dim)
        )
        encoder = DoublePathEncoder(task.source_dictionary, encoder_embed, cfg)
        return cls(encoder, DoublePathDecoder(task.target_dictionary, decoder_embed, cfg, encoder.summary_sizes))

    def show_attention(self, src_tokens: Tensor, src_lengths: Tensor, prev_output_tokens: Tensor) -> ShownAttention:
        """The attention flows and the gates, as :meth:`DoublePathDecoder.forward` names them."""
        encoded = self.encoder(src_tokens, src_lengths)
        _, extra = self.decoder(prev_output_tokens, encoded, need_attention_flows=True)
        return ShownAttention(extra["flows"], extra["gates"])


class DoublePathEncoder(FairseqEncoder):
    """The encoder's paths, each on the same embeddings. Sources may be padded on either side."""

    def __init__(self, dictionary: Dictionary, embed_tokens: nn.Embedding, cfg: DoublePathConfig) -> None:
        super().__init__(dictionary)
        self.padding_idx = dictionary.pad()
        self.dropout = cfg.dropout
        self.embed_tokens = embed_tokens
        self.embed_positions = _positions(cfg, cfg.max_source_positions, self.padding_idx)
        self.paths = nn.ModuleDict({kind.name: _made(cfg, "encoder", kind) for kind in kinds_of(cfg, "encoder")})
        scaled = "cnn" in paths_of(cfg, "decoder") and not cfg.no_scale_cnn_gradient
        self.cnn_gradient_scale = 1 / (2 * cfg.decoder_cnn_layers) if scaled else 1.0

    @property
    def summary_sizes(self) -> dict[str, Sequence[int]]:
        """Of each path that has summaries for a recurrent decoder, their widths."""
        paths = cast("Mapping[str, EncoderPath]", self.paths)
        return {name: path.summary_sizes for name, path in paths.items() if path.summary_sizes}

    def forward(self, src_tokens: Tensor, src_lengths: Tensor | None = None, **unused: Any) -> dict[str, list[Tensor]]:
        """Encodes a batch.

        Args:
            src_tokens: (B, S), padded on the left or on the right.
            src_lengths: not needed; the padding says it.

        Returns:
            a dictionary of lists of tensors with the batch first: for each path (``cnn``, ``san``, …) its output
            (B, S, d) and its summaries (B, size), if it has some; ``encoder_padding_mask`` [(B, S)], True at padding;
            positions are as in ``src_tokens``; and ``sentences`` [(B,)], where each row of the decoder finds its
            sentence in them.

        Raises:
            InputError: more tokens than ``--max-source-positions``.
        """
        _check_length("source", src_tokens, self.max_positions())
        real = src_tokens.ne(self.padding_idx)
        x = self.embed_tokens(src_tokens) + self.embed_positions(src_tokens)
        x = dropout(x, self.dropout, self.training)
        encoded = {}
        for name, path in self.paths.items():
            output, summaries = path(x, real)
            if name == "cnn" and self.cnn_gradient_scale != 1:
                output = GradMultiply.apply(output, self.cnn_gradient_scale)
            encoded[name] = [output, *summaries]
        return {
            **encoded,
            "encoder_padding_mask": [~real],
            "sentences": [torch.arange(real.size(0), device=real.device)],
        }

    def reorder_encoder_out(self, encoder_out: dict[str, list[Tensor]], new_order: Tensor) -> dict[str, list[Tensor]]:
        return reorder_encoder_out(encoder_out, new_order)

    def max_positions(self) -> int:
        longest: int = self.embed_positions.max_positions
        return longest

    def make_generation_fast_(self, **unused: Any) -> None:
        remove_weight_norm(self)


class DoublePathDecoder(FairseqIncrementalDecoder):
    """The decoder's paths, each on the same embeddings, and the gate that fuses them (Eq. 10)."""

    def __init__(
        self,
        dictionary: Dictionary,
        embed_tokens: nn.Embedding,
        cfg: DoublePathConfig,
        summary_sizes: Mapping[str, Sequence[int]],
    ) -> None:
        super().__init__(dictionary)
        size = cfg.decoder_embed_dim
        self.padding_idx = dictionary.pad()
        self.dropout = cfg.dropout
        self.need_attn = True
        self.embed_tokens = embed_tokens
        self.embed_positions = _positions(cfg, cfg.max_target_positions, self.padding_idx)
        self.encoder_paths = paths_of(cfg, "encoder")
        # fairseq's choices are no strings, though they look like them.
        is_matched = str(cfg.cross_memory) == "matched"
        fusion = Fusion(self.encoder_paths, is_matched, cfg.gate_gradient_scale, cfg.path_dropout, summary_sizes)
        self.paths = nn.ModuleDict(
            {kind.name: _made(cfg, "decoder", kind, fusion) for kind in kinds_of(cfg, "decoder")}
        )
        paths = len(self.paths)
        self.gate = ScalarGate(size, cfg.gate_gradient_scale, paths, cfg.path_dropout) if paths > 1 else None
        self.output_projection = Linear(size, len(dictionary))
        nn.init.zeros_(self.output_projection.bias)
        if not tie_output(cfg, self.output_projection, embed_tokens):
            nn.init.uniform_(self.output_projection.weight, -0.1, 0.1)

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: dict[str, list[Tensor]],
        incremental_state: dict[str, dict[str, Any]] | None = None,
        features_only: bool = False,
        need_attention_flows: bool = False,
        **unused: Any,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Scores the next token after each of ``prev_output_tokens`` (B, T); with ``incremental_state`` after the last.

        Returns:
            logits (B, T, V), T = 1 with ``incremental_state``, and a dictionary: ``attn`` [the mean of the attention
            flows (B, T, S), or None in training]; with ``need_attention_flows`` also ``flows``: for each flow ``cc``,
            ``ca``, … (the letters of the decoder path, then of the encoder path) the weights (B, T, S), averaged over
            layers and heads, and ``gates``: ``cnn.san`` is the share of the SAN encoder in each layer of the CNN path
            (B, T, layers), ``output.san`` that of the SAN path in the output (B, T, 1); the share of the own path, or
            of the first, is what is left.

        Raises:
            InputError: more tokens than ``--max-target-positions``.
        """
        features, extra = self.extract_features(
            prev_output_tokens, encoder_out, incremental_state, need_attention_flows
        )
        if features_only:
            return features, extra
        if incremental_state is not None:
            product = self.get_incremental_state(incremental_state, "decoder")["output"]
            if product is not None:
                return product(features.squeeze(1)).unsqueeze(1), extra
        return self.output_layer(features), extra

    def extract_features(
        self,
        prev_output_tokens: Tensor,
        encoder_out: dict[str, list[Tensor]],
        incremental_state: dict[str, dict[str, Any]] | None = None,
        need_attention_flows: bool = False,
        **unused: Any,
    ) -> tuple[Tensor, dict[str, Any]]:
        """z_o of Eq. 10 (B, T, d), and what :meth:`forward` returns beside the logits."""
        _check_length("target", prev_output_tokens, self.max_positions())
        positions = self.embed_positions(prev_output_tokens, incremental_state)
        states: dict[str, Sequence[LayerState]] = {}
        memories: dict[str, Memory] | None = None
        real, output_product = None, None
        if incremental_state is not None:
            prev_output_tokens = prev_output_tokens[:, -1:]
            cached = self.get_incremental_state(incremental_state, "decoder")
            if cached:
                states, memories, output_product = cached["states"], cached["memories"], cached["output"]
        else:
            real = prev_output_tokens.ne(self.padding_idx)
        embedded = dropout(self.embed_tokens(prev_output_tokens) + positions, self.dropout, self.training)

        if memories is None:
            source = ~encoder_out["encoder_padding_mask"][0]
            memories = {
                path: Memory.of(encoder_out[path][0], source, encoder_out[path][1:]) for path in self.encoder_paths
            }
        need_attn = self.need_attn and not self.training
        if states and output_product is None and not self.training and not torch.is_grad_enabled():
            rows = prev_output_tokens.size(0)
            output_product = prepared_linear(self.output_projection.weight, self.output_projection.bias, rows)
            paths = cast("Mapping[str, DecoderPath[Any]]", self.paths)
            states = {name: path.with_steps(states[name], memories, rows) for name, path in paths.items()}
        results = {
            name: path(embedded, memories, real, states.get(name), need_attn or need_attention_flows)
            for name, path in self.paths.items()
        }
        if incremental_state is not None:
            cached = {
                "states": {name: result.states for name, result in results.items()},
                "memories": memories,
                "output": output_product,
                "sentences": encoder_out["sentences"][0],
            }
            self.set_incremental_state(incremental_state, "decoder", cached)

        outputs = {name: result.output for name, result in results.items()}
        output, shares = fuse(self.gate, outputs, reader=next(iter(outputs)))
        flows = _attention_flows(results)
        extra: dict[str, Any] = {"attn": [torch.stack(list(flows.values())).mean(0) if need_attn else None]}
        if need_attention_flows:
            gates = {f"{name}.{of}": share for name, result in results.items() for of, share in result.gates.items()}
            extra |= {"flows": flows, "gates": gates | {f"output.{of}": share for of, share in shares.items()}}
        return output, extra

    def output_layer(self, features: Tensor, **unused: Any) -> Tensor:
        """z_o (B, T, d) -> logits (B, T, V)."""
        logits: Tensor = self.output_projection(features)
        return logits

    def output_parameters(self) -> tuple[Tensor, Tensor | None]:
        """Weight (V, E) and bias (V,) of :meth:`output_layer`, for criterions that compute it with the loss."""
        return self.output_projection.weight, self.output_projection.bias

    def reorder_incremental_state(self, incremental_state: dict[str, dict[str, Any]], new_order: Tensor) -> None:
        cached = self.get_incremental_state(incremental_state, "decoder")
        if cached is not None:
            rows, kept = regroup(cached["sentences"], new_order)
            states = {
                path: tuple(layer.reorder(new_order, kept) for layer in layers)
                for path, layers in cached["states"].items()
            }
            memories = cached["memories"]
            if kept is not None:
                memories = {path: memory.of_sentences(kept) for path, memory in memories.items()}
            cached = {**cached, "states": states, "memories": memories, "sentences": rows}
            self.set_incremental_state(incremental_state, "decoder", cached)

    def make_generation_fast_(self, need_attn: bool = False, retain_dropout: bool = False, **unused: Any) -> None:
        """Raises InputError if dropout is wanted in generation."""
        refuse_dropout(retain_dropout)
        self.need_attn = need_attn
        remove_weight_norm(self)

    def max_positions(self) -> int:
        longest: int = self.embed_positions.max_positions
        return longest


def _attention_flows(results: dict[str, PathOutput]) -> dict[str, Tensor]:
    return {
        PATH_KINDS[decoder_path].letter + PATH_KINDS[encoder_path].letter: weights
        for decoder_path, result in results.items()
        for encoder_path, weights in result.attention.items()
    }


def _made(
    cfg: DoublePathConfig, side: str, kind: PathKind, fusion: Fusion | None = None
) -> EncoderPath | DecoderPath[Any]:
    """A path of a side; the decoder's has a fusion.

    Raises:
        InputError: the kind does not take its options.
    """
    names = {option.name: option_name(kind, option.name, side) for option in dataclasses.fields(kind.options)}
    options = kind.options(**{name: getattr(cfg, full_name) for name, full_name in names.items()})
    sizes = PathSizes(getattr(cfg, f"{side}_embed_dim"), cfg.dropout)
    if kind.has_recurrent_layers:
        sizes = dataclasses.replace(sizes, recurrent_layer=recurrent_layer(cfg, side))
    try:
        path = kind.make_encoder(options, sizes) if fusion is None else kind.make_decoder(options, sizes, fusion)
    except ValueError as error:
        raise InputError(f"--{side}-paths {kind.name}: {error}") from error
    path.checkpoints_activations = cfg.checkpoint_activations
    return path


def _check_length(side: str, tokens: Tensor, longest: int) -> None:
    if tokens.size(1) > longest:
        raise InputError(
            f"a {side} of {tokens.size(1)} tokens is longer than the {longest} positions: "
            f"raise --max-{side}-positions or drop long sentences"
        )


def _embedding(dictionary: Dictionary, embed_dim: int) -> nn.Embedding:
    embedding = nn.Embedding(len(dictionary), embed_dim, padding_idx=dictionary.pad())
    nn.init.normal_(embedding.weight, std=0.1)
    nn.init.zeros_(embedding.weight[dictionary.pad()])
    return embedding


def _positions(cfg: DoublePathConfig, longest: int, padding_idx: int) -> Positions:
    # fairseq's choices are no strings, though they look like them.
    is_sinusoidal = str(cfg.positions) == "sinusoidal"
    return Positions(longest, cfg.encoder_embed_dim, padding_idx, is_sinusoidal, cfg.position_shift)
