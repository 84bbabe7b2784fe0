"""Precision and recall of hybrid codes beside supervised codes, ITQ and float search.

    python benchmarks/hybrid.py labels /data/agnews_use512.npz /data/mnist.npz
    python benchmarks/hybrid.py clusters digits /data/usps.npz /data/mnist.npz /data/agnews_use512.npz
    python benchmarks/hybrid.py speed

A file holds X and y. Each split draws 3,000 items and 1,000 queries. Precision is the share of the first ten items with
the label of the query, recall that of the ten nearest vectors among the first hundred items.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from starshl import BinaryCodes, HybridHasher, make_index
from starshl.hashers.baselines import ITQ, AnchorGraphHash
from starshl.index import FlatIndex, HybridIndex, Reconstruction, ResidualIndex, VectorQueries
from starshl.learning.linalg import nearest_rows, squared_distances


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("labels", "clusters", "speed"))
    parser.add_argument("data", nargs="*", help="data files, or digits")
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--bits", default=None, help="lengths; 32,64 with labels and 32 without by default")
    parser.add_argument("--items", type=int, default=1_000_000, help="items of the speed test")
    options = parser.parse_args()
    if options.what == "speed":
        speed(options.items)
        return
    bits = options.bits or ("32,64" if options.what == "labels" else "32")
    measure = with_labels if options.what == "labels" else without_labels
    for name in options.data:
        for n_bits in map(int, bits.split(",")):
            figures = [measure(Split.of(name, seed), n_bits) for seed in range(200, 200 + options.splits)]
            for method in figures[0]:
                precision, recall = np.mean([each[method][:2] for each in figures], axis=0)
                notes = ", ".join(f"{each[method][2]}" for each in figures if len(each[method]) > 2)
                print(f"{Path(name).stem:14s} {n_bits:3d} bits  {method:22s} {precision:.3f} / {recall:.3f}  {notes}")


class Split:
    """Items and queries, and the ten items whose vectors are nearest to each query."""

    def __init__(self, X: np.ndarray, y: np.ndarray, seed: int) -> None:
        order = np.random.default_rng(seed).permutation(len(X))
        n_items = min(3000, int(0.72 * len(X)))
        items, queries = order[:n_items], order[n_items : n_items + 1000]
        self.X, self.y, self.queries, self.asked, self.seed = X[items], y[items], X[queries], y[queries], seed
        self.nearest = nearest_rows(self.queries, self.X, 10)

    @classmethod
    def of(cls, name: str, seed: int) -> Split:
        if name == "digits":
            X, y = load_digits(return_X_y=True)
        else:
            with np.load(name) as file:
                X, y = file["X"], file["y"]
        X = X.astype(np.float64)
        return cls(X / np.abs(X).max(), y, seed)

    def figures(self, ids: np.ndarray) -> tuple[float, float]:
        """Return precision and recall of the first hundred items of each query."""
        recall = np.mean([np.isin(near, found).mean() for near, found in zip(self.nearest, ids, strict=True)])
        return float(np.mean(self.y[ids[:, :10]] == self.asked[:, None])), float(recall)

    def search(self, hasher, y=None) -> tuple[float, float]:
        index = make_index(hasher.encode_database(self.X, y), hasher=hasher)
        queries = hasher.encode_queries(self.queries)
        return self.figures(index.search(queries, 100).ids)


def with_labels(split: Split, n_bits: int) -> dict[str, tuple]:
    """Figures of supervised codes, ITQ and hybrid codes."""
    hybrid = HybridHasher(n_bits, random_state=split.seed).fit(split.X, split.y)
    residual = HybridHasher(n_bits, form="residual", random_state=split.seed).fit(split.X, split.y)
    itq = ITQ(n_bits, random_state=split.seed).fit(split.X)
    return {
        "StarRidge": split.search(hybrid.class_hasher_, split.y),
        "ITQ": split.search(itq),
        "ITQ, float queries": split.figures(by_vectors(itq, split)),
        "hybrid": (*split.search(hybrid, split.y), hybrid.class_weight_),
        "hybrid, float queries": (*split.search(residual, split.y), residual.class_weight_),
    }


def without_labels(split: Split, n_bits: int) -> dict[str, tuple]:
    """Figures of codes that have seen no label."""
    hybrid = HybridHasher(n_bits, random_state=split.seed).fit(split.X)
    agh = AnchorGraphHash(n_bits, variant="two_layers", random_state=split.seed).fit(split.X)
    return {
        "float search": split.figures(nearest_rows(split.queries, split.X, 100)),
        "2-AGH": split.search(agh),
        "ITQ": split.search(ITQ(n_bits, random_state=split.seed).fit(split.X)),
        "hybrid": (*split.search(hybrid), f"{len(hybrid.classes_)} clusters, weight {hybrid.class_weight_}"),
    }


def by_vectors(itq: ITQ, split: Split) -> np.ndarray:
    """Return the first hundred items by the distance of queries from the vectors that ITQ codes stand for."""
    scores = itq.decision_function(split.X)
    steps = np.where(scores >= 0, 1, -1) * np.abs(scores).mean(axis=0)
    reconstructed = split.X.mean(axis=0) + steps @ itq.components_
    return np.argsort(squared_distances(split.queries, reconstructed), axis=1, kind="stable")[:, :100]


def speed(n_items: int) -> None:
    """Items per second of one thread: a plain scan of codes, one with classes, and one of reconstructed vectors."""
    rng = np.random.default_rng(0)
    for n_bits, class_bits in ((32, 2), (64, 4)):
        codes, queries = random_codes(n_items, n_bits, rng), random_codes(64, n_bits, rng)
        directions = np.linalg.qr(rng.standard_normal((128, 128)))[0][: n_bits - class_bits]
        centers, scales = rng.standard_normal((1 << class_bits, 128)), np.ones(len(directions))
        reconstruction = Reconstruction(centers, directions, scales, 1.0)
        vectors = VectorQueries(queries, rng.standard_normal((64, 128)))
        residual = ResidualIndex.from_codes(codes, reconstruction=reconstruction, class_weight=0.1, class_first=10)
        hybrid = HybridIndex.from_codes(codes, class_bits=class_bits, class_weight=3, class_first=10)
        flat = FlatIndex.from_codes(codes)
        for n_queries in (64, 1):
            some, rows = queries[:n_queries], vectors[slice(0, n_queries)]
            searches = {"flat": (flat, some), "hybrid": (hybrid, some), "residual": (residual, rows)}
            best = dict.fromkeys(searches, np.inf)
            for _ in range(5):
                for name, (index, asked) in searches.items():
                    started = time.process_time()
                    index.search(asked, 10)
                    best[name] = min(best[name], time.process_time() - started)
            rates = ", ".join(f"{name} {1e-6 * n_items * n_queries / took:,.0f}" for name, took in best.items())
            print(f"{n_bits} bits, {n_queries:2d} queries, million items per second: {rates}")


def random_codes(n_codes: int, n_bits: int, rng: np.random.Generator) -> BinaryCodes:
    return BinaryCodes(rng.integers(0, 256, size=(n_codes, n_bits // 8), dtype=np.uint8), n_bits)


if __name__ == "__main__":
    main()
