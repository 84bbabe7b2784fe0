"""P@10 with pixels and gradients of pictures as features, every method on the same ones: `python benchmarks/views.py`.

Results are lines of JSON in results/defaults/views.jsonl; what is listed there is not measured again. `--table` prints
the table of docs/views.md from them, `--large` fits StarRidge on all 60,000 pictures of MNIST.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent / "defaults"))
from data import MAIN, Task, draw
from measures import accuracy, precision, precision_by_scores
from store import Store

from starshl import BinaryCodes, StarRidge, StarSHL
from starshl.data import datasets
from starshl.data.features import PictureFeatures
from starshl.evaluation import precision_at
from starshl.hashers.baselines import ITQ, KSH, SDH, CodewordSVM

N_BITS, SEED = 32, 0
SIDES = {"mnist": 28, "cifar": 32, "usps": 16}


class Features:
    """The features of one split, and which columns are which."""

    def __init__(self, task: Task, side: int, split: int):
        data = draw(task, split)
        step = PictureFeatures((side, side)).fit(data.X_train)
        self.views, self.y_train, self.y_query = step.views, data.y_train, data.y_query
        self.train, self.query = step.transform(data.X_train), step.transform(data.X_query)

    def figures(self, method: str, database: str, decoding: str, p10: float, **others) -> dict:
        return {"method": method, "database": database, "decoding": decoding, "p10": p10, **others}

    def by_codes(self, method: str, queries: BinaryCodes, database: str, items: BinaryCodes, **others) -> dict:
        p10 = precision(queries, items, self.y_query, self.y_train)
        return self.figures(method, database, "hamming", p10, **others)


def star_ridge(features: Features, columns: slice, views: dict[str, slice] | None) -> list[dict]:
    X, queries = features.train[:, columns], features.query[:, columns]
    hasher = StarRidge(N_BITS, views=views, random_state=SEED).fit(X, features.y_train)
    others = {"accuracy": accuracy(hasher.predict(queries), features.y_query), "choice": hasher.choice_}
    items = {"labels": hasher.encode_database(X, features.y_train), "self": hasher.encode_database(X)}
    return [
        features.by_codes("StarRidge", hasher.encode(queries), how, codes, **others) for how, codes in items.items()
    ]


def codeword_peer(features: Features, hasher) -> list[dict]:
    """Measure a peer as it is, with label codewords in the database, and with real-score decoding of these."""
    hasher.set_params(random_state=SEED).fit(features.train, features.y_train)
    scores, name = hasher.decision_function(features.query), type(hasher).__name__
    queries = BinaryCodes.from_scores(scores)
    words = BinaryCodes.from_signs(hasher.codewords_[features.y_train])
    by_score = precision_by_scores(scores, words, features.y_query, features.y_train)
    return [
        features.by_codes(name, queries, "self", hasher.encode_database(features.train)),
        features.by_codes(name, queries, "labels", words),
        features.figures(name, "labels", "real", by_score),
    ]


def peer(features: Features, hasher) -> list[dict]:
    hasher.set_params(random_state=SEED).fit(features.train, features.y_train)
    items = hasher.encode_database(features.train, features.y_train)
    return [features.by_codes(type(hasher).__name__, hasher.encode(features.query), "default", items)]


WORK: dict[str, Callable[[Features], list[dict]]] = {
    "StarRidge, views": lambda f: star_ridge(f, slice(None), f.views),
    "StarRidge, all features as one": lambda f: star_ridge(f, slice(None), None),
    "StarRidge, pixels alone": lambda f: star_ridge(f, f.views["pixels"], None),
    "HC-SDH": lambda f: codeword_peer(f, SDH(N_BITS, variant="hadamard", n_anchors=None)),
    "Codeword SVM": lambda f: codeword_peer(f, CodewordSVM(N_BITS)),
    "StarSHL, views": lambda f: codeword_peer(f, StarSHL(N_BITS, views=f.views)),
    "StarSHL, all features as one": lambda f: codeword_peer(f, StarSHL(N_BITS)),
    "KSH": lambda f: peer(f, KSH(N_BITS)),
    "CCA-ITQ": lambda f: peer(f, ITQ(N_BITS, variant="cca")),
    "ITQ": lambda f: peer(f, ITQ(N_BITS)),
}


def measure(options) -> None:
    store = Store("views", options.again)
    for split in range(options.splits):
        for name in options.sets:
            features = Features(MAIN[name], SIDES[name], split)
            for work in options.work or WORK:
                store.measure({"set": name, "split": split}, work, lambda work=work, f=features: WORK[work](f))


def table() -> None:
    """Print the best figure of each method, whatever database and decoding suit it: means over the splits of all."""
    lines = Store("views").lines
    sets = [name for name in SIDES if any(line["set"] == name for line in lines)]
    lines = [line for line in lines if line["split"] in common_splits(lines, line["set"])]
    print("| method | " + " | ".join(MAIN[name].title for name in sets) + " |")
    print("|---|" + "---|" * len(sets))
    for work in WORK:
        cells = []
        for name in sets:
            mine = [line["rows"] for line in lines if (line["set"], line["work"]) == (name, work)]
            best = (
                max((np.mean([rows[k]["p10"] for rows in mine]) for k in range(len(mine[0]))), default=0) if mine else 0
            )
            cells.append(f"{best:.4f}"[1:] if mine else "")
        print(f"| {work} | " + " | ".join(cells) + " |")


def common_splits(lines: list[dict], name: str) -> set[int]:
    """Return the splits of a data set on which every method was measured that was measured there at all."""
    by_work: dict[str, set[int]] = {}
    for line in lines:
        if line["set"] == name:
            by_work.setdefault(line["work"], set()).add(line["split"])
    return set.intersection(*by_work.values())


def large(options) -> None:
    """Fit all training pictures of MNIST over landmarks, and print precision and time."""
    mnist = datasets.get("mnist")
    train = mnist.split == 0
    start = time.perf_counter()
    step = PictureFeatures((28, 28), n_jobs=options.jobs).fit(mnist.X[train])
    X, pictures = step.transform(mnist.X[train]), step.transform(mnist.X[~train])
    print(f"features of {len(mnist.X):,} pictures: {time.perf_counter() - start:.1f} s", flush=True)
    start, cpu = time.perf_counter(), time.process_time()
    hasher = StarRidge(
        N_BITS, views=step.views, n_landmarks=options.large, n_jobs=options.jobs, random_state=SEED, verbose=1
    ).fit(X, mnist.y[train])
    print(f"fit: {time.perf_counter() - start:.1f} s, {time.process_time() - cpu:.1f} s of processor time", flush=True)
    print(hasher.choice_)
    p10 = precision_at(hasher.encode(pictures), hasher.training_codes_, mnist.y[~train], mnist.y[train], 10)
    print(f"P@10 {p10:.4f}, accuracy {hasher.score(pictures, mnist.y[~train]):.4f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--sets", nargs="+", default=list(SIDES), choices=list(SIDES))
    parser.add_argument("--work", nargs="+", choices=list(WORK))
    parser.add_argument("--again", nargs="*", default=[], help="methods to measure anew")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--large", type=int, metavar="LANDMARKS")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    if options.table:
        table()
    elif options.large:
        large(options)
    else:
        measure(options)


if __name__ == "__main__":
    main()
