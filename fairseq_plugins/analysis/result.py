"""What an analysis finds: numbers to be kept, figures to be drawn, lines to be printed."""

from __future__ import annotations

from typing import Any, NamedTuple


class Panel(NamedTuple):
    """One figure.

    Attributes:
        content: what it shows
        ending: of the name of its file, where there are several
        lines: printed below that name
    """

    content: Any
    ending: str = ""
    lines: tuple[str, ...] = ()


class Analysis(NamedTuple):
    """All of it.

    Attributes:
        numbers: as JSON has them
        panels: the figures
        text: what is printed
    """

    numbers: dict[str, Any]
    panels: list[Panel]
    text: str
