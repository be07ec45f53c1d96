"""A plain picture of the table: one panel for each thing that grows, both axes logarithmic."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

_WIDTH, _HEIGHT, _LEFT, _TOP = 260, 220, 56, 34
_PANEL = 330
_COLOURS = ("#1f6feb", "#d1242f", "#1a7f37", "#9a6700", "#8250df")
Lines = Mapping[str, Sequence[tuple[int, float]]]
"""The points of each operation: how many there are, and microseconds."""


def svg(panels: Mapping[str, Lines]) -> str:
    """The picture."""
    names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    every = [micros for lines in panels.values() for points in lines.values() for _, micros in points]
    low, high = math.floor(math.log10(min(every))), math.ceil(math.log10(max(every)))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_PANEL * len(panels)}" height="320" '
        'font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for number, (title, lines) in enumerate(panels.items()):
        parts.append(f'<g transform="translate({number * _PANEL + _LEFT},{_TOP})">')
        parts += _panel(title, lines, names, low, max(high, low + 1))
        parts.append("</g>")
    for number, name in enumerate(names):
        parts.append(
            f'<text x="{_LEFT + 150 * number}" y="310" fill="{_COLOURS[number % len(_COLOURS)]}">{name}</text>'
        )
    return "\n".join([*parts, "</svg>\n"])


def _panel(title: str, lines: Lines, names: Sequence[str], low: int, high: int) -> list[str]:
    counts = sorted({count for points in lines.values() for count, _ in points})
    span = max(math.log10(counts[-1] / counts[0]), 1)

    def x(count: int) -> float:
        return round(_WIDTH * math.log10(count / counts[0]) / span, 1)

    def y(micros: float) -> float:
        return round(_HEIGHT * (high - math.log10(micros)) / (high - low), 1)

    parts = [f'<text y="-14" font-weight="bold">{title}</text>']
    parts.append(f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="none" stroke="#888"/>')
    for power in range(low, high + 1):
        parts.append(f'<line x2="{_WIDTH}" y1="{y(10**power)}" y2="{y(10**power)}" stroke="#ddd"/>')
        parts.append(f'<text x="-6" y="{y(10**power) + 4}" text-anchor="end">{10**power:,} µs</text>')
    for count in counts:
        parts.append(f'<text x="{x(count)}" y="{_HEIGHT + 16}" text-anchor="middle">{count:,}</text>')
    for name, points in lines.items():
        colour = _COLOURS[names.index(name) % len(_COLOURS)]
        way = " ".join(f"{x(count)},{y(micros)}" for count, micros in points)
        parts.append(f'<polyline points="{way}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [
            f'<circle cx="{x(count)}" cy="{y(micros)}" r="3" fill="{colour}"/>' for count, micros in points
        ]
    return parts
