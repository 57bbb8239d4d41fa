"""The table of architectures."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import pytest
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


def test_other_layers_do_not_get_the_options_of_the_architectures_own() -> None:
    args = Namespace(recurrent_layer="lstm")
    ARCH_CONFIG_REGISTRY["mc_rnn_lm_ptb"](args)
    assert not hasattr(args, "channels") and args.dropout == 0.25


@pytest.mark.parametrize(
    ("arch", "expected"),
    [
        ("mc_rnn_iwslt_de_en", {"connection_rate": 0.1}),
        ("mc_rnn_lm_ptb", {"connection_rate": 0.1}),
        ("ho_rnn_iwslt_de_en", {"connection_rate": 0.1, "connection_init": "identity"}),
    ],
)
def test_connections_learn_slowly_unless_the_user_says_otherwise(arch: str, expected: dict[str, Any]) -> None:
    by_default, chosen = Namespace(channels=2), Namespace(connection_rate=0.5)
    ARCH_CONFIG_REGISTRY[arch](by_default)
    assert expected.items() <= vars(by_default).items() and by_default.channels == 2
    ARCH_CONFIG_REGISTRY[arch](chosen)
    assert chosen.connection_rate == 0.5
