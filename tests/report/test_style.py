"""Figures: files of every kind, the same bytes each time, SVG for pages, and characters that a font lacks."""

from __future__ import annotations

import logging
import re
from xml.etree import ElementTree

import pytest
from matplotlib import font_manager
from matplotlib.figure import Figure
from matplotlib.ft2font import FT2Font

from fairseq_plugins.report import style as figures


def drawn(title: str = "a title", color: str = figures.PALETTE[0]) -> Figure:
    with figures.style():
        figure = Figure(figsize=(3, 2), layout="constrained")
        plot = figure.subplots()
        plot.errorbar([1, 2], [3, 4], yerr=1, color=color, label="a system")
        plot.set_title(title)
        plot.legend()
    return figure


@pytest.mark.system
@pytest.mark.parametrize(("kind", "head"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_the_same_figure_has_the_same_bytes(kind: str, head: bytes) -> None:
    first = figures.rendered(drawn(), kind)
    assert first.startswith(head) and len(first) > 1000
    assert first == figures.rendered(drawn(), kind)


def test_inline_svg_is_xml_without_a_head() -> None:
    svg = figures.inline_svg(drawn("5 < 6 & $7$"), "one", label='what "it" shows')
    root = ElementTree.fromstring(svg)
    assert svg.startswith("<svg ") and svg.endswith("</svg>")
    assert root.attrib["aria-label"] == 'what "it" shows'
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"5 < 6 & $7$", "a system"} <= set(texts), "text stays text, dollar signs too"
    # A style sheet would hold for the whole page, metadata name the version of matplotlib.
    assert "<style" not in svg and "<metadata" not in svg


def test_characters_that_xml_forbids() -> None:
    with figures.style():
        figure = Figure()
        axis = figure.subplots()
        axis.set_xticks(range(3), ["a\x02b", "\x1b", "\ufffe"])
    assert figures.inline_svg(figure, "x").count("\ufffd") >= 3


def test_inline_svgs_share_no_ids() -> None:
    pages = [figures.inline_svg(drawn(), prefix) for prefix in ("one", "two")]
    ids = [re.findall(r'\bid="([^"]+)"', svg) for svg in pages]
    assert len(ids[0]) > 10
    assert len({*ids[0], *ids[1]}) == len(ids[0]) + len(ids[1])
    for svg, known in zip(pages, ids, strict=True):
        referred = re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', svg)
        assert any(url for url, _ in referred) and any(href for _, href in referred)
        assert {url or href for url, href in referred} <= set(known)
    assert pages[0] == figures.inline_svg(drawn(), "one")


def test_inline_svg_takes_the_colours_of_the_page() -> None:
    svg = figures.inline_svg(drawn(color="#123456"), "one")
    assert figures.INK not in svg and "#000000" not in svg and "#ffffff" not in svg
    assert set(re.findall(r"(?:fill|stroke): ?(#\w+)", svg)) == {"#123456"}
    label = re.search(r'<text [^>]*style="([^"]*)"[^>]*>a system<', svg)
    assert label and "fill: currentColor" in label[1]
    # Black, as in a figure without the style, is the page's colour too.
    plain = Figure()
    plain.subplots().set_title("black")
    assert "#000000" not in figures.inline_svg(plain, "one") and 'fill="currentColor"' in svg


def test_colours_of_systems() -> None:
    names = [f"system {number}" for number in range(8)]
    colors = figures.system_colors(names)
    assert len(set(colors.values())) == 6
    assert figures.system_colors(names[:2]) == dict(zip(names, figures.PALETTE[:2], strict=False))
    with figures.style():
        lines = Figure().subplots().plot([[1, 2], [3, 4]])
    assert [line.get_color() for line in lines] == list(figures.PALETTE[:2]), "and by themselves"


def only_fonts(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """As if no other fonts were installed."""
    manager = font_manager.fontManager
    monkeypatch.setattr(manager, "ttflist", [entry for entry in manager.ttflist if entry.name in names])


def test_missing_glyphs(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    # matplotlib's last resort has a box for everything: it must not count.
    only_fonts(monkeypatch, "DejaVu Sans", "Last Resort High-Efficiency")
    with caplog.at_level(logging.WARNING):
        svg = figures.rendered(drawn("图 図 abc ä"), "svg").decode("utf-8")
    assert [record.getMessage() for record in caplog.records] == [
        "no installed font has 2 of the figure's characters (图図), boxes stand for them; "
        "install a font that has them, for example Noto Sans CJK for Chinese"
    ]
    assert ">图 図 abc ä<" in svg
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        figures.inline_svg(drawn("".join(map(chr, range(0x4E00, 0x4E0C)))), "one")
    assert f"has 12 of the figure's characters ({''.join(map(chr, range(0x4E00, 0x4E0A)))}…)" in caplog.text


def test_another_font_has_the_glyphs(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    only_fonts(monkeypatch, "DejaVu Sans", "DejaVu Sans Mono", "STIXGeneral")
    charmaps = {
        name: set(FT2Font(str(font_manager.findfont(name))).get_charmap()) for name in ("DejaVu Sans", "STIXGeneral")
    }
    character = chr(min(charmaps["STIXGeneral"] - charmaps["DejaVu Sans"]))
    figure = drawn(f"a {character}")
    with caplog.at_level(logging.WARNING):
        svg = figures.inline_svg(figure, "one")
    assert not caplog.records
    assert figure.axes[0].get_title(loc="left") == f"a {character}"
    title = re.search(rf'<text [^>]*style="([^"]*)"[^>]*>a {character}<', svg)
    label = re.search(r'<text [^>]*style="([^"]*)"[^>]*>a system<', svg)
    assert title and "STIXGeneral" in title[1]
    assert label and "STIXGeneral" not in label[1], "text that lacks nothing keeps its font alone"


def test_legend_has_as_many_columns_as_there_is_room_for() -> None:
    def rows_and_overlap(names: list[str]) -> tuple[int, bool]:
        with figures.style():
            figure = Figure(figsize=(4, 2), layout="constrained")
            plot = figure.subplots()
            figures.add_legend(figure, [plot.plot([1], [2], label=name)[0] for name in names])
            figure.draw_without_rendering()
        (legend,) = figure.legends
        places = {round(text.get_window_extent().y0) for text in legend.get_texts()}
        return len(places), legend.get_window_extent().x1 > figure.bbox.width

    assert rows_and_overlap(["a", "b", "c", "d"]) == (1, False)
    assert rows_and_overlap(["a name of thirty-six characters here"] * 2) == (2, False)
    assert rows_and_overlap(["a name that no figure has room for " * 3] * 2) == (2, True)
