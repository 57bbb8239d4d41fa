"""Test sets as NIST, IWSLT and WMT give them: SGML or XML, a sentence in each ``<seg>``."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fairseq_plugins.errors import InputError

if TYPE_CHECKING:
    from lxml.html import HtmlElement

_DECLARATION = re.compile(r"^\s*<\?xml[^>]*\?>", re.IGNORECASE)
_BEFORE_FIRST_TAG = re.compile(r"<\?xml.*?\?>|<!--.*?-->|<!doctype[^>]*>", re.IGNORECASE | re.DOTALL)
# By its first tag a file is known: a text may begin with a tag of its own, such as <b>.
_FIRST_TAG = re.compile(r"\s*<([a-z]\w*)", re.IGNORECASE)
_SETS = ("mteval", "srcset", "refset", "tstset", "doc")
_OTHERS = {
    "tmx": "TMX: write each side's segments into a text file, one a line",
    "xliff": "XLIFF: write each side's segments into a text file, one a line",
    "dataset": "WMT's XML of both sides: write each side's segments into a text file, one a line (wmt-unwrap does)",
    "cesalign": "an alignment of OPUS: fetch the set in the form of Moses",
    "html": "HTML: write its sentences into a text file, one a line",
    **dict.fromkeys(
        ("url", "talkid", "keywords", "title", "description", "speaker"),
        "IWSLT's training text with its tags: remove the lines that begin with < from both sides",
    ),
}


@dataclasses.dataclass(frozen=True)
class Segment:
    """One sentence of an evaluation set.

    Attributes:
        document: its document's ``docid``.
        number: its ``id``.
        text: in one line.
        line: where it is in the file.
    """

    document: str
    number: str
    text: str
    line: int


def segments_of(path: Path, text: str) -> dict[str, list[Segment]]:
    """The segments of a set (SGML or XML, well-formed or not) by the system that its documents name.

    A document belongs to its ``sysid`` or that of the set around it (``refid`` in newer sets), without one to ``""``.

    Args:
        path: of the file, for errors
        text: what is in it

    Raises:
        InputError: it is no markup, or has no segment.
    """
    # Not at the head of the file: plain text does without.
    import lxml.etree
    import lxml.html

    try:
        # HTML's parser, because these files leave out end tags, quotation marks and the escaping of &.
        root = lxml.html.fromstring(
            _DECLARATION.sub("", text), parser=lxml.html.HTMLParser(huge_tree=True, remove_comments=True)
        )
    except (lxml.etree.ParserError, ValueError) as error:
        raise InputError(f"{path}: neither SGML nor XML ({error})") from None
    segments: dict[str, list[Segment]] = {}
    for element in root.iter("seg", "s"):
        document = next(element.iterancestors("doc"), None)
        if document is None:
            raise InputError(f"{path}, line {element.sourceline}: a segment outside of a <doc>")
        system = document.get("sysid")
        if system is None:
            outer = next(document.iterancestors("refset", "tstset"), None)
            system = "" if outer is None else outer.get("sysid") or outer.get("refid") or ""
        words = " ".join("".join(_own_text(element)).split())
        segment = Segment(document.get("docid", ""), element.get("id", "").strip(), words, element.sourceline)
        segments.setdefault(system, []).append(segment)
    if not segments:
        raise InputError(f"{path}: it holds no <seg>; a source or reference set of NIST was expected")
    return segments


def refuse_repeated(path: Path, segments: Iterable[Segment], system: str = "") -> None:
    """Raises InputError where a document has two segments of one number.

    Args:
        path: of the file
        segments: of one system
        system: its name
    """
    lines: dict[tuple[str, str], int] = {}
    for segment in segments:
        key = segment.document, segment.number
        if key in lines:
            raise InputError(
                f"{path}, line {segment.line}: segment {segment.number} of document {segment.document} is there more "
                f"than once{f' for {system}' if system else ''}, first in line {lines[key]}; keep one of them, or "
                f"give each translation a sysid of its own"
            )
        lines[key] = segment.line


def _own_text(element: HtmlElement) -> Iterator[str]:
    """The text of a segment without that of segments inside it: where end tags are missing, the next one is inside."""
    yield element.text or ""
    for child in element:
        if child.tag not in ("seg", "s", "doc"):
            if isinstance(child.tag, str):
                yield from _own_text(child)
            yield child.tail or ""


def is_test_set(path: Path, head: str) -> bool:
    """Whether a file is a test set in SGML or XML, by its first tag.

    Args:
        path: of the file, for errors
        head: its first lines

    Raises:
        InputError: it is markup of another kind, whose lines are no sentences.
    """
    tag = _FIRST_TAG.match(_BEFORE_FIRST_TAG.sub("", head))
    name = tag[1].lower() if tag else ""
    if name in _OTHERS:
        raise InputError(f"{path}: {_OTHERS[name]}")
    return name in _SETS


def are_test_sets(paths: Sequence[Path], heads: Sequence[str]) -> bool:
    """Whether files that belong together are test sets in SGML or XML, as :func:`is_test_set`.

    Raises:
        InputError: as there, or one is such a set and another is none.
    """
    are_sets = [is_test_set(path, head) for path, head in zip(paths, heads, strict=True)]
    if any(are_sets) and not all(are_sets):
        marked_up, plain = paths[are_sets.index(True)], paths[are_sets.index(False)]
        raise InputError(f"{marked_up} is SGML or XML, and {plain} is plain text: give both in one form")
    return all(are_sets)


def read_test_set(paths: Sequence[Path], texts: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Segment n of every file of a test set, for each n.

    Args:
        paths: of the files, for errors
        texts: what is in them

    Raises:
        InputError: a file is no such set, has several translations or a segment twice, or they differ in segments.
    """
    sides = []
    for path, text in zip(paths, texts, strict=True):
        systems = segments_of(path, text)
        if len(systems) > 1:
            raise InputError(
                f"{path}: the texts of {len(systems)} systems ({', '.join(systems)}), of which one is wanted; write "
                f"that one into a file of its own"
            )
        (segments,) = systems.values()
        refuse_repeated(path, segments)
        sides.append(segments)
    check_agreement(paths, sides)
    for row in zip(*sides, strict=True):
        yield tuple(segment.text for segment in row)


def check_agreement(paths: Sequence[Path], sides: Sequence[list[Segment]]) -> None:
    """Raises InputError where two files are not of the same documents and segments in the same order."""
    for path, side in zip(paths[1:], sides[1:], strict=True):
        for one, other in zip(sides[0], side, strict=False):
            if (one.document, one.number) != (other.document, other.number):
                raise InputError(
                    f"{paths[0]}, line {one.line}, and {path}, line {other.line}: segment {one.number} of document "
                    f"{one.document!r} stands beside segment {other.number} of document {other.document!r}; both "
                    f"files must have the same segments in the same order"
                )
        if len(side) != len(sides[0]):
            raise InputError(f"{paths[0]} has {len(sides[0]):,} segments and {path} has {len(side):,}")
