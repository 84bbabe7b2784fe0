"""Charts, and strips of retrieved pictures, as separate SVG files for pages without HTML, light and dark."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from math import ceil

import numpy as np

from .charts import HEIGHT, WIDTH, Ends, legend_sample, names_with_lines, render_chart, shared_ends
from .document import Chart, Pictures, n_right
from .html import png_data_uri

_CHARTS_PER_ROW = 2
_MARGIN, _TITLE, _LEGEND_LINE = 12, 26, 22
_NOTE_LINE = 18
_MOVED = (
    "Points with bars are moved a little sideways, so that the bars do not",
    "overlap; each belongs to the marked value next to it.",
)
_SAMPLE, _ENTRY_SIZE = 52, 13  # pixels of a legend: a piece of a line, and the size of its letters
_LEGEND_COLUMNS_PER_PANEL = 2
# In pixels, and as a share of it that suits most fonts; names are shorter than titles and need more room for wide ones.
_TITLE_SIZE, _WIDTH_OF_LETTER, _WIDTH_OF_LETTER_IN_NAME = 18.0, 0.56, 0.62
# Of the strips of pictures: the side of one, the gap between two, and the room for names, in pixels.
_SIDE, _GAP, _NAMES_WIDTH = 40, 4, 190
# Gray levels that a reader of small pictures cannot tell apart cost a third of the file.
_LEVELS = 32
_STRIPS_CSS = (
    ".ground { fill: var(--ground); } text { font: 13px system-ui, sans-serif; fill: var(--ink); }"
    ".title { font-weight: 600; font-size: 15px; } .count { font-size: 11px; }"
    ".frame { fill: none; stroke: var(--ink); } .frame.query { stroke-width: 2; } .frame.right { stroke: none; }"
    ".frame.wrong { stroke-dasharray: 4 3; stroke-width: 1.5; } use.wrong { opacity: 0.45; }"
)


def render_standalone(charts: Sequence[Chart], styles: Mapping[str, int], *, title: str) -> str:
    """Return one SVG with the charts side by side under a title, and one legend for all of them below.

    ``styles`` numbers the looks of the lines (see :mod:`starshl.evaluation.reports.charts`). Only the first panel of
    each chart is drawn.
    """
    n_columns = min(_CHARTS_PER_ROW, len(charts))
    n_rows = -(-len(charts) // n_columns)
    width = max(n_columns * (WIDTH + _MARGIN) + _MARGIN, _legend_column(charts) + 2 * _MARGIN)
    panel_height = HEIGHT + _TITLE
    top = _TITLE + 2 * _MARGIN
    size = min(_TITLE_SIZE, (width - 2 * _MARGIN) / max(1.0, _WIDTH_OF_LETTER * len(title)))
    parts = [f'<text class="title" x="{_MARGIN}" y="{_TITLE}" font-size="{size:.1f}">{escape(title)}</text>']
    shared = shared_ends(charts)
    for number, chart in enumerate(charts):
        x, y = _MARGIN + number % n_columns * (WIDTH + _MARGIN), top + number // n_columns * panel_height
        parts.append(f'<text class="caption" x="{x + 6}" y="{y + 14}">{escape(chart.title)}</text>')
        parts.append(_placed(_first_panel(chart, dict(styles), shared), x, y + _TITLE, WIDTH, HEIGHT))
    legend_top = top + n_rows * panel_height + _MARGIN
    legend, legend_height = _legend(charts, styles, legend_top, width)
    height = legend_top + legend_height + _MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{escape(title)}"><style>{_css()}</style>'
        f'<rect width="{width}" height="{height}" class="ground"/>{"".join(parts)}{legend}</svg>\n'
    )


def _first_panel(chart: Chart, styles: dict[str, int], shared: Sequence[Ends]) -> str:
    figure = render_chart(chart, styles, shared)
    panel = re.search(r'<svg class="chart".*?</svg>(?=<div>|</div></figure>)', figure, flags=re.DOTALL)
    if panel is None:
        raise ValueError(f"The chart {chart.title!r} has no panel.")
    # Tips are read by the script of a page, which a picture does not have.
    return re.sub(r' data-(tip|name)="[^"]*"', "", panel.group())


def _placed(svg: str, x: float, y: float, width: float, height: float) -> str:
    return svg.replace("<svg ", f'<svg x="{x}" y="{y}" width="{width}" height="{height}" ', 1)


def _legend(charts: Sequence[Chart], styles: Mapping[str, int], top: int, width: int) -> tuple[str, int]:
    """Return a legend, with a note where points are not quite at their place, and its height."""
    names = {series.name: series.emphasized for chart in charts for series in chart.series}
    with_lines = names_with_lines(charts)
    room = width - 2 * _MARGIN
    n_columns = max(1, min(width // WIDTH * _LEGEND_COLUMNS_PER_PANEL, room // _legend_column(charts)))
    column = room / n_columns
    parts = []
    for place, (name, emphasized) in enumerate(names.items()):
        x, y = _MARGIN + place % n_columns * column, top + place // n_columns * _LEGEND_LINE
        sample = legend_sample(styles[name], emphasized=emphasized, line=name in with_lines)
        parts.append(_placed(sample, x, y, 44, 16))
        parts.append(f'<text class="entry" x="{x + _SAMPLE:.0f}" y="{y + 13}">{escape(name)}</text>')
    height = -(-len(names) // n_columns) * _LEGEND_LINE
    if any(chart.is_moved for chart in charts):
        for line in _MOVED:
            parts.append(f'<text class="note" x="{_MARGIN}" y="{top + height + 13}">{line}</text>')
            height += _NOTE_LINE
    return "".join(parts), height


def _legend_column(charts: Sequence[Chart]) -> int:
    """Return how wide an entry is: a piece of a line, the longest name, and the gap to the next column."""
    longest = max((len(series.name) for chart in charts for series in chart.series), default=0)
    return ceil(_SAMPLE + _WIDTH_OF_LETTER_IN_NAME * _ENTRY_SIZE * longest) + _MARGIN


def _css() -> str:
    """Return the colors and lines of the report page, and the texts that only a picture has."""
    lines = re.findall(
        r"^(?:\.chart text|\.grid|\.zero|\.series[ .][^{]*|\.c\d) \{.*$", _page_css(), flags=re.MULTILINE
    )
    own = (
        ".ground { fill: var(--ground); } text { font-family: system-ui, sans-serif; fill: var(--ink); }"
        ".title { font-weight: 600; } .caption { font-size: 14px; font-weight: 600; }"
        f".entry {{ font-size: {_ENTRY_SIZE}px; }} .note {{ font-size: 12px; fill: var(--faint); }}"
    )
    return _colors_css() + "\n".join(lines) + own


def render_strips(block: Pictures, *, title: str) -> str:
    """Return the query and the rows of a block; wrong pictures have a dashed frame and are paler.

    A picture that several methods retrieve is stored once.
    """
    names: dict[bytes, str] = {}
    pictures: list[str] = []

    def name_of(image: np.ndarray) -> str:
        key = image.tobytes()
        if key not in names:
            names[key] = f"i{len(names)}"
            source = png_data_uri(_coarse(image))
            pictures.append(f'<image id="{names[key]}" width="{_SIDE}" height="{_SIDE}" href="{source}"/>')
        return names[key]

    step, top = _SIDE + _GAP, 2 * _MARGIN + 16
    longest = max(len(images) for _, images, _ in block.rows)
    parts = [f'<text class="title" x="{_MARGIN}" y="{_MARGIN + 14}">{escape(title)}</text>']
    for number, (name, images, right) in enumerate(block.rows):
        y = top + number * step
        parts.append(f'<text x="{_MARGIN}" y="{y + 18}">{escape(name)}</text>')
        parts.append(f'<text class="count" x="{_MARGIN}" y="{y + 34}">{n_right(right)}</text>')
        parts.append(_framed(name_of(block.query), _NAMES_WIDTH, y, "query"))
        for place, (image, good) in enumerate(zip(images, right, strict=True)):
            x = _NAMES_WIDTH + _MARGIN + (place + 1) * step
            parts.append(_framed(name_of(image), x, y, "wrong" if good is False else "right"))
    width, height = _NAMES_WIDTH + 2 * _MARGIN + (longest + 1) * step, top + len(block.rows) * step + _MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{escape(title)}"><style>{_colors_css()}{_STRIPS_CSS}</style>'
        f"<defs>{''.join(pictures)}</defs>"
        f'<rect width="{width}" height="{height}" class="ground"/>{"".join(parts)}</svg>\n'
    )


def _framed(name: str, x: int, y: int, kind: str) -> str:
    frame = f'<rect class="frame {kind}" x="{x}" y="{y}" width="{_SIDE}" height="{_SIDE}"/>'
    return f'<use class="{kind}" href="#{name}" x="{x}" y="{y}"/>{frame}'


def _coarse(image: np.ndarray) -> np.ndarray:
    step = 256 // _LEVELS
    return np.minimum(image // step * step + step // 2, 255).astype(np.uint8)


def _colors_css() -> str:
    """Return the colors of the report page, for light and dark."""
    root = re.match(r":root \{.*?\n\}\n@media \(prefers-color-scheme: dark\) \{.*?\n\}\n", _page_css(), flags=re.DOTALL)
    if root is None:
        raise ValueError("page.css does not begin with the colors of light and dark pages.")
    return root.group()


def _page_css() -> str:
    return files(__package__).joinpath("page.css").read_text(encoding="utf-8")
