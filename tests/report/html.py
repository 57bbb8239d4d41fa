"""Reads a report as a browser would."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "link", "input", "wbr", "br", "hr", "img"}


class Page(HTMLParser):
    """A page's elements: their names, attributes, and the text directly inside them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None], list[str]]] = []
        self._open: list[tuple[str, dict[str, str | None], list[str]]] = []
        self.feed(html)
        self.close()
        assert not self._open, f"not closed: {[element[0] for element in self._open]}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = (tag, dict(attrs), [])
        self.elements.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs), []))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        # A word may be broken inside: the text of an element is that of its own pieces together.
        if self._open:
            self._open[-1][2].append(data)

    def texts(self, tag: str, **attributes: str) -> list[str]:
        """The text of each element with this name and these attributes."""
        return [
            "".join(text)
            for name, found, text in self.elements
            if name == tag and all(found.get(key) == value for key, value in attributes.items())
        ]
