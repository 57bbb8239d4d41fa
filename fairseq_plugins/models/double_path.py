"""DPN-S2S: Song, Tan, He, Lu, Qin and Liu (2018), "Double Path Networks for Sequence to Sequence Learning".

A convolutional (``cnn``) and a self-attention (``san``) path on either side; every layer of a decoder path attends to
every encoder path and fuses what it gets by a gate (Eq. 8 and 9); a gate fuses the decoder's paths (Eq. 10). Any
non-empty subset of the paths on either side is a model (the paper's Table 4). The stacks: ``modules/double_path``.

What the paper leaves open, and what is done here:

- E = token embedding + learned position, with dropout, N(0, 0.1). The CNN paths read E, the SAN paths sqrt(d) E
  (``--san-input-scale``): beside residual branches with weights U(-0.1, 0.1) words of 0.1 would be lost.
- A decoder path reads the other encoder path's memory at its own scale (``--cross-memory``): the CNN decoder 0.1 M_a,
  the SAN decoder M_c under a layer norm without parameters. As they are, the contexts that Eq. 9 fuses start at
  standard deviations that differ by 10 to 20; while attention is uniform a context is mostly noise, and the gates turn
  to the quieter one for good within a hundred updates.
- One self-attention layer to two convolutions ("depth consistency"); the stacks are otherwise independent.
- The SAN paths' final layer norms start with gains of 1 (``--encoder-san-output-norm-init``,
  ``--decoder-san-output-norm-init``).
- The gradient into the CNN encoder is divided by twice the CNN decoder's layers, as in ConvS2S.
- With one decoder path Eq. 10 is left out, with one encoder path Eq. 9.

Symbols: B batch, S source tokens, T target tokens, d embedding size, V vocabulary.
"""

# No postponed evaluation of annotations here: fairseq reads the types of the configuration's fields.
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Optional

import torch
from fairseq.data import Dictionary
from fairseq.dataclass import ChoiceEnum
from fairseq.models import FairseqEncoder, FairseqEncoderDecoderModel, FairseqIncrementalDecoder, register_model
from fairseq.modules import LearnedPositionalEmbedding, PositionalEmbedding
from fairseq.modules.grad_multiply import GradMultiply
from fairseq.tasks import FairseqTask
from torch import Tensor, nn

from ..errors import InputError
from ..kernels.dropout import dropout
from ..modules.attention import Memory
from ..modules.convolution import remove_weight_norm
from ..modules.double_path.decoder import ConvolutionalDecoderPath, LayerState, PathOutput, SelfAttentionDecoderPath
from ..modules.double_path.encoder import ConvolutionalEncoderPath, SelfAttentionEncoderPath, SelfAttentionOptions
from ..modules.double_path.gate import PATHS, ScalarGate
from ..modules.linear import Linear
from ..modules.recurrent.registry import Needs
from .beam_groups import regroup, reorder_encoder_out
from .options import (
    EmbeddingOptions,
    SharingOptions,
    build_embeddings,
    check_dropouts,
    check_effects,
    check_sharing,
    check_sizes,
    complete,
    position_options,
    refuse_dropout,
    tie_output,
)
from .shown_attention import ShownAttention

_CROSS_MEMORIES = ChoiceEnum(["matched", "plain"])


def _has_path(side: str, path: str) -> Needs:
    """What the options of one path need."""
    option = f"--{side}-paths"
    return Needs(f"without {path} in {option}", lambda cfg: path in _paths(option, getattr(cfg, f"{side}_paths")))


def _has_paths(text: str, are_met: Callable[[set[str], set[str]], bool]) -> Needs:
    """What an option needs of the encoder's and the decoder's paths."""
    return Needs(
        text,
        lambda cfg: are_met(
            set(_paths("--encoder-paths", cfg.encoder_paths)), set(_paths("--decoder-paths", cfg.decoder_paths))
        ),
    )


_HAS_SELF_ATTENTION = _has_paths(
    "without san in --encoder-paths or --decoder-paths", lambda encoder, decoder: "san" in encoder | decoder
)


@dataclass
class DoublePathConfig(EmbeddingOptions, SharingOptions, position_options(1024)):  # type: ignore[misc]  # fairseq wants one class of all options
    """The options of ``double_path``; the sizes are those of IWSLT'14 German-English."""

    encoder_paths: str = field(default="cnn,san", metadata={"help": "paths of the encoder: cnn, san or cnn,san"})
    encoder_cnn_layers: int = field(
        default=4, metadata={"help": "convolutions of the encoder's CNN path", "needs": _has_path("encoder", "cnn")}
    )
    encoder_kernel_width: int = field(
        default=3, metadata={"help": "width of the encoder's convolutions, odd", "needs": _has_path("encoder", "cnn")}
    )
    encoder_san_layers: int = field(
        default=2,
        metadata={"help": "layers of the encoder's self-attention path", "needs": _has_path("encoder", "san")},
    )
    encoder_attention_heads: int = field(
        default=4, metadata={"help": "heads of the encoder's self-attention", "needs": _has_path("encoder", "san")}
    )
    encoder_ffn_embed_dim: int = field(
        default=1024, metadata={"help": "filter size of the encoder's SAN path", "needs": _has_path("encoder", "san")}
    )
    decoder_paths: str = field(default="cnn,san", metadata={"help": "paths of the decoder: cnn, san or cnn,san"})
    decoder_cnn_layers: int = field(
        default=4, metadata={"help": "convolutions of the decoder's CNN path", "needs": _has_path("decoder", "cnn")}
    )
    decoder_kernel_width: int = field(
        default=3, metadata={"help": "width of the decoder's convolutions", "needs": _has_path("decoder", "cnn")}
    )
    decoder_san_layers: int = field(
        default=2,
        metadata={"help": "layers of the decoder's self-attention path", "needs": _has_path("decoder", "san")},
    )
    decoder_attention_heads: int = field(
        default=4,
        metadata={"help": "heads of every attention of the decoder's SAN path", "needs": _has_path("decoder", "san")},
    )
    decoder_ffn_embed_dim: int = field(
        default=1024, metadata={"help": "filter size of the decoder's SAN path", "needs": _has_path("decoder", "san")}
    )
    dropout: float = field(
        default=0.1, metadata={"help": "probability of dropout on embeddings, convolutions' inputs and SAN sublayers"}
    )
    activation_dropout: float = field(
        default=0.1,
        metadata={
            "help": "probability of dropout after the ReLU of the SAN paths",
            "needs": Needs(
                _HAS_SELF_ATTENTION.text, lambda cfg: cfg.activation_dropout == 0 or _HAS_SELF_ATTENTION.are_met(cfg)
            ),
        },
    )
    san_input_scale: Optional[float] = field(  # noqa: UP045
        default=None,
        metadata={
            "help": "factor of the embeddings that the SAN paths read; default: the root of their size",
            "needs": _HAS_SELF_ATTENTION,
        },
    )
    cross_memory: _CROSS_MEMORIES = field(  # type: ignore[valid-type]  # fairseq makes the class
        default="matched",
        metadata={
            "help": "the other encoder path's output, as a decoder path reads it: at that path's own scale (matched), "
            "or as it is (plain)",
            "needs": _has_paths(
                "without san in one of --encoder-paths and --decoder-paths and cnn in the other",
                lambda encoder, decoder: any({"cnn", "san"} == {a, b} for a in encoder for b in decoder),
            ),
        },
    )
    encoder_san_output_norm_init: float = field(
        default=1.0,
        metadata={
            "help": "gain of the final layer norm of the encoder's SAN path at the start",
            "needs": _has_path("encoder", "san"),
        },
    )
    decoder_san_output_norm_init: float = field(
        default=1.0,
        metadata={
            "help": "gain of the final layer norm of the decoder's SAN path at the start",
            "needs": _has_path("decoder", "san"),
        },
    )
    gate_gradient_scale: float = field(
        default=1.0,
        metadata={
            "help": "factor of the gates' gradients; 0 keeps every gate at 0.5",
            "needs": _has_paths(
                "without two --encoder-paths or two --decoder-paths, which gates fuse",
                lambda encoder, decoder: len(encoder) == 2 or len(decoder) == 2,
            ),
        },
    )
    no_scale_cnn_gradient: bool = field(
        default=False,
        metadata={
            "help": "do not divide the gradient into the encoder's CNN path by twice the CNN decoder's layers",
            "needs": _has_paths(
                "without cnn in --encoder-paths and --decoder-paths",
                lambda encoder, decoder: "cnn" in encoder & decoder,
            ),
        },
    )


@register_model("double_path", dataclass=DoublePathConfig)
class DoublePathModel(FairseqEncoderDecoderModel):
    """Two encoder paths, gated cross attention, two decoder paths; see the head of this file."""

    @classmethod
    def build_model(cls, cfg: DoublePathConfig, task: FairseqTask) -> "DoublePathModel":
        """Raises InputError if the options contradict each other or the task's dictionaries."""
        complete(cfg, DoublePathConfig)
        _check(cfg, task)
        # Both sides have one width.
        encoder_embed, decoder_embed = build_embeddings(
            cfg, task, lambda dictionary, _: _embedding(dictionary, cfg.encoder_embed_dim)
        )
        encoder = DoublePathEncoder(task.source_dictionary, encoder_embed, cfg)
        return cls(encoder, DoublePathDecoder(task.target_dictionary, decoder_embed, cfg))

    def show_attention(self, src_tokens: Tensor, src_lengths: Tensor, prev_output_tokens: Tensor) -> ShownAttention:
        """The attention flows and the gates, as :meth:`DoublePathDecoder.forward` names them."""
        encoded = self.encoder(src_tokens, src_lengths)
        _, extra = self.decoder(prev_output_tokens, encoded, need_attention_flows=True)
        gates = {name: values.unsqueeze(-1) if name == "output" else values for name, values in extra["gates"].items()}
        return ShownAttention(extra["flows"], gates)


class DoublePathEncoder(FairseqEncoder):
    """The encoder's paths, each on the same embeddings. Sources may be padded on either side."""

    def __init__(self, dictionary: Dictionary, embed_tokens: nn.Embedding, cfg: DoublePathConfig) -> None:
        super().__init__(dictionary)
        size = cfg.encoder_embed_dim
        self.padding_idx = dictionary.pad()
        self.dropout = cfg.dropout
        self.embed_tokens = embed_tokens
        self.embed_positions = _positions(cfg.max_source_positions, size, self.padding_idx)
        self.paths = nn.ModuleDict()
        for path in _paths("--encoder-paths", cfg.encoder_paths):
            if path == "cnn":
                self.paths[path] = ConvolutionalEncoderPath(
                    size, cfg.encoder_cnn_layers, cfg.encoder_kernel_width, cfg.dropout
                )
            else:
                self.paths[path] = SelfAttentionEncoderPath(_self_attention(cfg, "encoder"))
        scaled = "cnn" in _paths("--decoder-paths", cfg.decoder_paths) and not cfg.no_scale_cnn_gradient
        self.cnn_gradient_scale = 1 / (2 * cfg.decoder_cnn_layers) if scaled else 1.0

    def forward(self, src_tokens: Tensor, src_lengths: Tensor | None = None, **unused: Any) -> dict[str, list[Tensor]]:
        """Encodes a batch.

        Args:
            src_tokens: (B, S), padded on the left or on the right.
            src_lengths: not needed; the padding says it.

        Returns:
            a dictionary of lists of tensors with the batch first: for each path (``cnn``, ``san``) its output
            [(B, S, d)], and ``encoder_padding_mask`` [(B, S)], True at padding, both with positions as in
            ``src_tokens``; and ``sentences`` [(B,)], where each row of the decoder finds its sentence in them.

        Raises:
            InputError: more tokens than ``--max-source-positions``.
        """
        _check_length("source", src_tokens, self.max_positions())
        real = src_tokens.ne(self.padding_idx)
        x = self.embed_tokens(src_tokens) + self.embed_positions(src_tokens)
        x = dropout(x, self.dropout, self.training)
        outputs = {name: path(x, real) for name, path in self.paths.items()}
        if "cnn" in outputs and self.cnn_gradient_scale != 1:
            outputs["cnn"] = GradMultiply.apply(outputs["cnn"], self.cnn_gradient_scale)
        return {
            **{name: [output] for name, output in outputs.items()},
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

    def __init__(self, dictionary: Dictionary, embed_tokens: nn.Embedding, cfg: DoublePathConfig) -> None:
        super().__init__(dictionary)
        size = cfg.decoder_embed_dim
        self.padding_idx = dictionary.pad()
        self.dropout = cfg.dropout
        self.need_attn = True
        self.embed_tokens = embed_tokens
        self.embed_positions = _positions(cfg.max_target_positions, size, self.padding_idx)
        encoder_paths = _paths("--encoder-paths", cfg.encoder_paths)
        self.encoder_paths = encoder_paths
        # fairseq's choices are no strings, though they look like them.
        matches_memory = str(cfg.cross_memory) == "matched"
        self.paths = nn.ModuleDict()
        for path in _paths("--decoder-paths", cfg.decoder_paths):
            if path == "cnn":
                self.paths[path] = ConvolutionalDecoderPath(
                    size,
                    cfg.decoder_cnn_layers,
                    cfg.decoder_kernel_width,
                    cfg.dropout,
                    encoder_paths,
                    cfg.gate_gradient_scale,
                    matches_memory,
                )
            else:
                self.paths[path] = SelfAttentionDecoderPath(
                    _self_attention(cfg, "decoder"), encoder_paths, cfg.gate_gradient_scale, matches_memory
                )
        self.gate = ScalarGate(size, cfg.gate_gradient_scale) if len(self.paths) == 2 else None
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
            flows (B, T, S), or None in training]; with ``need_attention_flows`` also ``flows``: for each of the flows
            ``cc``, ``ca``, ``ac``, ``aa`` that the model has (decoder path, then encoder path) the weights (B, T, S),
            averaged over layers and heads, and ``gates``: the share of the other encoder path in each layer of ``cnn``
            and ``san`` (B, T, layers), and the share of the SAN path in the ``output`` (B, T), where they exist.

        Raises:
            InputError: more tokens than ``--max-target-positions``.
        """
        features, extra = self.extract_features(
            prev_output_tokens, encoder_out, incremental_state, need_attention_flows
        )
        return (features if features_only else self.output_layer(features)), extra

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
        states: dict[str, tuple[LayerState, ...]] = {}
        real = None
        if incremental_state is not None:
            prev_output_tokens = prev_output_tokens[:, -1:]
            cached = self.get_incremental_state(incremental_state, "decoder")
            states = cached["states"] if cached else {}
        else:
            real = prev_output_tokens.ne(self.padding_idx)
        embedded = dropout(self.embed_tokens(prev_output_tokens) + positions, self.dropout, self.training)

        source = ~encoder_out["encoder_padding_mask"][0]
        memories = {path: Memory.of(encoder_out[path][0], source) for path in self.encoder_paths}
        need_attn = self.need_attn and not self.training
        results = {
            name: path(embedded, memories, real, states.get(name), need_attn or need_attention_flows)
            for name, path in self.paths.items()
        }
        if incremental_state is not None:
            states = {name: result.states for name, result in results.items()}
            cached = {"states": states, "sentences": encoder_out["sentences"][0]}
            self.set_incremental_state(incremental_state, "decoder", cached)

        if self.gate is None:
            ((output, *_),), output_gate = results.values(), None
        else:
            output, output_gate = self.gate(results["cnn"].output, results["san"].output)
        flows = _attention_flows(results)
        extra: dict[str, Any] = {"attn": [torch.stack(list(flows.values())).mean(0) if need_attn else None]}
        if need_attention_flows:
            gates = {name: result.gates for name, result in results.items() if result.gates is not None}
            if output_gate is not None:
                gates["output"] = output_gate.squeeze(-1)
            extra |= {"flows": flows, "gates": gates}
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
            self.set_incremental_state(incremental_state, "decoder", {"states": states, "sentences": rows})

    def make_generation_fast_(self, need_attn: bool = False, retain_dropout: bool = False, **unused: Any) -> None:
        """Raises InputError if dropout is wanted in generation."""
        refuse_dropout(retain_dropout)
        self.need_attn = need_attn
        remove_weight_norm(self)

    def max_positions(self) -> int:
        longest: int = self.embed_positions.max_positions
        return longest


def _attention_flows(results: dict[str, PathOutput]) -> dict[str, Tensor]:
    letter = {"cnn": "c", "san": "a"}
    return {
        letter[decoder_path] + letter[encoder_path]: weights
        for decoder_path, result in results.items()
        for encoder_path, weights in result.attention.items()
    }


def _paths(option: str, value: str) -> tuple[str, ...]:
    """The paths that an option names, in the order of :data:`PATHS`."""
    names = [name.strip() for name in value.split(",") if name.strip()]
    unknown = sorted(set(names) - set(PATHS))
    if unknown or not names:
        what = f"unknown path {unknown[0]!r}" if unknown else "no path"
        raise InputError(f"{option} {value!r}: {what}; give cnn, san or cnn,san")
    return tuple(path for path in PATHS if path in names)


def _check(cfg: DoublePathConfig, task: FairseqTask) -> None:
    for side in ("encoder", "decoder"):
        paths = _paths(f"--{side}-paths", getattr(cfg, f"{side}_paths"))
        names = ["embed_dim"]
        names += ["cnn_layers", "kernel_width"] if "cnn" in paths else []
        names += ["san_layers", "attention_heads", "ffn_embed_dim"] if "san" in paths else []
        check_sizes(cfg, [f"{side}_{name}" for name in names])
        size, heads = getattr(cfg, f"{side}_embed_dim"), getattr(cfg, f"{side}_attention_heads")
        if "san" in paths and size % heads:
            raise InputError(
                f"--{side}-embed-dim {size} cannot be split among --{side}-attention-heads {heads}: choose a multiple"
            )
    check_sizes(cfg, ("max_source_positions", "max_target_positions"))
    check_dropouts(cfg, ("dropout", "activation_dropout"))
    if cfg.gate_gradient_scale < 0:
        raise InputError(f"--gate-gradient-scale must be at least 0, not {cfg.gate_gradient_scale}")
    if "cnn" in _paths("--encoder-paths", cfg.encoder_paths) and cfg.encoder_kernel_width % 2 == 0:
        raise InputError(f"--encoder-kernel-width must be odd, not {cfg.encoder_kernel_width}: its windows are centred")
    if cfg.encoder_embed_dim != cfg.decoder_embed_dim:
        raise InputError(
            f"--encoder-embed-dim {cfg.encoder_embed_dim} and --decoder-embed-dim {cfg.decoder_embed_dim} must be "
            "equal: the CNN path compares its own states with the encoder's"
        )
    check_sharing(cfg, task)
    check_effects(cfg, DoublePathConfig, task)


def _self_attention(cfg: DoublePathConfig, side: str) -> SelfAttentionOptions:
    size = getattr(cfg, f"{side}_embed_dim")
    return SelfAttentionOptions(
        size,
        getattr(cfg, f"{side}_san_layers"),
        getattr(cfg, f"{side}_attention_heads"),
        getattr(cfg, f"{side}_ffn_embed_dim"),
        cfg.dropout,
        cfg.activation_dropout,
        getattr(cfg, f"{side}_san_output_norm_init"),
        math.sqrt(size) if cfg.san_input_scale is None else cfg.san_input_scale,
    )


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


def _positions(number: int, embed_dim: int, padding_idx: int) -> LearnedPositionalEmbedding:
    positions = PositionalEmbedding(number, embed_dim, padding_idx, learned=True)
    nn.init.normal_(positions.weight, std=0.1)
    nn.init.zeros_(positions.weight[padding_idx])
    return positions
