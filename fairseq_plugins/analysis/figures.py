"""Figures as SVG that stands inside an HTML page."""

from __future__ import annotations

import io
import re

import matplotlib
from matplotlib.figure import Figure


def inline_svg(figure: Figure, prefix: str) -> str:
    """A figure as an ``<svg>`` element that takes the colour of the text around it and has no ground of its own.

    The same figure gives the same text.

    Args:
        figure: what is black in it becomes ``currentColor``
        prefix: what the element's ids begin with, so that several figures can share a page
    """
    stream = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with matplotlib.rc_context({"svg.hashsalt": prefix, "svg.fonttype": "none"}):
        figure.savefig(stream, format="svg", transparent=True, metadata=nothing)
    svg = stream.getvalue()
    svg = svg[svg.index("<svg") :].rstrip()
    # A style sheet inside an SVG would hold for the whole page.
    svg = re.sub(r"\s*<defs>\s*<style[^>]*>.*?</style>\s*</defs>", "", svg, flags=re.DOTALL)
    svg = svg.replace("<svg ", '<svg fill="currentColor" stroke-linejoin="round" ', 1)
    svg = svg.replace("#000000", "currentColor")
    return re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}-", svg)
