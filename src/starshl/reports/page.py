"""The report as one HTML file that needs nothing else: no network, no other file."""

from __future__ import annotations

from html import escape
from importlib.resources import files

from ..experiments import CONTESTANTS
from .charts import LOOKS, legend_sample, render_chart
from .document import Block, Chart, Document, Pictures, Section, Table, Text
from .png import png_data_uri

__all__ = ["render_page"]

# Rivals come first, because the first eight looks differ in color too.
_RETRIEVAL_LOOKS = (
    *("starshl-paper", "starshl", "ksh", "ksh-all", "hc-sdh", "codeword-svm", "svc", "float"),
    *("bre", "1-agh", "2-agh", "sph", "lsh"),
)
_STYLES = {CONTESTANTS[key].title: place for place, key in enumerate(_RETRIEVAL_LOOKS)}
_STAR_STYLES = (1, 0, 13)
_OTHER_STYLES = (*range(2, 13), 0)
_VERDICTS = {
    "holds": "yes",
    "holds so far": "yes",
    "does not hold": "no",
    "not clear": "open",
    "not measured": "open",
}
_READING = (
    "Bars and areas reach one deviation over runs to both sides of the mean. Lines with bars are moved a little "
    "sideways, so that the bars do not cover each other. In an enlarged part, a bar without a cap goes on below."
)
_LONG = 12


def render_page(document: Document) -> str:
    """Return the whole report as HTML."""
    css, js = (files(__package__).joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    links = "".join(f'<a href="#{escape(s.anchor)}">{escape(s.title)}</a>' for s in document.sections)
    sections = "".join(_section(section) for section in document.sections)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(document.title)}</title><style>{css}</style></head><body>"
        f"<header><h1>{escape(document.title)}</h1><p>{escape(document.subtitle)}</p></header>"
        f"<nav>{links}</nav><main>{sections}</main>"
        f'<div id="tip" role="status" hidden></div><script>{js}</script></body></html>\n'
    )


def _section(section: Section) -> str:
    charts = [block for block in section.blocks if isinstance(block, Chart)]
    styles = _styles([series.name for chart in charts for series in chart.series])
    parts = []
    for block in section.blocks:
        if not isinstance(block, Chart):
            parts.append(_render(block))
        elif block is charts[0]:
            panels = "".join(render_chart(chart, styles) for chart in charts)
            parts.append(f'{_legend(styles)}<p class="caption">{_READING}</p><div class="charts">{panels}</div>')
    body = "".join(parts)
    return f'<section id="{escape(section.anchor)}"><h2>{escape(section.title)}</h2>{body}</section>'


def _styles(names: list[str]) -> dict[str, int]:
    """Number the looks of lines: a method looks alike wherever it stands, and a star stands for *SHL only."""
    unique = list(dict.fromkeys(names))
    styles = {name: _STYLES[name] for name in unique if name in _STYLES}
    for name in unique:
        if name not in styles:
            order = _STAR_STYLES + _OTHER_STYLES if name.startswith("*SHL") else _OTHER_STYLES
            colors = {LOOKS[style].color for style in styles.values()}
            free = [style for style in order if style not in styles.values()]
            styles[name] = min(free, key=lambda style: LOOKS[style].color in colors, default=len(styles))
    return {name: styles[name] for name in unique}


def _legend(styles: dict[str, int]) -> str:
    buttons = "".join(
        f'<button type="button" aria-pressed="true" data-toggle="{escape(name)}">{legend_sample(name, style)}'
        f"{escape(name)}</button>"
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
        case _:
            raise TypeError(f"A report has no way to show {type(block).__name__}.")


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in table.columns)
    rows = []
    for number, row in enumerate(table.rows):
        cells = [_cell(text, place, (number, place) in table.strong, table) for place, text in enumerate(row)]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    body = f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    caption = f"{escape(table.caption)}."
    if table.columns[0] != "claim" and len(table.rows) > _LONG and table.n_text_columns == len(table.columns):
        return f"<details><summary>{caption}</summary>{body}</details>"
    return f'<p class="caption">{caption}</p>{body}'


def _cell(text: str, place: int, strong: bool, table: Table) -> str:
    content = f"<b>{escape(text)}</b>" if strong else escape(text)
    if text in _VERDICTS:
        return f'<td class="verdict {_VERDICTS[text]}">{content}</td>'
    if place == 0:
        return f'<th scope="row">{content}</th>'
    return f'<td class="{"text" if place < table.n_text_columns else "number"}">{content}</td>'


def _pictures(block: Pictures) -> str:
    query = _image(block.query, "query", "query")
    rows = []
    for name, images, right in block.rows:
        shown = "".join(
            _image(image, "right" if good else "wrong", f"retrieved, {'the same class' if good else 'another class'}")
            for image, good in zip(images, right, strict=True)
        )
        label = f"{escape(name)}<small>{sum(right)} of {len(right)}</small>"
        rows.append(f'<div class="strip"><span>{label}</span><div>{query}{shown}</div></div>')
    return f'<p class="caption">{escape(block.caption)}.</p><div class="pictures">{"".join(rows)}</div>'


def _image(image, kind: str, text: str) -> str:
    return f'<img class="{kind}" alt="{text}" src="{png_data_uri(image)}">'
