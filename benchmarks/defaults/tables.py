"""The tables of docs/defaults.md, each a function that returns Markdown.

Means are over the splits that all methods of a row share: an easy split would look like a good method. The table of
lengths compares each method with itself instead.
"""

from collections.abc import Callable

import figures
import numpy as np
from data import FURTHER, MAIN, NO_LABELS, SUPERVISED, TRANSDUCTIVE, UNEQUAL
from spread import LABELS_OF_PAPER, LABELS_PER_CLASS, SETS

from starshl.evaluation.reports.statistics import shared_runs

RIDGE = "StarRidge, labels, hamming"
PEERS = {
    "StarSHL": "StarSHL, self, hamming",
    "HC-SDH, real scores": "HC-SDH, all rows, labels, real",
    "codeword SVM, real scores": "CodewordSVM, labels, real",
}


def markdown(columns: list[str], rows: list[list[str]]) -> str:
    head = [columns, ["---"] + ["---:"] * (len(columns) - 1)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in head + rows)


def supervised() -> str:
    columns = {
        "StarRidge": RIDGE,
        "StarSHL": "StarSHL, self, hamming",
        "HC-SDH": "HC-SDH, all rows, self, hamming",
        "HC-SDH, real scores": "HC-SDH, all rows, labels, real",
        "codeword SVM": "CodewordSVM, self, hamming",
        "codeword SVM, real scores": "CodewordSVM, labels, real",
    }
    rows = []
    for name, task in SUPERVISED.items():
        values = shared_runs({key: figures.supervised(name, 32).get(key, {}) for key in columns.values()})
        if values.get(RIDGE):
            shown = [figures.mean(values.get(key), 4) for key in columns.values()]
            rows.append([task.title, str(len(values[RIDGE])), *shown])
    return markdown(["data", "splits", *columns], rows)


def paired() -> str:
    rows = []
    for name, task in SUPERVISED.items():
        values = figures.supervised(name, 32)
        if values.get(RIDGE):
            gaps = [figures.with_interval(figures.gap(values[RIDGE], values.get(key))) for key in PEERS.values()]
            rows.append([task.title, *gaps])
    return markdown(["StarRidge minus", *PEERS], rows)


def catalog() -> str:
    rows = []
    for name, task in SUPERVISED.items():
        ridge, others = figures.supervised(name, 32).get(RIDGE), figures.catalog(name)
        if not ridge or not others:
            continue
        ranked = sorted(others, key=lambda method: -np.mean(list(others[method].values())))[:3]
        best = ", ".join(f"{method} {figures.mean(others[method], 4)}" for method in ranked)
        difference = figures.with_interval(figures.gap(ridge, others[ranked[0]]))
        rows.append([task.title, str(len(others)), best, difference])
    return markdown(["data", "methods", "best three", "StarRidge minus the best"], rows)


def lengths() -> str:
    """Compare each method with itself, on the splits that have all its lengths; peers have fewer splits at 8 and 5."""
    columns = {"StarRidge": RIDGE, "StarSHL": PEERS["StarSHL"], "HC-SDH": "HC-SDH, all rows, self, hamming"}
    rows = []
    for name, task in (MAIN | FURTHER).items():
        by_length = {n_bits: figures.supervised(name, n_bits) for n_bits in (32, 8, 5)}
        if by_length[32].get(RIDGE):
            rows.append([task.title, *(_over_lengths(by_length, key) for key in columns.values())])
    return markdown(["data", *(f"{name} 32 8 5 (splits)" for name in columns)], rows)


def _over_lengths(by_length: dict[int, dict[str, dict[int, float]]], key: str) -> str:
    shared = shared_runs({str(n_bits): runs.get(key, {}) for n_bits, runs in by_length.items()})
    means = " ".join(figures.mean(shared.get(str(n_bits))) for n_bits in by_length)
    return f"{means} ({len(next(iter(shared.values())))})" if shared else "-"


def calibration() -> str:
    rows = []
    for name, task in SUPERVISED.items():
        found = figures.supervised(name, 32, "ece").get(RIDGE)
        if found:
            chance = figures.supervised(name, 32, "ece_of_chance")[RIDGE]
            accuracy = figures.supervised(name, 32, "accuracy")[RIDGE]
            rows.append([task.title, figures.mean(found, 4), figures.mean(chance, 4), figures.mean(accuracy)])
    return markdown(["data", "calibration error", "by chance alone", "accuracy"], rows)


def unequal() -> str:
    """Compare StarRidge with what the sizes of the classes alone give, and count every class the same."""
    columns = {
        "largest class": "largest_class",
        "random order": "random_order",
        "P@10": "p10",
        "P@10, mean of classes": "p10_of_classes",
        "accuracy": "accuracy",
        "accuracy, balanced": "accuracy_balanced",
    }
    rows = []
    for name, task in SUPERVISED.items():
        if task.dataset in UNEQUAL:
            values = [figures.supervised(name, 32, metric).get(RIDGE, {}) for metric in columns.values()]
            rows.append([task.title, str(len(values[0])), *map(figures.mean, values)])
    return markdown(["data", "splits", *columns], rows)


def times() -> str:
    rows, logs = [], []
    for name, task in MAIN.items():
        seconds = figures.times(name)
        if seconds:
            star, hc, ridge, four = (
                np.array(list(seconds[what].values()))
                for what in ("StarSHL, 32 bits", "HC-SDH, 32 bits", "StarRidge, 32 bits", "StarRidge, four lengths")
            )
            ratios = [float(np.exp(np.mean(np.log(a / b)))) for a, b in ((ridge, star), (ridge, hc), (four, hc))]
            logs.append(np.log(ratios))
            rows.append([task.title, *(f"{ratio:.2f}" for ratio in ratios)])
    if logs:
        rows.append(["geometric mean", *(f"{ratio:.2f}" for ratio in np.exp(np.mean(logs, axis=0)))])
    return markdown(["data", "one length / StarSHL", "one length / HC-SDH", "four lengths / HC-SDH, one length"], rows)


BESIDE = {
    "StarRidge": "StarRidge",
    "labeled rows only": "labeled rows only",
    "logistic regression": "logistic regression",
    "label spreading": "label spreading",
    "graph alone": "graph alone",
    "Poisson learning": "Poisson learning",
}


def over_labels(metric: str, methods: dict[str, str], labels: tuple[int, ...] = LABELS_PER_CLASS) -> str:
    """Compare methods with few labels; each cell has one value for every number of labels."""
    rows = []
    for name, title in SETS.items():
        values = figures.spread(name, metric)
        shared = [shared_runs({key: values.get(key, {}).get(n, {}) for key in methods.values()}) for n in labels]
        if all(len(here) == len(methods) for here in shared):
            cells = [" ".join(figures.mean(here.get(key)) for here in shared) for key in methods.values()]
            n_draws = min(len(next(iter(here.values()))) for here in shared)
            rows.append([title, str(n_draws), *cells])
    return markdown(["data", "draws", *methods], rows)


def few_accuracy() -> str:
    return over_labels("accuracy", BESIDE)


def few_codes() -> str:
    return over_labels("p10", {"StarRidge": "StarRidge, codes", "labeled rows only": "labeled rows only, codes"})


def few_behind() -> str:
    """List where another way is better than StarRidge on average."""
    rows = []
    for name, title in SETS.items():
        for what, metric, methods in (
            ("accuracy", "accuracy", {own: own for own in BESIDE if own != "StarRidge"}),
            ("P@10", "p10", {"labeled rows only": "labeled rows only, codes"}),
        ):
            values = figures.spread(name, metric)
            ours = values.get("StarRidge" if metric == "accuracy" else "StarRidge, codes", {})
            for other, key in methods.items():
                behind = []
                for n in LABELS_PER_CLASS:
                    difference = figures.gap(ours.get(n), values.get(key, {}).get(n))
                    if difference is not None and difference.difference <= -0.0005:
                        behind.append(f"{figures.bare(difference.difference)} at {n}")
                if behind:
                    rows.append([title, what, other, ", ".join(behind)])
    return markdown(["data", "of", "behind", "by, at so many labels per class"], rows)


def few_honesty() -> str:
    """Compare what is said with what is true, from five labels per class on."""
    labels = tuple(n for n in LABELS_PER_CLASS if n >= 5)
    columns = {
        "at least 90% sure": "sure",
        "right of these": "sure_right",
        "calibration error": "ece",
        "by chance alone": "ece_of_chance",
        "log loss": "log_loss",
        "P(same): calibration error": "pairs_ece",
        "P(same): log loss": "pairs_log_loss",
    }
    rows = []
    for name, title in SETS.items():
        found = {metric: figures.spread(name, metric).get("StarRidge", {}) for metric in columns.values()}
        alone = figures.spread(name, "log_loss").get("labeled rows only", {})
        if all(found["ece"].get(n) for n in labels):
            cells = [" ".join(figures.mean(found[metric].get(n)) for n in labels) for metric in columns.values()]
            cells.insert(5, " ".join(figures.mean(alone.get(n)) for n in labels))
            rows.append([title, *cells])
    shown = list(columns)
    shown.insert(5, "labeled rows only")
    return markdown(["data", *shown], rows)


def few_paper() -> str:
    methods = {"paper": "paper", "paper, labeled rows only": "paper, labeled rows only", "StarRidge": "StarRidge"}
    return over_labels("accuracy", methods, LABELS_OF_PAPER)


def transductive() -> str:
    methods = ("StarRidge", "StarSHL", "label spreading", "Poisson learning", "SVC", "plain ridge, labeled rows only")
    rows = []
    for name, task in TRANSDUCTIVE.items():
        values = figures.transductive(name)
        if values:
            shared = shared_runs({method: values[method] for method in methods})
            n_splits = str(len(shared.get("StarRidge", ())))
            rows.append([task.title, n_splits, *(figures.mean(shared.get(method)) for method in methods)])
    return markdown(["data", "splits", *methods], rows)


def no_labels() -> str:
    methods = ("StarRidge", "StarSHL", "k-means", "SpectralClustering", "k-means on 2-AGH codes")
    rows = []
    for name, task in NO_LABELS.items():
        values = shared_runs(figures.no_labels(name))
        if values:
            n_samples = str(len(values.get("StarRidge", ())))
            rows.append([task.title, n_samples, *(figures.mean(values.get(method)) for method in methods)])
    return markdown(["data", "samples", *methods], rows)


# The name of each table in the page, and the study whose lines it is made of.
TABLES: dict[str, tuple[Callable[[], str], str]] = {
    "supervised": (supervised, "supervised"),
    "paired": (paired, "supervised"),
    "catalog": (catalog, "supervised --catalog"),
    "lengths": (lengths, "supervised"),
    "calibration": (calibration, "supervised"),
    "unequal": (unequal, "supervised --work StarRidge --sets usps caltech pascal"),
    "times": (times, "times"),
    "few-accuracy": (few_accuracy, "spread --splits 10"),
    "few-codes": (few_codes, "spread --splits 10"),
    "few-behind": (few_behind, "spread --splits 10"),
    "few-honesty": (few_honesty, "spread --splits 10"),
    "few-paper": (few_paper, "spread --work paper"),
    "transductive": (transductive, "transductive --splits 20"),
    "no-labels": (no_labels, "no-labels"),
}
