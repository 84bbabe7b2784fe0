"""Measure what one codebook keeps: old items searched by new hashers, without encoding the items again.

    python benchmarks/one_codebook.py

needs agnews_use512.npz in STARSHL_DATA (docs/datasets.md). First, items coded by a hasher on one half of the features
of AG News are searched by a hasher on the other half. Second, a tenth class comes to the digits. Printed is the
precision at 10 of unseen queries, mean of the splits, with one codebook, after encoding everything again, and with
hashers whose codewords have nothing to do with each other.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from starshl import BinaryCodes, Codebook, StarRidge, make_index

N_BITS = 32


def precision(items: BinaryCodes, item_labels: np.ndarray, queries: BinaryCodes, labels: np.ndarray) -> float:
    """Return the share of right labels among the first ten; the spaces of the codes are not compared."""
    plain = [BinaryCodes(codes.packed, codes.n_bits) for codes in (items, queries)]
    found = make_index(plain[0]).search(plain[1], 10).ids
    return float(np.mean(item_labels[found] == labels[:, None]))


def other_features(X: np.ndarray, y: np.ndarray, n_items: int, seed: int) -> list[float]:
    """Return the precision of queries by the second half of the features."""
    order = np.random.default_rng(seed).permutation(len(y))
    items, queries = order[:n_items], order[n_items : n_items + 1000]
    halves = X[:, ::2], X[:, 1::2]
    codebook = Codebook.make(np.unique(y), N_BITS, n_reserved=4, random_state=seed)
    # Codes of the vectors alone, as for items without labels: words of labels would be equal by definition.
    old, new = (StarRidge(N_BITS, codewords=codebook, random_state=seed).fit(half[items], y[items]) for half in halves)
    other = new.with_bits(N_BITS, codewords=Codebook.make(np.unique(y), N_BITS, random_state=seed + 1000))
    unseen = order[n_items + 1000 :]
    coded, again = old.encode_database(halves[0][unseen]), new.encode_database(halves[1][unseen])
    asked = halves[1][queries]
    return [
        precision(coded, y[unseen], new.encode(asked), y[queries]),
        precision(again, y[unseen], new.encode(asked), y[queries]),
        precision(coded, y[unseen], other.encode(asked), y[queries]),
    ]


def tenth_class(seed: int) -> list[float]:
    """Return the precision on digits when only the items of the new class are encoded by the new hasher."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))
    items, queries = order[:1200], order[1200:]
    before = items[y[items] != 9]
    nines = items[y[items] == 9]
    codebook = Codebook.make(np.arange(9), N_BITS, n_reserved=7, random_state=seed)
    old = StarRidge(N_BITS, codewords=codebook, random_state=seed).fit(X[before], y[before])
    new = StarRidge(N_BITS, codewords=codebook.assign(9), random_state=seed).fit(X[items], y[items])
    other = new.with_bits(N_BITS, codewords=Codebook.make(np.arange(10), N_BITS, random_state=seed + 1000))
    mixed = np.concatenate([before, nines])
    asked, labels = X[queries], y[queries]

    def joined(of_nines: StarRidge) -> BinaryCodes:
        parts = old.encode_database(X[before], y[before]), of_nines.encode_database(X[nines], y[nines])
        return BinaryCodes(np.concatenate([part.packed for part in parts]), N_BITS)

    return [
        precision(joined(new), y[mixed], new.encode(asked), labels),
        precision(new.encode_database(X[items], y[items]), y[items], new.encode(asked), labels),
        precision(joined(other), y[mixed], other.encode(asked), labels),
    ]


def main() -> None:
    """Print one line per case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--items", type=int, default=2000, help="training rows of AG News")
    options = parser.parse_args()
    with np.load(Path(os.environ["STARSHL_DATA"]) / "agnews_use512.npz") as arrays:
        X, y = arrays["X"].astype(np.float64), arrays["y"]
    cases = {
        "AG News, other features": [other_features(X, y, options.items, seed) for seed in range(options.splits)],
        "digits, a tenth class": [tenth_class(seed) for seed in range(options.splits)],
    }
    print("one codebook / encoded again / unrelated codewords")
    for name, figures in cases.items():
        print(f"{name}: " + " / ".join(f"{figure:.3f}" for figure in np.mean(figures, axis=0)))


if __name__ == "__main__":
    main()
