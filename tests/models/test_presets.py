"""The table of architectures."""

from __future__ import annotations

from argparse import Namespace

from fairseq.models import ARCH_CONFIG_REGISTRY

from fairseq_plugins.models.presets import PRESETS


def test_user_options_win_over_the_architecture() -> None:
    args = Namespace(encoder_layers=5, channels=6, encoder_recurrent_layer="gru")
    ARCH_CONFIG_REGISTRY["mc_rnn_2_gigaword"](args)
    assert (args.encoder_layers, args.decoder_layers, args.channels) == (5, 4, 6)
    assert (args.encoder_recurrent_layer, args.decoder_recurrent_layer) == ("gru", "mc_rnn")


def test_texts_are_one_line_each() -> None:
    for preset in PRESETS.values():
        assert preset.text and "\n" not in preset.text and not preset.text.endswith(".")


def test_checkpoints_of_before_an_option_do_not_get_the_architectures_value_of_it() -> None:
    new = Namespace(channels=2)
    ARCH_CONFIG_REGISTRY["mc_rnn_iwslt_de_en"](new)
    assert (new.channels, new.connection_rate) == (2, 0.1)
    earlier = Namespace(**{name: value for name, value in vars(new).items() if name != "connection_rate"})
    ARCH_CONFIG_REGISTRY["mc_rnn_iwslt_de_en"](earlier)
    assert not hasattr(earlier, "connection_rate")
