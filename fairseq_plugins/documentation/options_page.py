"""``docs/options.md``: the options of every recurrent layer and model of ours, and what each architecture sets."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from enum import Enum
from typing import Any

from ..command_parser import flag
from ..tables.writing import markdown

INHERITED = ("_name",)


def page() -> str:
    """The page as Markdown."""
    # Not at the head of the file: fairseq's registries are full after register() only.
    from .. import register

    register()
    from fairseq.models import MODEL_DATACLASS_REGISTRY

    from ..models.presets import PRESETS
    from ..modules import RECURRENT_KINDS

    lines = [
        "# Options",
        "",
        "`fairseq-plugins options mc_rnn` prints the options of one layer or architecture, your own too.",
        "This page has those of all that are here. An option that has no effect beside the others is refused.",
        "",
        "## Recurrent layers",
        "",
        "A translation model takes one layer by `--encoder-recurrent-layer`, one by `--decoder-recurrent-layer`.",
        "The layer's options hold for both sides; with `--encoder-` or `--decoder-` before the name they hold for one.",
        "All other models take a layer by `--recurrent-layer`.",
        "",
    ]
    for kind in RECURRENT_KINDS.values():
        if not is_ours(kind.options):
            continue
        lines += [f"### {kind.name}", "", f"{capitalised(kind.description)}.", ""]
        lines += options_table(fields_of(kind.options)) or ["No options of its own.", ""]
    of_layers = names_of_layers()
    lines += ["## Models", ""]
    for name, options in sorted(MODEL_DATACLASS_REGISTRY.items()):
        if is_ours(options):
            own_fields = [field for field in fields_of(options) if field.name not in of_layers]
            lines += [f"### {name}", "", *options_table(own_fields)]
            if len(own_fields) < len(fields_of(options)):
                lines += ["The options of its [recurrent layers](#recurrent-layers) come to these.", ""]
    lines += ["## Architectures", "", "What `--arch` can be, and what it sets.", ""]
    columns = {
        "architecture": [f"`{name}`" for name in PRESETS],
        "model": [f"`{preset.model}`" for preset in PRESETS.values()],
        "what": [text(preset.text) for preset in PRESETS.values()],
        "sets": [overrides(preset.overrides) for preset in PRESETS.values()],
    }
    return "\n".join([*lines, *markdown(columns), ""])


def is_ours(options: type) -> bool:
    """Whether a dataclass of options is of this package, and not of a user's extension or of fairseq."""
    return options.__module__.startswith("fairseq_plugins.")


def fields_of(options: type) -> list[dataclasses.Field[Any]]:
    """The fields of a dataclass that a user can ask for."""
    return [field for field in dataclasses.fields(options) if field.name not in INHERITED and "help" in field.metadata]


def names_of_layers() -> set[str]:
    """The options of recurrent layers as models have them: for all sides, and for each."""
    from ..modules import RECURRENT_KINDS

    names = {field.name for kind in RECURRENT_KINDS.values() for field in dataclasses.fields(kind.options)}
    return {f"{side}{name}" for side in ("", "encoder_", "decoder_") for name in names}


def options_table(fields: Sequence[dataclasses.Field[Any]]) -> list[str]:
    """Options with default and help; nothing where there are none."""
    if not fields:
        return []
    columns = {
        "option": [f"`{flag(field.name)}`" for field in fields],
        "default": [default(field) for field in fields],
        "what": [text(field.metadata["help"]) + choices(field) for field in fields],
    }
    return [*markdown(columns), ""]


def choices(field: dataclasses.Field[Any]) -> str:
    """The words that an option of a layer can be; nothing where it can be another one, or a number."""
    words = field.metadata.get("choices", ())
    return f" ({', '.join(f'`{word}`' for word in words)})" if words else ""


def overrides(options: dict[str, Any]) -> str:
    """Options and values as they are typed."""
    return ", ".join(f"`{flag(key)} {value}`" for key, value in options.items())


def default(field: dataclasses.Field[Any]) -> str:
    """The value of an option that nobody gives; ``off`` of a flag, nothing where there is none or another option's."""
    value = field.default
    if isinstance(value, Enum):
        value = value.value
    if value is False:
        return "off"
    if value is None or value is dataclasses.MISSING or str(value).startswith("${"):
        return ""
    return f"`{value}`"


def text(words: str) -> str:
    """Words in a cell of a table."""
    return " ".join(words.split()).replace("|", "\\|")


def capitalised(words: str) -> str:
    """With a capital at the beginning; names such as ``torch.nn.LSTM`` stay."""
    return words if "." in words.split()[0] else words[:1].upper() + words[1:]
