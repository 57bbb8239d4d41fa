"""How a function or class of fairseq's is replaced by one that is made around it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

REPLACED = "_replaced_by_fairseq_plugins"
"""The attribute that a replacement has."""


def replace_once(owner: Any, name: str, build: Callable[[Any], Any]) -> None:
    """Replaces ``owner.name`` by ``build(owner.name)``, once for each ``build``; that it was done survives a second
    import of this package."""
    original = getattr(owner, name)
    function = build.func if isinstance(build, functools.partial) else build
    builder = f"{function.__module__}.{function.__qualname__}"
    builders = getattr(original, REPLACED, ())
    if builder not in builders:
        replacement = build(original)
        if not isinstance(original, type):
            functools.update_wrapper(replacement, original)
        setattr(replacement, REPLACED, (*builders, builder))
        setattr(owner, name, replacement)
