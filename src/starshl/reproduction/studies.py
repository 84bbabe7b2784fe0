"""The studies that the paper does not have, codes from few labels and from none: their sections, and both in short."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from .._common.words import counted
from ..evaluation.reports.document import (
    Block,
    Chart,
    Runs,
    Section,
    Series,
    Table,
    Text,
    difference,
    interval,
    joined,
    line_over,
    table_of_means,
    with_interval,
)
from ..evaluation.reports.statistics import means_of, paired, require_paired, shared_runs
from .compared_methods import COMPARED_METHODS, is_star, title_of
from .coverage import coverage_line, introduction, section_title
from .figures import FIGURES
from .findings import (
    BALANCED,
    MAJORITY,
    RANDOM,
    describe_class_sizes,
    describe_ranking,
    format_labels_used,
    rows_without_learning,
    warn_of_few_runs,
)
from .results import CLASS_MEAN, ProtocolResults, Results
from .whole_lists import marked

_GRAY_PIXELS = (
    "On the gray pixels of CIFAR-10 and PASCAL07, neighbors seldom share a class (see float search on their pages)"
)
_N_LABELS = 5  # per class, in the short account of few labels
_AS_IN_THE_PAPER = "starshl-clusters"
# On this day it changed how labels and clusters spread, on which these methods depend.
_SPREADING_CHANGED = "2026-11-19"
_SPREADING = (
    *("starshl", "starshl-graph", "starridge", "starridge-labeled"),
    *("starshl-graph-clusters", "starridge-clusters"),
)


def labels_section(group: list[ProtocolResults]) -> Section:
    """Return accuracy and P@10 of one data set over the number of labels per class."""
    by_labels = {_n_labels(protocol): protocol for protocol in sorted(group, key=_n_labels)}
    any_of = next(iter(by_labels.values()))
    coverage = Text(tuple(coverage_line(protocol) for protocol in by_labels.values()))
    accuracy = _label_values(by_labels, "accuracy")
    lines = _lines((title, zip(by_labels, cells, strict=True)) for title, cells in accuracy.items())
    title, ticks = "Accuracy on the queries over labels per class", tuple(by_labels)
    chart = Chart(title, "labels per class", "accuracy", lines, ticks, log_x=len(ticks) > 1)
    text = Text(tuple(_label_sentences(by_labels, accuracy)))
    shown = ("accuracy", BALANCED, "P@10", CLASS_MEAN) if any_of.unequal else ("accuracy", "P@10")
    tables = [_labels_table(metric, by_labels) for metric in shown]
    places = [f"{n_labels} per class" for n_labels in by_labels]
    gaps = _best_other_table("accuracy", places, _by_place(accuracy, places))
    blocks: list[Block | None] = [introduction(any_of, with_coverage=False), coverage, text, chart, *tables, gaps]
    return Section(section_title(any_of), any_of.name, [block for block in blocks if block is not None])


def labels_scope() -> Section:
    """Return which of the paper's data sets have no study of few labels, and why."""
    lines = (
        f"{_GRAY_PIXELS}, so rows without labels hardly help, and these two are not in this study; defaults.md has "
        "figures of CIFAR-10.",
        "Letter and Vowel are not in it either: 3,000 rows of Letter do not hold 100 labels of each of 26 classes, and "
        "Vowel has only 90 rows of each class. For Letter, defaults.md has figures with up to 20 labels per class.",
    )
    return Section("Which data sets", "labels-scope", [Text(lines)])


def _n_labels(protocol: ProtocolResults) -> int:
    n_labels = protocol.base.rows.n_labels if protocol.base is not None else None
    if n_labels is None:
        raise ValueError(f"The protocol {protocol.name!r} sets no number of labels per class.")
    return n_labels


def _label_values(by_labels: dict[int, ProtocolResults], metric: str) -> dict[str, list[dict[int, float]]]:
    """Return the runs of each method by title, one entry per number of labels."""
    values = {
        key: [values_at_longest(protocol, key, metric) for protocol in by_labels.values()] for key in COMPARED_METHODS
    }
    return {title_of(key): cells for key, cells in values.items() if any(cells)}


def _labels_used(by_labels: dict[int, ProtocolResults]) -> dict[str, str]:
    """Write how many labels each method learned from, one entry per number of labels."""
    used = {}
    for key in COMPARED_METHODS:
        lengths = [protocol.lengths[-1] if protocol.lengths else None for protocol in by_labels.values()]
        places = zip(by_labels.values(), lengths, strict=True)
        used[title_of(key)] = " / ".join(format_labels_used(protocol, key, n_bits) for protocol, n_bits in places)
    return used


def values_at_longest(protocol: ProtocolResults, method: str, metric: str) -> dict[int, float]:
    """Return run -> value of a metric with the longest codes."""
    n_bits = protocol.lengths[-1] if protocol.lengths else None
    values = protocol.values(method, n_bits, metric)
    # Methods without codewords predict the class of the nearest labeled code.
    return values or (protocol.values(method, n_bits, "accuracy, nearest code") if metric == "accuracy" else {})


def _label_sentences(
    by_labels: dict[int, ProtocolResults], accuracy: Mapping[str, list[dict[int, float]]]
) -> list[str]:
    sentences = []
    for place, n_labels in enumerate(by_labels):
        where = f"With {counted(n_labels, 'label')} per class"
        sentences += describe_ranking(where, "accuracy", {method: cells[place] for method, cells in accuracy.items()})
    sentences += describe_class_sizes(next(iter(by_labels.values())))
    sentences += _measured_before(by_labels.values())
    return sentences + warn_of_few_runs(min(protocol.n_runs for protocol in by_labels.values()))


def _measured_before(protocols: Collection[ProtocolResults]) -> list[str]:
    """Name the methods that have changed since they were measured."""
    runs = [run for protocol in protocols for run in protocol.runs]
    old = {run.method for run in runs if "" < run.date < _SPREADING_CHANGED}
    changed = [title_of(method) for method in _SPREADING if method in old]
    if not changed:
        return []
    since = f"Measured before {_SPREADING_CHANGED}, when it changed how labels and clusters spread to other rows"
    newer = "; few_labels.md has newer figures" if any(protocol.task == "labels" for protocol in protocols) else ""
    return [f"{since}: {joined(changed)}{newer}."]


def _labels_table(metric: str, by_labels: dict[int, ProtocolResults]) -> Table:
    cells: dict[str, Sequence[Runs]] = dict(_label_values(by_labels, metric))
    baselines = [rows_without_learning(protocol, [metric]) for protocol in by_labels.values() if protocol.unequal]
    for name in (RANDOM, MAJORITY):
        row = [known[name][0] for known in baselines]
        cells |= {name: row} if len(row) == len(by_labels) and any(row) else {}
    columns = ("method", "labels used", *(f"{n} per class" for n in by_labels))
    caption = f"{metric} on the queries, mean and deviation over runs; best in bold"
    if metric in (BALANCED, CLASS_MEAN):
        caption = f"{metric}, on the queries, every class counts the same; mean and deviation over runs, best in bold"
    return table_of_means(caption, columns, cells, skip=(RANDOM, MAJORITY), notes=_labels_used(by_labels))


def _by_place(values: Mapping[str, list[dict[int, float]]], places: list[str]) -> list[dict[str, dict[int, float]]]:
    return [{method: cells[number] for method, cells in values.items()} for number in range(len(places))]


def unsupervised_section(protocol: ProtocolResults) -> Section:
    """Return P@10, mAP and the adjusted Rand index of codes learned without labels."""
    metrics = ("P@10", "mAP", "ARI, codes", "ARI, assigned")
    n_bits = protocol.lengths[-1]
    by_metric = {
        metric: {title_of(method): protocol.values(method, n_bits, metric) for method in protocol.methods}
        for metric in metrics
    }
    caption = (
        f"Codes of {n_bits} bits without labels; best in bold. ARI is the adjusted Rand index between classes and "
        "clusters: k-means on the codes, the same for all methods, and the clusters that a method assigns itself"
    )
    titles = [title_of(method) for method in protocol.methods]
    cells = {title: [by_metric[metric][title] for metric in metrics] for title in titles}
    table = _unsupervised_table(caption, protocol, metrics)
    sentences = [
        "*SHL, StarRidge and the k-means start see no labels but are given the true number of classes as the number of "
        "clusters; so is the k-means on the codes behind ARI. The other methods learn without that number."
    ]
    impossible = [title_of(key) for name, key in FIGURES["unsupervised"].impossible if name == protocol.dataset]
    if impossible:
        sentences.append(f"{joined(impossible)} cannot make codes of {n_bits} bits from so few features.")
    for metric in metrics[:3]:
        sentences += describe_ranking(f"At {n_bits} bits", metric, by_metric[metric])
    sentences += describe_class_sizes(protocol) + _measured_before([protocol])
    text = Text(tuple(sentences + warn_of_few_runs(protocol.n_runs)))
    shown = _lines((title, enumerate(measured)) for title, measured in cells.items())
    title = f"Codes of {n_bits} bits without labels, by four measures"
    chart = Chart(title, "measure", "mean and deviation", shown, tuple(range(len(metrics))), tick_names=metrics)
    gaps = _best_other_table("All metrics", list(metrics), list(by_metric.values()))
    blocks: list[Block | None] = [introduction(protocol), text, chart, table, gaps]
    return Section(section_title(protocol), protocol.name, [block for block in blocks if block is not None])


def unsupervised_scope() -> Section:
    """Return which of the paper's data sets have no study without labels, and why."""
    lines = (
        f"{_GRAY_PIXELS}, so clusters do not follow the classes, and these two are not in this study; defaults.md has "
        "figures of CIFAR-10.",
        "Letter and Vowel are not in it either: the paper uses them for transduction only.",
    )
    return Section("Which data sets", "unsupervised-scope", [Text(lines)])


def _unsupervised_table(caption: str, protocol: ProtocolResults, metrics: Sequence[str]) -> Table:
    shown = [metrics[0], CLASS_MEAN, *metrics[1:]] if protocol.unequal else list(metrics)
    n_bits = protocol.lengths[-1]
    cells: dict[str, Sequence[Runs]] = {
        title_of(method): [protocol.values(method, n_bits, metric) for metric in shown] for method in protocol.methods
    }
    cells |= rows_without_learning(protocol, shown) if protocol.unequal else {}
    return table_of_means(caption, ("method", *shown), cells, skip=(RANDOM, MAJORITY))


def _best_other_table(metric: str, places: list[str], values: list[dict[str, dict[int, float]]]) -> Table | None:
    """Return how far each row of *SHL is above the best other row, place by place.

    ``values`` are those of :func:`describe_ranking`, one mapping for each place.
    """
    rows = []
    for place, here in zip(places, values, strict=True):
        common = {name: runs for name, runs in shared_runs(here).items() if runs}
        others = {name: mean for name, mean in means_of(common).items() if not is_star(name)}
        for star in filter(is_star, common if others else ()):
            best = max(others, key=others.__getitem__)
            gap = require_paired(common[star], common[best])
            won = f"{gap.n_won} of {gap.n}"
            rows.append((f"{star} minus {best}", place, difference(gap), interval(gap), won))
    caption = f"{metric}: *SHL against the best other row, paired on the runs that all rows share"
    columns = ("difference", "where", "mean", "95% interval", "runs won")
    return Table(caption, columns, tuple(rows), n_text_columns=2) if rows else None


def _lines(named_points: Iterable[tuple[str, Iterable[tuple[float, Runs]]]]) -> tuple[Series, ...]:
    lines = (line_over(title, points, emphasized=is_star(title)) for title, points in named_points)
    return tuple(line for line in lines if line is not None)


def beyond_section(results: Results) -> Section | None:
    """Return the tables of few labels and of none; None if neither was run."""
    blocks: list[Block] = []
    if studies := _few_labels(results):
        rows = [_few_labels_row(protocol, values) for protocol, values in studies]
        caption = f"{_N_LABELS} labels per class: accuracy on the queries, with 95% intervals of the difference"
        columns = ("data set", "StarRidge", "SVC", "StarRidge ahead by", "best of all rows")
        blocks.append(Table(caption, columns, tuple(rows)))
    by_precision, by_ranking = _no_labels(results, "P@10"), _no_labels(results, "mAP")
    if by_precision:
        rows = [
            (marked(dataset), _first(means), _first(by_ranking[dataset]), _figure(means), _figure(by_ranking[dataset]))
            for dataset, means in by_precision.items()
            if dataset in by_ranking
        ]
        columns = ("data set", "first by P@10", "first by mAP", "*SHL, P@10", "*SHL, mAP")
        blocks.append(Table("No labels: *SHL as in the paper, and the first of all rows", columns, tuple(rows)))
        note = (
            "mAP is the mean average precision of the whole ranking. Codes of clusters rank whole clusters well and "
            "cannot mend a cluster that holds two classes, which costs them P@10."
        )
        blocks.append(Text((note,)))
    studied = [protocol for task in ("labels", "unsupervised") for protocol in results.of_task(task)]
    by_set = {protocol.dataset: [p for p in studied if p.dataset == protocol.dataset] for protocol in studied}
    if old := [marked(dataset) for dataset, protocols in by_set.items() if _measured_before(protocols)]:
        line = (
            f"On {joined(old)}, some rows are older than the present methods; labels.md and unsupervised.md say which."
        )
        blocks.append(Text((line,)))
    return Section("Beyond the paper: few labels and none", "beyond", blocks) if blocks else None


def describe_few_labels(results: Results) -> list[str]:
    """Say in one sentence what StarRidge and an SVC make of five labels per class."""
    studies = _few_labels(results)
    if not studies:
        return []
    gaps = {protocol.dataset: paired(values["starridge"], values["svc"]) for protocol, values in studies}
    clear = [dataset for dataset, gap in gaps.items() if gap is not None and gap.clear and gap.difference > 0]
    own = [means_of(values)["starridge"] for _, values in studies]
    return [
        f"With {_N_LABELS} labels per class StarRidge labels {min(own):.3f} to {max(own):.3f} of the queries right, "
        f"clearly more than an SVC on {len(clear)} of {counted(len(studies), 'data set')} ({joined(clear)})."
    ]


def describe_no_labels(results: Results) -> list[str]:
    """Say in one sentence who is first without labels."""
    studies = _no_labels(results, "P@10")
    if not studies:
        return []
    first = [max(means, key=means.__getitem__) for means in studies.values()]
    counts = joined(f"{title_of(method)} on {first.count(method)}" for method in dict.fromkeys(first))
    behind = [max(means.values()) - means[_AS_IN_THE_PAPER] for means in studies.values() if _AS_IN_THE_PAPER in means]
    by_how_much = f"; *SHL as in the paper is behind by {min(behind):.2f} to {max(behind):.2f}" if behind else ""
    return [f"Without labels, the first by P@10 is {counts} of {counted(len(studies), 'data set')}{by_how_much}."]


def _few_labels(results: Results) -> list[tuple[ProtocolResults, dict[str, dict[int, float]]]]:
    """Return accuracies by method and run, over the runs that all methods share, of every study with both methods."""
    studies = []
    for protocol in results.of_task("labels"):
        if not protocol.reduced and protocol.name.endswith(f"-{_N_LABELS}"):
            values = shared_runs({m: values_at_longest(protocol, m, "accuracy") for m in protocol.methods})
            if values.get("starridge") and values.get("svc"):
                studies.append((protocol, values))
    return studies


def _few_labels_row(protocol: ProtocolResults, values: dict[str, dict[int, float]]) -> tuple[str, ...]:
    means = means_of(values)
    gap = paired(values["starridge"], values["svc"])
    figures = (f"{means['starridge']:.3f}", f"{means['svc']:.3f}", "-" if gap is None else with_interval(gap))
    return (marked(protocol.dataset), *figures, _first(means))


def _no_labels(results: Results, metric: str) -> dict[str, dict[str, float]]:
    """Return means by data set and method, at the longest codes."""
    studies = {}
    for protocol in results.of_task("unsupervised"):
        if not protocol.reduced and protocol.lengths:
            values = {method: protocol.values(method, protocol.lengths[-1], metric) for method in protocol.methods}
            if means := means_of(shared_runs(values)):
                studies[protocol.dataset] = means
    return studies


def _first(means: dict[str, float]) -> str:
    best = max(means, key=means.__getitem__)
    return f"{title_of(best)} {means[best]:.3f}"


def _figure(means: dict[str, float]) -> str:
    return f"{means[_AS_IN_THE_PAPER]:.3f}" if _AS_IN_THE_PAPER in means else "-"
