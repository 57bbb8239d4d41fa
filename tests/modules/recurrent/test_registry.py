"""The kinds of recurrent networks and their options."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import pytest

from fairseq_plugins.modules import RECURRENT_KINDS, LayerSizes, option, register_recurrent_kind
from fairseq_plugins.modules.recurrent import registry
from fairseq_plugins.modules.recurrent.registry import option_type, recurrent_kind


@dataclass(frozen=True)
class Options:
    depth: int = option(2, "how deep", minimum=1)
    lags: str | None = option(None, "which")


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "RECURRENT_KINDS", dict(RECURRENT_KINDS))


def test_a_kind_registers_itself() -> None:
    @register_recurrent_kind("toy", Options, "a toy", handles_depth=True)
    def make(options: Options, sizes: LayerSizes) -> str:
        return f"{options.depth} {sizes.hidden_size} {sizes.direction}"

    kind = recurrent_kind("toy")
    assert (kind.description, kind.handles_depth, kind.handles_directions) == ("a toy", True, False)
    assert kind.make(kind.options(), LayerSizes(3, (4, 5), layer=1)) == "2 5 forwards"
    with pytest.raises(ValueError, match="there is a recurrent layer 'toy' already"):
        register_recurrent_kind("toy", Options, "another")


def test_unknown_kinds_name_the_choices() -> None:
    with pytest.raises(
        ValueError, match="unknown recurrent layer 'sru'; choose from lstm, gru, rnn, dilated_rnn, hm_rnn"
    ):
        recurrent_kind("sru")


def test_types_of_options() -> None:
    assert option_type(Options, "depth") is int
    assert option_type(Options, "lags") is str


def test_options_need_a_default_a_help_and_a_plain_type() -> None:
    for field in ({"depth": int}, {"depth": (int, dataclasses.field(default=1))}):
        [(name, content)] = field.items()
        of_field = (name, content) if isinstance(content, type) else (name, *content)
        with pytest.raises(TypeError, match="the option 'depth' of 'toy' needs a default and a help text"):
            register_recurrent_kind("toy", dataclasses.make_dataclass("Bad", [of_field]), "a toy")
    listed = dataclasses.make_dataclass("Bad", [("depth", list, option((), "some"))])
    with pytest.raises(TypeError, match="must be an int, a float or a string"):
        register_recurrent_kind("toy", listed, "a toy")


def test_every_kind_of_ours_has_a_help_for_each_option() -> None:
    for kind in RECURRENT_KINDS.values():
        assert kind.description
        for field in dataclasses.fields(kind.options):
            assert field.metadata["help"] and "%" not in field.metadata["help"]
            assert field.default is None or field.default in field.metadata.get("choices", [field.default])
