# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Line charts as SVG: small, without a library, readable on light and dark pages. Pure functions.

Lines carry their name at their right end, so that no colour has to be looked up; the colours differ
in lightness too. Text and axes take the page's colour scheme (prefers-color-scheme).
"""

import math
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 64, 150, 62, 52
COLOURS = ["#1f77b4", "#d95f02", "#2a9d5c", "#b0338a", "#8a6d00", "#6b6f76"]
LABEL_GAP = 15
STYLE = """
  svg { font: 13px system-ui, sans-serif; }
  .ink { fill: #1b1f24; } .soft { fill: #59636e; }
  .axis { stroke: #59636e; } .grid { stroke: #d0d7de; stroke-width: 1; }
  .title { font-size: 15px; font-weight: 600; }
  @media (prefers-color-scheme: dark) {
    .ink { fill: #e6edf3; } .soft { fill: #9198a1; }
    .axis { stroke: #9198a1; } .grid { stroke: #30363d; }
  }
"""


@dataclass(frozen=True)
class Chart:
    title: str
    x_label: str
    y_label: str
    lines: dict = field(default_factory=dict)  # Name to [(x, y), ...].
    log_y: bool = False
    y_max: float | None = None


def nice_step(span, wanted=5):
    """1, 2 or 5 times a power of ten, so that about `wanted` steps fill the span."""
    if span <= 0:
        return 1.0
    raw = span / wanted
    power = 10.0 ** math.floor(math.log10(raw))
    return next((m * power for m in (1, 2, 5) if m * power >= raw), 10 * power)


def linear_ticks(high):
    step = nice_step(high)
    return [i * step for i in range(math.ceil(high / step - 1e-9) + 1)]


def log_ticks(low, high):
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return [10.0**power for power in range(first, max(last, first + 1) + 1)]


def short(number):
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(number) >= size:
            return f"{number / size:g}{letter}"
    return f"{number:g}"


def spread(heights, gap, high):
    """Label positions, in order of height, moved apart by at least `gap`, none below `high`."""
    placed = []
    for height in sorted(heights):
        placed.append(max(height, placed[-1] + gap) if placed else height)
    ceiling = high
    for i in range(
        len(placed) - 1, -1, -1
    ):  # From the lowest on the page: only what is in the way.
        placed[i] = min(placed[i], ceiling)
        ceiling = placed[i] - gap
    return placed


class Scale:
    """From values to pixels."""

    def __init__(self, ticks, start, end, logarithmic=False):
        self.ticks, self.start, self.end, self.logarithmic = ticks, start, end, logarithmic

    def __call__(self, value):
        low, high = self.ticks[0], self.ticks[-1]
        if self.logarithmic:
            value, low, high = (math.log10(max(v, self.ticks[0])) for v in (value, low, high))
        share = min(1.0, (value - low) / (high - low))
        return self.start + share * (self.end - self.start)


def scales(chart):
    points = [point for line in chart.lines.values() for point in line]
    if not points:
        raise ValueError(f"chart '{chart.title}' has no points")
    high = chart.y_max or max(y for _, y in points)
    if chart.log_y:
        low = min(y for _, y in points if y > 0)
        y_ticks = log_ticks(low, high)
    else:
        y_ticks = linear_ticks(high or 1)
    x_ticks = linear_ticks(max(x for x, _ in points) or 1)
    return (
        Scale(x_ticks, LEFT, WIDTH - RIGHT),
        Scale(y_ticks, HEIGHT - BOTTOM, TOP, chart.log_y),
    )


def axes(chart, x, y):
    parts = [f'<text class="ink title" x="{LEFT}" y="24">{escape(chart.title)}</text>']
    for tick in y.ticks:
        at = f"{y(tick):.1f}"
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at}" y2="{at}"/>')
        parts.append(
            f'<text class="soft" x="{LEFT - 8}" y="{at}" dy="4" text-anchor="end">'
            f"{short(tick)}</text>"
        )
    bottom = HEIGHT - BOTTOM
    for tick in x.ticks:
        parts.append(
            f'<text class="soft" x="{x(tick):.1f}" y="{bottom + 18}" text-anchor="middle">'
            f"{short(tick)}</text>"
        )
    parts.append(
        f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{bottom}" y2="{bottom}"/>'
    )
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(
        f'<text class="soft" x="{middle}" y="{HEIGHT - 12}" text-anchor="middle">'
        f"{escape(chart.x_label)}</text>"
    )
    parts.append(
        f'<text class="soft" x="{LEFT - 48}" y="{TOP - 18}">{escape(chart.y_label)}</text>'
    )
    return parts


def curve(points, colour, x, y):
    path = " ".join(f"{x(px):.1f},{y(py):.1f}" for px, py in points)
    dots = [
        f'<circle cx="{x(px):.1f}" cy="{y(py):.1f}" r="3" fill="{colour}"/>' for px, py in points
    ]
    line = f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
    return [line, *dots]


def draw(chart):
    """The text of the SVG file."""
    x, y = scales(chart)
    parts = axes(chart, x, y)
    ends = {name: y(line[-1][1]) for name, line in chart.lines.items() if line}
    order = sorted(ends, key=ends.get)
    heights = dict(zip(order, spread(ends.values(), LABEL_GAP, HEIGHT - BOTTOM), strict=True))
    for (name, line), colour in zip(chart.lines.items(), COLOURS * len(chart.lines), strict=False):
        if not line:
            continue
        parts += curve(line, colour, x, y)
        parts.append(
            f'<text x="{x(line[-1][0]) + 9:.1f}" y="{heights[name]:.1f}" dy="4" fill="{colour}">'
            f"{escape(name)}</text>"
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(chart.title)}">\n<style>{STYLE}</style>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )
