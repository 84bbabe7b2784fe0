"""Print how many true neighbors RaBitQ's estimate and plain Hamming distances find at the same code length.

    STARSHL_DATA=folder/with/mnist.npz python benchmarks/rabitq_table.py
    STARSHL_DATA=... python benchmarks/rabitq_table.py --datasets mnist usps --shares 1 .5 .1

Rows are scaled to unit length. Recall is the share of each query's 10 nearest rows (Euclidean) among the 10 rows
ranked first. The estimate keeps two numbers per row besides the code, and the query in full precision.
"""

import argparse

import numpy as np
from sklearn.preprocessing import normalize

from starshl.data import datasets
from starshl.hashers.baselines import RaBitQ
from starshl.learning.linalg import nearest_rows

N_NEIGHBORS = 10


def main() -> None:
    options = parse_options()
    print(f"{options.rows:,} rows, {options.queries:,} queries, seed {options.seed}")
    print(f"{'data':12}{'features':>10}{'bits':>8}{'Hamming':>10}{'estimate':>10}")
    for name in options.datasets:
        items, queries = load(name, options)
        for share in options.shares:
            n_bits = max(1, round(share * items.shape[1]))
            hamming, estimate = recalls(items, queries, n_bits, options.seed)
            print(f"{name:12}{items.shape[1]:10}{n_bits:8}{hamming:10.3f}{estimate:10.3f}", flush=True)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", nargs="+", default=["digits", "usps", "mnist", "agnews"])
    parser.add_argument("--shares", nargs="+", type=float, default=[1.0, 0.5, 0.1], help="bits per feature")
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def load(name: str, options: argparse.Namespace) -> tuple[np.ndarray, np.ndarray]:
    X = datasets.get(name).X
    chosen = np.random.default_rng(options.seed).permutation(len(X))[: options.rows + options.queries]
    rows = normalize(X[chosen].astype(np.float64))
    return rows[options.queries :], rows[: options.queries]


def recalls(items: np.ndarray, queries: np.ndarray, n_bits: int, seed: int) -> tuple[float, float]:
    """Return the recall of Hamming distances and that of the estimate; ties of Hamming are ordered by index."""
    nearest = nearest_rows(queries, items, N_NEIGHBORS)
    hasher = RaBitQ(n_bits, random_state=seed).fit(items)
    hamming = hasher.encode(queries).distances(hasher.encode(items))
    estimate = hasher.asymmetric_distances(queries, hasher.sketch(items))
    return recall(hamming, nearest), recall(estimate, nearest)


def recall(distances: np.ndarray, nearest: np.ndarray) -> float:
    ranked = np.argsort(distances, axis=1, kind="stable")[:, :N_NEIGHBORS]
    return float((ranked[:, :, None] == nearest[:, None, :]).any(axis=1).mean())


if __name__ == "__main__":
    main()
