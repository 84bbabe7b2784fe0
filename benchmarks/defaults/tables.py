"""The tables of docs/defaults.md, each a function that returns Markdown.

Means are over the splits that all methods of a row share: an easy split would look like a good method. The table of
lengths compares each method with itself instead.
"""

from collections.abc import Callable

import figures
import numpy as np
from data import FEW_LABELS, FURTHER, MAIN, NO_LABELS, SUPERVISED, TRANSDUCTIVE, UNEQUAL
from few_labels import LABELS_PER_CLASS

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


OURS = {
    "StarRidge": "StarRidge",
    "StarSHL": "StarSHL",
    "StarRidge, labeled only": "StarRidge, labeled rows only",
}


def few_table(metric: str, methods: dict[str, str], left_out: str = "") -> str:
    rows = []
    for name, task in FEW_LABELS.items():
        values = {} if name == left_out else figures.few_labels(name, metric)
        if values:
            shared = [shared_runs({key: values[key].get(n, {}) for key in methods.values()}) for n in LABELS_PER_CLASS]
            cells = [" ".join(figures.mean(here.get(key)) for here in shared) for key in methods.values()]
            draws = " ".join(str(len(here.get("StarRidge", ()))) for here in shared)
            rows.append([f"{task.title}, {task.n_train:,} rows", draws, *cells])
    return markdown(["data", "draws", *methods], rows)


def few_accuracy() -> str:
    peers = ("Poisson learning", "label spreading", "SVC")
    # StarSHL has fewer draws than the others; docs/few_labels.md has ten draws of digits.
    ours = {name: work for name, work in OURS.items() if name != "StarSHL"}
    return few_table("unlabeled", ours | {name: name for name in peers}, left_out="digits")


def few_unseen() -> str:
    return few_table("unseen", OURS | {name: name for name in ("Poisson learning", "SVC")})


def few_precision() -> str:
    peers = {
        "plain ridge, labeled only": "plain ridge, labeled rows only",
        "Poisson learning, its classes as codes": "Poisson learning",
    }
    return few_table("p10", OURS | peers)


def transductive() -> str:
    methods = ("StarRidge", "StarSHL", "label spreading", "Poisson learning", "SVC", "plain ridge, labeled rows only")
    rows = []
    for name, task in TRANSDUCTIVE.items():
        values = figures.few_labels(f"{name}, transductive", "unlabeled")
        if values:
            shared = shared_runs({method: values[method].get("all", {}) for method in methods})
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
    "few-accuracy": (few_accuracy, "few-labels"),
    "few-unseen": (few_unseen, "few-labels"),
    "few-precision": (few_precision, "few-labels"),
    "transductive": (transductive, "few-labels --sets transductive --splits 20"),
    "no-labels": (no_labels, "no-labels"),
}
