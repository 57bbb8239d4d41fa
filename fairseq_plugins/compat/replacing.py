"""How a function or class of fairseq's is replaced by one that is made around it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

_REPLACED = "_replaced_by_fairseq_plugins"


def replace_once(owner: Any, name: str, build: Callable[[Callable], Callable]) -> None:
    """Replaces ``owner.name`` by ``build(owner.name)``, once; the mark survives a second import of this package."""
    original = getattr(owner, name)
    if not hasattr(original, _REPLACED):
        replacement = build(original)
        if not isinstance(original, type):
            functools.update_wrapper(replacement, original)
        setattr(replacement, _REPLACED, True)
        setattr(owner, name, replacement)
