"""mAP on CIFAR-10 under the protocol of the literature, beside published figures: `python benchmarks/anchors`.

    STARSHL_DATA=DIR python benchmarks/anchors --features gist            # computes GIST-512 once, into --cache
    STARSHL_DATA=DIR python benchmarks/anchors --features network --pictures FILE.npz      # color.py makes the file
    STARSHL_DATA=DIR python benchmarks/anchors --features FILE.npy        # your own: a vector for each of 60,000 rows
    python benchmarks/anchors --table                                     # print the tables of docs/anchors.md

The rows are those of `cifar10-1000q-5000t`: 100 queries per class, the other 59,000 rows are the database, and 500 per
class of them train; with `--protocol cifar10-1000q-59000t` the whole database trains. Results are lines of JSON in
results/defaults/anchors.jsonl; what is listed there is not measured again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "defaults"))
from gist import gist
from network import features_of_all, read_pictures
from store import Store
from table import gaps, glance, table

from starshl import BinaryCodes, StarRidge, StarSHL
from starshl._common.result_cache import ResultCache, caching_results
from starshl.data import datasets
from starshl.evaluation import mean_average_precision
from starshl.hashers import BaseHasher, fit_lengths
from starshl.hashers.baselines import COSDISH, ITQ, KSH, SDH, CodewordSVM, LSHash
from starshl.reproduction import SplitData, protocol, split_data

PROTOCOLS = ("cifar10-1000q-5000t", "cifar10-1000q-59000t")
LENGTHS = (12, 24, 32, 48)
METHODS: dict[str, Callable[..., Any]] = {
    "LSH": LSHash,
    "ITQ": ITQ,
    "ITQ CCA": partial(ITQ, variant="cca"),
    "COSDISH": COSDISH,
    "COSDISH kernel": partial(COSDISH, variant="kernel"),
    "SDH": SDH,
    "FSDH": partial(SDH, variant="fsdh"),
    "HC-SDH": partial(SDH, variant="hadamard", n_anchors=None),
    "KSH": KSH,
    "StarRidge": StarRidge,
    "codeword SVM": CodewordSVM,
    "StarSHL": StarSHL,
    "StarSHL paper": StarSHL.paper,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", default="gist", help='"gist", "network", or a .npy file of vectors')
    parser.add_argument("--pictures", help="an .npz with all pictures in color, for the network")
    parser.add_argument("--name", help="name of the features in tables; default: that of the features or of their file")
    parser.add_argument("--protocol", choices=PROTOCOLS, default=PROTOCOLS[0])
    parser.add_argument("--methods", default=",".join(METHODS), help=f"some of {', '.join(METHODS)}")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--cache", type=Path, default=Path("starshl-anchors"))
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    store = Store("anchors")
    if given.table:
        print(*(part(store.lines, LENGTHS) for part in (glance, table, gaps)), sep="\n\n")
        return
    methods = given.methods.split(",")
    if unknown := set(methods) - set(METHODS):
        parser.error(f"There is no method {', '.join(sorted(unknown))} here; known are {', '.join(METHODS)}.")
    dataset = datasets.get("cifar10")
    dataset = replace(dataset, X=vectors_of_all(given, dataset.X))
    for run in range(given.runs):
        data = split_data(dataset, protocol(given.protocol).split(dataset, run), scaling="standard")
        for method in methods:
            where = {
                "protocol": given.protocol,
                "features": given.name or Path(given.features).stem,
                "run": run,
            }
            # Kernels between database and training rows are the same at every length.
            with caching_results(ResultCache()):
                store.measure(where, method, partial(figures, method, data))


def vectors_of_all(given: argparse.Namespace, pixels: np.ndarray) -> np.ndarray:
    """Return the chosen features of all pictures; those of gist and of the network are computed once."""
    if given.features == "gist":
        return gist_of_all(pixels, given.cache)
    if given.features == "network":
        if given.pictures is None:
            sys.exit("The network needs pictures in color. Give a file with --pictures; color.py makes one.")
        return features_of_all(read_pictures(given.pictures, pixels), given.cache)
    vectors = np.load(given.features)
    if len(vectors) != len(pixels):
        sys.exit(f"{given.features} has {len(vectors):,} rows; CIFAR-10 has {len(pixels):,}. Give one vector per row.")
    return vectors


def gist_of_all(pixels: np.ndarray, cache: Path) -> np.ndarray:
    """Return GIST of all pictures, computed once."""
    path = cache / "cifar10-gist512.npy"
    if not path.exists():
        cache.mkdir(parents=True, exist_ok=True)
        report = lambda n: print(f"\rGIST of {n:,} of {len(pixels):,} pictures", end="", file=sys.stderr)  # noqa: E731
        np.save(path, gist(pixels.reshape(-1, 32, 32), report))
    return np.load(path)


def figures(method: str, data: SplitData) -> list[dict]:
    """Return mAP at every length, with items coded from their vectors alone and, if that differs, by known labels."""
    rows = []
    first = METHODS[method](LENGTHS[0], random_state=data.split.seed(method))
    for n_bits, hasher in zip(LENGTHS, fit_lengths(first, data.X_train, data.y_train, LENGTHS), strict=True):
        queries, items = hasher.encode(data.X_query), hasher.encode_database(data.X_database)
        row = {"bits": n_bits, "map": _map(queries, items, data)}
        by_label = _with_known_labels(hasher, items, data)
        if by_label != items:
            row["map_known_labels"] = _map(queries, by_label, data)
        rows.append(row)
    return rows


def _with_known_labels(hasher: BaseHasher, items: BinaryCodes, data: SplitData) -> BinaryCodes:
    """Return the codes of items with those of training rows replaced by what their labels give."""
    known = data.y_database_known >= 0
    packed = items.packed.copy()
    packed[known] = hasher.encode_database(data.X_database[known], data.y_database[known]).packed
    return hasher.as_codes(packed)


def _map(queries: BinaryCodes, items: BinaryCodes, data: SplitData) -> float:
    return round(float(mean_average_precision(queries, items, data.y_query, data.y_database)), 4)


if __name__ == "__main__":
    main()
