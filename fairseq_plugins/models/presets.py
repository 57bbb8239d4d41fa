"""The architectures (``--arch``): which model each is of, what it is, and in what it differs from the model's defaults.

The baselines of double path networks (DPN-S2S, Sections 4.2 and 5) are fairseq's own ``fconv`` and ``transformer``,
with learned positions, and layer norms before the sublayers. Parameters agree with the paper's Table 1 within 0.2 %;
fairseq's transformer has biases, the authors' has none.
"""

from __future__ import annotations

import functools
from argparse import Namespace
from collections.abc import Callable
from typing import Any

from fairseq.models import register_model_architecture
from fairseq.models.fconv import base_architecture as fconv_architecture
from fairseq.models.transformer import base_architecture as transformer_architecture

from .options import set_defaults, takes_layer_option
from .preset import Preset
from .sequence_presets import SEQUENCE_PRESETS


def _both_sides(**options: Any) -> dict[str, Any]:
    return {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in options.items()}


def _recurrent(text: str, kind: str, layers: int = 2, hidden_size: int = 256, **more: Any) -> Preset:
    sides = _both_sides(recurrent_layer=kind, layers=layers, hidden_size=hidden_size)
    return Preset("recurrent_seq2seq", text, {**sides, **more})


def _cnn(text: str, layers: int, size: int, dropout: float = 0.1, **more: Any) -> Preset:
    sides = _both_sides(embed_dim=256, layers=f"[({size}, 3)] * {layers}")
    return Preset("fconv", text, {**sides, "decoder_out_embed_dim": 256, "dropout": dropout, **more})


def _san(text: str, layers: int, size: int, ffn_size: int, heads: int = 4, dropout: float = 0.1, **more: Any) -> Preset:
    sides = _both_sides(
        embed_dim=size,
        ffn_embed_dim=ffn_size,
        layers=layers,
        attention_heads=heads,
        normalize_before=True,
        learned_pos=True,
    )
    return Preset("transformer", text, {**sides, "dropout": dropout, "activation_dropout": 0.1, **more})


def _word_model(text: str, kind: str, **more: Any) -> Preset:
    """AWD-LSTM's sizes and dropouts for Penn Treebank, which are the authors' own."""
    regularization = {
        "embedding_dropout": 0.1,
        "decoder_dropout_in": 0.4,
        "dropout": 0.25,
        "decoder_dropout_out": 0.4,
        "weight_dropout": 0.5,
    }
    shared = {"share_decoder_input_output_embed": True, **regularization}
    return Preset("recurrent_lm", text, {"recurrent_layer": kind, **shared, **more})


def _character_model(text: str, kind: str, layers: int = 5, hidden_size: int = 256, **more: Any) -> Preset:
    sizes = {"decoder_layers": layers, "decoder_hidden_size": hidden_size, "one_hot": True, "plain_dropout": True}
    return Preset("recurrent_lm", text, {"recurrent_layer": kind, **sizes, **more})


def _dilated_character_model(text: str, cell: str) -> Preset:
    return _character_model(text, "dilated_rnn", cell=cell, first_dilation=4, dilation_base=2)


# At the pace of other weights connections drown the identity that they start as: docs/notes/starting_scales.md.
_SLOW: dict[str, Any] = {"connection_rate": 0.1}
_SLOW_FROM_IDENTITY: dict[str, Any] = {"connection_init": "identity", **_SLOW}

PRESETS: dict[str, Preset] = {
    "rnnsearch_iwslt_de_en": _recurrent(
        "Baseline-RNN of MC-RNN's Table 2: two LSTM layers, embeddings and hidden size 256", "lstm"
    ),
    "rnnsearch_large_iwslt_de_en": _recurrent(
        "Baseline-RNN-large of MC-RNN's Table 5: hidden size 286", "lstm", hidden_size=286
    ),
    "rnnsearch_larger_iwslt_de_en": _recurrent(
        "Baseline-RNN with as many parameters as MC-RNN-3: hidden size 312", "lstm", hidden_size=312
    ),
    "rnnsearch_deep_iwslt_de_en": _recurrent("Baseline-RNN-deep of MC-RNN's Table 5: three layers", "lstm", layers=3),
    "rnnsearch_gigaword": _recurrent("Baseline-RNN of MC-RNN's Table 3: four layers", "lstm", layers=4),
    "mc_rnn_iwslt_de_en": _recurrent("MC-RNN-3 of MC-RNN's Table 2", "mc_rnn", channels=3, **_SLOW),
    "mc_rnn_2_iwslt_de_en": _recurrent("MC-RNN-2 of MC-RNN's Table 2", "mc_rnn", channels=2, **_SLOW),
    "mc_rnn_4_iwslt_de_en": _recurrent("MC-RNN-4 of MC-RNN's Table 2", "mc_rnn", channels=4, **_SLOW),
    "mc_rnn_gigaword": _recurrent("MC-RNN-3 of MC-RNN's Table 3", "mc_rnn", layers=4, channels=3, **_SLOW),
    "mc_rnn_2_gigaword": _recurrent("MC-RNN-2 of MC-RNN's Table 3", "mc_rnn", layers=4, channels=2, **_SLOW),
    "mc_rnn_4_gigaword": _recurrent("MC-RNN-4 of MC-RNN's Table 3", "mc_rnn", layers=4, channels=4, **_SLOW),
    "ho_rnn_iwslt_de_en": _recurrent("HO-RNN of MC-RNN's Table 2", "ho_rnn", **_SLOW_FROM_IDENTITY),
    "ho_rnn_gigaword": _recurrent("HO-RNN of MC-RNN's Table 3", "ho_rnn", layers=4, **_SLOW_FROM_IDENTITY),
    "hm_rnn_iwslt_de_en": _recurrent("HM-RNN of MC-RNN's Table 2: two levels", "hm_rnn"),
    "hm_rnn_gigaword": _recurrent("HM-RNN of MC-RNN's Table 3: four levels", "hm_rnn", layers=4),
    "rcrn_iwslt_de_en": _recurrent("one RCRN layer in the place of Baseline-RNN's layers", "rcrn", layers=1),
    "dilated_rnn_iwslt_de_en": _recurrent(
        "DilatedRNN of dilations 1 and 2 in the place of Baseline-RNN's layers", "dilated_rnn"
    ),
    "dpn_iwslt_de_en": Preset(
        "double_path",
        "DPN-S2S of the paper's Tables 1 and 4 (M9): 4 convolutions and 2 self-attention layers of 256, one table",
        {"share_all_embeddings": True},
    ),
    "dpn_gigaword": Preset(
        "double_path",
        "DPN-S2S of the paper's Table 3: as for IWSLT'14, with a dictionary for each side",
        {"share_decoder_input_output_embed": True},
    ),
    "dpn_nist_zh_en": Preset(
        "double_path",
        "DPN-S2S of the paper's Table 2: 12 convolutions and 6 self-attention layers, a dictionary for each side",
        {
            **_both_sides(cnn_layers=12, san_layers=6),
            "dropout": 0.2,
            "share_decoder_input_output_embed": True,
        },
    ),
    "cnn_deeper_iwslt_de_en": _cnn("Deeper CNN of DPN-S2S's Table 1: 8 layers of 256", layers=8, size=256),
    "cnn_wider_iwslt_de_en": _cnn("Wider CNN of DPN-S2S's Table 1: 4 layers of 512", layers=4, size=512),
    "san_deeper_iwslt_de_en": _san(
        "Deeper SAN of DPN-S2S's Table 1: 4 layers of 256, filter size 1024", layers=4, size=256, ffn_size=1024
    ),
    "san_wider_iwslt_de_en": _san(
        "Wider SAN of DPN-S2S's Table 1: 2 layers of 512, filter size 2048", layers=2, size=512, ffn_size=2048
    ),
    "cnn_nist_zh_en": _cnn(
        "CNN of DPN-S2S's Table 2: 12 layers of 512; like DPN-S2S there, it shares the decoder's input and output "
        "embeddings",
        layers=12,
        size=512,
        dropout=0.2,
        share_input_output_embed=True,
    ),
    "san_nist_zh_en": _san(
        "SAN of DPN-S2S's Table 2: 6 layers of 512, filter size 2048; 8 heads as in the authors' code for that width; "
        "like DPN-S2S there, it shares the decoder's input and output embeddings",
        layers=6,
        size=512,
        ffn_size=2048,
        heads=8,
        dropout=0.2,
        share_decoder_input_output_embed=True,
    ),
    "cnn_gigaword": _cnn(
        "ConvS2S of DPN-S2S's Table 3, whose sizes the paper does not say: 6 layers of 256, as its source (Gehring et "
        "al., 2017)",
        layers=6,
        size=256,
    ),
    "awd_lstm_ptb": _word_model("AWD-LSTM of MC-RNN's Table 4: LSTM layers of 1150, 1150 and 400, tied", "lstm"),
    "mc_rnn_lm_ptb": _word_model(
        "MC-RNN-3 of MC-RNN's Table 4, in the place of AWD-LSTM's layers", "mc_rnn", channels=3, **_SLOW
    ),
    "lstm_lm_ptb_characters": _character_model("LSTM of DilatedRNN's Table 2: one layer of 1000", "lstm", 1, 1000),
    "gru_lm_ptb_characters": _character_model("GRU of DilatedRNN's Table 2: one layer of 1000", "gru", 1, 1000),
    "stacked_lstm_lm_ptb_characters": _character_model("LSTM of DilatedRNN's Table 2: five layers of 256", "lstm"),
    "stacked_gru_lm_ptb_characters": _character_model("GRU of DilatedRNN's Table 2: five layers of 256", "gru"),
    "dilated_rnn_lm_ptb_characters": _dilated_character_model(
        "Dilated Vanilla of DilatedRNN's Table 2: five tanh layers of 256, dilations 4 to 64", "rnn"
    ),
    "dilated_lstm_lm_ptb_characters": _dilated_character_model(
        "Dilated LSTM of DilatedRNN's Table 2: five layers of 256, dilations 4 to 64", "lstm"
    ),
    "dilated_gru_lm_ptb_characters": _dilated_character_model(
        "Dilated GRU of DilatedRNN's Table 2: five layers of 256, dilations 4 to 64", "gru"
    ),
    **SEQUENCE_PRESETS,
}

# fairseq's models in the older style have their other defaults here.
_BASES: dict[str, Callable[[Namespace], None]] = {"fconv": fconv_architecture, "transformer": transformer_architecture}


def _apply(preset: Preset, args: Namespace) -> None:
    layers = {name: value for name, value in preset.overrides.items() if name.endswith("recurrent_layer")}
    set_defaults(args, **layers)
    kinds = {str(getattr(args, name)) for name in layers}
    # Layers that a user puts in the place of the architecture's may not have the options of those.
    set_defaults(
        args,
        **{name: value for name, value in preset.overrides.items() if not kinds or takes_layer_option(kinds, name)},
    )
    if preset.model in _BASES:
        _BASES[preset.model](args)


def register_architectures() -> None:
    """Tells fairseq of all; their models must be registered."""
    for name, preset in PRESETS.items():
        register_model_architecture(preset.model, name)(functools.partial(_apply, preset))
