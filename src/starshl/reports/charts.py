"""Charts as inline SVG: complete without a script, told apart by color, dash and marker alike."""

from __future__ import annotations

from html import escape
from math import floor, isfinite, log10

from .document import Chart, Series

__all__ = ["MARKERS", "N_COLORS", "legend_sample", "render_chart"]

N_COLORS = 8  # .c0 to .c7 of page.css
_DASHES = ("", "7 3", "2 3", "9 3 2 3", "4 2")
MARKERS = (
    "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0z",
    "M-3.5,-3.5h7v7h-7z",
    "M0,-4.6L4.4,3.4H-4.4z",
    "M0,-5L5,0L0,5L-5,0z",
    "M0,4.6L4.4,-3.4H-4.4z",
    "M-4,-1.4h2.6v-2.6h2.8v2.6h2.6v2.8h-2.6v2.6h-2.8v-2.6h-2.6z",
    "M-4.6,0L0,-2.2L4.6,0L0,2.2z",
)

_WIDTH, _HEIGHT = 480, 310
_LEFT, _RIGHT, _TOP, _BOTTOM = 68, 14, 14, 46
_MOST_MARKERS = 13
_Y_STEPS = 5
_SMALLEST_SPREAD = 0.02


def render_chart(chart: Chart, styles: dict[str, int]) -> str:
    """Return a figure with its caption; ``styles`` numbers the lines."""
    frame = _Frame(chart)
    lines = "".join(_line(frame, series, styles[series.name], chart.x_label) for series in chart.series)
    label = escape(f"{chart.title}: {chart.y_label} over {chart.x_label}")
    svg = (
        f'<svg class="chart" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{label}">'
        f"{_axes(frame, chart)}{lines}</svg>"
    )
    return f"<figure><figcaption>{escape(chart.title)}</figcaption>{svg}</figure>"


def legend_sample(style: int) -> str:
    """Return a short piece of a line, for a legend."""
    return (
        f'<svg class="sample {_classes("", style)}" viewBox="0 0 36 14" aria-hidden="true">'
        f'<path class="line" d="M1,7H35"{_dash(style)}/>'
        f'<path class="mark" transform="translate(18,7)" d="{MARKERS[style % len(MARKERS)]}"/></svg>'
    )


class _Frame:
    """Maps values to places; y is cut to what the lines need, in round steps."""

    def __init__(self, chart: Chart):
        xs = [*chart.ticks, *(x for series in chart.series for x in series.x)] or [0.0, 1.0]
        ys = [y for series in chart.series for y in series.y if isfinite(y)] or [0.0, 1.0]
        self.log_x = chart.log_x
        self.x_low, self.x_high = self._of_x(min(xs)), self._of_x(max(xs))
        if self.x_low == self.x_high:
            self.x_low, self.x_high = self.x_low - 1, self.x_high + 1
        self.y_step = _round_step(max(max(ys) - min(ys), _SMALLEST_SPREAD))
        self.y_low = max(0.0, floor(min(ys) / self.y_step - 0.3) * self.y_step)
        n_steps = 1
        while self.y_low + n_steps * self.y_step < max(ys) - 1e-9:
            n_steps += 1
        self.y_ticks = [self.y_low + k * self.y_step for k in range(n_steps + 1)]

    def _of_x(self, x: float) -> float:
        return log10(x) if self.log_x else x

    def x(self, value: float) -> float:
        share = (self._of_x(value) - self.x_low) / (self.x_high - self.x_low)
        return _LEFT + 8 + share * (_WIDTH - _LEFT - _RIGHT - 16)

    def y(self, value: float) -> float:
        share = (value - self.y_low) / (self.y_ticks[-1] - self.y_low)
        return _HEIGHT - _BOTTOM - min(max(share, 0.0), 1.0) * (_HEIGHT - _TOP - _BOTTOM)


def _round_step(spread: float) -> float:
    """Return 1, 2 or 5 times a power of ten that cuts the spread into about five."""
    power = 10.0 ** floor(log10(spread / _Y_STEPS))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= spread / _Y_STEPS - 1e-12)


def _axes(frame: _Frame, chart: Chart) -> str:
    parts = []
    digits = 2 if frame.y_step > 0.009 else 3
    for value in frame.y_ticks:
        y = frame.y(value)
        parts.append(f'<path class="grid" d="M{_LEFT},{y:.1f}H{_WIDTH - _RIGHT}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:.{digits}f}</text>')
    bottom = _HEIGHT - _BOTTOM
    for value in chart.ticks:
        x = frame.x(value)
        parts.append(f'<path class="grid" d="M{x:.1f},{bottom}v4"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 17}" text-anchor="middle">{value:g}</text>')
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(f'<text x="{middle:.0f}" y="{_HEIGHT - 8}" text-anchor="middle">{escape(chart.x_label)}</text>')
    y_label = f'<text transform="translate(15,{(_TOP + bottom) / 2:.0f}) rotate(-90)" text-anchor="middle">'
    parts.append(f"{y_label}{escape(chart.y_label)}</text>")
    return "".join(parts)


def _line(frame: _Frame, series: Series, style: int, x_label: str) -> str:
    points = [(frame.x(x), frame.y(y)) for x, y in zip(series.x, series.y, strict=True)]
    path = "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in points)
    parts = [f'<path class="line" d="{path}"{_dash(style)}/>']
    shape = MARKERS[style % len(MARKERS)]
    every = 1 + (len(points) - 1) // _MOST_MARKERS
    spreads = series.spread or (None,) * len(points)
    for number, ((x, y), spread) in enumerate(zip(points, spreads, strict=True)):
        if spread:
            low, high = (frame.y(series.y[number] + sign * spread) for sign in (-1, 1))
            parts.append(f'<path class="bar" d="M{x:.1f},{low:.1f}V{high:.1f}"/>')
        told = f"{series.name}: {series.y[number]:.3f}" + (f" ± {spread:.3f}" if spread is not None else "")
        told += f" at {x_label} {series.x[number]:.3g}"
        kind = "mark" if number % every == 0 else "mark hidden"
        place = f'transform="translate({x:.1f},{y:.1f})"'
        parts.append(f'<path class="{kind}" {place} d="{shape}" data-tip="{escape(told)}"/>')
    return f'<g class="{_classes(series.name, style)}" data-name="{escape(series.name)}">{"".join(parts)}</g>'


def _classes(name: str, style: int) -> str:
    return f"series c{style % N_COLORS}" + (" star" if name.startswith("*SHL") else "")


def _dash(style: int) -> str:
    dash = _DASHES[style % len(_DASHES)]
    return f' stroke-dasharray="{dash}"' if dash else ""
