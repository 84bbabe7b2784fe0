"""The first lines of every section: which rows, where they come from, and whether everything was run."""

from __future__ import annotations

from ..datasets.registry import ENTRIES
from ..reports.document import Text, counted
from ..reports.results import ProtocolResults
from .extent import extent_of

__all__ = ["NEVER_PUBLISHED", "completeness", "extent_line", "introduction", "marked_name", "section_title"]

# Somebody who looks at one table only must see it there.
NEVER_PUBLISHED = (
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


def section_title(found: ProtocolResults) -> str:
    """Return a heading, such as "usps: retrieval (reduced)"."""
    return f"{found.dataset}: {_TASKS[found.task]}" + (" (reduced)" if found.reduced else "")


def marked_name(protocol: str, dataset: str) -> str:
    """Return the name of a protocol, with a footnote mark if the paper's rows are not available."""
    return f"{protocol} (1)" if dataset in _UNPUBLISHED_DATA_SETS else protocol


def introduction(found: ProtocolResults, *, with_extent: bool = True) -> Text:
    """Return what a reader of the figures must know first."""
    lines = [extent_line(found)] if with_extent else []
    # From the registry, because the file of the data set may be missing or damaged.
    notes = [note for entry in ENTRIES if entry.name == found.dataset for note in entry.notes]
    if found.base is not None and found.base.about:
        # The notes already hold what a retrieval protocol says about its data set.
        about = found.base.about.split("; ")[0] if notes and found.task == "retrieval" else found.base.about
        lines.append(f"{about}.")
    return Text((*lines, *notes))


def extent_line(found: ProtocolResults) -> str:
    """Say how large a protocol is and how much of it was run."""
    sizes = f"{found.n_train:,} training rows, {found.n_query:,} queries, {counted(found.n_runs, 'run')}"
    extent = completeness(found)
    return f"Protocol {found.name}: {sizes}. {extent[:1].upper()}{extent[1:]}."


def completeness(found: ProtocolResults) -> str:
    """Say whether the whole protocol was run, or what is missing."""
    if found.base is None:
        return "a protocol of its own"
    missing = extent_of(found).missing
    if found.reduced:
        return "; ".join([f"reduced: {found.base.name} has {_size(found.base.rows.n_train)} training rows", *missing])
    return f"partial: {'; '.join(missing)}" if missing else "complete"


def _size(n_rows: int | None) -> str:
    return "all" if n_rows is None else f"{n_rows:,}"
