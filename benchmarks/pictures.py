"""How much of the right class picture features find: plain ones, balanced views, and the network.

    python benchmarks/pictures.py cifar10_color.npz --network

The file holds pictures as flat rows of red, green and blue in X, square ones, and their classes in y. Half of them, by
a seed, are queries. Printed is the precision at 10 of the nearest vectors, and of codes of 32 bits learned from labels.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from starshl import HybridHasher, make_index
from starshl.data.features import NetworkFeatures, PictureFeatures, ReadPictures, Reduce
from starshl.learning.linalg import nearest_rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", help="an .npz with X and y")
    parser.add_argument("--network", action="store_true", help="also the network, at tens of milliseconds per picture")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with np.load(options.file) as arrays:
        X, y = arrays["X"], arrays["y"]
    side = round(np.sqrt(X.shape[1] / 3))
    pictures = X.reshape(-1, side, side, 3)
    order = np.random.default_rng(options.seed).permutation(len(y))
    queries, items = order[: len(y) // 2], order[len(y) // 2 :]
    print(f"{'features':32} {'numbers':>8} {'vectors':>8} {'codes':>8}")
    for name, rows in features(pictures, items, with_network=options.network):
        found = nearest_rows(rows[queries], rows[items], 10)
        by_vectors = np.mean(y[items][found] == y[queries][:, None])
        print(f"{name:32} {rows.shape[1]:>8} {by_vectors:>8.3f} {precision_of_codes(rows, y, queries, items):>8.3f}")


def features(pictures, items, *, with_network):
    """Yield names and vectors; what is learned is learned from the items."""
    step = PictureFeatures(pictures.shape[1:]).fit(pictures)
    plain = step.transform(pictures)
    yield "plain", plain
    sizes = [view.stop - view.start for view in step.views.values()]
    yield "balanced and reduced", Reduce(view_sizes=sizes).fit(plain[items]).transform(plain)
    if with_network:
        read, network = ReadPictures(224, shape="center").fit(), NetworkFeatures(n_jobs=-1).fit()
        batches = np.array_split(pictures, max(1, len(pictures) // 50))
        seen = np.vstack([network.transform(read.transform(list(batch))) for batch in batches])
        yield "network, reduced", Reduce().fit(seen[items]).transform(seen)


def precision_of_codes(rows, y, queries, items):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        hasher = HybridHasher(32, form="residual", random_state=0).fit(rows[items], y[items])
    index = make_index(hasher.encode_database(rows[items], y[items]), hasher=hasher)
    _, ids = index.search(hasher.encode_queries(rows[queries]), 10)
    return np.mean(y[items][ids] == y[queries][:, None])


if __name__ == "__main__":
    main()
