"""The sections of the studies beside retrieval: transduction, few labels, no labels."""

from __future__ import annotations

from ..experiments import CONTESTANTS
from .document import Chart, Section, Table, Text, difference, interval
from .findings import contest, few_runs, is_star, transduction_findings
from .protocol_notes import extent_line, introduction, section_title
from .results import ProtocolResults
from .retrieval import line_over, table_of_means
from .statistics import paired, shared_runs, summarize

__all__ = ["labels_section", "transductive_section", "unsupervised_section"]

_SETTINGS = ("paper settings", "defaults")
_DECODINGS = {
    "Hamming": ("Hamming distance, ties at random", "accuracy, ties at random"),
    "Hamming, ties by hinge": ("Hamming distance, ties by hinge distance", "accuracy"),
    "hinge": ("hinge distance", "accuracy, hinge"),
}


def transductive_section(found: ProtocolResults) -> Section:
    """Return accuracy over code length: nearest codeword by Hamming and hinge distance, and by transduction."""
    rows = {}
    for setting in _SETTINGS:
        for decoding, (_, metric) in _DECODINGS.items():
            rows[_inductive(decoding, setting)] = (f"*SHL, {setting}", metric)
        rows[_transductive(setting)] = (f"*SHL transductive, {setting}", "accuracy, transductive")
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


def _inductive(decoding: str, setting: str) -> str:
    return f"*SHL inductive, {decoding} ({setting})"


def _transductive(setting: str) -> str:
    return f"*SHL transductive ({setting})"


def _transduction_told(found: ProtocolResults, values: dict) -> list[str]:
    n_bits = found.lengths[-1]
    sentences = [
        "Inductive rows name the class of the nearest codeword. Where several are equally near in Hamming distance, "
        'the plain row has the expected accuracy of a random pick, "ties by hinge" lets the hinge distance decide.'
    ]
    rows = {name: runs[n_bits] for name, runs in values.items()}
    sentences += contest(f"At {n_bits} bits", "accuracy", _best_of_each_setting(rows))
    for setting in _SETTINGS:
        names = {words: _inductive(decoding, setting) for decoding, (words, _) in _DECODINGS.items()}
        names["transductive"] = _transductive(setting)
        if names["transductive"] in values:
            rows = {words: values[name][n_bits] for words, name in names.items() if name in values}
            sentences += transduction_findings(n_bits, rows, setting)
    return sentences + few_runs(found.n_runs)


def _best_of_each_setting(rows: dict[str, dict[int, float]]) -> dict[str, dict[int, float]]:
    """Leave out the rows of *SHL that another one with the same settings surpasses."""
    means = {name: summarize(runs.values()).mean for name, runs in rows.items() if runs}
    surpassed = set()
    for setting in _SETTINGS:
        own = [name for name in means if name.endswith(f"({setting})")]
        surpassed |= set(own) - ({max(own, key=means.get)} if own else set())
    return {name: runs for name, runs in rows.items() if name not in surpassed}


def _accuracy_table(found: ProtocolResults, values: dict) -> Table:
    cells = {name: [by_length[n_bits] for n_bits in found.lengths] for name, by_length in values.items()}
    columns = ("row", *(f"{n_bits} bits" for n_bits in found.lengths))
    return table_of_means("Accuracy, mean and deviation over runs; best in bold", columns, cells)


def _transduction_table(found: ProtocolResults, values: dict) -> Table | None:
    rows = []
    for setting in _SETTINGS:
        after = values.get(_transductive(setting))
        for decoding in _DECODINGS:
            before = values.get(_inductive(decoding, setting))
            if after is None or before is None:
                continue
            for n_bits in (found.lengths[0], found.lengths[len(found.lengths) // 2], found.lengths[-1]):
                if (gain := paired(after[n_bits], before[n_bits])) is not None:
                    told = (difference(gain), interval(gain), f"{gain.n_won} of {gain.n}")
                    rows.append((f"transductive minus inductive, {decoding} ({setting})", str(n_bits), *told))
    columns = ("difference", "bits", "mean", "95 % interval", "runs won")
    caption = "What transduction gains, on the same rows from the same first codewords"
    return Table(caption, columns, tuple(dict.fromkeys(rows)), n_text_columns=1) if rows else None


def labels_section(group: list[ProtocolResults]) -> Section:
    """Return accuracy and P@10 of one data set over the number of labels a class."""
    by_labels = {found.base.rows.n_labels: found for found in sorted(group, key=lambda p: p.base.rows.n_labels)}
    any_of = next(iter(by_labels.values()))
    extents = Text(tuple(extent_line(found) for found in by_labels.values()))
    accuracy, precision = (_label_values(by_labels, metric) for metric in ("accuracy", "P@10"))
    lines = tuple(line_over(method, zip(by_labels, cells, strict=True)) for method, cells in accuracy.items())
    title, ticks = "Accuracy on the queries over labels a class", tuple(by_labels)
    chart = Chart(title, "labels a class", "accuracy", lines, ticks, log_x=len(ticks) > 1)
    told = Text(tuple(_labels_told(by_labels, accuracy)))
    tables = [_labels_table(metric, cells, ticks) for metric, cells in (("accuracy", accuracy), ("P@10", precision))]
    places = [f"{n_labels} a class" for n_labels in by_labels]
    gaps = _best_other_table("accuracy", places, _by_place(accuracy, places))
    blocks = [introduction(any_of, with_extent=False), extents, told, chart, *tables, gaps]
    return Section(section_title(any_of), any_of.name, [block for block in blocks if block is not None])


def _label_values(by_labels: dict[int, ProtocolResults], metric: str) -> dict[str, list[dict[int, float]]]:
    """Return the runs of each method, one entry a number of labels."""
    titles = [entry.title for entry in CONTESTANTS.values()]
    values = {title: [_values_at_longest(found, title, metric) for found in by_labels.values()] for title in titles}
    return {title: cells for title, cells in values.items() if any(cells)}


def _values_at_longest(found: ProtocolResults, method: str, metric: str) -> dict[int, float]:
    n_bits = found.lengths[-1] if found.lengths else None
    values = found.values(method, n_bits, metric)
    # Methods without codewords name the class of the nearest labeled code.
    return values or (found.values(method, n_bits, "accuracy, nearest code") if metric == "accuracy" else {})


def _labels_told(by_labels: dict[int, ProtocolResults], accuracy: dict) -> list[str]:
    told = []
    for place, n_labels in enumerate(by_labels):
        where = f"With {n_labels} label{'s' if n_labels > 1 else ''} a class"
        told += contest(where, "accuracy", {method: cells[place] for method, cells in accuracy.items()})
    return told + few_runs(min(found.n_runs for found in by_labels.values()))


def _labels_table(metric: str, values: dict, labels: tuple[int, ...]) -> Table:
    columns = ("method", *(f"{n} a class" for n in labels))
    return table_of_means(f"{metric} on the queries, mean and deviation over runs; best in bold", columns, values)


def _by_place(values: dict[str, list], places: list[str]) -> list[dict]:
    return [{method: cells[number] for method, cells in values.items()} for number in range(len(places))]


def _best_other_table(metric: str, places: list[str], values: list[dict]) -> Table | None:
    """Return how far each row of *SHL is above the best other row, place by place; ``values`` as for a contest."""
    rows = []
    for place, here in zip(places, values, strict=True):
        common = {name: runs for name, runs in shared_runs(here).items() if runs}
        others = {name: summarize(runs.values()).mean for name, runs in common.items() if not is_star(name)}
        for star in filter(is_star, common if others else ()):
            best = max(others, key=others.get)
            gap = paired(common[star], common[best])
            won = f"{gap.n_won} of {gap.n}"
            rows.append((f"{star} minus {best}", place, difference(gap), interval(gap), won))
    caption = f"{metric}: *SHL against the best other row, paired on the runs that all rows share"
    columns = ("difference", "where", "mean", "95 % interval", "runs won")
    return Table(caption, columns, tuple(rows), n_text_columns=2) if rows else None


def unsupervised_section(found: ProtocolResults) -> Section:
    """Return P@10, mAP and the adjusted Rand index of codes learned without labels."""
    metrics = ("P@10", "mAP", "ARI, codes", "ARI, assigned")
    n_bits = found.lengths[-1]
    by_metric = {
        metric: {method: found.values(method, n_bits, metric) for method in found.methods} for metric in metrics
    }
    caption = (
        f"Codes of {n_bits} bits without labels; best in bold. ARI is the adjusted Rand index between classes and "
        "clusters: k-means on the codes, alike for all, and the clusters that a method assigns itself"
    )
    cells = {method: [by_metric[metric][method] for metric in metrics] for method in found.methods}
    table = table_of_means(caption, ("method", *metrics), cells)
    told = [
        "*SHL and the k-means start see no labels but are given the true number of classes as the number of "
        "clusters; so is the k-means on the codes behind ARI. The other methods need no such number to learn."
    ]
    for metric in metrics[:3]:
        told += contest(f"At {n_bits} bits", metric, by_metric[metric])
    text = Text(tuple(told + few_runs(found.n_runs)))
    lines = [line_over(method, enumerate(measured)) for method, measured in cells.items()]
    shown = tuple(line for line in lines if line is not None)
    title = f"Codes of {n_bits} bits without labels, by four measures"
    chart = Chart(title, "measure", "mean and deviation", shown, tuple(range(len(metrics))), tick_names=metrics)
    gaps = _best_other_table("All metrics", list(metrics), list(by_metric.values()))
    blocks = [introduction(found), text, chart, table, gaps]
    return Section(section_title(found), found.name, [block for block in blocks if block is not None])
