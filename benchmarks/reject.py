"""Measure "none of these": classes left out of training, recognized by ``novelty`` and by distances of the vectors.

    python benchmarks/reject.py --draws 5

needs the folder of data sets in STARSHL_DATA (docs/datasets.md). Of every draw, some classes are left out of training;
known queries are unseen rows of the others. Printed are the area under the ROC curve, novelty against the distance
to the k-th nearest training row (k = 1, 5, 10) on the same rows, and the share of known queries that ``reject=0.05``
rejects.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors

from starshl import StarRidge, StarSHL

FILES = {
    "MNIST": "mnist",
    "USPS": "usps",
    "Pendigits": "pendigits",
    "AG News": "agnews_use512",
    "Letter": "letter",
    "digits": None,
}
NEIGHBORS = (1, 5, 10)
N_QUERIES = 1000  # of known classes, and as many of others


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows and classes of a data set."""
    file = FILES[name]
    if file is None:
        return load_digits(return_X_y=True)
    with np.load(Path(os.environ["STARSHL_DATA"]) / f"{file}.npz") as arrays:
        return arrays["X"], arrays["y"]


def draw(X: np.ndarray, y: np.ndarray, n_train: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return training rows of some classes, unseen rows of them, and rows of the 1 to 4 classes left out."""
    rng = np.random.default_rng(seed)
    classes = np.unique(y)
    n_out = 2 + seed % 3 if len(classes) > 4 else 1 + seed % 2
    left_out = np.isin(y, rng.choice(classes, n_out, replace=False))
    known, novel = rng.permutation(np.flatnonzero(~left_out)), rng.permutation(np.flatnonzero(left_out))
    n_train = min(n_train, len(known) * 3 // 5)
    return known[:n_train], known[n_train : n_train + N_QUERIES], novel[:N_QUERIES]


def measure(hasher: StarRidge | StarSHL, X: np.ndarray, y: np.ndarray, n_train: int, seed: int) -> dict[str, float]:
    """Return the figures of one draw."""
    train, known, novel = draw(X, y, n_train, seed)
    rows = X.astype(np.float32)
    queries = rows[np.concatenate([known, novel])]
    is_novel = np.repeat([0, 1], [len(known), len(novel)])
    hasher.fit(rows[train], y[train])
    began = time.process_time()
    novelty = hasher.novelty(queries)
    seconds = time.process_time() - began
    distances, _ = NearestNeighbors(n_neighbors=max(NEIGHBORS)).fit(rows[train]).kneighbors(queries)
    figures = {"novelty": roc_auc_score(is_novel, novelty)}
    figures |= {f"{k}-NN": roc_auc_score(is_novel, distances[:, k - 1]) for k in NEIGHBORS}
    is_rejected = novelty >= 0.95
    figures |= {"known": is_rejected[is_novel == 0].mean(), "novel": is_rejected[is_novel == 1].mean()}
    return figures | {"weight": hasher.novelty_weight_, "k": hasher.novelty_neighbors_, "ms": 1e3 * seconds}


def main() -> None:
    """Print one line per data set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--rows", type=int, default=3000, help="training rows")
    parser.add_argument("--sets", default=",".join(FILES))
    parser.add_argument("--method", choices=("StarRidge", "StarSHL"), default="StarRidge")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    method = StarRidge if options.method == "StarRidge" else StarSHL
    print(f"{options.method}, {options.rows} training rows, mean of {options.draws} draws")
    for name in options.sets.split(","):
        X, y = load(name)
        runs = [measure(method(random_state=0), X, y, options.rows, seed) for seed in range(options.draws)]
        means = {figure: np.mean([run[figure] for run in runs]) for figure in runs[0]}
        best = [run["novelty"] - max(run[f"{k}-NN"] for k in NEIGHBORS) for run in runs]
        shown = "  ".join(f"{figure} {value:.3f}" for figure, value in means.items())
        print(f"{name:10} {shown}  minus best k-NN: {', '.join(f'{value:+.3f}' for value in best)}", flush=True)


if __name__ == "__main__":
    main()
