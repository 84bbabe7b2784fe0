"""Measure what kept vectors buy: recall of the nearest vectors against bytes in memory and time.

Run through ``python benchmarks/search.py rescoring FILE``, where FILE is an .npz with a matrix X of vectors, or digits.
With ``--labels``, the array y of the file adds hybrid and supervised codes, and precision: the share of results with
the label of the query.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from starshl import Collection, HybridHasher
from starshl.hashers.baselines import ITQ

K = 10


def main(words: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="search.py rescoring", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--labels", action="store_true")
    parser.add_argument("--items", type=int, help="at most so many; all that are not queries by default")
    parser.add_argument("--bits", type=int, nargs="+", default=[64, 128])
    parser.add_argument("--oversample", type=int, nargs="+", default=[2, 5, 10])
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write all figures here as well")
    options = parser.parse_args(words)
    if str(options.file) == "digits":
        X, y = load_digits(return_X_y=True)
    else:
        with np.load(options.file) as file:
            X, y = file["X"], file["y"] if options.labels else None
    X = np.asarray(X, np.float32)
    splits = [Split(X, y, seed, options) for seed in range(options.splits)]
    runs = [run for split in splits for run in measure_split(split, options)]
    names = sorted({run["name"] for run in runs}, key=[run["name"] for run in runs].index)
    print(f"{len(splits[0].items):,} items, {options.queries} queries, {options.splits} splits")
    head = f"{'':62s} {'recall@10':>9s}  {'lowest':>6s} {'codes':>7s} {'memory':>7s} {'disk':>7s} {'ms/query':>9s}"
    print(head + ("  precision" if options.labels else ""))
    for name in names:
        mine = [run for run in runs if run["name"] == name]
        recalls = [run["recall"] for run in mine]
        first, best = mine[0], min(run["ms"] for run in mine)
        precision = f"  {np.mean([run['precision'] for run in mine]):9.4f}" if options.labels else ""
        print(
            f"{name:62s} {np.mean(recalls):9.4f}  {min(recalls):6.4f} {first['codes']:7.1f} {first['memory']:7.1f} "
            f"{first['disk']:7.0f} {best:9.3f}{precision}"
        )
    print("codes, memory, disk: bytes per item of the codes alone, of codes and ids in memory, of kept vectors on disk")
    if options.json:
        options.json.write_text(json.dumps(runs, indent=1))


class Split:
    """Queries and items, the items nearest to each query, and labels of both if there are any."""

    def __init__(self, X: np.ndarray, y: np.ndarray | None, seed: int, options) -> None:
        order = np.random.default_rng(seed).permutation(len(X))
        n_items = len(X) - options.queries if options.items is None else options.items
        asked, stored = order[: options.queries], order[options.queries : options.queries + n_items]
        self.queries, self.items = X[asked], X[stored]
        self.y, self.asked = (None, None) if y is None else (y[stored], y[asked])
        self.true = nearest(self.queries, self.items)

    def figures(self, found: list[list[int]]) -> dict[str, float]:
        """Return recall of the nearest items and, with labels, precision."""
        hits = [len(set(ids) & set(wanted)) / K for ids, wanted in zip(found, self.true.tolist(), strict=True)]
        figures = {"recall": float(np.mean(hits))}
        if self.y is not None:
            figures["precision"] = float(np.mean(self.y[np.array(found)] == self.asked[:, None]))
        return figures


def measure_split(split: Split, options) -> list[dict]:
    """Return the figures of all contestants on one split."""
    runs = measure_faiss(split)
    for n_bits in options.bits:
        hasher = ITQ(n_bits, random_state=0).fit(split.items)
        for kind in ("float16", "int8"):
            settings = [{"rescore": False}] if kind == "float16" else []
            settings += [{"oversample": n} for n in options.oversample]
            runs += measure_collection(split, hasher, kind, settings)
    if options.labels:
        for n_bits in options.bits:
            runs += measure_hybrids(split, n_bits, options.oversample)
    return runs


def measure_hybrids(split: Split, n_bits: int, oversamples: list[int]) -> list[dict]:
    """Return the figures of codes that hold the class of an item, and of supervised codes of the same length."""
    runs, orders = [], [{"oversample": n} for n in oversamples]
    for form in ("hamming", "residual"):
        for weight in (1, 0.5, 0):
            hasher = HybridHasher(n_bits, form=form, class_weight=weight, random_state=0).fit(split.items, split.y)
            runs += measure_collection(split, hasher, "float16", [{"rescore": False}, *orders])
    return measure_collection(split, hasher.class_hasher_, "float16", [{"rescore": False}]) + runs


def measure_collection(split: Split, hasher, kind: str, settings: list[dict]) -> list[dict]:
    """Return the figures of searches of a collection that keeps vectors."""
    runs = []
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "items"
        with Collection.create(folder, hasher, vectors=kind) as collection:
            collection.add(split.items, labels=split.y)
        with Collection(folder, read_only=True) as collection:
            with collection.reading() as (state, _):
                n_bytes = state.index.nbytes
            facts = {
                "codes": (hasher.n_bits_ + 7) // 8,
                "memory": n_bytes / len(split.items),
                "disk": sum(path.stat().st_size for path in folder.glob("vectors-*")) / len(split.items),
            }
            for setting in settings:
                started = time.process_time()
                found = [[hit.id for hit in hits] for hits in collection.search(split.queries, K, **setting)]
                ms = 1e3 * (time.process_time() - started) / len(split.queries)
                runs.append({"name": name_of(hasher, kind, setting), "ms": ms, **split.figures(found), **facts})
    return runs


def name_of(hasher, kind: str, setting: dict) -> str:
    method = hasher.method_name
    if method == "HybridHasher":
        method = f"hybrid ({hasher.form}, weight {hasher.class_weight:g})"
    words = "codes only" if "rescore" in setting else f"{kind}, oversample {setting['oversample']}"
    return f"{method} {hasher.n_bits_} bits, {words}"


def measure_faiss(split: Split) -> list[dict]:
    """Return the figures of a product quantizer of 16 bytes, plain and refined by exact vectors, if FAISS is here."""
    try:
        import faiss
    except ImportError:
        return []
    queries, items = split.queries, split.items
    faiss.omp_set_num_threads(1)
    plain = faiss.index_factory(items.shape[1], "PQ16")
    plain.train(items)
    refined = faiss.IndexRefineFlat(plain)
    refined.k_factor = 10
    refined.add(items)
    runs = []
    # FAISS keeps the exact vectors in memory.
    for name, index, more in (("FAISS PQ16", plain, 0), ("FAISS PQ16, refined, k_factor 10", refined, items.nbytes)):
        started = time.process_time()
        found = index.search(queries, K)[1].tolist()
        ms = 1e3 * (time.process_time() - started) / len(queries)
        memory = 16 + more / len(items)
        runs.append({"name": name, "ms": ms, "codes": 16, "memory": memory, "disk": 0, **split.figures(found)})
    return runs


def nearest(queries: np.ndarray, items: np.ndarray) -> np.ndarray:
    """Return the true nearest items of each query."""
    items, queries = items.astype(np.float64), queries.astype(np.float64)
    distances = (items**2).sum(axis=1) - 2.0 * queries @ items.T
    return np.argsort(distances, axis=1, kind="stable")[:, :K]
