"""The options of models and recurrent layers as text. fairseq ends at ``--help`` before it knows any of them."""

from __future__ import annotations

import argparse
import dataclasses
from argparse import Namespace
from typing import Any

from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_NAME_REGISTRY, ARCH_MODEL_REGISTRY, MODEL_DATACLASS_REGISTRY

from ..command_parser import flag
from ..errors import InputError, nearest
from ..modules import RECURRENT_KINDS, RecurrentKind
from ..modules.recurrent.registry import option_type
from .presets import PRESETS


def options_text(name: str | None) -> str:
    """The options of a kind of recurrent layer or of an architecture, each with its value where the user gives none.

    Args:
        name: the kind or the architecture, fairseq's own too; None for a list of ours.

    Raises:
        InputError: there is nothing of this name.
    """
    if name is None:
        return _names()
    if name in RECURRENT_KINDS:
        return _of_kind(RECURRENT_KINDS[name])
    if name in ARCH_MODEL_REGISTRY:
        return _of_architecture(name)
    names = [*RECURRENT_KINDS, *PRESETS]
    hint = nearest(name, names) or "; 'fairseq-plugins options' lists ours"
    raise InputError(f"{name}: neither a recurrent layer nor an architecture{hint}")


def _names() -> str:
    lines = ["Recurrent layers (--encoder-recurrent-layer, --decoder-recurrent-layer):"]
    lines += [f"  {kind.name:28} {kind.description}" for kind in RECURRENT_KINDS.values()]
    lines += ["", "Architectures (--arch):"]
    lines += [f"  {name:28} {preset.text}" for name, preset in PRESETS.items()]
    return "\n".join(lines)


def _of_kind(kind: RecurrentKind) -> str:
    parser = _parser(f"{kind.name}: {kind.description}")
    group = parser.add_argument_group("of either side; --encoder-… and --decoder-… before a name are for one alone")
    for field in dataclasses.fields(kind.options):
        group.add_argument(
            flag(field.name),
            type=option_type(kind.options, field.name),
            choices=field.metadata.get("choices"),
            help=field.metadata["help"],
            default=_shown(field.default),
        )
    return parser.format_help().strip()


def _of_architecture(name: str) -> str:
    model = ARCH_MODEL_NAME_REGISTRY[name]
    text = f": {PRESETS[name].text}" if name in PRESETS else ""
    parser = _parser(f"{name}{text} (--arch; the model is {model})")
    if model in MODEL_DATACLASS_REGISTRY:
        gen_parser_from_dataclass(parser, MODEL_DATACLASS_REGISTRY[model]())
    else:
        ARCH_MODEL_REGISTRY[name].add_args(parser)
    values = vars(parser.parse_args([]))
    of_architecture = Namespace()
    ARCH_CONFIG_REGISTRY[name](of_architecture)
    values |= vars(of_architecture)
    parser.set_defaults(**{option: _shown(value) for option, value in values.items()})
    return parser.format_help().strip()


def _parser(description: str) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(
        usage=argparse.SUPPRESS,
        description=description,
        add_help=False,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )


def _shown(value: Any) -> Any:
    """Nothing is said of a value that is not there."""
    return argparse.SUPPRESS if value is None else value
