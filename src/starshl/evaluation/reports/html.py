"""The report as a single HTML file that needs no network and no other file; gray pictures are in it as PNG."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Collection
from html import escape
from importlib.resources import files

import numpy as np

from .charts import LOOKS, legend_sample, names_with_lines, render_chart, shared_ends
from .document import Block, Chart, Commands, Document, Drawing, Links, Lists, Pictures, Section, Table, Text, n_right

# The looks with star-shaped markers are for emphasized lines.
_EMPHASIZED_STYLES = (1, 0, 13)
_OTHER_STYLES = (*range(2, 13), 0)
_READING = (
    "Bars and areas extend one standard deviation over runs to either side of the mean. Points with bars are moved a "
    "little sideways, so that the bars do not overlap; each belongs to the marked value next to it. In an enlarged "
    "part, a bar without a cap continues below."
)
_COLLAPSE_ABOVE_ROWS = 12  # longer than a screen on a phone
# Whether what was retrieved is right: the class of its element, and what a reader is told.
_KINDS = {True: "right", False: "wrong", None: "unknown"}
_MEANINGS = {True: "the same class", False: "another class", None: "class unknown"}
_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def render_page(document: Document) -> str:
    """Return the whole report as HTML."""
    css, js = (files(__package__).joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    links = "".join(f'<a href="#{escape(s.anchor)}">{escape(s.title)}</a>' for s in document.sections)
    sections = "".join(_section(section, document.styles) for section in document.sections)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(document.title)}</title><style>{css}</style></head><body>"
        f"<header><h1>{escape(document.title)}</h1><p>{escape(document.subtitle)}</p></header>"
        f"<nav>{links}</nav><main>{sections}</main>"
        f'<div id="tip" role="status" hidden></div><script>{js}</script></body></html>\n'
    )


def _section(section: Section, fixed: dict[str, int]) -> str:
    charts = [block for block in section.blocks if isinstance(block, Chart)]
    emphasized = {series.name: series.emphasized for chart in charts for series in chart.series}
    styles = styles_of(emphasized, fixed)
    parts = []
    for block in section.blocks:
        if not isinstance(block, Chart):
            parts.append(_render(block))
        elif block is charts[0]:
            shared = shared_ends(charts)
            panels = "".join(render_chart(chart, styles, shared) for chart in charts)
            legend = _legend(styles, emphasized, names_with_lines(charts))
            has_bars = any(series.deviations for chart in charts for series in chart.series)
            reading = f'<p class="caption">{_READING}</p>' if has_bars else ""
            parts.append(f'{legend}{reading}<div class="charts">{panels}</div>')
    body = "".join(parts)
    return f'<section id="{escape(section.anchor)}"><h2>{escape(section.title)}</h2>{body}</section>'


def styles_of(emphasized: dict[str, bool], fixed: dict[str, int]) -> dict[str, int]:
    """Return the number of the look of each line: the fixed one, or a free one, with its own color if possible."""
    styles = {name: fixed[name] for name in emphasized if name in fixed}
    for name, strong in emphasized.items():
        if name not in styles:
            order = _EMPHASIZED_STYLES + _OTHER_STYLES if strong else _OTHER_STYLES
            colors = {LOOKS[style].color for style in styles.values()}
            free = [style for style in order if style not in styles.values()]
            styles[name] = min(free, key=lambda style: LOOKS[style].color in colors, default=len(styles))
    return {name: styles[name] for name in emphasized}


def _legend(styles: dict[str, int], emphasized: dict[str, bool], with_lines: Collection[str]) -> str:
    buttons = "".join(
        f'<button type="button" aria-pressed="true" data-toggle="{escape(name)}">'
        f"{legend_sample(style, emphasized=emphasized[name], line=name in with_lines)}{escape(name)}</button>"
        for name, style in styles.items()
    )
    return f'<div class="legend" aria-label="Show or hide a method">{buttons}</div>'


def _render(block: Block) -> str:
    match block:
        case Text():
            if len(block.lines) == 1:
                return f"<p>{escape(block.lines[0])}</p>"
            return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in block.lines) + "</ul>"
        case Table():
            return _table(block)
        case Pictures():
            return _pictures(block)
        case Lists():
            return _lists(block)
        case Links():
            links = (f'<li><a href="{escape(address)}">{escape(text)}</a></li>' for text, address in block.links)
            return f"<ul>{''.join(links)}</ul>"
        case Commands():
            lines = (f"<li><code>{escape(command)}</code><br>{escape(what)}</li>" for command, what in block.commands)
            return f"<ul>{''.join(lines)}</ul>"
        case Drawing():
            return f'<p><img alt="{escape(block.caption)}" src="{escape(block.address)}"></p>'
        case _:
            raise TypeError(f"A report cannot show a {type(block).__name__}.")


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in table.columns)
    rows = []
    for number, row in enumerate(table.rows):
        cells = [_cell(text, place, (number, place) in table.strong, table) for place, text in enumerate(row)]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    body = f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    caption = f"{escape(table.caption)}."
    all_text = table.n_text_columns == len(table.columns)
    if all_text and not table.tones and len(table.rows) > _COLLAPSE_ABOVE_ROWS:
        return f"<details><summary>{caption}</summary>{body}</details>"
    return f'<p class="caption">{caption}</p>{body}'


def _cell(text: str, place: int, strong: bool, table: Table) -> str:
    content = f"<b>{escape(text)}</b>" if strong else escape(text)
    if text in table.tones:
        return f'<td class="verdict {table.tones[text]}">{content}</td>'
    if place == 0:
        return f'<th scope="row">{content}</th>'
    return f'<td class="{"text" if place < table.n_text_columns else "number"}">{content}</td>'


def _pictures(block: Pictures) -> str:
    query = _image(block.query, "query", "query")
    rows = []
    for name, images, right in block.rows:
        shown = "".join(
            _image(image, _KINDS[good], f"retrieved, {_MEANINGS[good]}")
            for image, good in zip(images, right, strict=True)
        )
        label = f"{escape(name)}<small>{n_right(right)}</small>"
        rows.append(f'<div class="strip"><span>{label}</span><div>{query}{shown}</div></div>')
    return f'<p class="caption">{escape(block.caption)}.</p><div class="pictures">{"".join(rows)}</div>'


def _image(image: np.ndarray, kind: str, text: str) -> str:
    return f'<img class="{kind}" alt="{text}" src="{png_data_uri(image)}">'


def _lists(block: Lists) -> str:
    cards = []
    for name, texts, right in block.rows:
        lines = "".join(
            f'<li class="{_KINDS[good]}" title="{_MEANINGS[good]}">{escape(text)}</li>'
            for text, good in zip(texts, right, strict=True)
        )
        cards.append(f"<div><h4>{escape(name)} <small>{n_right(right)}</small></h4><ol>{lines}</ol></div>")
    heading = f'<p class="caption">{escape(block.caption)}</p><h3>{escape(block.query)}</h3>'
    return f'{heading}<div class="lists">{"".join(cards)}</div>'


def png_data_uri(image: np.ndarray) -> str:
    """Return the PNG as an address that an HTML page can hold itself."""
    return "data:image/png;base64," + base64.b64encode(encode_png(image)).decode()


def encode_png(image: np.ndarray) -> bytes:
    """Return an 8-bit gray PNG of a uint8 array of shape (height, width).

    Examples
    --------
    >>> import numpy as np
    >>> encode_png(np.zeros((2, 3), np.uint8))[1:4]
    b'PNG'
    """
    image = np.ascontiguousarray(image)
    if image.ndim != 2 or image.dtype != np.uint8 or not image.size:
        raise ValueError(
            f"The image is {image.dtype} of shape {image.shape}; it must be uint8 of shape (height, width). Convert it."
        )
    height, width = image.shape
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)  # 8 bits, gray, no interlace
    # Every line begins with the number of its filter; 0 leaves the bytes as they are.
    lines = np.hstack([np.zeros((height, 1), np.uint8), image]).tobytes()
    return _PNG_SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(lines, 9)) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
