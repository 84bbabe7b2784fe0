"""Compare ONNX models with ``encode``, byte by byte, for every method of the catalog; time single rows.

    STARSHL_DATA=... python benchmarks/onnx_export.py --rows 100000 --precision float64
    STARSHL_DATA=... python benchmarks/onnx_export.py --rows 100000 --precision float32 --methods StarRidge ITQ

Rows are MNIST images with noise, so that no two are equal and 100,000 of them exist. Where a bit differs, the table
says how far from zero its score is at most, as a share of the largest score of that bit.
"""

from __future__ import annotations

import argparse
import warnings
from time import perf_counter

import numpy as np

from starshl import HybridHasher, StarRidge
from starshl.data import datasets
from starshl.data.features import Scale
from starshl.export import to_onnx
from starshl.export.onnx_model import open_session, single_row_latency
from starshl.hashers import PreparedHasher, configurations, picture_hasher

CHUNK = 2000  # rows at a time, so that kernels between them and support rows stay small
# Settings without which a fit takes minutes.
QUICK = {
    "BoostSSC": {"n_pairs": 2000},
    "CGHash": {"max_triplets": 500},
    "ForgivingHash": {"max_iter": 20, "pool": 2},
    "LAMP": {"n_pairs": 500, "n_anchors": 100, "max_rows": 500},
    "MLH": {"max_iter": 5, "n_pairs": 5000},
    "MetricLSH": {"n_pairs": 500},
    "SemanticHashing": {"hidden_sizes": (100,)},
}


def candidates(n_bits):
    """Yield a name and an unfitted hasher: all methods with their variants, hybrid codes and preprocessing."""
    for each in configurations():
        yield each.name, each.make(n_bits, **QUICK.get(each.method, {}))
    yield "HybridHasher", HybridHasher(n_bits, random_state=0)
    yield "Scale, StarRidge", PreparedHasher([Scale()], StarRidge(n_bits, random_state=0))
    yield "picture_hasher", picture_hasher((28, 28), StarRidge(n_bits, random_state=0))


class NoisyImages:
    """As many images as asked for, made again in each pass: all of them at once would take a gigabyte."""

    def __init__(self, X, n_rows, precision):
        self.X, self.n_rows, self.precision = X, n_rows, precision

    def chunks(self):
        for start in range(0, self.n_rows, CHUNK):
            rng = np.random.default_rng(start)
            chosen = rng.integers(0, len(self.X), min(CHUNK, self.n_rows - start))
            noise = rng.standard_normal((len(chosen), self.X.shape[1]), dtype=np.float32)
            yield np.clip(self.X[chosen] + 0.02 * noise, 0, 1).astype(self.precision)


def compare(hasher, model, images):
    """Return counts of rows, bytes and bits that differ, the farthest of their scores from zero, and seconds."""
    session = open_session(model, n_threads=0)
    differ, sizes, seconds = [], [], [0.0, 0.0]
    for chunk in images.chunks():
        began = perf_counter()
        (given,) = session.run(["codes"], {"X": chunk})
        middle = perf_counter()
        differ.append(given ^ hasher.encode(chunk).packed)
        seconds[1] += perf_counter() - middle
        seconds[0] += middle - began
        sizes.append(np.abs(hasher.decision_function(chunk)).astype(np.float32))
    packed, size = np.concatenate(differ), np.concatenate(sizes)
    bits = np.unpackbits(packed, axis=1, bitorder="little", count=hasher.n_bits_).astype(bool)
    farthest = (size / (size.max(axis=0) + np.finfo(np.float32).tiny))[bits].max(initial=0)
    return [np.any(packed, axis=1).sum(), np.count_nonzero(packed), bits.sum()], farthest, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--train", type=int, default=1000)
    parser.add_argument("--bits", type=int, default=32)
    parser.add_argument("--precision", default="float64")
    parser.add_argument("--methods", nargs="*")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    data = datasets.get("mnist")
    X = np.asarray(data.X, dtype=np.float32) / np.float32(data.X.max())
    train = np.random.default_rng(0).choice(len(X), arguments.train, replace=False)
    images = NoisyImages(X, arguments.rows, arguments.precision)
    print(f"{arguments.rows:,} rows, {arguments.train:,} training rows, {arguments.bits} bits, {arguments.precision}")
    print("| method | rows, bytes, bits that differ | farthest from zero | s, onnxruntime and encode | ms per row |")
    print("|---|---|---|---|---|")
    for name, hasher in candidates(arguments.bits):
        if arguments.methods and name not in arguments.methods:
            continue
        try:
            hasher.fit(X[train].astype(arguments.precision), data.y[train])
        except ValueError as error:
            print(f"| {name} | {error} |", flush=True)
            continue
        model = to_onnx(hasher, precision=arguments.precision)
        counts, farthest, seconds = compare(hasher, model, images)
        latency = single_row_latency(model, hasher, X[0])
        counted = ", ".join(f"{count:,}" for count in counts)
        times = f"{seconds[0]:.1f}, {seconds[1]:.1f} | {latency.onnx:.3f}, {latency.encode:.3f}"
        print(f"| {name} | {counted} | {farthest:.0e} | {times} |", flush=True)


if __name__ == "__main__":
    main()
