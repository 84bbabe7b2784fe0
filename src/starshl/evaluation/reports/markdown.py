"""The report as Markdown; charts are pictures in separate files, or left out: their numbers are in the tables."""

from __future__ import annotations

import re
from collections.abc import Mapping

from .document import Block, Chart, Commands, Document, Drawing, Links, Lists, Pictures, Table, Text, n_right


def render_markdown(document: Document, drawings: Mapping[str, tuple[str, str]] | None = None) -> str:
    """Return the whole report as Markdown; ``drawings`` maps anchors of sections to title and file of their charts."""
    subtitle = f"{_escape(document.subtitle)}. Written by `starshl report`; do not edit."
    parts = [f"# {_escape(document.title)}", subtitle]
    for section in document.sections:
        parts.append(f"## {_escape(section.title)}")
        drawing = (drawings or {}).get(section.anchor)
        for block in section.blocks:
            if isinstance(block, Chart) and drawing:
                title, address = drawing
                parts.append(f"![{_escape(title)}]({address})")
                drawing = None  # one file holds all charts of a section
            elif text := _render(block):
                parts.append(text)
    return "\n\n".join(parts) + "\n"


def _render(block: Block) -> str:
    match block:
        case Text():
            return "\n".join(f"- {_escape(line)}" for line in block.lines)
        case Table():
            return _table(block)
        case Pictures():
            rows = tuple((name, n_right(right)) for name, _, right in block.rows)
            return _table(Table("Retrieved pictures of the query's class", ("method", "right"), rows))
        case Lists():
            found = tuple((name, n_right(right), "; ".join(texts)) for name, texts, right in block.rows)
            caption = f"{block.caption}: {block.query}"
            return _table(Table(caption, ("method", "right", "found"), found, n_text_columns=3))
        case Links():
            return "\n".join(f"- [{_escape(text)}]({address})" for text, address in block.links)
        case Commands():
            return "\n".join(f"- `{command}`: {_escape(what)}" for command, what in block.commands)
        case Drawing():
            return f"![{_escape(block.caption)}]({block.address})"
        case Chart():
            return ""


def _table(table: Table) -> str:
    marks = ["---" if place < table.n_text_columns else "---:" for place in range(len(table.columns))]
    lines = [[_escape(column) for column in table.columns], marks]
    for number, row in enumerate(table.rows):
        lines.append([_cell(cell, (number, place) in table.strong) for place, cell in enumerate(row)])
    return f"{_escape(table.caption)}.\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(text: str, strong: bool) -> str:
    text = _escape(text)
    return f"**{text}**" if strong else text


def _escape(text: str) -> str:
    r"""Return text as one line in which nothing is read as markup: no links, emphasis, code, HTML, cells or headings.

    Examples
    --------
    >>> print(_escape("*SHL [here](https://example.org) | <b>"))
    \*SHL \[here\](https\://example.org) \| &lt;b>
    """
    text = re.sub(r"([\\`*|\[\]~])", r"\\\1", " ".join(text.split()))
    text = text.replace("&", "&amp;").replace("<", "&lt;")
    # GitHub links bare addresses too.
    text = re.sub(r"://", r"\://", text)
    text = re.sub(r"(?i)\b(www)\.", r"\1\.", text)
    text = re.sub(r"(?<=\w)@(?=\w+\.\w)", "&#64;", text)
    # Underscores within words are plain text.
    text = re.sub(r"(?<!\w)_|_(?!\w)", r"\_", text)
    return re.sub(r"^(#|>|\+|-|\d+[.)])(?=\s|$)", lambda mark: _escaped_start(mark.group()), text)


def _escaped_start(mark: str) -> str:
    return f"{mark[:-1]}\\{mark[-1]}"
