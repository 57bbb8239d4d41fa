"""The kinds of recurrent networks, by name: what each can be asked for, and how it is made.

A kind registers itself where it is defined, in a file of this folder or of a user's own (FAIRSEQ_PLUGINS_EXTENSIONS):

    @dataclass(frozen=True)
    class LeakyOptions:
        leak: float = option(0.5, "share of the output that stays from step to step")

    @register_recurrent_kind("leaky", LeakyOptions, "leaky integrator")
    def make(options: LeakyOptions, sizes: LayerSizes) -> RecurrentNetwork:
        return LeakyRNN(sizes.input_size, sizes.hidden_size, options.leak)

The options of fairseq's models are made from these dataclasses (``models/options.py``).
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from torch import nn

from .contract import RecurrentNetwork

Direction = Literal["forwards", "backwards", "both"]


@dataclass(frozen=True)
class LayerSizes:
    """What a network is made for, beside its options.

    Attributes:
        input_size: D.
        hidden_sizes: the widths of all layers of the stack, from the lowest on.
        layer: which of them this one is, from 0; 0 for a kind that handles depth itself.
        direction: ``both`` for a kind that handles directions itself, where both are wanted.
        dropout: what a kind that handles depth itself applies between its levels.
    """

    input_size: int
    hidden_sizes: Sequence[int]
    layer: int = 0
    direction: Direction = "forwards"
    dropout: nn.Module = field(default_factory=nn.Identity)

    @property
    def hidden_size(self) -> int:
        """The width of this layer."""
        return self.hidden_sizes[self.layer]


Factory = Callable[[Any, LayerSizes], RecurrentNetwork[Any]]


@dataclass(frozen=True)
class RecurrentKind:
    """A kind of recurrent network.

    Attributes:
        name: what ``--encoder-recurrent-layer`` calls it.
        description: a few words for lists.
        options: a dataclass; each field has a default and was made by :func:`option`.
        make: makes a network out of an instance of ``options`` and its sizes.
        handles_directions: its networks read a sequence in both directions themselves, where they are asked to.
        handles_depth: a network of it is all the layers.
    """

    name: str
    description: str
    options: type
    make: Factory
    handles_directions: bool = False
    handles_depth: bool = False


RECURRENT_KINDS: dict[str, RecurrentKind] = {}
"""All kinds that have been registered, by name."""


class Needs(NamedTuple):
    """What an option needs beside it, to have an effect.

    Attributes:
        text: what goes on "--order 3 has no effect …" where it has none.
        are_met: whether it has one, of the options that it is among.
        layers: how many there must be, of a kind's option.
    """

    text: str
    are_met: Callable[[Any], bool] = lambda _: True
    layers: int = 1


def option(
    default: Any,
    help: str,
    choices: Sequence[str] | None = None,
    minimum: float | None = None,
    needs: Needs | None = None,
) -> Any:
    """A field of a kind's dataclass of options, an int, float or string or one of these or None.

    Args:
        default: the value where nothing is asked for.
        help: what it is.
        choices: the strings that it can be.
        minimum: the smallest number that it can be.
        needs: the option of the kind without which it has no effect; a user who gives it without that one is told so.
    """
    metadata = {"help": help, "choices": choices, "minimum": minimum, "needs": needs}
    return field(default=default, metadata={name: value for name, value in metadata.items() if value is not None})


def register_recurrent_kind(
    name: str, options: type, description: str, handles_directions: bool = False, handles_depth: bool = False
) -> Callable[[Factory], Factory]:
    """Registers the factory that it decorates; the arguments are :class:`RecurrentKind`'s.

    Raises:
        ValueError: there is a kind of this name.
        TypeError: the options are no dataclass of fields that :func:`option` made.
    """
    if name in RECURRENT_KINDS:
        raise ValueError(f"there is a recurrent layer {name!r} already")
    check_options(name, options)

    def register(make: Factory) -> Factory:
        RECURRENT_KINDS[name] = RecurrentKind(name, description, options, make, handles_directions, handles_depth)
        return make

    return register


def check_options(kind: str, options: type) -> None:
    """Raises TypeError unless the options of a kind are a dataclass of fields that :func:`option` made."""
    for setting in dataclasses.fields(options):
        if setting.default is dataclasses.MISSING or "help" not in setting.metadata:
            raise TypeError(
                f"the option {setting.name!r} of {kind!r} needs a default and a help text; write option(...)"
            )
        if option_type(options, setting.name) not in (int, float, str):
            raise TypeError(f"the option {setting.name!r} of {kind!r} must be an int, a float or a string")


def option_type(options: type, name: str) -> Any:
    """The type of an option; of one that may be None, its other type."""
    hint = typing.get_type_hints(options)[name]
    others = [type_of_value for type_of_value in typing.get_args(hint) if type_of_value is not type(None)]
    return others[0] if len(others) == 1 else hint


def recurrent_kind(name: str) -> RecurrentKind:
    """The kind of a name.

    Raises:
        ValueError: there is none.
    """
    if name not in RECURRENT_KINDS:
        raise ValueError(f"unknown recurrent layer {name!r}; choose from {', '.join(RECURRENT_KINDS)}")
    return RECURRENT_KINDS[name]
