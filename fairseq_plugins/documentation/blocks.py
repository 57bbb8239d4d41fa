"""Generated parts of a page that somebody writes: what is between two comments of its Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ..errors import InputError

_BLOCK = re.compile(r"(<!-- generated: ([\w-]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def filled(text: str, makers: Mapping[str, Callable[[], str]], name: str) -> str:
    """A page with every generated part made anew.

    Args:
        text: the page; a part is between ``<!-- generated: NAME -->`` and ``<!-- end -->``
        makers: name → what makes its Markdown
        name: of the page, for messages

    Raises:
        InputError: a part has a name that nobody makes, or no end.
    """
    if text.count("<!-- generated: ") != len(_BLOCK.findall(text)):
        raise InputError(f"{name}: a generated part has no <!-- end -->")

    def make(found: re.Match[str]) -> str:
        if found[2] not in makers:
            raise InputError(f"{name}: nothing makes the part '{found[2]}'; there are {', '.join(makers)}")
        return f"{found[1]}{makers[found[2]]().rstrip()}\n{found[4]}"

    return _BLOCK.sub(make, text)
