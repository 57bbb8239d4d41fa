"""What the functions that define architectures share, and the models that are built from their options."""

import contextlib
import dataclasses
from argparse import Namespace
from typing import Any

from fairseq.dataclass import FairseqDataclass
from omegaconf import DictConfig, open_dict


def set_defaults(args: Namespace | DictConfig, **defaults: Any) -> None:
    """What the user did not give on the command line takes the architecture's value."""
    for name, value in defaults.items():
        setattr(args, name, getattr(args, name, value))


def complete(cfg: Namespace | DictConfig, options: type[FairseqDataclass]) -> None:
    """Options that a checkpoint of an earlier version does not know yet say what that version did.

    That is the option's default, or where the default is another by now, ``before`` in the field's metadata.
    """
    default = options()
    missing = [field for field in dataclasses.fields(options) if not hasattr(cfg, field.name)]
    with open_dict(cfg) if isinstance(cfg, DictConfig) else contextlib.nullcontext():
        set_defaults(
            cfg, **{field.name: field.metadata.get("before", getattr(default, field.name)) for field in missing}
        )
