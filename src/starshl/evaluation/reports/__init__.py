"""Tables, charts and pages made from run summaries; nothing here knows a method or a paper."""

from __future__ import annotations

from .document import Chart, Document, Pictures, Section, Series, Table, Text, line_over, table_of_means
from .statistics import Paired, Summary, paired, summarize

__all__ = [
    "Chart",
    "Document",
    "Paired",
    "Pictures",
    "Section",
    "Series",
    "Summary",
    "Table",
    "Text",
    "line_over",
    "paired",
    "summarize",
    "table_of_means",
]
