"""Read results/defaults as figures: method -> split -> value."""

from collections import defaultdict

from store import FOLDER, read_lines

from starshl.evaluation.reports.statistics import Paired, paired, summarize


def supervised(name: str, n_bits: int, metric: str = "p10") -> dict[str, dict[int, float]]:
    """Return the values of one data set by method, database and decoding."""
    values: dict[str, dict[int, float]] = defaultdict(dict)
    for line in lines("supervised"):
        for row in line["rows"]:
            if line["set"] == name and row.get("bits") == n_bits and metric in row:
                values[f"{row['method']}, {row['database']}, {row['decoding']}"][line["split"]] = row[metric]
    return values


def catalog(name: str) -> dict[str, dict[int, float]]:
    """Return P@10 of the methods that were measured as the catalog offers them, at 32 bits or their only length."""
    values: dict[str, dict[int, float]] = defaultdict(dict)
    for line in lines("supervised"):
        for row in line["rows"]:
            if line["set"] == name and row.get("database") == "default":
                values[row["method"]][line["split"]] = row["p10"]
    return values


def spread(name: str, metric: str) -> dict[str, dict[int, dict[int, float]]]:
    """Return method -> labels per class -> draw -> value; draws in which it is not defined are left out."""
    values: dict[str, dict[int, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for line in lines("spread"):
        for row in line["rows"]:
            value = row.get(metric)
            if line["set"] == name and value is not None and value == value:
                values[row["method"]][line["labels"]][line["split"]] = value
    return values


def transductive(name: str) -> dict[str, dict[int, float]]:
    values: dict[str, dict[int, float]] = defaultdict(dict)
    for line in lines("transductive"):
        if line["set"] == name:
            values[line["work"]][line["split"]] = line["rows"][0]["unlabeled"]
    return values


def no_labels(name: str) -> dict[str, dict[int, float]]:
    values: dict[str, dict[int, float]] = defaultdict(dict)
    for line in lines("no-labels"):
        if line["set"] == name:
            values[line["work"]][line["split"]] = line["rows"][0]["ari"]
    return values


def times(name: str) -> dict[str, dict[int, float]]:
    values: dict[str, dict[int, float]] = defaultdict(dict)
    for line in lines("times"):
        if line["set"] == name:
            for what, seconds in line["rows"][0].items():
                values[what][line["split"]] = seconds
    return values


def lines(study: str) -> list[dict]:
    return read_lines(FOLDER / f"{study}.jsonl")


def newest(study: str) -> str:
    return max((line["date"] for line in lines(study)), default="never")


def mean(values: dict[int, float] | None, digits: int = 3) -> str:
    """Write a mean without its leading zero, or a dash."""
    summary = summarize((values or {}).values())
    return "-" if summary is None else bare(summary.mean, digits)


def bare(value: float, digits: int = 3) -> str:
    """Write a number without its leading zero.

    >>> bare(0.5), bare(-0.012), bare(1.25)
    ('.500', '-.012', '1.250')
    """
    return f"{value:.{digits}f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.{digits}f}"


def gap(first: dict[int, float] | None, second: dict[int, float] | None) -> Paired | None:
    return paired(first, second) if first and second else None


def with_interval(difference: Paired | None) -> str:
    """Write a paired difference with its 95% interval; bold if the interval leaves out zero."""
    if difference is None:
        return "-"
    if difference.low is None or difference.high is None:
        return f"{difference.difference:+.4f} (n = {difference.n})"
    half = (difference.high - difference.low) / 2
    text = f"{difference.difference:+.4f} ± {half:.4f}"
    return f"**{text}**" if difference.clear else text
