"""How the project's figures look, as files or inside an HTML page.

Draw inside ``with style():`` on a :class:`matplotlib.figure.Figure`, which needs no display, then take what is
:func:`rendered`, or :func:`inline_svg`. The same figure gives the same SVG, byte for byte. Text in an SVG stays text.
"""

from __future__ import annotations

import contextlib
import io
import logging
import re
import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import matplotlib
from cycler import cycler
from lxml import etree
from matplotlib import font_manager
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.ft2font import FT2Font
from matplotlib.text import Text

if TYPE_CHECKING:
    from matplotlib.typing import RcKeyType

logger = logging.getLogger(__name__)
# fairseq's import opens the log to every message of every package, and matplotlib tells of each font it looks at.
logging.getLogger("matplotlib").setLevel(logging.WARNING)

# Text, axes and grid lines have this colour, or the page's where an SVG is in one.
INK = "#24292f"
# Okabe and Ito (2008), which every kind of colour vision tells apart; without their black and their yellow, which one
# of a light and a dark page would hide, and the lightest three darker: each has a contrast of at least 3 on both (WCAG
# 2.2, 1.4.11).
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#c873a2", "#c08500", "#3a93c7")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_NOT_IN_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

STYLE: dict[RcKeyType, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": INK,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.prop_cycle": cycler(color=PALETTE),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "figure.dpi": 100,
    "font.family": "sans-serif",
    # It comes with matplotlib, so that figures look alike everywhere.
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "grid.alpha": 0.18,
    "grid.color": INK,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "pdf.fonttype": 42,
    "savefig.dpi": 200,
    "svg.fonttype": "none",
    "svg.hashsalt": "fairseq_plugins",
    "text.color": INK,
    # A dollar sign in a sentence or in a system's name is no formula.
    "text.parse_math": False,
    "xtick.color": INK,
    "ytick.color": INK,
}

SVG = "{http://www.w3.org/2000/svg}"
XLINK_HREF = "{http://www.w3.org/1999/xlink}href"


@contextlib.contextmanager
def style() -> Iterator[None]:
    """What is drawn inside has the project's style."""
    with matplotlib.rc_context(STYLE), warnings.catch_warnings():
        # matplotlib says it for each character and each time that it draws; _find_glyphs once, and with a remedy.
        warnings.filterwarnings("ignore", message=r"Glyph \d+ .*missing from", category=UserWarning)
        yield


def system_colors(systems: Sequence[str]) -> dict[str, str]:
    """A colour for each system by its place; after six they begin again, so let markers or labels differ too."""
    return {system: PALETTE[index % len(PALETTE)] for index, system in enumerate(systems)}


def add_legend(figure: Figure, handles: Sequence[Artist]) -> None:
    """Puts a legend above what a figure holds, in as many columns as its width has room for."""
    for columns in range(len(handles), 0, -1):
        legend = figure.legend(handles=handles, loc="outside upper left", ncols=columns)
        figure.draw_without_rendering()
        if columns == 1 or legend.get_window_extent().width <= figure.bbox.width:
            return
        legend.remove()


def inline_svg(figure: Figure, prefix: str, label: str | None = None) -> str:
    """A figure as ``<svg …>…</svg>`` for an HTML page.

    The background is transparent. What is black or has the colour ``INK``, as text, axes and grid lines have by
    themselves, takes the colour of the page's text (``currentColor``); other colours stay: give text on a coloured
    ground one of them. The width shrinks with the page.

    Args:
        figure: drawn with :func:`style`.
        prefix: begins every id, a hyphen after it; another one for each figure of a page.
        label: what the figure shows, for readers who do not see it.
    """
    root = etree.fromstring(rendered(figure, "svg", transparent=True), etree.XMLParser(remove_blank_text=True))
    for element in [*root.iter(f"{SVG}metadata"), *root.iter(f"{SVG}style"), *root.iter(etree.Comment)]:
        element.getparent().remove(element)
    for element in root.iter():
        for name, value in element.attrib.items():
            if name == "id":
                value = f"{prefix}-{value}"
            elif name in (XLINK_HREF, "href") and value.startswith("#"):
                value = f"#{prefix}-{value[1:]}"
            else:
                value = value.replace("url(#", f"url(#{prefix}-")
                for color in (INK, "#000000"):
                    value = value.replace(color, "currentColor")
            element.set(name, value)
    # The style element that says this for "*" would reach the whole page.
    root.set("stroke-linejoin", "round")
    root.set("stroke-linecap", "butt")
    root.set("style", "max-width: 100%; height: auto")
    # matplotlib leaves the fill of black text out: SVG's own default is black.
    root.set("fill", "currentColor")
    root.set("role", "img")
    if label is not None:
        root.set("aria-label", label)
    return etree.tostring(root, encoding="unicode")


def rendered(figure: Figure, kind: str, transparent: bool = False) -> bytes:
    """The bytes of a figure's file, without a date.

    Args:
        figure: drawn with :func:`style`.
        kind: ``svg``, ``png`` or ``pdf``.
        transparent: without a background.
    """
    date = {"svg": "Date", "pdf": "CreationDate"}
    metadata = {date[kind]: None} if kind in date else {}
    stream = io.BytesIO()
    with style():
        _find_glyphs(figure)
        figure.savefig(stream, format=kind, transparent=transparent, metadata=metadata)
    if kind != "svg":
        return stream.getvalue()
    return _NOT_IN_XML.sub("\ufffd", stream.getvalue().decode("utf-8")).encode("utf-8")


def _find_glyphs(figure: Figure) -> None:
    """Gives texts whose font lacks some of their characters another installed font for these; warns of the rest."""
    # Tick labels have no text before they are drawn.
    figure.draw_without_rendering()
    lacking = {text: characters for text in figure.findobj(Text) if (characters := _missing(text))}
    needed = dict.fromkeys(character for characters in lacking.values() for character in characters)
    fallbacks = []
    while needed and (best := _best_font(frozenset(needed))) is not None:
        fallbacks.append(best.name)
        needed = {character: None for character in needed if ord(character) not in _charmap(best.fname)}
    for text in lacking:
        text.set_fontfamily([*text.get_fontfamily(), *fallbacks])
    if needed:
        shown = "".join(needed) if len(needed) <= 10 else "".join(list(needed)[:10]) + "…"
        logger.warning(
            f"no installed font has {len(needed)} of the figure's characters ({shown}), boxes stand for them; "
            f"install a font that has them, for example Noto Sans CJK for Chinese"
        )


def _missing(text: Text) -> list[str]:
    """The visible characters of a text that none of its fonts has."""
    if text.get_text().isascii():
        return []
    properties = text.get_fontproperties()
    characters: set[int] = set()
    for family in text.get_fontfamily():
        one = properties.copy()
        one.set_family(family)
        characters |= _charmap(font_manager.findfont(one))
    return [character for character in text.get_text() if not character.isspace() and ord(character) not in characters]


def _best_font(characters: frozenset[str]) -> font_manager.FontEntry | None:
    """The installed font that has most of some characters, an upright one of normal weight rather than another."""

    def rank(entry: font_manager.FontEntry) -> tuple[int, bool, bool, str, str]:
        covered = sum(ord(character) in _charmap(entry.fname) for character in characters)
        # Weights are numbers or names.
        return (
            -covered,
            entry.style != "normal",
            entry.weight not in (400, "normal", "regular"),
            entry.name,
            entry.fname,
        )

    # matplotlib's own last resort has a box for every character there is.
    entries = (entry for entry in font_manager.fontManager.ttflist if not entry.name.startswith("Last Resort"))
    best = min(entries, key=rank, default=None)
    return best if best is not None and rank(best)[0] < 0 else None


@cache
def _charmap(path: str) -> frozenset[int]:
    """The code points that a font file has glyphs for."""
    return frozenset(FT2Font(str(path)).get_charmap())
