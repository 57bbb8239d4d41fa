"""Networks of every kind that is registered, with options drawn from what their dataclasses say."""

from __future__ import annotations

import dataclasses

import torch
from hypothesis import strategies as st

from fairseq_plugins.modules import RECURRENT_KINDS, LayerSizes, RecurrentNetwork
from fairseq_plugins.modules.recurrent.registry import option_type

SIZE, HIDDEN = 3, 5


@st.composite
def options(draw: st.DrawFn, kind: str) -> object:
    """An instance of the options of a kind: any of the choices, small numbers, other defaults."""
    found = RECURRENT_KINDS[kind].options
    values = {}
    for field in dataclasses.fields(found):
        minimum = field.metadata.get("minimum")
        if "choices" in field.metadata:
            values[field.name] = draw(st.sampled_from(field.metadata["choices"]), label=field.name)
        elif option_type(found, field.name) is int and minimum is not None:
            values[field.name] = draw(st.integers(minimum, minimum + 3), label=field.name)
    return found(**values)


@st.composite
def networks(draw: st.DrawFn) -> RecurrentNetwork:
    """A network in one direction, in float64."""
    torch.manual_seed(draw(st.integers(0, 1000)))
    kind = draw(st.sampled_from(sorted(RECURRENT_KINDS)), label="kind")
    levels = draw(st.integers(1, 3), label="levels") if RECURRENT_KINDS[kind].handles_depth else 1
    return RECURRENT_KINDS[kind].make(draw(options(kind)), LayerSizes(SIZE, (HIDDEN,) * levels)).double()
