"""Measure how well ``Collection.suspects`` finds flipped labels of BANKING77, beside neighbors and self-confidence.

    python benchmarks/suspects.py --draws 5

needs the folder of data sets in STARSHL_DATA (docs/datasets.md). In every draw, a tenth of the labels of the official
training split gets another class, each of the others equally likely. Items are ranked by how probably their label is
wrong; printed is the average precision of the flipped ones in that ranking. "ten neighbors" ranks by how many of the
ten nearest rows (by cosine) have another label, and "logistic regression" by the probability of the item's label from
five-fold cross-validation.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

import numpy as np
from measuring import show, timed
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neighbors import NearestNeighbors

from starshl import Collection
from starshl.hashers.baselines import LSHash

N_NEIGHBORS = 10


def load() -> tuple[np.ndarray, np.ndarray]:
    """Return rows and classes of the training split."""
    with np.load(Path(os.environ["STARSHL_DATA"]) / "banking77_minilm384.npz") as arrays:
        training = arrays["split"] == 0
        return arrays["X"][training].astype(np.float32), arrays["y"][training]


def flip(labels: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return labels of which a tenth is wrong, and which ones are."""
    rng = np.random.default_rng(seed)
    n_classes = labels.max() + 1
    wrong = np.zeros(len(labels), bool)
    wrong[rng.choice(len(labels), len(labels) // 10, replace=False)] = True
    shifts = rng.integers(1, n_classes, len(labels))
    return np.where(wrong, (labels + shifts) % n_classes, labels), wrong


def by_suspects(rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the probability that each label is wrong."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Collection.create(Path(folder, "items"), LSHash(16, random_state=0).fit(rows), vectors="float16") as collection,
    ):
        collection.add(rows, labels=labels)
        score = np.zeros(len(rows))
        for suspect in collection.suspects(None, probability=0.0):
            score[suspect.id] = suspect.probability
        return score


def by_neighbors(rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the share of the nearest rows that have another label."""
    finder = NearestNeighbors(n_neighbors=N_NEIGHBORS + 1, metric="cosine").fit(rows)
    near = finder.kneighbors(rows, return_distance=False)
    others = np.array([[each for each in found if each != row][:N_NEIGHBORS] for row, found in enumerate(near)])
    return (labels[others] != labels[:, None]).mean(axis=1)


def by_regression(rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return what the probability of each label lacks to one, by a regression on the other folds."""
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    model = LogisticRegression(max_iter=1000)
    shares = cross_val_predict(model, rows, labels, cv=folds, method="predict_proba")
    return 1 - shares[np.arange(len(labels)), labels]


RANKINGS = {"suspects": by_suspects, "ten neighbors": by_neighbors, "logistic regression": by_regression}


def main() -> None:
    """Print the average precision of each ranking in each draw, their means, and CPU seconds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=5)
    rows, labels = load()
    figures = []
    for seed in range(parser.parse_args().draws):
        given, wrong = flip(labels, seed)
        found = [timed(lambda rank=rank, given=given: rank(rows, given)) for rank in RANKINGS.values()]
        figures.append([(average_precision_score(wrong, score), cpu) for score, _, cpu in found])
    table = [[f"draw {number}", *(f"{precision:.4f}" for precision, _ in draw)] for number, draw in enumerate(figures)]
    means = np.mean(figures, axis=0)
    table.append(["mean", *(f"{precision:.4f}" for precision, _ in means)])
    table.append(["CPU s", *(f"{cpu:.1f}" for _, cpu in means)])
    show(["average precision", *RANKINGS], *table)


if __name__ == "__main__":
    main()
