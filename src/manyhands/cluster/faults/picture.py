"""Two small pictures as SVG text: the world of a cluster, and the wait-for graph of a fault."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyhands.cluster.faults.kinds import Where

FILL = {
    "waits": "#f6c85f",
    "computes": "#9ecae1",
    "finished": "#d9d9d9",
    "raised": "#e6786e",
    "died": "#7f7f7f",
    "unknown": "#ffffff",
}
STATE = {
    "waits": "waits",
    "computes": "computes",
    "finished": "finished",
    "raised": "exception",
    "died": "died",
    "unknown": "?",
}
INK = "#333333"
WAITS_FOR = "waits for"
STYLE = 'font-family="DejaVu Sans, Verdana, sans-serif"'


def _text(
    x: float,
    y: float,
    text: str,
    size: int = 11,
    weight: str = "normal",
    fill: str = INK,
    anchor: str = "middle",
) -> str:
    return (
        f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" font-size="{size}" '
        f'font-weight="{weight}" fill="{fill}">{escape(text)}</text>'
    )


def _svg(width: float, height: float, parts: list[str], title: str) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 '
        f'{width} {height}" role="img" {STYLE}>'
    )
    back = f'<title>{escape(title)}</title><rect width="{width}" height="{height}" fill="#ffffff"/>'
    return "\n".join([head, back, *parts, "</svg>"])


def draw_wait_for_graph(where: dict[int, Where], edges: list[tuple[int, int]]) -> str:
    """Draw the ranks on a circle, coloured by what they do.

    An arrow leads from each rank that waits to the rank that it waits for.
    """
    ranks = sorted(where)
    n, radius = len(ranks), max(80, 24 * len(ranks))
    width, height = 2 * radius + 280, 2 * radius + 140
    centre = (width / 2, height / 2)
    spot = {
        rank: (
            centre[0] + radius * math.sin(2 * math.pi * i / n),
            centre[1] - radius * math.cos(2 * math.pi * i / n),
        )
        for i, rank in enumerate(ranks)
    }
    parts = [
        '<defs><marker id="tip" markerWidth="9" markerHeight="9" refX="7" refY="3.5" '
        f'orient="auto"><path d="M0,0 L8,3.5 L0,7 z" fill="{INK}"/></marker></defs>'
    ]
    parts += [
        _arrow(spot[a], spot[b], (b, a) in edges) for a, b in edges if a in spot and b in spot
    ]
    for rank in ranks:
        here, (x, y) = where[rank], spot[rank]
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="24" fill="{FILL[here.state]}" stroke="{INK}" '
            'stroke-width="1.5"/>'
        )
        parts.append(_text(x, y + 5, str(rank), 15, "bold"))
        label = here.call if here.call and here.state in ("waits", "died") else STATE[here.state]
        parts += _label(x, y, centre, label, here.place.split(" of ")[0])
    parts.append(_text(10, 18, "\u2192 " + WAITS_FOR, 10, fill="#666666", anchor="start"))
    return _svg(width, height, parts, "wait-for graph")


def _label(x: float, y: float, centre: tuple[float, float], label: str, place: str) -> list[str]:
    """What the rank does and where, outside the circle of ranks, so that no arrow crosses it."""
    if abs(x - centre[0]) > abs(y - centre[1]):
        anchor, x, above = ("start", x + 32, y) if x > centre[0] else ("end", x - 32, y)
    else:
        anchor, above = "middle", y - 46 if y < centre[1] else y + 42
    return [
        _text(x, above, label, anchor=anchor),
        _text(x, above + 14, place, 10, fill="#666666", anchor=anchor),
    ]


def _arrow(start: tuple[float, float], end: tuple[float, float], both_ways: bool) -> str:
    (x1, y1), (x2, y2) = start, end
    length = math.hypot(x2 - x1, y2 - y1) or 1
    ux, uy = (x2 - x1) / length, (y2 - y1) / length
    side = 5 if both_ways else 0
    x1, y1, x2, y2 = (
        x1 + 26 * ux - side * uy,
        y1 + 26 * uy + side * ux,
        x2 - 28 * ux - side * uy,
        y2 - 28 * uy + side * ux,
    )
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{INK}" '
        'stroke-width="1.8" marker-end="url(#tip)"/>'
    )


def draw_cluster(
    nodes: list[tuple[str, list[tuple[int, str]]]], profile: str, backend: str, framework: str
) -> str:
    """Draw a box for each node, with a square for each rank.

    `nodes` = [(name, [(rank, device), ...]), ...].
    """
    widest = max(len(ranks) for _, ranks in nodes)
    per_row = min(widest, 8)
    rows = math.ceil(widest / per_row)
    box_w, box_h = per_row * 62 + 16, rows * 58 + 34
    columns = max(1, min(len(nodes), 900 // (box_w + 14)))
    lines = math.ceil(len(nodes) / columns)
    width, height = columns * (box_w + 14) + 14, lines * (box_h + 14) + 40
    parts = []
    for i, (name, ranks) in enumerate(nodes):
        x0, y0 = 14 + (i % columns) * (box_w + 14), 12 + (i // columns) * (box_h + 14)
        parts.append(
            f'<rect x="{x0}" y="{y0}" width="{box_w}" height="{box_h}" rx="8" fill="#f3f6fa" '
            'stroke="#8899aa"/>'
        )
        parts.append(_text(x0 + box_w / 2, y0 + 18, name, 11, fill="#556677"))
        for k, (rank, device) in enumerate(ranks):
            x, y = x0 + 10 + (k % per_row) * 62, y0 + 26 + (k // per_row) * 58
            parts.append(
                f'<rect x="{x}" y="{y}" width="56" height="50" rx="6" fill="#ffffff" '
                f'stroke="{INK}"/>'
            )
            parts.append(_text(x + 28, y + 22, f"rank {rank}", 11, "bold"))
            parts.append(_text(x + 28, y + 39, device, 10, fill="#666666"))
    below = (
        f"{sum(len(r) for _, r in nodes)} ranks \u00b7 {backend} \u00b7 {framework} \u00b7 "
        f"{profile}"
    )
    parts.append(_text(width / 2, height - 10, below, 11, fill="#556677"))
    return _svg(width, height, parts, "the cluster")
