"""The tables of docs/anchors.md: what was measured, next to what is published, and how far StarRidge is ahead."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from statistics import mean, stdev

from published import PUBLISHED

from starshl.evaluation.reports.document import difference, interval
from starshl.evaluation.reports.statistics import paired
from starshl.reproduction.compared_methods import title_of

__all__ = ["gaps", "glance", "table"]

_CODES = {"map": "out of sample", "map_known_labels": "known labels"}
# Methods whose lines have another name than the pages of results.
_KEYS = {"StarSHL": "starshl", "StarSHL paper": "starshl-paper"}
# The short table: measured on some features, and published on the nearest ones.
_GLANCE = (("gist", "gist"), ("network", "cnn-f"))


def glance(lines: list[dict], lengths: Sequence[int]) -> str:
    """Return mAP at the greatest length, out of sample, as Markdown: best first, next to what is published."""
    rows, n_bits, place = PUBLISHED[0].protocol, lengths[-1], len(lengths) - 1
    measured: dict[str, dict[str, list[float]]] = {}
    for line in lines:
        if line["protocol"] == rows:
            own = measured.setdefault(line["work"], {}).setdefault(line["features"], [])
            own.append(line["rows"][place]["map"])
    published = {(k.features, k.method): f"{k.by_bits[n_bits]:.3f}" for k in PUBLISHED if k.protocol == rows}
    heads = " | ".join(f"{features}, here | {others}, published" for features, others in _GLANCE)
    text = [f"| mAP, {n_bits} bits | {heads} |", "|---|" + "---:|" * 2 * len(_GLANCE)]
    best_first = sorted(measured, key=lambda method: -mean(measured[method].get(_GLANCE[-1][0], [0.0])))
    for method in best_first:
        cells = []
        for features, others in _GLANCE:
            values = measured[method].get(features)
            cells += [f"{mean(values):.3f}" if values else "-", published.get((others, method), "-")]
        text.append(f"| {_shown(method)} | {' | '.join(cells)} |")
    return "\n".join(text)


def _shown(method: str) -> str:
    """Return the name that a method has on the pages of results, in Markdown."""
    return title_of(_KEYS[method]).replace("*", r"\*") if method in _KEYS else method


def table(lines: list[dict], lengths: Sequence[int]) -> str:
    """Return measured and published figures as Markdown: one table for each number of training rows."""
    protocols = dict.fromkeys([*(line["protocol"] for line in lines), *(known.protocol for known in PUBLISHED)])
    return "\n\n".join("\n".join(_lines_of(name, lines, lengths)) for name in protocols)


def _lines_of(protocol: str, lines: list[dict], lengths: Sequence[int]) -> list[str]:
    bits = " | ".join(f"{n} bits" for n in lengths)
    text = [
        f"Rows: `{protocol}`",
        "",
        f"| features | method | database codes | {bits} | runs | source |",
        "|" + "---|" * (len(lengths) + 5),
    ]
    measured = [line for line in lines if line["protocol"] == protocol]
    published = [known for known in PUBLISHED if known.protocol == protocol]
    for features in dict.fromkeys([*(line["features"] for line in measured), *(known.features for known in published)]):
        own = sorted((line for line in measured if line["features"] == features), key=lambda line: line["work"].lower())
        for method, group in groupby(own, key=lambda line: line["work"]):
            runs = list(group)
            for key, codes in _CODES.items():
                if key in runs[0]["rows"][0]:
                    cells = [_cell([run["rows"][place][key] for run in runs]) for place in range(len(lengths))]
                    text.append(_row(features, _shown(method), codes, cells, str(len(runs)), "measured here"))
        for known in published:
            if known.features == features:
                cells = [_cell([known.by_bits[n]]) for n in lengths]
                text.append(_row(features, known.method, known.codes, cells, "not said", known.source))
    return text


def _cell(values: list[float]) -> str:
    """Write a mean, with the deviation where runs say something about it."""
    spread = f" ± {stdev(values):.3f}" if len(values) > 1 else ""
    return f"{mean(values):.3f}{spread}"


def _row(features: str, method: str, codes: str, cells: list[str], runs: str, source: str) -> str:
    return f"| {features} | {method} | {codes} | {' | '.join(cells)} | {runs} | {source} |"


def gaps(lines: list[dict], lengths: Sequence[int], first: str = "StarRidge") -> str:
    """Return, as Markdown, how far one method is ahead of every other on the same rows, out of sample."""
    bits = " | ".join(f"{n} bits" for n in lengths)
    text = [f"| features | {first} minus | {bits} |", "|" + "---|" * (len(lengths) + 2)]
    by_method: dict[tuple[str, str, str], dict[int, list[dict]]] = {}
    for line in lines:
        by_method.setdefault((line["protocol"], line["features"], line["work"]), {})[line["run"]] = line["rows"]
    for (protocol, features, method), runs in sorted(
        by_method.items(), key=lambda item: tuple(map(str.lower, item[0]))
    ):
        own = by_method.get((protocol, features, first), {})
        if method != first:
            cells = [_gap(own, runs, place) for place in range(len(lengths))]
            text.append(f"| {features} | {_shown(method)} | {' | '.join(cells)} |")
    return "\n".join(text)


def _gap(first: dict[int, list[dict]], second: dict[int, list[dict]], place: int) -> str:
    """Write a mean difference with its 95% interval over the runs that both have."""
    gap = paired(*({run: rows[place]["map"] for run, rows in runs.items()} for runs in (first, second)))
    return "-" if gap is None else f"{difference(gap)} ({interval(gap)})"
