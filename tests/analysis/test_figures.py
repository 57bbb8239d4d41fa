"""Figures inside a page."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

from matplotlib.figure import Figure

from fairseq_plugins.analysis.figures import inline_svg


def drawn() -> Figure:
    figure = Figure()
    axes = figure.subplots()
    axes.plot([1, 2, 3], [1, 4, 9], color="#3b7dd8", label="squares")
    axes.set_title("a < b")
    return figure


def test_an_inline_svg_fits_into_any_page() -> None:
    svg = inline_svg(drawn(), "first")
    root = ElementTree.fromstring(svg)
    assert root.tag.endswith("svg")
    assert "<style" not in svg
    assert "currentColor" in svg
    assert not re.search(r"#000000|#ffffff|white|black", svg)
    assert "#3b7dd8" in svg
    assert not re.search(r"\d{4}-\d\d-\d\d", svg)
    ids = re.findall(r'\bid="([^"]+)"', svg)
    assert len(ids) == len(set(ids)) > 10
    assert all(name.startswith("first-") for name in ids)
    references = re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', svg)
    assert references
    assert {one or other for one, other in references} <= set(ids)


def test_the_same_figure_is_the_same_text() -> None:
    assert inline_svg(drawn(), "first") == inline_svg(drawn(), "first")
    assert inline_svg(drawn(), "first") != inline_svg(drawn(), "second")
