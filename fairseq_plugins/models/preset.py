"""What an architecture (``--arch``) is."""

from __future__ import annotations

from typing import Any, NamedTuple


class Preset(NamedTuple):
    """An architecture.

    Attributes:
        model: the name of its model.
        text: what it is.
        overrides: the values of options that a user does not give.
    """

    model: str
    text: str
    overrides: dict[str, Any]
