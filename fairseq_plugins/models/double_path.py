"""DPN-S2S: Song, Tan, He, Lu, Qin and Liu (2018), "Double Path Networks for Sequence to Sequence Learning".

A convolutional (``cnn``) and a self-attention (``san``) path on either side; every layer of a decoder path attends to
every encoder path and fuses what it gets by a gate (Eq. 8 and 9); a gate fuses the decoder's paths (Eq. 10). Any
non-empty subset of the paths on either side is a model (the paper's Table 4). The stacks: ``modules/double_path.py``.

What the paper leaves open, and what is done here:

- Both paths of a side read E = token embedding + learned position, with dropout, N(0, 0.1), not scaled.
- One self-attention layer to two convolutions ("depth consistency"); the stacks are otherwise independent.
- The CNN paths stay at the embeddings' scale, the SAN paths leave their final layer norm at 1, as printed.
  ``--san-output-norm-init 0.1`` starts at the CNN paths' scale; on Multi30k and on the built-in corpus all models with
  a SAN path learn more slowly that way.
- The gradients of the gates are multiplied by ``--gate-gradient-scale`` (0.01): with the paper's optimiser they
  close for good within some hundred updates (:class:`.ScalarGate`). That keeps them open on the built-in corpus, not on
  Multi30k, where those of the decoder's CNN path are shut after an epoch all the same.
- The gradient into the CNN encoder is divided by twice the CNN decoder's layers, as in ConvS2S.
- With one decoder path Eq. 10 is left out, with one encoder path Eq. 9.

Symbols: B batch, S source tokens, T target tokens, d embedding size, V vocabulary.
"""

# No postponed evaluation of annotations here: fairseq reads the types of the configuration's fields.
from argparse import Namespace
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from fairseq.data import Dictionary
from fairseq.dataclass import FairseqDataclass
from fairseq.models import (
    FairseqEncoder,
    FairseqEncoderDecoderModel,
    FairseqIncrementalDecoder,
    register_model,
    register_model_architecture,
)
from fairseq.modules import PositionalEmbedding
from fairseq.modules.grad_multiply import GradMultiply
from fairseq.tasks import FairseqTask
from torch import Tensor, nn

from ..errors import InputError
from ..modules.attention import Memory, ScalarGate
from ..modules.convolution import remove_weight_norm
from ..modules.double_path import (
    PATHS,
    ConvolutionalDecoderPath,
    ConvolutionalEncoderPath,
    PathOutput,
    SelfAttentionDecoderPath,
    SelfAttentionEncoderPath,
)
from .architectures import complete, set_defaults
from .beam_groups import regroup, reorder_encoder_out
from .shown_attention import ShownAttention


@dataclass
class DoublePathConfig(FairseqDataclass):
    """The options of ``double_path``; the sizes are those of IWSLT'14 German-English."""

    encoder_paths: str = field(default="cnn,san", metadata={"help": "paths of the encoder: cnn, san or cnn,san"})
    encoder_embed_dim: int = field(default=256, metadata={"help": "width of both encoder paths and of the embeddings"})
    encoder_cnn_layers: int = field(default=4, metadata={"help": "convolutions of the encoder's CNN path"})
    encoder_kernel_width: int = field(default=3, metadata={"help": "width of the encoder's convolutions, odd"})
    encoder_san_layers: int = field(default=2, metadata={"help": "layers of the encoder's self-attention path"})
    encoder_attention_heads: int = field(default=4, metadata={"help": "heads of the encoder's self-attention"})
    encoder_ffn_embed_dim: int = field(default=1024, metadata={"help": "filter size of the encoder's SAN path"})
    decoder_paths: str = field(default="cnn,san", metadata={"help": "paths of the decoder: cnn, san or cnn,san"})
    decoder_embed_dim: int = field(default=256, metadata={"help": "the same for the decoder, equal to the encoder's"})
    decoder_cnn_layers: int = field(default=4, metadata={"help": "convolutions of the decoder's CNN path"})
    decoder_kernel_width: int = field(default=3, metadata={"help": "width of the decoder's convolutions"})
    decoder_san_layers: int = field(default=2, metadata={"help": "layers of the decoder's self-attention path"})
    decoder_attention_heads: int = field(
        default=4, metadata={"help": "heads of every attention of the decoder's SAN path"}
    )
    decoder_ffn_embed_dim: int = field(default=1024, metadata={"help": "filter size of the decoder's SAN path"})
    dropout: float = field(
        default=0.1, metadata={"help": "probability of dropout on embeddings, convolutions' inputs and SAN sublayers"}
    )
    activation_dropout: float = field(
        default=0.1, metadata={"help": "probability of dropout after the ReLU of the SAN paths"}
    )
    san_output_norm_init: float = field(
        default=1.0, metadata={"help": "gain of the SAN paths' final layer norms at the start"}
    )
    gate_gradient_scale: float = field(
        default=0.01,
        metadata={"help": "factor of the gates' gradients: with 1 gates soon close for good, with 0 all stay at 0.5"},
    )
    no_scale_cnn_gradient: bool = field(
        default=False,
        metadata={"help": "do not divide the gradient into the encoder's CNN path by twice the CNN decoder's layers"},
    )
    share_decoder_input_output_embed: bool = field(
        default=False, metadata={"help": "one table for target embeddings and output layer"}
    )
    share_all_embeddings: bool = field(
        default=False,
        metadata={"help": "one table for source embeddings, target embeddings and output layer (joined dictionary)"},
    )
    max_source_positions: int = field(default=1024, metadata={"help": "longest source in tokens"})
    max_target_positions: int = field(default=1024, metadata={"help": "longest target in tokens"})


@register_model("double_path", dataclass=DoublePathConfig)
class DoublePathModel(FairseqEncoderDecoderModel):
    """Two encoder paths, gated cross attention, two decoder paths; see the head of this file."""

    @classmethod
    def build_model(cls, cfg: DoublePathConfig, task: FairseqTask) -> "DoublePathModel":
        """Raises InputError if the options contradict each other or the task's dictionaries."""
        complete(cfg, DoublePathConfig)
        _check(cfg, task)
        source, target = task.source_dictionary, task.target_dictionary
        encoder_embed = _embedding(source, cfg.encoder_embed_dim)
        decoder_embed = encoder_embed if cfg.share_all_embeddings else _embedding(target, cfg.decoder_embed_dim)
        return cls(DoublePathEncoder(source, encoder_embed, cfg), DoublePathDecoder(target, decoder_embed, cfg))

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
                self.paths[path] = SelfAttentionEncoderPath(
                    size,
                    cfg.encoder_san_layers,
                    cfg.encoder_attention_heads,
                    cfg.encoder_ffn_embed_dim,
                    cfg.dropout,
                    cfg.activation_dropout,
                    cfg.san_output_norm_init,
                )
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
        x = F.dropout(x, self.dropout, self.training)
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
        return self.embed_positions.max_positions

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
                )
            else:
                self.paths[path] = SelfAttentionDecoderPath(
                    size,
                    cfg.decoder_san_layers,
                    cfg.decoder_attention_heads,
                    cfg.decoder_ffn_embed_dim,
                    cfg.dropout,
                    cfg.activation_dropout,
                    cfg.san_output_norm_init,
                    encoder_paths,
                    cfg.gate_gradient_scale,
                )
        self.gate = ScalarGate(size, cfg.gate_gradient_scale) if len(self.paths) == 2 else None
        self.output_projection = nn.Linear(size, len(dictionary))
        nn.init.zeros_(self.output_projection.bias)
        if cfg.share_decoder_input_output_embed or cfg.share_all_embeddings:
            self.output_projection.weight = embed_tokens.weight
        else:
            nn.init.uniform_(self.output_projection.weight, -0.1, 0.1)

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: dict[str, list[Tensor]] | None = None,
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
        encoder_out: dict[str, list[Tensor]] | None = None,
        incremental_state: dict[str, dict[str, Any]] | None = None,
        need_attention_flows: bool = False,
        **unused: Any,
    ) -> tuple[Tensor, dict[str, Any]]:
        """z_o of Eq. 10 (B, T, d), and what :meth:`forward` returns beside the logits."""
        _check_length("target", prev_output_tokens, self.max_positions())
        positions = self.embed_positions(prev_output_tokens, incremental_state)
        states, real = {}, None
        if incremental_state is not None:
            prev_output_tokens = prev_output_tokens[:, -1:]
            cached = self.get_incremental_state(incremental_state, "decoder")
            states = cached["states"] if cached else {}
        else:
            real = prev_output_tokens.ne(self.padding_idx)
        embedded = F.dropout(self.embed_tokens(prev_output_tokens) + positions, self.dropout, self.training)

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
        return self.output_projection(features)

    def reorder_incremental_state(self, incremental_state: dict[str, dict[str, Any]], new_order: Tensor) -> None:
        cached = self.get_incremental_state(incremental_state, "decoder")
        if cached is not None:
            rows, kept = regroup(cached["sentences"], new_order)
            states = {
                path: tuple(layer.reorder(new_order, kept) for layer in layers)
                for path, layers in cached["states"].items()
            }
            self.set_incremental_state(incremental_state, "decoder", {"states": states, "sentences": rows})

    def make_generation_fast_(self, need_attn: bool = False, **unused: Any) -> None:
        self.need_attn = need_attn
        remove_weight_norm(self)

    def max_positions(self) -> int:
        return self.embed_positions.max_positions


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
        values = {name: getattr(cfg, f"{side}_{name}") for name in names}
        for name, value in values.items():
            if value < 1:
                raise InputError(f"{_option(side, name)} must be at least 1, not {value}")
        if "san" in paths and values["embed_dim"] % values["attention_heads"]:
            raise InputError(
                f"{_option(side, 'embed_dim')} {values['embed_dim']} cannot be split among "
                f"{_option(side, 'attention_heads')} {values['attention_heads']}: choose a multiple"
            )
    if cfg.encoder_kernel_width % 2 == 0:
        raise InputError(f"--encoder-kernel-width must be odd, not {cfg.encoder_kernel_width}: its windows are centred")
    if cfg.encoder_embed_dim != cfg.decoder_embed_dim:
        raise InputError(
            f"--encoder-embed-dim {cfg.encoder_embed_dim} and --decoder-embed-dim {cfg.decoder_embed_dim} must be "
            "equal: the CNN path compares its own states with the encoder's"
        )
    if cfg.share_all_embeddings and task.source_dictionary != task.target_dictionary:
        raise InputError(
            "--share-all-embeddings needs a joined dictionary (fairseq-preprocess --joined-dictionary); "
            "with separate dictionaries take --arch double_path, or dpn_nist_zh_en with its sizes"
        )


def _option(side: str, name: str) -> str:
    return f"--{side}-{name}".replace("_", "-")


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


def _positions(number: int, embed_dim: int, padding_idx: int) -> nn.Module:
    positions = PositionalEmbedding(number, embed_dim, padding_idx, learned=True)
    nn.init.normal_(positions.weight, std=0.1)
    nn.init.zeros_(positions.weight[padding_idx])
    return positions


@register_model_architecture("double_path", "dpn_iwslt_de_en")
def dpn_iwslt_de_en(args: Namespace) -> None:
    """DPN-S2S of the paper's Tables 1 and 4 (M9): 4 convolutions and 2 self-attention layers of 256, one table."""
    set_defaults(args, share_all_embeddings=True)


@register_model_architecture("double_path", "dpn_gigaword")
def dpn_gigaword(args: Namespace) -> None:
    """DPN-S2S of the paper's Table 3: as for IWSLT'14."""
    dpn_iwslt_de_en(args)


@register_model_architecture("double_path", "dpn_nist_zh_en")
def dpn_nist_zh_en(args: Namespace) -> None:
    """DPN-S2S of the paper's Table 2: 12 convolutions and 6 self-attention layers, a dictionary for each side."""
    set_defaults(
        args,
        encoder_cnn_layers=12,
        encoder_san_layers=6,
        decoder_cnn_layers=12,
        decoder_san_layers=6,
        dropout=0.2,
        share_decoder_input_output_embed=True,
    )
