"""Measure what kept vectors buy: recall of the nearest vectors against bytes in memory and time.

Run through ``python benchmarks/search.py rescoring FILE``, where FILE is an .npz with a matrix X of vectors.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np

from starshl.baselines import ITQ
from starshl.collection import Collection

K = 10


def main(words: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="search.py rescoring", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--bits", type=int, nargs="+", default=[64, 128])
    parser.add_argument("--oversample", type=int, nargs="+", default=[2, 5, 10])
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write all figures here as well")
    options = parser.parse_args(words)
    X = np.asarray(np.load(options.file)["X"], np.float32)
    runs = [run for split in range(options.splits) for run in measure_split(X, split, options)]
    names = sorted({run["name"] for run in runs}, key=[run["name"] for run in runs].index)
    print(f"{len(X) - options.queries:,} items, {options.queries} queries, {options.splits} splits")
    print(f"{'':44s} {'recall@10':>9s}  {'lowest':>6s} {'codes':>7s} {'memory':>7s} {'disk':>7s} {'ms/query':>9s}")
    for name in names:
        mine = [run for run in runs if run["name"] == name]
        recalls = [run["recall"] for run in mine]
        first, best = mine[0], min(run["ms"] for run in mine)
        print(
            f"{name:44s} {np.mean(recalls):9.4f}  {min(recalls):6.4f} {first['codes']:7.1f} {first['memory']:7.1f} "
            f"{first['disk']:7.0f} {best:9.3f}"
        )
    print("codes, memory, disk: bytes per item of the codes alone, of codes and ids in memory, of kept vectors on disk")
    if options.json:
        options.json.write_text(json.dumps(runs, indent=1))


def measure_split(X: np.ndarray, split: int, options) -> list[dict]:
    """Return the figures of all contestants on one split."""
    order = np.random.default_rng(split).permutation(len(X))
    queries, items = X[order[: options.queries]], X[order[options.queries :]]
    true = nearest(queries, items)
    runs = measure_faiss(queries, items, true)
    for n_bits in options.bits:
        hasher = ITQ(n_bits, random_state=0).fit(items)
        for kind in ("float16", "int8"):
            runs += measure_collection(hasher, kind, queries, items, true, options.oversample)
    return runs


def measure_collection(hasher, kind, queries, items, true, oversamples) -> list[dict]:
    """Return the figures of a collection that keeps vectors, with and without rescoring."""
    runs = []
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "items"
        with Collection.create(folder, hasher, vectors=kind) as collection:
            collection.add(items)
        with Collection(folder, read_only=True) as collection:
            facts = {
                "codes": (hasher.n_bits_ + 7) // 8,
                "memory": collection._session._snapshot.index.nbytes / len(items),
                "disk": sum(path.stat().st_size for path in folder.glob("vectors-*")) / len(items),
            }
            settings = [{"rescore": False}] if kind == "float16" else []
            for setting in [*settings, *({"oversample": n} for n in oversamples)]:
                words = "codes only" if "rescore" in setting else f"{kind}, oversample {setting['oversample']}"
                started = time.process_time()
                found = [[hit.id for hit in hits] for hits in collection.search(queries, K, **setting)]
                ms = 1e3 * (time.process_time() - started) / len(queries)
                name = f"ITQ {hasher.n_bits_} bits, {words}"
                runs.append({"name": name, "recall": recall(found, true), "ms": ms, **facts})
    return runs


def measure_faiss(queries, items, true) -> list[dict]:
    """Return the figures of a product quantizer of 16 bytes, plain and refined by exact vectors, if FAISS is here."""
    try:
        import faiss
    except ImportError:
        return []
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
        runs.append({"name": name, "recall": recall(found, true), "ms": ms, "codes": 16, "memory": memory, "disk": 0})
    return runs


def nearest(queries: np.ndarray, items: np.ndarray) -> np.ndarray:
    """Return the true nearest items of each query."""
    items, queries = items.astype(np.float64), queries.astype(np.float64)
    distances = (items**2).sum(axis=1) - 2.0 * queries @ items.T
    return np.argsort(distances, axis=1, kind="stable")[:, :K]


def recall(found, true) -> float:
    return float(np.mean([len(set(ids) & set(wanted)) / K for ids, wanted in zip(found, true.tolist(), strict=True)]))
