"""Options that are made from the kinds of recurrent layers, and what models share."""

from __future__ import annotations

import dataclasses
from argparse import ArgumentParser, Namespace
from typing import Any

import pytest
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import build_model
from omegaconf import OmegaConf

from benchmarks.untrained import make_configuration
from fairseq_plugins.errors import InputError
from fairseq_plugins.models.double_path import DoublePathModel
from fairseq_plugins.models.options import recurrent_layer, recurrent_layer_options
from fairseq_plugins.models.recurrent_seq2seq import RecurrentSeq2SeqConfig, RecurrentSeq2SeqModel
from fairseq_plugins.modules import RECURRENT_KINDS, HigherOrderRNN, MultiChannelRNN, RecurrentKind, option

from .tasks import make_task

TINY = dict.fromkeys(["encoder_embed_dim", "encoder_hidden_size", "decoder_embed_dim", "decoder_hidden_size"], 6)


@pytest.mark.parametrize(
    ("model", "option"), [(RecurrentSeq2SeqModel, "order"), (DoublePathModel, "activation_dropout")]
)
def test_options_that_came_after_a_checkpoint_take_their_defaults(model: type, option: str) -> None:
    """fairseq hands over the options of the checkpoint as they are where the architecture has a name of its own."""
    options = OmegaConf.structured(model.__dataclass)
    values = {key: value for key, value in OmegaConf.to_container(options).items() if key != option}
    cfg = OmegaConf.create(values)
    OmegaConf.set_struct(cfg, True)
    built = model.build_model(cfg, make_task())
    whole = model.build_model(options, make_task())
    assert {name: p.shape for name, p in built.named_parameters()} == {n: p.shape for n, p in whole.named_parameters()}
    assert cfg[option] == options[option]


def test_a_checkpoint_says_what_its_layers_are_also_where_the_architecture_is_the_models_own_name() -> None:
    """fairseq then builds the model out of a copy of the options that it saves."""
    whole = make_configuration("recurrent_seq2seq", encoder_recurrent_layer="mc_rnn", channels=4, **TINY)
    build_model(whole.model, make_task(left_pad_target=False))
    assert (whole.model.encoder_channels, whole.model.encoder_connection_init) == (4, "identity")
    assert whole.model.decoder_channels is None, "LSTM layers have none"


def parsed(*arguments: str) -> Namespace:
    parser = ArgumentParser()
    gen_parser_from_dataclass(parser, RecurrentSeq2SeqConfig())
    return parser.parse_args(arguments)


def test_options_hold_for_both_sides_unless_one_has_its_own() -> None:
    """So do --encoder-leak and --decoder-leak, of the layer in docs/add_a_layer.md."""
    layers = ["--encoder-recurrent-layer", "mc_rnn", "--decoder-recurrent-layer", "mc_rnn"]
    given = ["--channels", "2", "--decoder-channels", "4", "--cell", "gru", "--encoder-connection", "gate"]
    cfg = parsed(*layers, *given)
    for name, value in TINY.items():
        setattr(cfg, name, value)
    model = RecurrentSeq2SeqModel.build_model(cfg, make_task())
    encoder, decoder = model.encoder.stack.layers[0], model.decoder.stack.layers[0]
    assert isinstance(encoder, MultiChannelRNN) and isinstance(decoder, MultiChannelRNN)
    assert (encoder.channels, encoder.cell, encoder.connection) == (2, "gru", "gate")
    assert (decoder.channels, decoder.cell, decoder.connection) == (4, "gru", "state")
    # A checkpoint says what its layers are, whatever the defaults will be.
    assert (cfg.encoder_channels, cfg.decoder_connection_init) == (2, "identity")


def test_what_is_not_asked_for_is_the_kinds_own_default() -> None:
    cfg = RecurrentSeq2SeqConfig(encoder_recurrent_layer="ho_rnn", **TINY)
    assert cfg.order is None and cfg.cell is None
    model = RecurrentSeq2SeqModel.build_model(cfg, make_task())
    layer = model.encoder.stack.layers[0]
    assert isinstance(layer, HigherOrderRNN) and (layer.order, layer.cell) == (3, "lstm")


def test_names_defaults_and_helps_come_from_the_kinds() -> None:
    fields = {field.name: field for field in dataclasses.fields(RecurrentSeq2SeqConfig)}
    for kind in RECURRENT_KINDS.values():
        for of_kind in dataclasses.fields(kind.options):
            for name in (of_kind.name, f"encoder_{of_kind.name}", f"decoder_{of_kind.name}"):
                assert fields[name].default is None
            text = fields[of_kind.name].metadata["help"]
            assert of_kind.metadata["help"] in text and kind.name in text
    assert fields["channels"].metadata["help"] == "channels: block size minus one (mc_rnn: 3)"
    assert fields["cell"].metadata["help"] == "cell inside the layers (dilated_rnn, ho_rnn, mc_rnn, rcrn: lstm)"
    assert fields["encoder_cell"].metadata["help"] == "--cell of the encoder alone"


def test_a_model_without_sides_has_one_kind() -> None:
    options = recurrent_layer_options()
    assert not [field.name for field in dataclasses.fields(options) if "coder" in field.name]
    cfg = Namespace(**vars(options(recurrent_layer="mc_rnn", channels=4)), layers=1)
    kind, found = recurrent_layer(cfg)
    assert (kind, found.channels, found.cell, cfg.cell) == ("mc_rnn", 4, "lstm", "lstm")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encoder_channels": 0, "encoder_recurrent_layer": "mc_rnn"}, "--encoder-channels must be at least 1, not 0"),
        ({"order": 0, "decoder_recurrent_layer": "ho_rnn"}, "--order must be at least 1, not 0"),
        ({"encoder_channels": 3}, "--encoder-channels is no option of lstm layers; leave it out"),
        (
            {"decoder_recurrent_layer": "sru"},
            "there is no recurrent layer 'sru'; choose from lstm, gru, rnn, dilated_rnn, ",
        ),
        ({"decoder_recurrent_layer": "ho_rnn", "cell": "sru"}, "--cell sru: ho_rnn layers take lstm, gru, rnn"),
    ],
)
def test_what_a_kind_does_not_take(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        RecurrentSeq2SeqModel.build_model(RecurrentSeq2SeqConfig(**TINY, **options), make_task())


@pytest.mark.parametrize(
    ("layers", "arguments", "message"),
    [
        ("ho_rnn", ["--order", "2", "--lags", "1,4"], "--order 2 has no effect beside --lags: leave it out"),
        ("dilated_rnn", ["--fusion", "concat"], "--fusion concat has no effect without a --first-dilation above 1: le"),
        ("mc_rnn", ["--connection", "gate", "--connection-init", "orthogonal"], "--connection-init orthogonal has no"),
        (
            "mc_rnn",
            ["--connection", "gate", "--connection-rate", "0.1"],
            "--connection-rate 0.1 has no effect without --connection state and --connection-init identity: leave it",
        ),
        ("ho_rnn", ["--connection-rate", "0.1"], "--connection-rate 0.1 has no effect without"),
        (
            "mc_rnn",
            ["--encoder-connection", "gate", "--encoder-connection-rate", "0.1"],
            "--encoder-connection-rate 0.1 has no effect without",
        ),
    ],
)
def test_what_has_no_effect_beside_other_options(layers: str, arguments: list[str], message: str) -> None:
    cfg = parsed("--encoder-recurrent-layer", layers, "--decoder-recurrent-layer", layers, *arguments)
    for name, value in TINY.items():
        setattr(cfg, name, value)
    with pytest.raises(InputError, match=message):
        RecurrentSeq2SeqModel.build_model(cfg, make_task())
    earlier = make_task()
    earlier.is_from_checkpoint = True
    RecurrentSeq2SeqModel.build_model(cfg, earlier)


def test_what_has_an_effect_on_one_side() -> None:
    layers = ["--encoder-recurrent-layer", "mc_rnn", "--decoder-recurrent-layer", "mc_rnn"]
    cfg = parsed(*layers, "--encoder-connection", "gate", "--connection-rate", "0.1")
    for name, value in TINY.items():
        setattr(cfg, name, value)
    for _ in range(2):  # what is kept of an option without effect is none that was given
        model = RecurrentSeq2SeqModel.build_model(cfg, make_task())
        assert model.decoder.stack.layers[0].connection_rate == 0.1
    assert (cfg.encoder_connection_rate, cfg.decoder_connection_rate) == (None, 0.1)


def test_what_the_architecture_sets_may_have_no_effect() -> None:
    whole = make_configuration("mc_rnn_iwslt_de_en", connection="gate", **TINY)
    build_model(whole.model, make_task(left_pad_target=False))
    whole = make_configuration("mc_rnn_iwslt_de_en", connection="gate", connection_rate=0.2, **TINY)
    with pytest.raises(InputError, match="--connection-rate 0.2 has no effect"):
        build_model(whole.model, make_task(left_pad_target=False))


def test_sizes_that_a_kind_does_not_take(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(*_: Any) -> None:
        raise ValueError("its layers must have equal widths")

    kind = RecurrentKind("equal", "", RECURRENT_KINDS["lstm"].options, make)
    monkeypatch.setitem(RECURRENT_KINDS, "equal", kind)
    with pytest.raises(InputError, match="--encoder-recurrent-layer equal: its layers must have equal widths"):
        RecurrentSeq2SeqModel.build_model(RecurrentSeq2SeqConfig(encoder_recurrent_layer="equal"), make_task())


def test_a_decoder_needs_layers_that_run_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairseq_plugins.modules.ConventionalRNN.is_steppable", False)
    with pytest.raises(InputError, match="--decoder-recurrent-layer lstm: these layers do not run step by step"):
        RecurrentSeq2SeqModel.build_model(RecurrentSeq2SeqConfig(**TINY), make_task())


def test_kinds_may_share_an_option_but_not_its_name_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def add(kind_name: str, type_of_cell: type, default: Any, **more: Any) -> None:
        made = dataclasses.make_dataclass("Options", [("cell", type_of_cell, option(default, "another cell", **more))])
        monkeypatch.setitem(RECURRENT_KINDS, kind_name, RecurrentKind(kind_name, "", made, None))

    add("toy", str, "sru", choices=["sru", "gru"])
    [field] = [field for field in dataclasses.fields(recurrent_layer_options()) if field.name == "cell"]
    help_of_both = "cell inside the layers (dilated_rnn, ho_rnn, mc_rnn, rcrn: lstm); another cell (toy: sru)"
    assert field.metadata == {"help": help_of_both}
    [inner] = [each for each in field.type.__args__ if each is not type(None)]
    assert [choice.value for choice in inner] == ["lstm", "gru", "rnn", "sru"]
    add("bad", int, 3)
    with pytest.raises(
        InputError, match="dilated_rnn, ho_rnn, mc_rnn, rcrn, toy, bad have an option 'cell' of different types"
    ):
        recurrent_layer_options()
