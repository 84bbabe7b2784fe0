"""How well whole lists rank, and how right the probabilities of hits are, for any method and its own index.

    python benchmarks/ranking.py run StarRidge HybridHasher --data $STARSHL_DATA/{mnist,letter}.npz -o new.json
    python benchmarks/ranking.py compare old.json new.json
    python benchmarks/ranking.py compare new.json --method StarRidge --against SDH
    python benchmarks/ranking.py table results/ranking/*.json --items unlabeled

A file holds X and y. Each split draws 3,000 rows to learn from, 1,000 queries, and up to 5,000 further rows. Items are
"unlabeled" (the further rows, coded from their vectors), "labeled" (the rows of the fit, with their labels) or "mixed"
(3,000 of both). Items at equal distance count in expectation over their orders. ``area`` is that under precision over
recall of the pairs of all queries with one common threshold. ``area_of_thresholds``, as in docs/results.md, counts all
pairs at a threshold with the precision there: it is lower than the first where a method has few different distances.

With --real, other methods get what StarRidge has: queries that are not rounded to bits, whose scores are compared with
codes, and codewords of classes for labeled items, where the method has some.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
from scipy.stats import t as students_t

from starshl.evaluation.whole_lists import expected_lists, reliability
from starshl.hashers import configurations, fit_lengths, get_class
from starshl.learning.linalg import squared_distances

N_TRAIN, N_QUERIES, N_ITEMS, N_MIXED = 3000, 1000, 5000, 3000
ITEMS = ("unlabeled", "labeled", "mixed")
RANKS = ((1, 10), (11, 20), (21, 50), (51, 100))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run", help="measure methods")
    runs.add_argument("methods", nargs="+", help="names of the catalog, HybridHasher or ClassifierHasher")
    runs.add_argument(
        "--settings", type=json.loads, default={}, help='of the methods, such as \'{"form": "residual"}\''
    )
    runs.add_argument("--data", nargs="+", required=True, help="files of X and y")
    runs.add_argument("--bits", type=int, nargs="+", default=[32])
    runs.add_argument("--seeds", type=int, nargs="+", default=list(range(5)))
    runs.add_argument("--items", nargs="+", choices=ITEMS, default=list(ITEMS))
    runs.add_argument("--real", action="store_true", help="real queries, and codewords for labeled items")
    runs.add_argument("-o", "--output", type=Path, required=True, help="JSON file; splits that it holds are kept")
    runs.set_defaults(action=run)
    pairs = commands.add_parser("compare", help="print paired gains")
    pairs.add_argument("files", type=Path, nargs="+", help="an old and a new file, or one file of two methods")
    pairs.add_argument("--method", help="only this method, of the last file")
    pairs.add_argument("--against", help="another method instead of the same one, of the first file")
    pairs.set_defaults(action=compare)
    tables = commands.add_parser("table", help="print the table of docs/defaults.md: P@10, mAP and area")
    tables.add_argument("files", type=Path, nargs="+")
    tables.add_argument("--items", choices=ITEMS, required=True)
    tables.add_argument("--bits", type=int, default=32)
    tables.set_defaults(action=table)
    options = parser.parse_args()
    options.action(options)


def run(options: argparse.Namespace) -> None:
    """Measure what the file does not hold yet, and write it after each split."""
    records = json.loads(options.output.read_text()) if options.output.exists() else []
    known = {_key(each) for each in records}
    for path in options.data:
        X, y = read(path)
        for seed in options.seeds:
            for method in options.methods:
                given = [f"{key}={value}" for key, value in options.settings.items()]
                name = ", ".join([method, *given, *["real queries"] * options.real])
                about = {"data": Path(path).stem, "seed": seed, "method": name}
                wanted = [
                    n
                    for n in options.bits
                    for what in options.items
                    if _key({**about, "bits": n, "items": what}) not in known
                ]
                if not wanted:
                    continue
                split = Split(X, y, seed)
                for hasher in fitted(method, sorted(set(wanted)), split, options.settings):
                    for what in options.items:
                        record = {**about, "bits": hasher.n_bits_, "items": what}
                        if _key(record) not in known:
                            records.append(record | split.measure(hasher, what, options.real))
                            shown = {name: records[-1][name] for name in ("precision_at_10", "map", "area")}
                            print(record, {name: round(value, 4) for name, value in shown.items()}, flush=True)
                write(options.output, records)


def write(path: Path, records: list[dict]) -> None:
    """Write one record per line, with five digits."""
    short = [
        {name: round(value, 5) if isinstance(value, float) else value for name, value in each.items()}
        for each in records
    ]
    path.write_text("[\n" + ",\n".join(map(json.dumps, short)) + "\n]\n")


def _key(record: dict) -> tuple:
    return tuple(record[name] for name in ("data", "seed", "method", "bits", "items"))


def read(path: str) -> tuple[np.ndarray, np.ndarray]:
    with np.load(path) as file:
        X, y = file["X"].astype(np.float32), file["y"]
    return X / np.abs(X).max(), y


def fitted(method: str, lengths: list[int], split: Split, settings: dict) -> Iterator:
    """Yield a fitted hasher of each length, by one fit where one is enough."""
    known = next((each for each in configurations() if each.name == method), None)
    make = partial(known.make, seed=split.seed) if known else partial(get_class(method), random_state=split.seed)
    first = make(n_bits=lengths[0], **settings)
    return fit_lengths(first, split.X, split.y, lengths)


class Split:
    """Rows to learn from, queries, and further rows, drawn by a seed."""

    def __init__(self, X: np.ndarray, y: np.ndarray, seed: int) -> None:
        order = np.random.default_rng(seed).permutation(len(X))
        train, queries, unseen = np.split(order[: N_TRAIN + N_QUERIES + N_ITEMS], (N_TRAIN, N_TRAIN + N_QUERIES))
        self.X, self.y, self.seed = X[train], y[train], seed
        self.queries, self.asked = X[queries], y[queries]
        self.unseen, self.true = X[unseen], y[unseen]

    def items(self, what: str) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Return vectors, classes, and the labels that the hasher is told."""
        if what == "unlabeled":
            return self.unseen, self.true, None
        if what == "labeled":
            return self.X, self.y, self.y
        X, y = np.concatenate([self.X, self.unseen[:N_MIXED]]), np.concatenate([self.y, self.true[:N_MIXED]])
        labels = y.astype(np.int64)
        labels[len(self.y) :] = -1
        return X, y, labels

    def measure(self, hasher, what: str, real: bool) -> dict[str, float]:
        """Return all figures of one hasher."""
        X, y, labels = self.items(what)
        items, queries = hasher.encode_database(X, labels), hasher.encode_queries(self.queries)
        if real:
            distances, ids = by_scores(hasher, self.queries, items, labels)
        else:
            distances, ids = hasher.make_index(items).search(queries, len(X))
        same = y[ids] == self.asked[:, None]
        shares, precisions = expected_lists(distances, same)
        figures = {"map": float(np.mean(precisions[np.isfinite(precisions)]))} | pooled_areas(distances, same)
        figures["precision_at_10"] = float(shares[:, :10].mean())
        figures["precision_at_100"] = float(shares[:, :100].mean())
        figures |= {f"ranks_{low}_{high}": float(shares[:, low - 1 : high].mean()) for low, high in RANKS}
        figures |= nearest_found(self.queries, self.asked, X, y, ids[:, :100])
        if "probability" in hasher.supports:
            said = np.clip(queries.posteriors @ hasher.words.posteriors_of(items).T, 1e-6, 1.0)
            figures |= calibration(np.take_along_axis(said, ids, axis=1), same, shares)
        return figures


def by_scores(hasher, queries: np.ndarray, items, labels: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return negative products of the scores of queries with codes of items, in order, and the items."""
    signs = items.to_signs().astype(np.float64)
    if labels is not None and hasattr(hasher, "codewords_"):
        known = np.flatnonzero(labels >= 0)
        signs[known] = hasher.codewords_[np.searchsorted(hasher.classes_, labels[known])]
    # Rounding must not part equal codes.
    different, code_of = np.unique(signs, axis=0, return_inverse=True)
    distances = -(hasher.decision_function(queries) @ different.T)[:, code_of.ravel()]
    order = np.argsort(distances, axis=1, kind="stable")
    return np.take_along_axis(distances, order, axis=1), order


def pooled_areas(distances: np.ndarray, same: np.ndarray) -> dict[str, float]:
    """Return the areas under precision over recall of the pairs of all queries, by one common threshold."""
    order = np.argsort(distances, axis=None, kind="stable")
    distances, same = distances.ravel()[order], same.ravel()[order]
    ends = np.flatnonzero(np.append(distances[1:] != distances[:-1], True))
    found = np.cumsum(same)[ends]
    return {
        "area": float(expected_lists(distances[None], same[None])[1][0]),
        "area_of_thresholds": float(np.sum(np.diff(found, prepend=0) / found[-1] * found / (ends + 1))),
    }


def nearest_found(queries: np.ndarray, asked: np.ndarray, X: np.ndarray, y: np.ndarray, found: np.ndarray) -> dict:
    """Return how many of the ten nearest vectors, of any class and of the query's own, are among those found."""
    squared = squared_distances(queries, X)
    own = np.where(y == asked[:, None], squared, np.inf)
    figures = {}
    for name, table in {"recall_any": squared, "recall_own": own}.items():
        near = np.argpartition(table, 10, axis=1)[:, :10]
        is_there = np.isfinite(np.take_along_axis(table, near, axis=1))
        hits = (near[:, :, None] == found[:, None, :]).any(axis=2)
        figures[name] = float(np.mean(hits[is_there]))
    return figures


def calibration(said: np.ndarray, same: np.ndarray, shares: np.ndarray) -> dict[str, float]:
    """Return calibration errors and log loss of P(same), of all pairs and of the first ten hits.

    Of ties, the first ten by id would be the same few items for all queries of a class, and their truth chance.
    """
    pairs, first, truth = reliability(said, same), said[:, :10], shares[:, :10]
    return {
        "ece": pairs.calibration_error,
        "log_loss": pairs.log_loss,
        "ece_first_ten": reliability(first, truth).calibration_error,
        "too_sure_first_ten": float(first.mean() - truth.mean()),
    }


def table(options: argparse.Namespace) -> None:
    """Print means over splits, and in parentheses how many, as Markdown."""
    groups: dict[str, dict[str, list[dict]]] = {}
    for record in (each for path in options.files for each in json.loads(path.read_text())):
        if (record["items"], record["bits"]) == (options.items, options.bits):
            groups.setdefault(record["method"], {}).setdefault(record["data"], []).append(record)
    sets = sorted({name for of_method in groups.values() for name in of_method})
    print(f"| P@10, mAP, area | {' | '.join(sets)} |\n|---|{'---|' * len(sets)}")
    for method, of_method in groups.items():
        cells = []
        for splits in (of_method.get(name, []) for name in sets):
            means = [np.mean([each[name] for each in splits]) for name in ("precision_at_10", "map", "area") if splits]
            cells.append(" ".join(f"{mean:.3f}".lstrip("0") for mean in means) + f" ({len(splits)})" if splits else "-")
        print(f"| {method} | {' | '.join(cells)} |")


def compare(options: argparse.Namespace) -> None:
    """Print means of the first file or method, and paired gains of the last one with 95 % intervals over splits."""
    old, new = (json.loads(each.read_text()) for each in (options.files[0], options.files[-1]))
    baseline = {_key(each): each for each in old}
    groups: dict[tuple, list[tuple[dict, dict]]] = {}
    for record in new:
        if options.method not in (None, record["method"]):
            continue
        before = baseline.get(_key(record | {"method": options.against or record["method"]}))
        if before is not None:
            key = record["method"], record["items"], record["bits"], record["data"]
            groups.setdefault(key, []).append((before, record))
    for key, pairs in sorted(groups.items()):
        print(", ".join(map(str, key)), f"({len(pairs)} splits)")
        for name in (name for name in pairs[0][1] if isinstance(pairs[0][1][name], float)):
            after = np.array([record[name] for _, record in pairs])
            if name not in pairs[0][0]:
                print(f"    {name:20s} {after.mean():8.4f}  (largest {after.max():.4f})")
                continue
            gains = after - [before[name] for before, _ in pairs]
            half = (
                students_t.ppf(0.975, max(1, len(gains) - 1)) * gains.std(ddof=1) / len(gains) ** 0.5
                if len(gains) > 1
                else np.nan
            )
            print(f"    {name:20s} {after.mean():8.4f}  {gains.mean():+.4f} +- {half:.4f}")


if __name__ == "__main__":
    main()
