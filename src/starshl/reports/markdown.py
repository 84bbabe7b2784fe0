"""The report as Markdown; charts stay with the HTML page, their numbers stand in tables."""

from __future__ import annotations

from .document import Block, Chart, Document, Pictures, Table, Text

__all__ = ["render_markdown"]


def render_markdown(document: Document) -> str:
    """Return the whole report as Markdown."""
    parts = [f"# {document.title}", document.subtitle + ". Written by `starshl report`; do not edit."]
    for section in document.sections:
        parts.append(f"## {section.title}")
        parts += [text for block in section.blocks if (text := _render(block))]
    return "\n\n".join(parts) + "\n"


def _render(block: Block) -> str:
    match block:
        case Text():
            return "\n".join(f"- {_escape(line)}" for line in block.lines)
        case Table():
            return _table(block)
        case Pictures():
            rows = tuple((name, f"{sum(right)} of {len(right)}") for name, _, right in block.rows)
            return _table(Table("Retrieved pictures of the query's class", ("method", "right"), rows))
        case Chart():
            return ""


def _table(table: Table) -> str:
    marks = ["---" if place < table.n_text_columns else "---:" for place in range(len(table.columns))]
    lines = [table.columns, marks]
    for number, row in enumerate(table.rows):
        lines.append([_cell(cell, (number, place) in table.strong) for place, cell in enumerate(row)])
    return f"{_escape(table.caption)}.\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(text: str, strong: bool) -> str:
    text = _escape(" ".join(text.split()))
    return f"**{text}**" if strong else text


def _escape(text: str) -> str:
    """Keep the star of *SHL and the bars of a table from being read as markup."""
    return text.replace("*", "\\*").replace("|", "\\|").replace("<", "&lt;")
