"""The table of architectures."""

from __future__ import annotations

import dataclasses
from argparse import Namespace

from fairseq.models import ARCH_CONFIG_REGISTRY

from fairseq_plugins.models.presets import PRESETS
from fairseq_plugins.models.recurrent_language_model import RecurrentLanguageModel, RecurrentLanguageModelConfig
from fairseq_plugins.models.recurrent_seq2seq import RecurrentSeq2SeqConfig, RecurrentSeq2SeqModel
from fairseq_plugins.modules import HigherOrderRNN, MultiChannelRNN
from tests.models.tasks import make_task


def test_user_options_win_over_the_architecture() -> None:
    args = Namespace(encoder_layers=5, channels=6, encoder_recurrent_layer="gru")
    ARCH_CONFIG_REGISTRY["mc_rnn_2_gigaword"](args)
    assert (args.encoder_layers, args.decoder_layers, args.channels) == (5, 4, 6)
    assert (args.encoder_recurrent_layer, args.decoder_recurrent_layer) == ("gru", "mc_rnn")


def test_texts_are_one_line_each() -> None:
    for preset in PRESETS.values():
        assert preset.text and "\n" not in preset.text and not preset.text.endswith(".")


def test_other_layers_do_not_get_the_options_of_the_architectures_own() -> None:
    args = Namespace(recurrent_layer="lstm")
    ARCH_CONFIG_REGISTRY["mc_rnn_lm_ptb"](args)
    assert not hasattr(args, "channels") and args.dropout == 0.25


def test_checkpoints_of_before_an_option_do_not_get_the_architectures_value_of_it() -> None:
    new = Namespace(channels=2)
    ARCH_CONFIG_REGISTRY["mc_rnn_iwslt_de_en"](new)
    assert (new.channels, new.connection_rate) == (2, 0.1)
    written_out = {name: value for name, value in vars(new).items() if name != "connection_rate"}
    command_line = Namespace(**written_out)
    ARCH_CONFIG_REGISTRY["mc_rnn_iwslt_de_en"](command_line)
    assert command_line.connection_rate == 0.1
    defaults = {field.name: field.default for field in dataclasses.fields(RecurrentSeq2SeqConfig)}
    earlier = Namespace(**{**defaults, **written_out})
    del earlier.connection_rate
    ARCH_CONFIG_REGISTRY["mc_rnn_iwslt_de_en"](earlier)
    assert not hasattr(earlier, "connection_rate")


def test_earlier_checkpoints_of_the_language_model_keep_the_pace_of_their_connections() -> None:
    """All of them know the option, as not given."""
    new = Namespace()
    ARCH_CONFIG_REGISTRY["mc_rnn_lm_ptb"](new)
    assert new.connection_rate == 0.1
    defaults = {field.name: field.default for field in dataclasses.fields(RecurrentLanguageModelConfig)}
    sizes = {"decoder_embed_dim": 6, "decoder_hidden_size": 6, "recurrent_layer": "mc_rnn"}
    earlier = Namespace(**{**defaults, **sizes})
    ARCH_CONFIG_REGISTRY["mc_rnn_lm_ptb"](earlier)
    model = RecurrentLanguageModel.build_model(earlier, make_task())
    layers = [layer for layer in model.modules() if isinstance(layer, MultiChannelRNN)]
    assert layers and all(layer.connection_rate == 1 for layer in layers)


def test_earlier_checkpoints_of_ho_rnn_keep_their_connections() -> None:
    """They know the options, which were MC-RNN's alone, as not given."""
    new = Namespace()
    ARCH_CONFIG_REGISTRY["ho_rnn_iwslt_de_en"](new)
    assert (new.connection_init, new.connection_rate) == ("identity", 0.1)
    defaults = {field.name: field.default for field in dataclasses.fields(RecurrentSeq2SeqConfig)}
    sizes = dict.fromkeys(["encoder_embed_dim", "encoder_hidden_size", "decoder_embed_dim", "decoder_hidden_size"], 6)
    kinds = {"encoder_recurrent_layer": "ho_rnn", "decoder_recurrent_layer": "ho_rnn"}
    earlier = RecurrentSeq2SeqModel.build_model(Namespace(**{**defaults, **sizes, **kinds}), make_task())
    layers = [layer for layer in earlier.modules() if isinstance(layer, HigherOrderRNN)]
    assert layers and all((layer.connection_init, layer.connection_rate) == ("orthogonal", 1) for layer in layers)
