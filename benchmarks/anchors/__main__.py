"""mAP on CIFAR-10 under the protocol of the literature, beside published figures: `python benchmarks/anchors`.

    STARSHL_DATA=DIR python benchmarks/anchors --features gist            # computes GIST-512 once, into --cache
    STARSHL_DATA=DIR python benchmarks/anchors --features FILE.npy --name network     # a vector for each of 60,000 rows
    python benchmarks/anchors --table                                     # print the table of docs/anchors.md

The rows are those of `cifar10-1000q-5000t`: 100 queries per class, the other 59,000 rows are the database, and 500 per
class of them train. Results are lines of JSON in results/defaults/anchors.jsonl; what is listed there is not measured
again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "defaults"))
from gist import gist
from published import PUBLISHED
from store import Store

from starshl import StarRidge, StarSHL, datasets
from starshl.baselines import COSDISH, ITQ, KSH, SDH, LSHash
from starshl.evaluation import SplitData, mean_average_precision, protocol, split_data
from starshl.lengths import fit_lengths

PROTOCOL = "cifar10-1000q-5000t"
LENGTHS = (12, 24, 32, 48)
METHODS: dict[str, Callable[[int, int], Any]] = {
    "StarRidge": lambda n_bits, seed: StarRidge(n_bits, random_state=seed),
    "SDH": lambda n_bits, seed: SDH(n_bits, random_state=seed),
    "ITQ": lambda n_bits, seed: ITQ(n_bits, random_state=seed),
    "LSH": lambda n_bits, seed: LSHash(n_bits, random_state=seed),
    "KSH": lambda n_bits, seed: KSH(n_bits, random_state=seed),
    "COSDISH": lambda n_bits, seed: COSDISH(n_bits, random_state=seed),
    "StarSHL": lambda n_bits, seed: StarSHL(n_bits, random_state=seed),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", default="gist", help='"gist", or a .npy file of vectors')
    parser.add_argument("--name", help="name of the features in tables; default: gist")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--cache", type=Path, default=Path("starshl-anchors"))
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    store = Store("anchors")
    if given.table:
        print(table(store.lines))
        return
    dataset = datasets.get("cifar10")
    name = given.name or Path(given.features).stem
    vectors = gist_of_all(dataset.X, given.cache) if given.features == "gist" else np.load(given.features)
    if vectors.shape[0] != len(dataset.X):
        sys.exit(
            f"{given.features} has {vectors.shape[0]} rows; CIFAR-10 has {len(dataset.X)}. Give one vector per row."
        )
    dataset = replace(dataset, X=vectors)
    for run in range(given.runs):
        split = protocol(PROTOCOL).split(dataset, run)
        data = split_data(dataset, split, scaling="standard")
        for method in given.methods.split(","):
            where = {"features": name, "run": run}
            store.measure(
                where, method, lambda method=method, data=data: figures(method, data, data.split.seed(method))
            )


def gist_of_all(pixels: np.ndarray, cache: Path) -> np.ndarray:
    """Return GIST of all pictures, computed once."""
    path = cache / "cifar10-gist512.npy"
    if not path.exists():
        cache.mkdir(parents=True, exist_ok=True)
        report = lambda n: print(f"\rGIST of {n:,} of {len(pixels):,} pictures", end="", file=sys.stderr)  # noqa: E731
        np.save(path, gist(pixels.reshape(-1, 32, 32), report))
    return np.load(path)


def figures(method: str, data: SplitData, seed: int) -> list[dict]:
    """Return mAP at every length, with items coded from their vectors alone and, if that differs, by known labels."""
    rows = []
    hashers = fit_lengths(METHODS[method](LENGTHS[0], seed), data.X_train, data.y_train, LENGTHS)
    for n_bits, hasher in zip(LENGTHS, hashers, strict=True):
        queries, items = hasher.encode(data.X_query), hasher.encode_database(data.X_database)
        row = {"bits": n_bits, "map": _map(queries, items, data)}
        by_label = hasher.encode_database(data.X_database, data.y_database_known)
        if by_label != items:
            row["map_known_labels"] = _map(queries, by_label, data)
        rows.append(row)
    return rows


def _map(queries: Any, items: Any, data: SplitData) -> float:
    return round(float(mean_average_precision(queries, items, data.y_query, data.y_database)), 4)


def table(lines: list[dict]) -> str:
    """Return measured and published figures as Markdown, by features."""
    text = ["| features | method | database codes | 12 bits | 24 bits | 32 bits | 48 bits | source |", "|" + "---|" * 8]
    for features in dict.fromkeys([*(line["features"] for line in lines), *(p.features for p in PUBLISHED)]):
        for line in lines:
            if line["features"] == features:
                for key, how in (("map", "out of sample"), ("map_known_labels", "known labels where given")):
                    if key in line["rows"][0]:
                        cells = [f"{row[key]:.3f}" for row in line["rows"]]
                        text.append(f"| {features} | {line['work']} | {how} | {' | '.join(cells)} | measured here |")
        for known in PUBLISHED:
            if known.features == features:
                cells = [f"{known.by_bits[n]:.3f}" for n in LENGTHS]
                text.append(f"| {features} | {known.method} | not said | {' | '.join(cells)} | {known.source} |")
    return "\n".join(text)


if __name__ == "__main__":
    main()
