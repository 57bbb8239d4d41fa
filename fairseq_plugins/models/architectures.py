"""What the functions that define architectures share."""

from argparse import Namespace
from typing import Any


def set_defaults(args: Namespace, **defaults: Any) -> None:
    """What the user did not give on the command line takes the architecture's value."""
    for name, value in defaults.items():
        setattr(args, name, getattr(args, name, value))
