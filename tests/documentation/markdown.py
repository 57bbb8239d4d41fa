"""The pages that people read, and what is in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tests.commands import CHECKOUT

PAGES = [CHECKOUT / "README.md", CHECKOUT / "CHANGELOG.md", *sorted((CHECKOUT / "docs").rglob("*.md"))]


@dataclass(frozen=True)
class Block:
    """A block of code.

    Attributes:
        language: ``bash``, ``python``, ``yaml`` …; empty where it says none
        text: its lines
        file: where the page says to save it; None for a block that is only shown
    """

    language: str
    text: str
    file: str | None


def name(page: Path) -> str:
    return str(page.relative_to(CHECKOUT))


def blocks(page: Path) -> list[Block]:
    """The blocks of code of a page, in its order."""
    text = page.read_text(encoding="utf-8")
    found = re.finditer(r"(?:[Ss]ave this as\s+`([^`]+)`:\n\n)?^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [Block(each[2], each[3], each[1]) for each in found]


def commands(page: Path) -> list[str]:
    """The commands of the bash blocks and of the inline code of a page, each on one line, without comments."""
    text = page.read_text(encoding="utf-8")
    shell = "\n".join(block.text for block in blocks(page) if block.language == "bash").replace("\\\n", " ")
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    inline = re.findall(r"`((?:[A-Z_]+=\S+ )?(?:scripts/|fairseq-|python )[^`]+)`", prose)
    lines = [re.sub(r"\s{2,}#.*", "", line).strip() for line in shell.splitlines()]
    return [line for line in [*lines, *inline] if line]


def anchors(page: Path) -> set[str]:
    """What GitHub lets links into a page end with."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
