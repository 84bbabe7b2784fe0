"""The sections of the studies beside retrieval: transduction, few labels, no labels."""

from __future__ import annotations

from ..experiments import CONTESTANTS
from .document import Chart, Section, Table, Text, difference, interval, plus_minus
from .findings import contest, few_runs, transduction_findings
from .protocol_notes import introduction, section_title
from .results import ProtocolResults
from .retrieval import best_per_column, line_over
from .statistics import paired, summarize

__all__ = ["labels_section", "transductive_section", "unsupervised_section"]

_SETTINGS = ("paper settings", "defaults")


def transductive_section(found: ProtocolResults) -> Section:
    """Return accuracy over code length: nearest codeword by Hamming and hinge distance, and by transduction."""
    rows = {}
    for setting in _SETTINGS:
        inductive, transductive = f"*SHL, {setting}", f"*SHL transductive, {setting}"
        rows[f"inductive, Hamming ({setting})"] = (inductive, "accuracy")
        rows[f"inductive, hinge ({setting})"] = (inductive, "accuracy, hinge")
        rows[f"transductive ({setting})"] = (transductive, "accuracy, transductive")
    rows["one-vs-one SVC"] = ("one-vs-one SVC", "accuracy")
    values = {
        name: {n_bits: found.values(method, n_bits, metric) for n_bits in found.lengths}
        for name, (method, metric) in rows.items()
    }
    values = {name: by_length for name, by_length in values.items() if any(by_length.values())}
    lines = tuple(line_over(name, by_length.items()) for name, by_length in values.items())
    chart = Chart("Accuracy over the length of the codes", "bits", "accuracy", lines, tuple(found.lengths))
    told = Text(tuple(_transduction_told(found, values)))
    blocks = [introduction(found), told, chart, _accuracy_table(found, values), _transduction_table(found, values)]
    return Section(section_title(found), found.name, [block for block in blocks if block is not None])


def _transduction_told(found: ProtocolResults, values: dict) -> list[str]:
    n_bits = found.lengths[-1]
    sentences = contest(f"At {n_bits} bits", "accuracy", {name: runs[n_bits] for name, runs in values.items()})
    for setting in _SETTINGS:
        names = {"Hamming": f"inductive, Hamming ({setting})", "hinge": f"inductive, hinge ({setting})"}
        names["transductive"] = f"transductive ({setting})"
        if all(name in values for name in names.values()):
            rows = {short: values[name][n_bits] for short, name in names.items()}
            sentences += transduction_findings(n_bits, rows, setting)
    return sentences + few_runs(found.n_runs)


def _accuracy_table(found: ProtocolResults, values: dict) -> Table:
    rows = [
        (name, *(plus_minus(summarize(by_length[n_bits].values())) for n_bits in found.lengths))
        for name, by_length in values.items()
    ]
    columns = ("row", *(f"{n_bits} bits" for n_bits in found.lengths))
    return Table("Accuracy, mean and deviation over runs", columns, tuple(rows))


def _transduction_table(found: ProtocolResults, values: dict) -> Table | None:
    rows = []
    for setting in _SETTINGS:
        after = values.get(f"transductive ({setting})")
        for decoding in ("Hamming", "hinge"):
            before = values.get(f"inductive, {decoding} ({setting})")
            if after is None or before is None:
                continue
            for n_bits in (found.lengths[0], found.lengths[len(found.lengths) // 2], found.lengths[-1]):
                if (gain := paired(after[n_bits], before[n_bits])) is not None:
                    told = (difference(gain), interval(gain), f"{gain.n_won} of {gain.n}")
                    rows.append((f"transductive minus inductive by {decoding}, {setting}", str(n_bits), *told))
    columns = ("difference", "bits", "mean", "95 % interval", "runs won")
    caption = "What transduction gains, on the same rows from the same first codewords"
    return Table(caption, columns, tuple(dict.fromkeys(rows)), n_text_columns=1) if rows else None


def labels_section(group: list[ProtocolResults]) -> Section:
    """Return accuracy and P@10 of one data set over the number of labels a class."""
    by_labels = {found.base.rows.n_labels: found for found in sorted(group, key=lambda p: p.base.rows.n_labels)}
    any_of = next(iter(by_labels.values()))
    methods = [title for title in _titles() if any(title in found.methods for found in group)]
    tables, lines, told = [], [], []
    for metric in ("accuracy", "P@10"):
        values = {method: [_label_values(found, method, metric) for found in by_labels.values()] for method in methods}
        values = {method: cells for method, cells in values.items() if any(cells)}
        if metric == "accuracy":
            pairs = ((method, zip(by_labels, cells, strict=True)) for method, cells in values.items())
            lines = [line_over(method, points) for method, points in pairs]
            for place, n_labels in enumerate(by_labels):
                where = f"With {n_labels} label{'s' if n_labels > 1 else ''} a class"
                told += contest(where, "accuracy", {method: cells[place] for method, cells in values.items()})
        tables.append(_labels_table(metric, values, list(by_labels)))
    ticks = tuple(by_labels)
    title = "Accuracy on the queries over labels a class"
    chart = Chart(title, "labels a class", "accuracy", tuple(lines), ticks, log_x=len(ticks) > 1)
    told += few_runs(any_of.n_runs)
    blocks = [introduction(any_of), Text(tuple(told)), chart, *tables]
    return Section(section_title(any_of), any_of.name, blocks)


def _titles() -> list[str]:
    return [entry.title for entry in CONTESTANTS.values()]


def _label_values(found: ProtocolResults, method: str, metric: str) -> dict[int, float]:
    n_bits = found.lengths[-1] if found.lengths else None
    values = found.values(method, n_bits, metric)
    # Methods without codewords name the class of the nearest labeled code.
    return values or (found.values(method, n_bits, "accuracy, nearest code") if metric == "accuracy" else {})


def _labels_table(metric: str, values: dict, labels: list[int]) -> Table:
    summaries = [[summarize(cell.values()) for cell in cells] for cells in values.values()]
    means = [[None if s is None else s.mean for s in row] for row in summaries]
    strong = frozenset((row, column + 1) for row, column in best_per_column(means))
    rows = tuple((method, *map(plus_minus, row)) for method, row in zip(values, summaries, strict=True))
    columns = ("method", *(f"{n} a class" for n in labels))
    return Table(f"{metric} on the queries, mean and deviation over runs; best in bold", columns, rows, strong)


def unsupervised_section(found: ProtocolResults) -> Section:
    """Return P@10, mAP and the adjusted Rand index of codes learned without labels."""
    metrics = ("P@10", "mAP", "ARI, codes", "ARI, assigned")
    n_bits = found.lengths[-1]
    summaries = [
        [summarize(found.values(method, n_bits, metric).values()) for metric in metrics] for method in found.methods
    ]
    means = [[None if s is None else s.mean for s in row] for row in summaries]
    strong = frozenset((row, column + 1) for row, column in best_per_column(means))
    rows = tuple((method, *map(plus_minus, row)) for method, row in zip(found.methods, summaries, strict=True))
    caption = (
        f"Codes of {n_bits} bits without labels; best in bold. ARI is the adjusted Rand index between classes and "
        "clusters: k-means on the codes, alike for all, and the clusters that a method assigns itself"
    )
    table = Table(caption, ("method", *metrics), rows, strong)
    told = []
    for metric in metrics[:3]:
        values = {method: found.values(method, n_bits, metric) for method in found.methods}
        told += contest(f"At {n_bits} bits", metric, values)
    text = Text(tuple(told + few_runs(found.n_runs)))
    lines = [
        line_over(method, [(place, found.values(method, n_bits, metric)) for place, metric in enumerate(metrics)])
        for method in found.methods
    ]
    shown = tuple(line for line in lines if line is not None)
    title = f"Codes of {n_bits} bits without labels, by four measures"
    chart = Chart(title, "measure", "mean and deviation", shown, tuple(range(len(metrics))), tick_names=metrics)
    return Section(section_title(found), found.name, [introduction(found), text, chart, table])
