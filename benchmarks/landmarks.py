"""Time and score fits over landmarks, above max_exact_rows: `python benchmarks/landmarks.py --help`.

Every part prints a table. CPU seconds are those of all threads; on a shared machine they say more than wall seconds.
Peak memory is that of the whole process, so start one part at a time to read it.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from measuring import peak_gib, show, timed

from starshl import StarRidge
from starshl.data import datasets
from starshl.evaluation import precision_at
from starshl.learning.kernels.anchors import kmeans_centers
from starshl.learning.kernels.expansion import expand_mixture
from starshl.learning.kernels.landmarks import LandmarkMap
from starshl.learning.solvers.ridge import RidgeSums

BLOCK = 4096


def mnist_rows():
    """Return training rows and labels, test rows and labels, in the official split."""
    mnist = datasets.get("mnist")
    X, train = (mnist.X / np.float32(255)).astype(np.float32), mnist.split == 0
    return X[train], mnist.y[train], X[~train], mnist.y[~train]


def mnist(options):
    """P@10 and time of fits on all 60,000 images, with label codewords in the database."""
    X, y, images, answers = mnist_rows()
    rows = []
    for n_landmarks in options.landmarks:
        hasher = StarRidge(options.bits, n_landmarks=n_landmarks, n_jobs=options.jobs, random_state=options.seed)
        _, wall, cpu = timed(lambda hasher=hasher: hasher.fit(X, y))
        codes = hasher.encode(images)
        precision = precision_at(codes, hasher.training_codes_, answers, y, 10)
        accuracy = hasher.score(images, answers)
        figures = f"{precision:.4f}", f"{accuracy:.4f}", f"{peak_gib():.2f}"
        rows.append((n_landmarks, f"{wall:.1f}", f"{cpu:.1f}", *figures))
        print(hasher.choice_, flush=True)
    show(("landmarks", "fit s", "CPU s", "P@10", "accuracy", "peak GiB"), *rows)


def choice(options):
    """Accuracy of landmarks chosen at random, by k-means and by StarRidge, at equal numbers."""
    X, y, images, answers = mnist_rows()
    order = np.random.RandomState(options.seed).permutation(len(X))[: options.rows]
    X, y = X[order], y[order]
    rows = []
    for n_landmarks in options.landmarks:
        chosen = StarRidge(n_landmarks=n_landmarks, max_exact_rows=1000, random_state=options.seed).fit(X, y)
        rng = np.random.RandomState(options.seed)
        sets = {
            "random rows": X[np.sort(rng.permutation(len(X))[:n_landmarks])],
            "k-means centers": kmeans_centers(X[:10_000], n_landmarks, rng, max_iter=3),
            "half where classes meet": chosen.support_samples_,
        }
        for name, landmarks in sets.items():
            accuracy, _, cpu = timed(
                lambda landmarks=landmarks, chosen=chosen: accuracy_over(landmarks, chosen, X, y, images, answers)
            )
            rows.append((n_landmarks, name, f"{accuracy:.4f}", f"{cpu:.1f}"))
    show(("landmarks", "which", "accuracy", "CPU s"), *rows)


def accuracy_over(landmarks, fitted, X, y, images, answers):
    """Return the accuracy of a regression over landmarks, with the kernels and the ridge of a fit."""
    features = LandmarkMap(fitted.kernels_, fitted.kernel_weights_, landmarks.astype(np.float32))
    sums = RidgeSums(len(landmarks), 10)
    for start in range(0, len(X), BLOCK):
        block = slice(start, start + BLOCK)
        sums.add(features.features(X[block]), y[block], np.ones(len(y[block])))
    found = sums.solve(fitted.ridge_, 1.0)
    dual = features.fold(found.coefficients).T
    scores = expand_mixture(fitted.kernels_, images, landmarks.astype(np.float32), fitted.kernel_weights_, dual)
    return np.mean((scores + found.intercept).argmax(axis=1) == answers)


def growth(options):
    """Time over the number of rows, 128 features on a memory map, and the exponent between them."""
    times, rows = [], []
    with tempfile.TemporaryDirectory() as folder:
        for n_rows in options.sizes:
            X, y = clusters(Path(folder) / "rows.npy", n_rows, options.seed)
            hasher = StarRidge(
                options.bits, n_landmarks=options.landmarks[0], n_jobs=options.jobs, random_state=options.seed
            )
            _, wall, cpu = timed(lambda hasher=hasher, X=X, y=y: hasher.fit(X, y))
            accuracy = np.mean(hasher.training_scores_.argmax(axis=1) == y)
            times.append(cpu)
            rows.append((f"{n_rows:,}", f"{wall:.0f}", f"{cpu:.0f}", f"{accuracy:.4f}", f"{peak_gib():.2f}"))
            show(("rows", "fit s", "CPU s", "leave-one-out accuracy", "peak GiB"), rows[-1])
    if len(times) > 1:
        exponent = np.polyfit(np.log(options.sizes), np.log(times), 1)[0]
        print(f"CPU time grows with the number of rows to the power of {exponent:.2f}")


def clusters(path, n_rows, seed, n_features=128, n_clusters=200):
    """Write rows around 200 centers, 20 for each of 10 classes, to a memory map; return it and the labels."""
    rng = np.random.default_rng(seed)
    centers = rng.standard_normal((n_clusters, n_features)).astype(np.float32)
    owners = rng.integers(0, n_clusters, n_rows)
    X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n_rows, n_features))
    for start in range(0, n_rows, 65536):
        own = owners[start : start + 65536]
        X[start : start + len(own)] = centers[own] + 2 * rng.standard_normal((len(own), n_features), dtype=np.float32)
    X.flush()
    del X
    return np.load(path, mmap_mode="r"), owners % 10


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(required=True, metavar="part")
    for action in (mnist, choice, growth):
        part = parts.add_parser(action.__name__, help=action.__doc__)
        numbers = [1000] if action is choice else [3000]
        part.add_argument("--landmarks", type=int, nargs="+", default=numbers)
        part.add_argument("--bits", type=int, default=64 if action is growth else 32)
        part.add_argument("--rows", type=int, default=60_000, help="training rows of `choice`")
        part.add_argument("--sizes", type=int, nargs="+", default=[50_000, 1_000_000], help="rows of `growth`")
        part.add_argument("--jobs", type=int, default=2)
        part.add_argument("--seed", type=int, default=0)
        part.set_defaults(action=action)
    options = parser.parse_args()
    options.action(options)


if __name__ == "__main__":
    main()
