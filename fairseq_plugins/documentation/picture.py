"""``docs/pictures/models.svg``: MC-RNN's staggered channels and DPN-S2S's four flows, for light and dark pages."""

from __future__ import annotations

from html import escape

from ..kernels.multi_channel.specification import in_degree

WIDTH, HEIGHT = 640, 674
WORDS = ("find", "the", "missing", "file", "at", "all", "costs")
CHANNELS = 3
LEFT, STEP = 150, 74
TOP, ROW = 86, 86
RADIUS = 15

# The colours are those of the project's figures; ink and paper follow the reader's page.
STYLE = """
  svg { font-family: "DejaVu Sans", Verdana, sans-serif; font-size: 18px; }
  .ink { fill: #24292f; } .line { stroke: #24292f; fill: none; } .paper { fill: #ffffff; }
  .title { font-size: 21px; font-weight: bold; } .number { font-size: 17px; font-weight: bold; }
  .a { stroke: #0072b2; } .b { stroke: #d55e00; } .c { stroke: #009e73; } .d { stroke: #c873a2; }
  .edge { fill: none; stroke-width: 2.2; }
  @media (prefers-color-scheme: dark) {
    .ink { fill: #e6edf3; } .line { stroke: #e6edf3; } .paper { fill: #0d1117; }
  }
"""
COLORS = "abcd"


def picture() -> str:
    """The drawing as SVG; the same every time."""
    heads = "".join(
        f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="5" markerHeight="5" orient="auto">'
        f'<path d="M0 0 8 4 0 8Z" fill="{color}"/></marker>'
        for name, color in zip(COLORS, ("#0072b2", "#d55e00", "#009e73", "#c873a2"), strict=True)
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="t">',
        '<title id="t">MC-RNN: three staggered channels over a sentence. DPN-S2S: two encoder paths, two decoder '
        "paths, and four attention flows between them.</title>",
        f"<style>{STYLE}</style><defs>{heads}</defs>",
        *channels(),
        *flows(),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def text(x: float, y: float, words: str, kind: str = "ink", anchor: str = "middle") -> str:
    """Words at a point."""
    return f'<text x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'


def channels() -> list[str]:
    """MC-RNN, Eq. 1: each node has its in-degree m(t, k), and an arc from each output that it reads."""
    parts = [text(20, 30, "MC-RNN: staggered channels", "ink title", "start")]
    parts.append(text(20, 56, "the number: how many earlier outputs a step reads", "ink", "start"))
    nodes = []
    for k in range(1, CHANNELS + 1):
        y, color = TOP + ROW * k - 20, COLORS[k - 1]
        parts.append(text(20, y + 6, f"channel {k}", "ink", "start"))
        for t in range(1, len(WORDS) + 1):
            x, degree = LEFT + STEP * (t - 1), in_degree(t, k, CHANNELS)
            for lag in range(1, min(degree, t - 1) + 1):
                start, lift = x - STEP * lag, 14 + 21 * (lag - 1)
                edge = y - RADIUS
                line = f"M{start:g} {edge:g}Q{(start + x) / 2:g} {edge - 2 * lift:g} {x - 3:g} {edge - 1:g}"
                if lag == 1:
                    line = f"M{start + RADIUS:g} {y:g}H{x - RADIUS - 1:g}"
                parts.append(f'<path class="edge {color}" d="{line}" marker-end="url(#{color})"/>')
            nodes.append(f'<circle cx="{x:g}" cy="{y:g}" r="{RADIUS}" class="paper {color}" stroke-width="2.2"/>')
            nodes.append(text(x, y + 6, str(degree), "ink number"))
    bottom = TOP + ROW * CHANNELS + 24
    words = [text(LEFT + STEP * t, bottom, word) for t, word in enumerate(WORDS)]
    return [*parts, *nodes, *words]


def flows() -> list[str]:
    """DPN-S2S, Eq. 8 to 10: each decoder path attends to both encoder paths, and a gate fuses what it gets."""
    top = TOP + ROW * CHANNELS + 86
    parts = [text(20, top, "DPN-S2S: two paths on each side, four flows", "ink title", "start")]
    rows = {"CNN": top + 72, "SAN": top + 182}
    boxes = []
    for name, y in rows.items():
        boxes += [box(20, y, 190, f"{name} encoder"), box(430, y, 190, f"{name} decoder")]
        boxes.append(f'<circle cx="390" cy="{y}" r="17" class="paper line" stroke-width="2"/>')
        boxes.append(text(390, y + 6, "g", "ink number"))
        parts.append(f'<path class="line" stroke-width="2" d="M407 {y}H430"/>')
    pairs = [(encoder, decoder) for encoder in rows for decoder in rows]
    for color, (encoder, decoder) in zip(COLORS, pairs, strict=True):
        start, end = rows[encoder], rows[decoder]
        # The arrow ends at the gate's edge.
        away = 0 if start == end else (12 if start < end else -12)
        parts.append(
            f'<path class="edge {color}" d="M210 {start:g}L{371 if start == end else 376:g} {end - away:g}" '
            f'marker-end="url(#{color})"/>'
        )
    parts.append(text(320, top + 236, "g: the gate that fuses two flows"))
    return [*parts, *boxes]


def box(x: float, y: float, width: float, words: str) -> str:
    """A path of DPN-S2S, centred on ``y``."""
    frame = f'<rect x="{x:g}" y="{y - 26:g}" width="{width:g}" height="52" rx="8" class="paper line" stroke-width="2"/>'
    return frame + text(x + width / 2, y + 6, words)
