"""What every section says first: the rows, where they come from and whether all of it was run."""

from __future__ import annotations

from .. import datasets
from .document import Text
from .results import ProtocolResults

__all__ = ["completeness", "introduction", "section_title"]

_TASKS = {
    "retrieval": "retrieval",
    "transductive": "inductive and transductive",
    "labels": "few labels",
    "unsupervised": "no labels",
}


def section_title(found: ProtocolResults) -> str:
    """Return a heading, such as "usps: retrieval (reduced)"."""
    return f"{found.dataset}: {_TASKS[found.task]}" + (" (reduced)" if found.reduced else "")


def introduction(found: ProtocolResults) -> Text:
    """Return the lines that a reader of the figures must know."""
    sizes = f"Protocol {found.name}: {found.n_train:,} training rows, {found.n_query:,} queries, {found.n_runs} run"
    lines = [sizes + ("." if found.n_runs == 1 else "s.") + f" {completeness(found).capitalize()}."]
    if found.base is not None and found.base.about:
        lines.append(f"{found.base.about}.")
    lines.extend(datasets.describe(found.dataset).notes if found.dataset in datasets.names() else ())
    return Text(tuple(lines))


def completeness(found: ProtocolResults) -> str:
    """Say whether the whole protocol was run, or what part of it."""
    if found.base is None:
        return "a protocol of its own"
    if found.reduced:
        return f"reduced: {found.base.name} has {_size(found.base.rows.n_train)} training rows"
    missing = []
    if found.n_runs < found.base.n_runs:
        missing.append(f"{found.n_runs} of {found.base.n_runs} runs")
    if lacking := sorted(set(found.base.bits) - set(found.lengths)):
        missing.append(f"no codes of {', '.join(map(str, lacking))} bits")
    return f"partial: {'; '.join(missing)}" if missing else "complete"


def _size(n_rows: int | None) -> str:
    return "all" if n_rows is None else f"{n_rows:,}"
