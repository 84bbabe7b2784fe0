"""The first lines of every section: which rows, where they come from, and whether everything was run."""

from __future__ import annotations

from ..datasets.registry import ENTRIES
from ..reports.document import Text, counted
from ..reports.results import ProtocolResults
from .extent import extent_of

__all__ = [
    "UNPUBLISHED_DATA_NOTE",
    "completeness",
    "extent_line",
    "introduction",
    "marked_name",
    "section_title",
    "unpublished",
]

# Readers of a single table must see it there.
UNPUBLISHED_DATA_NOTE = (
    "(1) The paper's selection of 6,878 samples of PASCAL VOC 2007 was never published. The figures of paper-pascal07 "
    "are for other rows; they can neither confirm nor refute the paper's."
)

_UNPUBLISHED_DATA_SETS = ("pascal07",)

_TASKS = {
    "retrieval": "retrieval",
    "transductive": "inductive and transductive",
    "labels": "few labels",
    "unsupervised": "no labels",
}


def section_title(protocol: ProtocolResults) -> str:
    """Return a heading, such as "usps: retrieval (reduced)"."""
    return f"{protocol.dataset}: {_TASKS[protocol.task]}" + (" (reduced)" if protocol.reduced else "")


def marked_name(protocol: str, dataset: str) -> str:
    """Return the name of a protocol, with a footnote mark if the paper's rows are not available."""
    return f"{protocol} (1)" if unpublished(dataset) else protocol


def unpublished(dataset: str) -> bool:
    """Tell whether the paper's own rows of a data set are not available."""
    return dataset in _UNPUBLISHED_DATA_SETS


def introduction(protocol: ProtocolResults, *, with_extent: bool = True) -> Text:
    """Return what a reader of the figures must know first."""
    lines = [extent_line(protocol)] if with_extent else []
    # From the registry, because the file of the data set may be missing or damaged.
    notes = [note for entry in ENTRIES if entry.name == protocol.dataset for note in entry.notes]
    if protocol.base is not None and protocol.base.about:
        # The notes already hold what a retrieval protocol says about its data set.
        about = protocol.base.about.split("; ")[0] if notes and protocol.task == "retrieval" else protocol.base.about
        lines.append(f"{about}.")
    return Text((*lines, *notes))


def extent_line(protocol: ProtocolResults) -> str:
    """Say how large a protocol is and how much of it was run."""
    sizes = f"{protocol.n_train:,} training rows, {protocol.n_query:,} queries, {counted(protocol.n_runs, 'run')}"
    extent = completeness(protocol)
    return f"Protocol {protocol.name}: {sizes}. {extent[:1].upper()}{extent[1:]}."


def completeness(protocol: ProtocolResults) -> str:
    """Say whether the whole protocol was run, or what is missing."""
    if protocol.base is None:
        return "not one of the named protocols"
    missing = extent_of(protocol).missing
    if protocol.reduced:
        return "; ".join(
            [f"reduced: {protocol.base.name} has {_size(protocol.base.rows.n_train)} training rows", *missing]
        )
    return f"partial: {'; '.join(missing)}" if missing else "complete"


def _size(n_rows: int | None) -> str:
    return "all" if n_rows is None else f"{n_rows:,}"
