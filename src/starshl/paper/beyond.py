"""What the paper does not measure, in one table each: codes from few labels, and codes from none."""

from __future__ import annotations

from ..reports.document import Block, Section, Table, Text, counted, listed, with_interval
from ..reports.results import ProtocolResults, Results
from ..reports.statistics import means_of, paired, shared_runs
from .lineup import title_of
from .studies import values_at_longest

__all__ = ["beyond_section", "told_of_few_labels", "told_of_no_labels"]

_N_LABELS = 5  # per class
_AS_IN_THE_PAPER = "starshl-clusters"


def told_of_few_labels(results: Results) -> list[str]:
    """Say in one sentence what StarRidge and an SVC make of five labels per class."""
    studies = _few_labels(results)
    if not studies:
        return []
    gaps = {protocol.dataset: paired(values["starridge"], values["svc"]) for protocol, values in studies}
    clear = [dataset for dataset, gap in gaps.items() if gap is not None and gap.clear and gap.difference > 0]
    own = [means_of(values)["starridge"] for _, values in studies]
    return [
        f"With {_N_LABELS} labels per class StarRidge labels {min(own):.3f} to {max(own):.3f} of the other rows right, "
        f"clearly more than an SVC on {len(clear)} of {counted(len(studies), 'data set')} ({listed(clear)})."
    ]


def told_of_no_labels(results: Results) -> list[str]:
    """Say in one sentence who is first without labels."""
    studies = _no_labels(results, "P@10")
    if not studies:
        return []
    first = [max(means, key=means.__getitem__) for means in studies.values()]
    counts = listed(f"{title_of(method)} on {first.count(method)}" for method in dict.fromkeys(first))
    behind = [max(means.values()) - means[_AS_IN_THE_PAPER] for means in studies.values() if _AS_IN_THE_PAPER in means]
    by_how_much = f"; *SHL as in the paper is behind by {min(behind):.2f} to {max(behind):.2f}" if behind else ""
    return [f"Without labels, the first by P@10 is {counts} of {counted(len(studies), 'data set')}{by_how_much}."]


def beyond_section(results: Results) -> Section | None:
    """Return the tables of few labels and of none; None if neither was run."""
    blocks: list[Block] = []
    if studies := _few_labels(results):
        rows = [_few_labels_row(protocol, values) for protocol, values in studies]
        caption = f"{_N_LABELS} labels per class: accuracy on the other rows, with 95% intervals of the difference"
        columns = ("data set", "StarRidge", "SVC", "StarRidge ahead by", "best of all rows")
        blocks.append(Table(caption, columns, tuple(rows)))
    by_precision, by_ranking = _no_labels(results, "P@10"), _no_labels(results, "mAP")
    if by_precision:
        rows = [
            (dataset, _first(means), _first(by_ranking[dataset]), _figure(means), _figure(by_ranking[dataset]))
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
    return Section("Beyond the paper: few labels and none", "beyond", blocks) if blocks else None


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
    return (protocol.dataset, *figures, _first(means))


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
