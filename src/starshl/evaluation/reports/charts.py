"""Charts as inline SVG that need no script; lines differ in color, dash and marker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import pairwise
from math import ceil, floor, isfinite, log10
from statistics import median
from textwrap import wrap
from typing import TypeAlias

from .document import Chart, Series

# The lowest and the highest value of a point, its deviation included.
Ends: TypeAlias = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Look:
    """How a line is drawn: ``color`` numbers .c0 to .c7 of page.css, ``marker`` is an SVG path around 0,0."""

    color: int
    dash: str
    marker: str
    hollow: bool = False


_CIRCLE = "M-4.5,0a4.5,4.5 0 1,0 9,0a4.5,4.5 0 1,0 -9,0z"
_SQUARE = "M-4.2,-4.2h8.4v8.4h-8.4z"
_TRIANGLE_UP = "M0,-5.6L5.2,4H-5.2z"
_TRIANGLE_DOWN = "M0,5.6L5.2,-4H-5.2z"
_DIAMOND = "M0,-6L5.4,0L0,6L-5.4,0z"
_PLUS = "M-5.4,-1.7h3.7v-3.7h3.4v3.7h3.7v3.4h-3.7v3.7h-3.4v-3.7h-3.7z"
_CROSS = "M-5,-2.6L-2.6,-5L0,-2.4L2.6,-5L5,-2.6L2.4,0L5,2.6L2.6,5L0,2.4L-2.6,5L-5,2.6L-2.4,0z"
_STAR = "M0,-7L1.7,-2.3L6.7,-2.2L2.7,0.9L4.1,5.7L0,2.8L-4.1,5.7L-2.7,0.9L-6.7,-2.2L-1.7,-2.3z"
# The first eight have different colors; the others reuse them with hollow markers. No two share a marker, so that
# gray print and color-blind readers lose nothing.
LOOKS = (
    Look(0, "14 4", _CIRCLE),
    Look(1, "", _STAR),
    Look(2, "8 3", _SQUARE),
    Look(7, "4 3", _TRIANGLE_DOWN),
    Look(6, "9 3 2 3", _TRIANGLE_UP),
    Look(3, "2 2.5", _DIAMOND),
    Look(5, "12 3 2 3 2 3", _PLUS),
    Look(4, "1 4", _CROSS),
    Look(5, "6 3", _CIRCLE, hollow=True),
    Look(4, "", _SQUARE, hollow=True),
    Look(2, "2 2.5", _TRIANGLE_UP, hollow=True),
    Look(7, "9 3 2 3", _DIAMOND, hollow=True),
    Look(6, "8 3", _TRIANGLE_DOWN, hollow=True),
    Look(0, "8 3", _STAR, hollow=True),
)
WIDTH, HEIGHT = 480, 310  # pixels of one panel
_LEFT, _RIGHT, _TOP, _BOTTOM = 68, 14, 14, 46
_LEFT_OF_DIFFERENCES = 92  # room for the name of zero
_ROOM_BEYOND_DIFFERENCES = 0.04  # of their range, for the markers
_LETTERS_BESIDE_ZERO, _LINE_BESIDE_ZERO = 10, 14
_INNER = 8  # pixels between the axes and the first and last point
_MAX_MARKERS = 13  # per line; more would touch each other
_Y_STEPS = 5  # grid lines, about
_MIN_RANGE = 0.02  # of a y axis, so that noise does not look like a difference
_CAP = 2.5  # pixels, half of the bar at the end of an interval
_MAX_SHIFT = 2.5  # pixels between intervals of two lines at one place
_MAX_DOT_SHIFT = 9.0  # the same in charts without lines, which have more room
# All shifts together, as a share of the gap between neighboring places: lines stay within a fifth of it, so that
# nobody takes a point for one at another x; categories have nothing between them.
_SHIFTS_OF_LINES, _SHIFTS_OF_DOTS = 0.4, 0.7
_MAX_SHARE_TO_ENLARGE = 0.4  # an enlarged part pays off if it is at least 2.5 times as tall
# A nested svg clips what lies outside of it and keeps the coordinates of the rest.
_AREA_HEIGHT = HEIGHT - _TOP - _BOTTOM
_AREA = f'<svg y="{_TOP}" width="{WIDTH}" height="{_AREA_HEIGHT}" viewBox="0 {_TOP} {WIDTH} {_AREA_HEIGHT}">'


def render_chart(chart: Chart, styles: dict[str, int], shared: Sequence[Ends] = ()) -> str:
    """Return a figure with its caption; ``styles`` numbers the lines, and the y axis also holds ``shared`` values.

    A second panel enlarges the upper half of all points if weak lines squeeze it into a small part of the first.
    """
    # What is drawn last is on top.
    chart = replace(chart, series=tuple(sorted(chart.series, key=lambda series: series.emphasized)))
    frame = _Frame(chart, shared=shared if chart.zero else ())
    panels = _panel(chart, frame, styles, chart.title)
    upper = _upper_frame(chart, frame)
    if upper is not None:
        title = f"The upper part, enlarged: {chart.y_label} from {upper.y_low:.{upper.digits}f} on"
        panels += f'<div><p class="enlarged">{escape(title)}</p>{_panel(chart, upper, styles, title)}</div>'
    return f'<figure><figcaption>{escape(chart.title)}</figcaption><div class="panels">{panels}</div></figure>'


def shared_ends(charts: Sequence[Chart]) -> list[Ends]:
    """Return what the y axis of every chart of differences must hold, so that all of them have the same."""
    return [ends for chart in charts if chart.zero for ends in _ends(chart)]


def names_with_lines(charts: Sequence[Chart]) -> set[str]:
    """Return the names of series whose points are joined in any of the charts."""
    return {series.name for chart in charts if chart.has_lines for series in chart.series}


def legend_sample(style: int, *, emphasized: bool = False, line: bool = True) -> str:
    """Return a short piece of a line, for a legend, or the marker alone."""
    look = _look(style)
    drawn = f'<path class="line" d="M1,8H43"{_dash(look)}/>' if line else ""
    return (
        f'<svg class="sample {_classes(look, emphasized)}" viewBox="0 0 44 16" aria-hidden="true">{drawn}'
        f'<path class="mark" transform="translate(22,8)" d="{look.marker}"/></svg>'
    )


class _Frame:
    """Maps values to places. The range of y holds every deviation in full, unless it is cut at ``lowest``."""

    def __init__(self, chart: Chart, lowest: float | None = None, shared: Sequence[Ends] = ()):
        self.left = _LEFT_OF_DIFFERENCES if chart.zero else _LEFT
        xs = [*chart.ticks, *(x for series in chart.series for x in series.x)] or [0.0, 1.0]
        self.log_x = chart.log_x
        self.x_low, self.x_high = self._of_x(min(xs)), self._of_x(max(xs))
        if self.x_low == self.x_high:
            self.x_low, self.x_high = self.x_low - 1, self.x_high + 1
        self.margin: float = _INNER
        self.shifts = [0.0] * len(chart.series)
        if chart.is_moved:
            self._shift_lines(chart)

        self.log_y = chart.log_y
        if self.log_y:
            powers = [log10(y) for series in chart.series for y in series.y]
            self.y_low, self.y_high = float(floor(min(powers))), float(ceil(max(powers)))
            self.y_ticks = [10.0**power for power in range(int(self.y_low), int(self.y_high) + 1)]
            return
        ends = [*_ends(chart, lowest), *shared, *([(0.0, 0.0)] if chart.zero else [])] or [(0.0, 1.0)]
        low, high = min(end for end, _ in ends), max(end for _, end in ends)
        self.y_step = _round_step(max(high - low, _MIN_RANGE))
        self.digits = 2 if self.y_step > 0.009 else 3
        self.y_low = floor(low / self.y_step + 1e-9) * self.y_step
        n_steps = 1
        while self.y_low + n_steps * self.y_step < high - 1e-9:
            n_steps += 1
        self.y_ticks = [self.y_low + k * self.y_step for k in range(n_steps + 1)]
        self.y_high = self.y_ticks[-1]
        if self.y_high > 1 + 1e-9 and low < 1:
            # Only a deviation can exceed 1: it is drawn in full, but the axis marks no value there.
            self.y_ticks = [tick for tick in self.y_ticks if tick <= 1 + 1e-9]
            self.y_high = max(1.0, high)
        if chart.zero:
            # Most differences are small next to the largest, so no room is spent on reaching a round value.
            room = _ROOM_BEYOND_DIFFERENCES * max(high - low, _MIN_RANGE)
            self.y_low, self.y_high = low - room, high + room
            self.y_ticks = [tick for tick in self.y_ticks if self.holds(tick)]

    def _shift_lines(self, chart: Chart) -> None:
        """Move the lines apart sideways, so that their deviations do not cover each other."""
        places = sorted(self.x(x) for x in {x for series in chart.series for x in series.x})
        gap = min((right - left for left, right in pairwise(places)), default=60.0)
        largest, share = (_MAX_SHIFT, _SHIFTS_OF_LINES) if chart.has_lines else (_MAX_DOT_SHIFT, _SHIFTS_OF_DOTS)
        n_lines = len(chart.series)
        step = min(largest, share * gap / max(n_lines, 1))
        self.shifts = [(place - (n_lines - 1) / 2) * step for place in range(n_lines)]
        self.margin = _INNER + step * n_lines / 2

    def _of_x(self, x: float) -> float:
        return log10(x) if self.log_x else x

    def x(self, value: float) -> float:
        share = (self._of_x(value) - self.x_low) / (self.x_high - self.x_low)
        return self.left + self.margin + share * (WIDTH - self.left - _RIGHT - 2 * self.margin)

    def _of_y(self, y: float) -> float:
        return log10(y) if self.log_y else y

    def tick_name(self, tick: float) -> str:
        return f"{tick:g}" if self.log_y else f"{tick:.{self.digits}f}"

    def y(self, value: float) -> float:
        share = (self._of_y(value) - self.y_low) / (self.y_high - self.y_low)
        return HEIGHT - _BOTTOM - share * _AREA_HEIGHT

    def holds(self, value: float) -> bool:
        return self.y_low - 1e-9 <= self._of_y(value) <= self.y_high + 1e-9


def _ends(chart: Chart, lowest: float | None = None) -> list[Ends]:
    """Return mean - deviation and mean + deviation of all points, or of those from ``lowest`` on."""
    return [
        (y - deviation, y + deviation)
        for series in chart.series
        for y, deviation in zip(series.y, _deviations(series), strict=True)
        if isfinite(y) and (lowest is None or y >= lowest)
    ]


def _deviations(series: Series) -> list[float]:
    return [deviation or 0.0 for deviation in series.deviations or (None,) * len(series.y)]


def _upper_frame(chart: Chart, whole: _Frame) -> _Frame | None:
    """Return the frame of the upper half of the points, None if that would enlarge little."""
    values = [y for series in chart.series for y in series.y if isfinite(y)]
    if len(chart.series) < 3 or not chart.has_lines or chart.log_y:
        return None
    upper = _Frame(chart, median(values))
    return upper if upper.y_high - upper.y_low < _MAX_SHARE_TO_ENLARGE * (whole.y_high - whole.y_low) else None


def _round_step(extent: float) -> float:
    """Return 1, 2 or 5 times a power of ten that cuts the extent of an axis into about five."""
    power = 10.0 ** floor(log10(extent / _Y_STEPS))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= extent / _Y_STEPS - 1e-12)


def _panel(chart: Chart, frame: _Frame, styles: dict[str, int], title: str) -> str:
    lines = "".join(
        _line(chart, frame, series, _look(styles[series.name]), shift)
        for series, shift in zip(chart.series, frame.shifts, strict=True)
    )
    label = escape(f"{title}: {chart.y_label} over {chart.x_label}")
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">'
        f"{_axes(frame, chart)}{lines}</svg>"
    )


def _axes(frame: _Frame, chart: Chart) -> str:
    parts = []
    for value in frame.y_ticks:
        y = frame.y(value)
        is_zero = chart.zero and abs(value) < frame.y_step / 2
        kind, lines = ("zero", _name_of_zero(chart)) if is_zero else ("grid", [frame.tick_name(value)])
        parts.append(f'<path class="{kind}" d="M{frame.left},{y:.1f}H{WIDTH - _RIGHT}"/>')
        for number, line in enumerate(lines):
            height = y + 4 + (number - (len(lines) - 1) / 2) * _LINE_BESIDE_ZERO
            parts.append(f'<text x="{frame.left - 6}" y="{height:.1f}" text-anchor="end">{escape(line)}</text>')
    bottom = HEIGHT - _BOTTOM
    for value, name in zip(chart.ticks, chart.tick_names or [f"{tick:g}" for tick in chart.ticks], strict=True):
        x = frame.x(value)
        parts.append(f'<path class="grid" d="M{x:.1f},{bottom}v4"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 17}" text-anchor="middle">{escape(name)}</text>')
    middle = (frame.left + WIDTH - _RIGHT) / 2
    parts.append(f'<text x="{middle:.0f}" y="{HEIGHT - 8}" text-anchor="middle">{escape(chart.x_label)}</text>')
    y_label = f'<text transform="translate(15,{(_TOP + bottom) / 2:.0f}) rotate(-90)" text-anchor="middle">'
    parts.append(f"{y_label}{escape(chart.y_label)}</text>")
    return "".join(parts)


def _name_of_zero(chart: Chart) -> list[str]:
    """Return what zero is, in lines short enough to stand beside the axis."""
    return wrap(f"0: {chart.zero}", _LETTERS_BESIDE_ZERO)


def _line(chart: Chart, frame: _Frame, series: Series, look: Look, shift: float) -> str:
    points = [(frame.x(x) + shift, frame.y(y)) for x, y in zip(series.x, series.y, strict=True)]
    drawn = []
    if chart.band:
        drawn.append(_band(frame, series, points))
    if chart.has_lines:
        drawn.append(f'<path class="line" d="{_path(points)}"{_dash(look)}/>')
    marks = []
    every = 1 + (len(points) - 1) // _MAX_MARKERS
    for number, (x, y) in enumerate(points):
        value = series.y[number]
        deviation = series.deviations[number] if series.deviations else None
        if not frame.holds(value):
            continue
        if deviation and not chart.band:
            drawn.append(_bar(frame, x, value - deviation, value + deviation))
        kind = "mark" if number % every == 0 else "mark hidden"
        tip = escape(_tip(chart, series.name, series.x[number], value, deviation))
        place = f'transform="translate({x:.1f},{y:.1f})"'
        marks.append(f'<path class="{kind}" {place} d="{look.marker}" data-tip="{tip}"/>')
    content = f"{_AREA}{''.join(drawn)}</svg>{''.join(marks)}"
    return f'<g class="{_classes(look, series.emphasized)}" data-name="{escape(series.name)}">{content}</g>'


def _path(points: list[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _bar(frame: _Frame, x: float, low: float, high: float) -> str:
    """Return a bar from low to high; an end has a cap unless it lies beyond the frame."""
    caps = "".join(f"M{x - _CAP:.1f},{frame.y(end):.1f}H{x + _CAP:.1f}" for end in (low, high) if frame.holds(end))
    return f'<path class="bar" d="M{x:.1f},{frame.y(low):.1f}V{frame.y(high):.1f}{caps}"/>'


def _band(frame: _Frame, series: Series, points: list[tuple[float, float]]) -> str:
    """Return the area between mean - deviation and mean + deviation."""
    ends = list(zip(points, series.y, _deviations(series), strict=True))
    above = [(x, frame.y(y + deviation)) for (x, _), y, deviation in ends]
    below = [(x, frame.y(y - deviation)) for (x, _), y, deviation in reversed(ends)]
    return f'<path class="band" d="{_path(above + below)}z"/>'


def _tip(chart: Chart, name: str, x: float, value: float, deviation: float | None) -> str:
    text = f"{name}: {value:{'.3g' if chart.log_y else '.3f'}}" + (
        f" ± {deviation:.3f}" if deviation is not None else ""
    )
    if chart.tick_names:
        return f"{text}, {chart.tick_names[chart.ticks.index(x)]}"
    return f"{text} at {chart.x_label} {x:.3g}"


def _look(style: int) -> Look:
    return LOOKS[style % len(LOOKS)]


def _classes(look: Look, emphasized: bool) -> str:
    return f"series c{look.color}" + (" hollow" if look.hollow else "") + (" emphasized" if emphasized else "")


def _dash(look: Look) -> str:
    return f' stroke-dasharray="{look.dash}"' if look.dash else ""
