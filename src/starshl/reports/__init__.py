"""Tables, charts and pages made from run summaries; nothing here knows a method or a paper."""

from .document import Chart, Document, Pictures, Section, Series, Table, Text
from .results import MethodRun, ProtocolResults, Results, read_results
from .statistics import Paired, Summary, paired, summarize
from .tables import line_over, table_of_means
from .write import WrittenReport, write_document

__all__ = [
    "Chart",
    "Document",
    "MethodRun",
    "Paired",
    "Pictures",
    "ProtocolResults",
    "Results",
    "Section",
    "Series",
    "Summary",
    "Table",
    "Text",
    "WrittenReport",
    "line_over",
    "paired",
    "read_results",
    "summarize",
    "table_of_means",
    "write_document",
]
