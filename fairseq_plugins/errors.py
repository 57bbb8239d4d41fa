"""Errors that are one sentence. Standard library only."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Iterable


class InputError(Exception):
    """Something that the user gave cannot be used. The message is one sentence: what, where (file, line), remedy."""


def nearest(name: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?`` for the known name that is spelt most alike, or nothing when none comes close."""
    matches = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"; did you mean '{matches[0]}'?" if matches else ""


def report_input_errors(main: Callable[[], None]) -> None:
    """Runs ``main``; an :class:`InputError` becomes ``error: <message>`` on standard error and exit status 1."""
    try:
        main()
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
