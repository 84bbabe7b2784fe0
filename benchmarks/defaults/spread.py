"""Few labels spread to all rows: accuracy, precision and honesty of the blend and of StarRidge beside other ways.

Every draw takes other rows, and other labels among them; fewer labels are a subset of more. All ways that follow a
graph follow the same one. Probabilities are compared with the truth on rows without a label.
"""

from __future__ import annotations

import os
import tempfile
import warnings
import zipfile
from collections.abc import Iterator
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from measures import N_BINS, accuracy, binned_gap, calibration_error, precision
from neighbor_learners import poisson_potential
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from store import Store

from starshl import NeighborGraph, StarRidge, StarSHL, spread_labels
from starshl.codes import BinaryCodes
from starshl.data import datasets
from starshl.data.features import make_embedder

LABELS_PER_CLASS = (1, 2, 5, 10, 20)
LABELS_OF_PAPER = (1, 5, 20)
SETS = {
    "vowel": "Vowel",
    "grocery": "groceries, network",
    "digits": "digits",
    "pendigits": "Pendigits",
    "usps": "USPS",
    "mnist": "MNIST",
    "letter": "Letter",
    "agnews": "AG News",
    "cifar10": "CIFAR-10 gray",
    "banking77": "BANKING77",
    "caltech101": "Caltech-101",
}
MOST_ROWS, MOST_UNSEEN = 2000, 1000
SURE = 0.9
DAMPING = 0.99  # of label spreading
STRENGTHS = (1.0, 10.0, 100.0, 1000.0)  # C of logistic regression on rows of length one on average
MOST_FOLDS = 3
N_NEAREST = 10
N_PAIRS = 200_000


def run(options) -> None:
    store = Store("spread", options.again, options.sets)
    works = {
        "spread_labels": by_spread_labels,
        "StarRidge": by_final_fit,
        "labeled rows only": by_labeled_rows,
        "peers": by_peers,
        "paper": by_paper,
    }
    chosen = [name for name in works if not options.work or name in options.work]
    for split in range(options.splits):
        for name in options.sets or SETS:
            rows = Draw(name, split)
            for n_labels in LABELS_PER_CLASS:
                for work in chosen:
                    if work == "paper" and n_labels not in LABELS_OF_PAPER:
                        continue
                    where = {"set": name, "labels": n_labels, "split": split}
                    store.measure(where, work, lambda r=rows, n=n_labels, w=work: list(works[w](r, r.labels(n))))


class Draw:
    """Rows of one draw, their classes, and their graph."""

    def __init__(self, name: str, split: int) -> None:
        self.name, self.split = name, split

    @cached_property
    def _chosen(self) -> tuple[np.ndarray, np.ndarray]:
        X, y = read_set(self.name)
        rows = np.random.default_rng([self.split, len(y)]).permutation(len(y))[:MOST_ROWS]
        return X[rows], np.unique(y[rows], return_inverse=True)[1]

    @cached_property
    def unseen(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows that no fit sees, and their classes; none of small sets."""
        X, y = read_set(self.name)
        rows = np.random.default_rng([self.split, len(y)]).permutation(len(y))[MOST_ROWS:][:MOST_UNSEEN]
        return X[rows], np.searchsorted(np.unique(y), y[rows])

    @property
    def X(self) -> np.ndarray:
        return self._chosen[0]

    @property
    def y(self) -> np.ndarray:
        return self._chosen[1]

    @cached_property
    def graph(self) -> NeighborGraph:
        return NeighborGraph.of_rows(self.X)

    def labels(self, n_labels: int) -> np.ndarray:
        """Return classes, -1 for rows without a label; at most half of a class has one."""
        given = np.full(len(self.y), -1)
        for own in range(self.y.max() + 1):
            members = np.random.default_rng([self.split, own]).permutation(np.flatnonzero(self.y == own))
            given[members[: min(n_labels, (len(members) + 1) // 2)]] = own
        return given


@lru_cache(maxsize=1)
def read_set(name: str) -> tuple[np.ndarray, np.ndarray]:
    folder = Path(os.environ["STARSHL_DATA"])
    if name == "grocery":
        kept = Path(tempfile.gettempdir()) / "grocery_photos_900_efficientnet.npz"
        if kept.exists():
            with np.load(kept) as arrays:
                return arrays["X"], arrays["y"]
        with zipfile.ZipFile(folder / "grocery_photos_900.zip") as photos:
            files = [each for each in photos.namelist() if each.endswith(".jpg")]
            X = make_embedder("efficientnet-lite0").fit_embed([photos.read(each) for each in files])
        y = np.unique([each.split("/")[1] for each in files], return_inverse=True)[1]
        np.savez(kept, X=X, y=y)
        return X, y
    if name == "banking77":
        with np.load(folder / "banking77_minilm384.npz") as arrays:
            return arrays["X"].astype(np.float32), arrays["y"]
    data = datasets.get(name)
    X = np.asarray(data.X, np.float32)
    return X / np.abs(X).max(axis=0).clip(1e-6) if name == "vowel" else X / np.abs(X).max(), np.asarray(data.y)


def by_spread_labels(rows: Draw, given: np.ndarray) -> Iterator[dict]:
    found = spread_labels(rows.X, given, graph=rows.graph)
    yield honesty("spread_labels", found.probabilities, rows.y, given) | {"note": found.note}
    assert found.spread.on_graph is not None
    yield of_classes("graph alone", found.spread.on_graph.argmax(axis=1), rows.y, given)


def by_final_fit(rows: Draw, given: np.ndarray) -> Iterator[dict]:
    """What StarRidge says of unlabeled rows, each without its own spread label."""
    fitted = StarRidge(32, random_state=0).fit(rows.X, given, graph=rows.graph)
    shares = fitted.training_proba()
    yield honesty("StarRidge", shares, rows.y, given) | {"note": fitted.choice_}
    yield of_codes("StarRidge", fitted, fitted.training_codes_, shares, rows, given)


def by_labeled_rows(rows: Draw, given: np.ndarray) -> Iterator[dict]:
    labeled = given >= 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nearly every labeled row has a class of its own
        fitted = StarRidge(32, random_state=0).fit(rows.X[labeled], given[labeled])
    shares = fitted.predict_proba(rows.X)
    figures = honesty("labeled rows only", shares, rows.y, given)
    # With one label per class, its probabilities are nearly equal, and classes alone rank better.
    classes = np.eye(rows.y.max() + 1)[fitted.predict(rows.X)]
    figures["p10"] = max(figures["p10"], precision_of_probabilities(classes[given < 0], rows.y[given < 0]))
    yield figures
    yield of_codes("labeled rows only", fitted, fitted.encode_database(rows.X, given), shares, rows, given)


def of_codes(
    method: str, fitted: StarRidge, items: BinaryCodes, shares: np.ndarray, rows: Draw, given: np.ndarray
) -> dict:
    """What a fit says of new rows, and what these find among the codes of the rows of the fit.

    Where no new rows are left, rows without a label ask for each other.
    """
    method, decoded = f"{method}, codes", fitted.words.decode(items.to_signs())
    X, y = rows.unseen
    if not len(y):
        rest = given < 0
        likely = shares[rest] @ decoded[rest].T
        np.fill_diagonal(likely, -1.0)
        return {"method": method, "p10": nearest_of_class(likely, rows.y[rest], rows.y[rest])}
    shares = fitted.predict_proba(X)
    found = {"p10": nearest_of_class(shares @ decoded.T, y, rows.y)}
    return honesty(method, shares, y, np.full(len(y), -1)) | found


def by_paper(rows: Draw, given: np.ndarray) -> Iterator[dict]:
    """The paper's own semi-supervised mode, beside the same settings on the labeled rows alone."""
    labeled = given >= 0
    for method, chosen in (("paper", np.ones(len(given), bool)), ("paper, labeled rows only", labeled)):
        fitted = StarSHL.paper(32, random_state=0).fit(rows.X[chosen], given[chosen])
        found = fitted.transduction_ if chosen.all() else fitted.predict(rows.X)
        figures = {"method": method, "accuracy": accuracy(found[~labeled], rows.y[~labeled])}
        X, y = rows.unseen
        if len(y):
            figures["accuracy_of_new_rows"] = accuracy(fitted.predict(X), y)
            items = fitted.encode_training(rows.X, given) if chosen.all() else fitted.encode_database(rows.X, given)
            figures["p10"] = precision(fitted.encode(X), items, y, rows.y)
        yield figures


def by_peers(rows: Draw, given: np.ndarray) -> Iterator[dict]:
    """Logistic regression on labeled rows, and other ways to spread labels over the same graph."""
    n_classes, labeled = rows.y.max() + 1, np.flatnonzero(given >= 0)
    one_hot = np.zeros((len(given), n_classes))
    one_hot[labeled, given[labeled]] = 1.0
    system = np.eye(len(given)) - DAMPING * rows.graph.normalized.toarray()
    scores = {
        "label spreading": np.linalg.solve(system, one_hot),
        "Poisson learning": poisson(rows, given, one_hot),
        "logistic regression": logistic(rows, given),
    }
    for name, each in scores.items():
        yield of_classes(name, each.argmax(axis=1), rows.y, given)


def of_classes(method: str, classes: np.ndarray, y: np.ndarray, given: np.ndarray) -> dict:
    rest = given < 0
    p10 = precision_of_probabilities(np.eye(y.max() + 1)[classes[rest]], y[rest])
    return {"method": method, "accuracy": accuracy(classes[rest], y[rest]), "p10": p10}


def poisson(rows: Draw, given: np.ndarray, one_hot: np.ndarray) -> np.ndarray:
    labeled = np.flatnonzero(given >= 0)
    sources = one_hot.copy()
    sources[labeled] -= one_hot[labeled].mean(axis=0)
    return poisson_potential(rows.graph.weights, sources, labeled)


def logistic(rows: Draw, given: np.ndarray) -> np.ndarray:
    """Return probabilities with the C of best cross-validated accuracy, 10 where a class has a single label."""
    labeled = given >= 0
    X = rows.X - rows.X.mean(axis=0)
    X /= np.sqrt(np.mean(np.sum(X.astype(np.float64) ** 2, axis=1)))
    n_folds = min(MOST_FOLDS, np.bincount(given[labeled]).min())
    models = [LogisticRegression(C=C, max_iter=200) for C in STRENGTHS]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        best = models[1]
        if n_folds > 1:
            folds = StratifiedKFold(n_folds, shuffle=True, random_state=0)
            best = max(models, key=lambda model: cross_val_score(model, X[labeled], given[labeled], cv=folds).mean())
        return best.fit(X[labeled], given[labeled]).predict_proba(X)


def honesty(method: str, probabilities: np.ndarray, y: np.ndarray, given: np.ndarray) -> dict:
    """Return accuracy, precision, and how well probabilities agree with the truth, on rows without a label."""
    rest = given < 0
    probabilities, y = probabilities[rest], y[rest]
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == y
    sure = confidence >= SURE
    ece, by_chance = calibration_error(probabilities, np.arange(probabilities.shape[1]), y)
    own = probabilities[np.arange(len(y)), y]
    pairs = np.random.default_rng(0).integers(0, len(y), (2, N_PAIRS))
    same = np.einsum("ij,ij->i", probabilities[pairs[0]], probabilities[pairs[1]])
    is_same = y[pairs[0]] == y[pairs[1]]
    of_pairs = np.array_split(np.argsort(same, kind="stable"), N_BINS)
    figures = {
        "accuracy": right.mean(),
        "p10": precision_of_probabilities(probabilities, y),
        "sure": sure.mean(),
        "sure_right": right[sure].mean() if sure.any() else float("nan"),
        "ece": ece,
        "ece_of_chance": by_chance,
        "confidence": confidence.mean(),
        "log_loss": -np.log(np.maximum(own, 1e-12)).mean(),
        "pairs_ece": binned_gap(same, is_same, of_pairs),
        "pairs_log_loss": -np.log(np.maximum(np.where(is_same, same, 1 - same), 1e-12)).mean(),
    }
    return {"method": method} | {name: round(float(value), 5) for name, value in figures.items()}


def precision_of_probabilities(probabilities: np.ndarray, y: np.ndarray) -> float:
    """Return P@10 of rows among the others, ranked by how likely two rows are of one class."""
    likely = probabilities.astype(np.float64) @ probabilities.T
    np.fill_diagonal(likely, -1.0)
    return nearest_of_class(likely, y, y)


def nearest_of_class(likely: np.ndarray, y: np.ndarray, y_items: np.ndarray) -> float:
    """Return the share of the ten likeliest items of each row that are of its class; ties in random order."""
    order = np.random.default_rng(0).permutation(len(y_items))
    near = np.argpartition(-likely[:, order], N_NEAREST, axis=1)[:, :N_NEAREST]
    return round(float(np.mean(y_items[order][near] == y[:, None])), 5)
