"""Whole lists of hybrid codes beside supervised codes, ITQ and the plain form of hybrid codes for other systems.

    python benchmarks/hybrid.py labels /data/agnews_use512.npz /data/mnist.npz
    python benchmarks/hybrid.py clusters digits /data/usps.npz /data/mnist.npz /data/agnews_use512.npz
    python benchmarks/hybrid.py speed

A file holds X and y. Each split draws 3,000 rows to learn from, 1,000 queries and up to 5,000 further rows: items are
the first ones with their labels, and the last ones without. Figures are the share of items with the label of the query
at ranks 1-10 and 11-100, the mean average precision, and which of the ten nearest vectors with that label, and of any,
are among the first hundred items. ``benchmarks/ranking.py`` compares two versions of a method.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from starshl import BinaryCodes, HybridHasher, make_index
from starshl.codes import EncodedQueries, HammingWords, ScoreRule, WordDictionary
from starshl.codes.codewords import binary_words
from starshl.hashers.baselines import ITQ, AnchorGraphHash
from starshl.index import FlatIndex, HybridIndex, PosteriorIndex, Reconstruction, ResidualIndex
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
                values = " ".join(f"{value:.3f}" for value in np.mean([each[method] for each in figures], axis=0))
                print(f"{Path(name).stem:14s} {n_bits:3d} bits  {method:36s} {values}", flush=True)


class Split:
    """Rows to learn from, queries, and further items."""

    def __init__(self, X: np.ndarray, y: np.ndarray, seed: int) -> None:
        order = np.random.default_rng(seed).permutation(len(X))
        n_items = min(3000, int(0.6 * len(X)))
        n_queries = min(1000, (len(X) - n_items) // 2)
        items, queries = order[:n_items], order[n_items : n_items + n_queries]
        further = order[n_items + n_queries :][:5000]
        self.X, self.y, self.queries, self.asked, self.seed = X[items], y[items], X[queries], y[queries], seed
        self.further, self.further_y = X[further], y[further]

    @classmethod
    def of(cls, name: str, seed: int) -> Split:
        if name == "digits":
            X, y = load_digits(return_X_y=True)
        else:
            with np.load(name) as file:
                X, y = file["X"], file["y"]
        X = X.astype(np.float64)
        return cls(X / np.abs(X).max(), y, seed)

    def figures(self, ids: np.ndarray, X: np.ndarray, y: np.ndarray) -> list[float]:
        """Return the figures of complete lists of these items."""
        same = y[ids] == self.asked[:, None]
        precisions = np.cumsum(same, axis=1) / np.arange(1, same.shape[1] + 1)
        average = np.mean((precisions * same).sum(axis=1) / np.maximum(same.sum(axis=1), 1))
        distances = squared_distances(self.queries, X)
        recalls = []
        for each in (np.where(y == self.asked[:, None], distances, np.inf), distances):
            nearest = np.argsort(each, axis=1, kind="stable")[:, :10]
            found = [np.isin(near, listed).mean() for near, listed in zip(nearest, ids[:, :100], strict=True)]
            recalls.append(float(np.mean(found)))
        return [float(same[:, :10].mean()), float(same[:, 10:100].mean()), float(average), *recalls]

    def search(self, hasher, *, labeled: bool, plain: bool = False) -> list[float]:
        X, y = (self.X, self.y) if labeled else (self.further, self.further_y)
        codes, queries = hasher.encode_database(X, y if labeled else None), hasher.encode_queries(self.queries)
        index = make_index(codes, hasher=hasher)
        if plain:
            index, queries = make_index(hasher.hamming_codes(codes)), hasher.hamming_codes(queries)
        return self.figures(index.search(queries, len(codes)).ids, X, y)


def with_labels(split: Split, n_bits: int) -> dict[str, list[float]]:
    """Figures of supervised codes, ITQ and hybrid codes."""
    hybrid = HybridHasher(n_bits, random_state=split.seed).fit(split.X, split.y)
    residual = HybridHasher(n_bits, form="residual", random_state=split.seed).fit(split.X, split.y)
    itq, figures = ITQ(n_bits, random_state=split.seed).fit(split.X), {}
    for name, labeled in (("labeled", True), ("unlabeled", False)):
        plain = hybrid.hamming_codes(hybrid.training_codes_).n_bits
        figures |= {
            f"{name}, StarRidge": split.search(hybrid.class_hasher_, labeled=labeled),
            f"{name}, ITQ": split.search(itq, labeled=labeled),
            f"{name}, hybrid": split.search(hybrid, labeled=labeled),
            f"{name}, hybrid, float queries": split.search(residual, labeled=labeled),
            f"{name}, hybrid, {plain} plain bits": split.search(hybrid, labeled=labeled, plain=True),
        }
    return figures


def without_labels(split: Split, n_bits: int) -> dict[str, list[float]]:
    """Figures of codes that have seen no label."""
    hashers = {
        "2-AGH": AnchorGraphHash(n_bits, variant="two_layers", random_state=split.seed),
        "ITQ": ITQ(n_bits, random_state=split.seed),
        "hybrid": HybridHasher(n_bits, random_state=split.seed),
        "hybrid, float queries": HybridHasher(n_bits, form="residual", random_state=split.seed),
    }
    found = {name: split.search(each.fit(split.X), labeled=False) for name, each in hashers.items()}
    nearest = nearest_rows(split.queries, split.further, len(split.further))
    return {"float search": split.figures(nearest, split.further, split.further_y), **found}


def speed(n_items: int) -> None:
    """Milliseconds per query of one thread: a plain scan, and indexes that know the posterior of the query."""
    rng = np.random.default_rng(0)
    n_bits, n_word_bits, n_classes = 64, 6, 10
    of_rows = rng.dirichlet(np.full(n_classes, 0.05), size=20_000).astype(np.float32)
    words = WordDictionary.fitted(of_rows[:3000], n_word_bits)
    numbers = words.numbers_of(of_rows)[rng.integers(len(of_rows), size=n_items)]
    codes = codes_of(binary_words(numbers, n_word_bits), n_bits, rng)
    asked = codes_of(binary_words(words.numbers_of(of_rows[:64]), n_word_bits), n_bits, rng)
    posteriors = {"sure": of_rows[:64], "flat": np.full((64, n_classes), 1 / n_classes, np.float32)}
    directions = np.linalg.qr(rng.standard_normal((128, 128)))[0][: n_bits - n_word_bits]
    vectors = rng.standard_normal((64, 128))
    cube = Reconstruction(rng.standard_normal((n_classes, 128)), directions, np.ones(len(directions)))
    rule = ScoreRule(1.0, 3.0, 16.0)
    signs = HammingWords(rng.choice([-1, 1], size=(n_classes, 32)), 0.6)
    different = random_codes(n_items, 32, rng)
    indexes = {
        "flat, 64 bits": FlatIndex.from_codes(codes),
        "hybrid, 64 bits": HybridIndex.from_codes(codes, words=words, rule=rule),
        "residual, 64 bits": ResidualIndex.from_codes(
            codes, words=words, rule=replace(rule, unit=30.0), reconstruction=cube
        ),
        "posterior, 32 bits": PosteriorIndex.from_codes(different, words=signs),
    }
    for name, index in indexes.items():
        own = asked if index.n_bits == n_bits else different[:64]
        print(f"{name}: {index.nbytes / n_items:.1f} bytes per item")
        for kind, given in posteriors.items():
            queries = EncodedQueries(own, given, vectors)
            for n_queries in (64, 1):
                some = queries[slice(0, n_queries)]
                index.search(some, 10)
                best = min(processor_time(index.search, some, 10) for _ in range(5))
                print(f"    {kind}, {n_queries:2d} queries: {1e3 * best / n_queries:7.2f} ms per query")


def processor_time(function, *arguments) -> float:
    started = time.process_time()
    function(*arguments)
    return time.process_time() - started


def codes_of(words: np.ndarray, n_bits: int, rng: np.random.Generator) -> BinaryCodes:
    """Return codes that begin with these words, and go on at random."""
    rest = rng.choice(np.array([-1, 1], np.int8), size=(len(words), n_bits - words.shape[1]))
    return BinaryCodes.from_signs(np.hstack([words, rest]))


def random_codes(n_codes: int, n_bits: int, rng: np.random.Generator) -> BinaryCodes:
    return BinaryCodes(rng.integers(0, 256, size=(n_codes, n_bits // 8), dtype=np.uint8), n_bits)


if __name__ == "__main__":
    main()
