"""``docs/options.md``: the options of every recurrent layer and model of ours, and what each architecture sets."""

from __future__ import annotations

import dataclasses
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
        "`scripts/update_docs.sh` makes this page. `fairseq-plugins options NAME` prints the same of one",
        "layer or architecture, your own too. An option that has no effect beside the others is refused.",
        "",
        "## Recurrent layers",
        "",
        "`--encoder-recurrent-layer` and `--decoder-recurrent-layer` name one. Its options hold for both sides; with",
        "`--encoder-` or `--decoder-` before the name they hold for one.",
        "",
    ]
    for kind in RECURRENT_KINDS.values():
        if not is_ours(kind.options):
            continue
        lines += [f"### {kind.name}", "", f"{capitalised(kind.description)}.", ""]
        lines += options_table(kind.options) or ["No options of its own.", ""]
    lines += ["## Models", ""]
    for name, options in sorted(MODEL_DATACLASS_REGISTRY.items()):
        if is_ours(options):
            lines += [f"### {name}", "", *options_table(options)]
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


def options_table(options: type) -> list[str]:
    """The fields of a dataclass of options: name, default, choices and help; nothing where it has none."""
    fields = [
        option for option in dataclasses.fields(options) if option.name not in INHERITED and "help" in option.metadata
    ]
    if not fields:
        return []
    columns = {
        "option": [f"`{flag(option.name)}`" for option in fields],
        "default": [default(option) for option in fields],
        "what": [text(option.metadata["help"]) for option in fields],
    }
    return [*markdown(columns), ""]


def overrides(options: dict[str, Any]) -> str:
    """Options and values as they are typed."""
    return ", ".join(f"`{flag(key)} {value}`" for key, value in options.items())


def default(field: dataclasses.Field[Any]) -> str:
    """The value of an option that nobody gives; nothing where that is none, or another option's."""
    value = field.default
    if isinstance(value, Enum):
        value = value.value
    if value is None or value is dataclasses.MISSING or str(value).startswith("${"):
        return ""
    return f"`{value}`"


def text(words: str) -> str:
    """Words in a cell of a table."""
    return " ".join(words.split()).replace("|", "\\|")


def capitalised(words: str) -> str:
    """With a capital at the beginning; names such as ``torch.nn.LSTM`` stay."""
    return words if "." in words.split()[0] else words[:1].upper() + words[1:]
