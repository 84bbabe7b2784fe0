"""Whole lists of items that no fit has seen: coded from their vectors, or with the codes of their labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from .._common.words import counted
from ..data.datasets.registry import ENTRIES
from ..evaluation.reports.document import (
    Block,
    Chart,
    Runs,
    Section,
    Series,
    Table,
    Text,
    joined,
    table_of_means,
    with_interval,
)
from ..evaluation.reports.statistics import best_of, means_of, paired, shared_runs, summarize
from .compared_methods import is_star, title_of
from .coverage import introduction, section_title
from .findings import RANDOM, describe_class_sizes, warn_of_few_runs
from .results import ProtocolResults, Results

METRICS = ("P@10", "mAP", "PR area")
#: The items -> what stands behind the names of metrics, for queries as codes and for queries that keep their scores.
RULES = {
    "items coded from their vectors": ("", ", real"),
    "items that carry labels": (", labeled", ", labeled, real"),
}
_VECTORS, _LABELS = RULES
_RIDGE = "starridge"
LABEL_COLUMN = "label column in order of probability, 0 bits"
_RADII = (0, 1, 2, 3, 4)
# Data sets by what was chosen with their figures in view.
_CHOSEN_ON = {
    "the words of codes": ("mnist", "cifar10", "letter", "agnews", "banking77"),
    "other settings": ("mnist", "cifar10", "letter", "agnews", "vowel", "usps", "pendigits", "digits"),
}
_NO_CHOICE = ("pascal07", "pascal07_objects", "caltech101", "cifar10_color")
_NOT_PUBLISHED = {entry.name for entry in ENTRIES if entry.no_download}
_ABOUT = (
    "All methods code items by the same rule. In the first table, items are rows that no fit has seen, coded from "
    "their vectors. In the second, they are the training rows, coded by their labels: by the codeword of the class, "
    "or, where a method has none, by the majority of each bit over the rows of the class. Codes have 32 bits.",
    "StarRidge orders items by the probability of the same class. Any other method is asked in two ways, with codes "
    "and with scores that are not rounded to bits, and stands in these tables with the one whose mAP on these very "
    "queries is larger: a choice in its favor.",
    "A label column, 0 bits, stands first in the second table: labels that are known, in the order of the "
    "probabilities that the classifier in StarRidge gives a query. Where all items carry labels, no bits are needed "
    "and none add anything: codes only repeat the label. What they cost is seen in the last row of methods.",
    "Float search compares the vectors themselves and knows no labels; of its lists ranks are kept, not distances, so "
    "it has no PR area. That of codes is a sum of steps, one for each radius; that of queries with scores or "
    "probabilities counts equal ones in every order alike, which on cifar10_color is .002 less. HybridHasher, which "
    "keeps neighbors as well as classes, is measured in searching.md.",
)


def marked(dataset: str) -> str:
    """Return the name of a data set, with a + if nothing was chosen on it, and a ° if nobody can download it."""
    return f"{dataset}{' +' if dataset in _NO_CHOICE else ''}{' °' if dataset in _NOT_PUBLISHED else ''}"


def explain_marks(datasets: Iterable[str]) -> list[str]:
    """Say what the marks of these data sets mean, and what was chosen on those without."""
    datasets = list(datasets)
    lines = []
    if fresh := [name for name in datasets if name in _NO_CHOICE]:
        remark = (
            " (cifar10_color has other features of pictures that cifar10 has, too)" if "cifar10_color" in fresh else ""
        )
        lines.append(f"A + marks data sets that were used for no choice: {joined(fresh)}{remark}.")
    chosen = {what: [name for name in names if name in datasets] for what, names in _CHOSEN_ON.items()}
    on = "; ".join(f"{what} on {joined(names)}" for what, names in chosen.items() if names)
    lines += (
        [f"Constants of StarRidge were chosen with figures of these data sets in view (defaults.md): {on}."]
        if on
        else []
    )
    if closed := [name for name in datasets if name in _NOT_PUBLISHED]:
        lines.append(
            "A ° marks data sets whose arrays have no public download, so that others cannot recompute the figures: "
            f"{joined(closed)}."
        )
    return lines


def describe_lists(results: Results) -> list[str]:
    """Say in one sentence who orders whole lists of unseen items best, by each metric."""
    protocols = _protocols(results)
    parts = []
    for metric in METRICS if protocols else ():
        firsts = []
        for protocol in protocols:
            means = means_of(shared_runs(_cells(_VECTORS, protocol, metric)))
            firsts.append(max(means, key=means.__getitem__))
        counts = {name: firsts.count(name) for name in sorted(set(firsts), key=firsts.count, reverse=True)}
        parts.append(f"by {metric} {joined(f'{name} on {n}' for name, n in counts.items())}")
    if not parts:
        return []
    n_runs = [protocol.n_runs for protocol in protocols]
    few, many = min(n_runs), counted(max(n_runs), "run")
    over = f"means over {many}" if few == max(n_runs) else f"means over {few} to {many}"
    n_sets = counted(len(protocols), "data set")
    return [f"Of lists of items that no fit has seen, on {n_sets}, {over}, the first is {'; '.join(parts)}."]


def _protocols(results: Results) -> list[ProtocolResults]:
    return [p for p in results.of_task("lists") if p.lengths and not p.reduced]


def lists_in_short(results: Results) -> Section | None:
    """Return both tables over all data sets; None if nothing was run."""
    protocols = _protocols(results)
    if not protocols:
        return None
    blocks: list[Block] = [Text(_ABOUT)]
    for rule in RULES:
        blocks += [_overview(rule, protocols), _leads(rule, protocols)]
    return Section("Whole lists: unseen items, and items that carry labels", "lists", blocks)


def _suffix(rule: str, protocol: ProtocolResults, method: str) -> str:
    """Return what stands behind the names of metrics for the better kind of query of a method."""
    codes, real = RULES[rule]
    if method == _RIDGE:
        return real
    means = [summarize(_values(protocol, method, f"mAP{kind}").values()) for kind in (codes, real)]
    return real if means[1] is not None and means[0] is not None and means[1].mean > means[0].mean else codes


def _values(protocol: ProtocolResults, method: str, metric: str) -> Runs:
    return protocol.values(method, protocol.lengths[-1], metric)


def _cells(rule: str, protocol: ProtocolResults, metric: str) -> dict[str, Runs]:
    """Return run -> value by title, every method with its better kind of query."""
    cells: dict[str, Runs] = {}
    if rule == _LABELS and (column := _values(protocol, _RIDGE, f"{metric}{RULES[_LABELS][1]}")):
        cells[LABEL_COLUMN] = column
    for method in protocol.methods:
        if rule == _LABELS and method in (_RIDGE, "float"):
            continue
        if values := _values(protocol, method, metric + _suffix(rule, protocol, method)):
            cells[title_of(method)] = values
    if rule == _LABELS and (codes := _values(protocol, _RIDGE, f"{metric}{RULES[_LABELS][0]}")):
        cells[f"{title_of(_RIDGE)}, codes alone"] = codes
    return cells


def _overview(rule: str, protocols: Sequence[ProtocolResults]) -> Table:
    by_set = [{metric: _cells(rule, protocol, metric) for metric in METRICS} for protocol in protocols]
    names = list(dict.fromkeys(name for here in by_set for name in here["P@10"]))
    if LABEL_COLUMN in names:
        names = [LABEL_COLUMN, *(name for name in names if name != LABEL_COLUMN)]
    rows, strong = [], set()
    for number, name in enumerate(names):
        rows.append((name, *(_three(here, name) for here in by_set)))
        for column, here in enumerate(by_set, start=1):
            means = means_of(shared_runs({n: v for n, v in here["mAP"].items() if n not in _YARDSTICKS}))
            if means and name in best_of(means):
                strong.add((number, column))
    rows.append((f"{RANDOM}, P@10", *(_mean(protocol.random_precision) for protocol in protocols)))
    rows.append(("number of runs", *(str(protocol.n_runs) for protocol in protocols)))
    caption = f"{_capitalized(rule)}: P@10, mAP and PR area, means over runs; the largest mAP in bold"
    return Table(
        caption, ("method", *(marked(protocol.dataset) for protocol in protocols)), tuple(rows), frozenset(strong)
    )


_YARDSTICKS = (LABEL_COLUMN, "float search")


def _three(here: dict[str, dict[str, Runs]], name: str) -> str:
    means = [_mean(here[metric].get(name, {})) for metric in METRICS]
    return "-" if means[0] == "-" else " ".join(means)


def _mean(runs: Runs) -> str:
    found = summarize(runs.values())
    return "-" if found is None else f"{found.mean:.3f}".lstrip("0")


def _capitalized(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _leads(rule: str, protocols: Sequence[ProtocolResults]) -> Table:
    """Return how far StarRidge, or the label column, is ahead of the best other row by each metric."""
    first = title_of(_RIDGE) if rule == _VECTORS else LABEL_COLUMN
    rows = []
    for protocol in protocols:
        cells = []
        for metric in METRICS:
            common = shared_runs(_cells(rule, protocol, metric))
            others = means_of({n: v for n, v in common.items() if n not in (first, title_of("float"))})
            others = {name: mean for name, mean in others.items() if not name.startswith(title_of(_RIDGE))}
            best = max(others, key=others.__getitem__, default="")
            gap = paired(common[first], common[best]) if best and first in common else None
            cells.append("-" if gap is None else f"{with_interval(gap)}, {best}")
        rows.append((marked(protocol.dataset), *cells))
    columns = ("data set", *METRICS)
    caption = f"{_capitalized(first)} minus the best other method, with 95% intervals: {rule}"
    return Table(caption, columns, tuple(rows))


def lists_section(protocol: ProtocolResults) -> Section:
    """Return all figures of one data set."""
    blocks: list[Block | None] = [introduction(protocol)]
    blocks.append(Text((*describe_class_sizes(protocol), *warn_of_few_runs(protocol.n_runs))))
    blocks.append(precision_over_recall(protocol, protocol.lengths[-1]))
    for rule, kinds in RULES.items():
        cells = {
            title_of(method): [_values(protocol, method, metric + kind) for kind in kinds for metric in METRICS]
            for method in protocol.methods
            if rule == _VECTORS or method != "float"
        }
        columns = ("method", *METRICS, *(f"{metric}, scores" for metric in METRICS))
        caption = (
            f"{_capitalized(rule)}, mean and deviation over {counted(protocol.n_runs, 'run')}: queries as "
            "codes, and queries that keep their scores (StarRidge: probabilities)"
        )
        if rule == _LABELS:
            caption += "; StarRidge with probabilities is the label column, 0 bits"
        blocks.append(table_of_means(caption, columns, cells, skip=(title_of("float"),)))
    blocks.append(radius_table(protocol, protocol.lengths[-1]))
    return Section(section_title(protocol), protocol.name, [b for b in blocks if b is not None and b != Text(())])


def radius_table(protocol: ProtocolResults, n_bits: int) -> Table | None:
    """Return precision within small radii, all pairs pooled."""
    rows = []
    for method in protocol.methods:
        if curves := protocol.curves(method, n_bits):
            rows.append((title_of(method), *(_within(radius, curves) for radius in _RADII)))
    if not rows:
        return None
    caption = (
        f"Precision within a radius at {n_bits} bits, pairs of all queries pooled, mean over runs; in parentheses the "
        "number of runs in which any item is so near, if that is not all"
    )
    return Table(caption, ("method", *(f"radius {radius}" for radius in _RADII)), tuple(rows))


def _within(radius: int, curves: Sequence[Mapping[str, Sequence[float | None]]]) -> str:
    """Write the mean precision within a radius, and the number of runs if it is not known in all."""
    values = [value for curve in curves for value in curve["precision"][radius : radius + 1] if value is not None]
    found = summarize(values)
    if found is None:
        return "-"
    return f"{found.mean:.3f}" + (f" ({found.n})" if found.n < len(curves) else "")


def precision_over_recall(protocol: ProtocolResults, n_bits: int) -> Chart | None:
    """Return curves by growing radius, all pairs pooled: means over runs, and deviations in a band."""
    lines = []
    for method in protocol.methods:
        curves = protocol.curves(method, n_bits)
        if not curves:
            continue
        precision, recall = (
            np.array([curve[name] for curve in curves], dtype=float) for name in ("precision", "recall")
        )
        known = ~np.isnan(precision).any(axis=0)
        x, y = recall.mean(axis=0)[known], precision.mean(axis=0)[known]
        spread = precision.std(axis=0, ddof=1)[known].tolist() if len(curves) > 1 else ()
        name = title_of(method)
        lines.append(Series(name, tuple(x.tolist()), tuple(y.tolist()), tuple(spread), is_star(name)))
    ticks = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    title = f"Precision and recall by radius at {n_bits} bits"
    return Chart(title, "recall", "precision", tuple(lines), ticks, band=True) if lines else None
