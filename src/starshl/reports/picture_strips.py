"""What each method retrieves for a query, as one SVG file: a strip of pictures per method."""

from __future__ import annotations

from html import escape

import numpy as np

from .document import Pictures, n_right
from .png import png_data_uri
from .standalone import colors_css

__all__ = ["render_strips"]

_SIDE, _GAP, _MARGIN, _LEFT = 40, 4, 12, 190
# Gray levels that a reader of small pictures cannot tell apart cost a third of the file.
_LEVELS = 32


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
        parts.append(_placed(name_of(block.query), _LEFT, y, "query"))
        for place, (image, good) in enumerate(zip(images, right, strict=True)):
            x = _LEFT + _MARGIN + (place + 1) * step
            parts.append(_placed(name_of(image), x, y, "wrong" if good is False else "right"))
    width, height = _LEFT + 2 * _MARGIN + (longest + 1) * step, top + len(block.rows) * step + _MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{escape(title)}"><style>{colors_css()}{_CSS}</style><defs>{"".join(pictures)}</defs>'
        f'<rect width="{width}" height="{height}" class="ground"/>{"".join(parts)}</svg>\n'
    )


_CSS = (
    ".ground { fill: var(--ground); } text { font: 13px system-ui, sans-serif; fill: var(--ink); }"
    ".title { font-weight: 600; font-size: 15px; } .count { font-size: 11px; }"
    ".frame { fill: none; stroke: var(--ink); } .frame.query { stroke-width: 2; } .frame.right { stroke: none; }"
    ".frame.wrong { stroke-dasharray: 4 3; stroke-width: 1.5; } use.wrong { opacity: 0.45; }"
)


def _placed(name: str, x: int, y: int, kind: str) -> str:
    frame = f'<rect class="frame {kind}" x="{x}" y="{y}" width="{_SIDE}" height="{_SIDE}"/>'
    return f'<use class="{kind}" href="#{name}" x="{x}" y="{y}"/>{frame}'


def _coarse(image: np.ndarray) -> np.ndarray:
    step = 256 // _LEVELS
    return np.minimum(image // step * step + step // 2, 255).astype(np.uint8)
