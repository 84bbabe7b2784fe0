"""The two pictures of docs/gallery.md as SVG, drawn from the figures that scripts/gallery.py measured."""

from __future__ import annotations

from html import escape
from itertools import pairwise
from math import ceil, floor, log10
from typing import Any, NamedTuple

import numpy as np

__all__ = ["GRAY", "Symbols", "draw_map", "draw_retrieved", "draw_svg", "draw_text", "result_row"]

BLUE, ORANGE, RED, GRAY = "#1a6fb0", "#c9570c", "#f6c1bb", "#777777"
GROUPS = (("without labels", BLUE), ("with labels", ORANGE))
FONT = 'font-family="Helvetica, Arial, sans-serif"'
# A little more than the average width of a Helvetica character at this size.
LABEL_SIZE, CHARACTER_WIDTH = 11, 6.6


class Box(NamedTuple):
    """A rectangle that labels must not cover."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )


def draw_map(measured: dict[str, Any]) -> str:
    """Draw precision against processor seconds to fit, one labeled dot per method."""
    width, height = 900, 640
    area = Box(60, 60, width - 20, height - 50)
    lines = measured["methods"]
    # Below the resolution of the clock.
    seconds = [max(line["fit_seconds"], 0.005) for line in lines]
    low, high = floor(log10(min(seconds))), ceil(log10(max(seconds)))
    bottom = floor(10 * min(line["precision"] for line in lines)) / 10

    def place(fit_seconds: float, precision: float) -> tuple[float, float]:
        x = area.left + (log10(fit_seconds) - low) / (high - low) * (area.right - area.left)
        return x, area.bottom - (precision - bottom) / (1 - bottom) * (area.bottom - area.top)

    dots = [place(fit, line["precision"]) for fit, line in zip(seconds, lines, strict=True)]
    names = [line["title"] for line in lines]
    level = place(1.0, measured["euclidean"]["precision"])[1]
    title = f"Better codes are higher, faster training is further left ({_subject(measured)})"
    parts = [
        draw_text(20, 26, title, 16, weight="bold"),
        *_axes(area, place, range(low, high + 1), bottom),
        f'<path d="M{area.left} {level:.1f}H{area.right}" stroke="{GRAY}" stroke-dasharray="6 4"/>',
        draw_text(area.right - 4, level - 5, "Euclidean distance of the rows themselves", 11, anchor="end", color=GRAY),
        *_legend(area.left + 12, area.bottom - 34),
    ]
    taken = [
        Box(area.left, level - 1, area.right, level + 1),
        Box(area.right - 225, level - 15, area.right, level),
        Box(area.left, area.bottom - 48, area.left + 110, area.bottom),
    ]
    parts += _labeled_dots(dots, names, [_color(line) for line in lines], area, taken)
    return draw_svg(width, height, parts)


def _subject(measured: dict[str, Any]) -> str:
    name = {"digits": "digits", "mnist": "MNIST"}[measured["name"]]
    return f"{measured['n_train']:,} rows of {name}, {measured['n_bits']} bits"


def _axes(area: Box, place, exponents: range, bottom: float) -> list[str]:
    parts = []
    for exponent in exponents:
        x, _ = place(10.0**exponent, 1.0)
        parts.append(f'<path d="M{x:.1f} {area.top}V{area.bottom}" stroke="#e4e4e4"/>')
        parts.append(draw_text(x, area.bottom + 18, f"{10.0**exponent:g} s", 12, anchor="middle", color=GRAY))
    for tenth in range(round(10 * bottom), 11):
        _, y = place(1.0, tenth / 10)
        parts.append(f'<path d="M{area.left} {y:.1f}H{area.right}" stroke="#e4e4e4"/>')
        parts.append(draw_text(area.left - 8, y + 4, f"{tenth / 10:.1f}", 12, anchor="end", color=GRAY))
    middle = (area.left + area.right) / 2
    parts.append(draw_text(middle, area.bottom + 38, "processor time to fit", 13, anchor="middle"))
    parts.append(draw_text(20, area.top - 14, "share of the ten nearest that are of the same class", 13))
    return parts


def _labeled_dots(dots, names, colors, area: Box, taken: list[Box]) -> list[str]:
    """Return dots with their names, each name where it meets neither a dot nor another name."""
    taken = taken + [Box(x - 5, y - 5, x + 5, y + 5) for x, y in dots]
    parts = []
    for (x, y), name, color in sorted(zip(dots, names, colors, strict=True), key=lambda entry: entry[0][1]):
        box = _free_place(x, y, len(name) * CHARACTER_WIDTH, area, taken)
        taken.append(box)
        nearest_x = min(max(x, box.left), box.right)
        nearest_y = min(max(y, box.top), box.bottom)
        if abs(nearest_x - x) + abs(nearest_y - y) > 14:
            parts.append(f'<path d="M{x:.1f} {y:.1f}L{nearest_x:.1f} {nearest_y:.1f}" stroke="{color}" opacity=".5"/>')
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{color}"/>')
        # If the estimated width is too small, the label must still not cover the dot.
        edge, anchor = (box.right, "end") if box.right <= x else (box.left, "start")
        parts.append(draw_text(edge, box.bottom - 3, name, LABEL_SIZE, anchor=anchor, color=color))
    return parts


def _free_place(x: float, y: float, width: float, area: Box, taken: list[Box]) -> Box:
    """Return the free place for a label of this width that is nearest to the dot; right of it if none is free."""
    height = LABEL_SIZE + 3
    beside = [Box(x + 8, y - height / 2, x + 8 + width, y + height / 2)]
    for reach in range(0, 120, 6):
        for dy in (-reach, reach):
            top = y + dy - height / 2
            for left in (x + 8, x - 8 - width, x - width / 2):
                beside.append(Box(left, top, left + width, top + height))
    for box in beside:
        inside = area.left <= box.left and box.right <= area.right and area.top <= box.top and box.bottom <= area.bottom
        if inside and not any(box.meets(other) for other in taken):
            return box
    return beside[0]


def draw_retrieved(measured: dict[str, Any], images: np.ndarray) -> str:
    """Draw the digits that one query retrieves, one row per method, best first in each group; wrong ones are red."""
    retrieved = measured["retrieved"]
    symbols = Symbols(images)
    step, left, top = 30, 250, 108
    parts = [
        draw_text(20, 30, f"Ten nearest codes to this {retrieved['label']}", 16, weight="bold"),
        f'<g transform="translate({left} 8) scale(5)">{symbols.use(retrieved["query"])}</g>',
        draw_text(left + 56, 30, f"which no method has seen ({_subject(measured)})", 13, color=GRAY),
        draw_text(left + 10 * step + 12, top - 12, "all queries", 12, color=GRAY),
    ]
    y = top
    for (title, color), of_group in zip(GROUPS, ("ignored", None), strict=True):
        parts.append(draw_text(20, y - 12, f"Learned {title}", 13, color=color, weight="bold"))
        lines = [line for line in measured["methods"] if (line["labels"] == "ignored") == (of_group == "ignored")]
        for line in sorted(lines, key=lambda line: -line["precision"]):
            parts.append(draw_text(20, y + 16, line["title"], 13))
            parts += result_row(retrieved["found"][line["variant"]], symbols, left, y, step)
            parts += _precision_bar(left + 10 * step + 12, y + 5, line["precision"], color)
            y += step
        y += 34
    return draw_svg(left + 10 * step + 190, y - 20, [symbols.definitions(), *parts])


def result_row(results: dict[str, list], symbols: Symbols, left: int, y: int, step: int) -> list[str]:
    parts = []
    for place, (row, right) in enumerate(zip(results["rows"], results["right"], strict=True)):
        x = left + place * step
        if not right:
            parts.append(f'<rect x="{x - 1}" y="{y - 2}" width="28" height="28" rx="3" fill="{RED}"/>')
        parts.append(f'<g transform="translate({x + 1} {y}) scale(3)">{symbols.use(row)}</g>')
    return parts


def _precision_bar(x: float, y: float, precision: float, color: str) -> list[str]:
    return [
        f'<rect x="{x}" y="{y}" width="100" height="14" fill="#eeeeee"/>',
        f'<rect x="{x}" y="{y}" width="{100 * precision:.0f}" height="14" fill="{color}"/>',
        draw_text(x + 108, y + 12, f"{precision:.0%} right", 12),
    ]


class Symbols:
    """Each image drawn once, as squares of four shades, and used by number wherever it is shown."""

    SHADES = ("#c4c4c4", "#8a8a8a", "#4d4d4d", "#111111")

    def __init__(self, images: np.ndarray):
        self.images, self.used = images, set()

    def use(self, row: int) -> str:
        self.used.add(row)
        return f'<use href="#d{row}"/>'

    def definitions(self) -> str:
        return f"<defs>{''.join(self._symbol(row) for row in sorted(self.used))}</defs>"

    def _symbol(self, row: int) -> str:
        shades = np.ceil(self.images[row].reshape(8, 8) / 4).astype(int)  # values are 0 to 16
        paths = []
        for shade, color in enumerate(self.SHADES, start=1):
            runs = [f"M{x} {y}h{n}v1h-{n}z" for y, line in enumerate(shades == shade) for x, n in _runs(line)]
            paths.append(f'<path fill="{color}" d="{"".join(runs)}"/>' if runs else "")
        return f'<g id="d{row}">{"".join(paths)}</g>'


def _runs(line: np.ndarray) -> list[tuple[int, int]]:
    """Return start and length of each run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], line, [False]]).astype(int)))
    return [(int(start), int(stop - start)) for start, stop in list(pairwise(edges))[::2]]


def _legend(x: float, y: float) -> list[str]:
    parts = []
    for place, (title, color) in enumerate(GROUPS):
        parts.append(f'<circle cx="{x}" cy="{y + 18 * place}" r="4.5" fill="{color}"/>')
        parts.append(draw_text(x + 10, y + 18 * place + 4, title, 12, color=color))
    return parts


def _color(line: dict[str, Any]) -> str:
    return BLUE if line["labels"] == "ignored" else ORANGE


def draw_text(x, y, text: str, size: int, *, anchor="start", color="#222222", weight="normal") -> str:
    style = f'font-size="{size}" text-anchor="{anchor}" fill="{color}" font-weight="{weight}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(text)}</text>'


def draw_svg(width: int, height: int, parts: list[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    background = f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
    return "\n".join([f"{head} {FONT}>", background, *parts, "</svg>"]) + "\n"
