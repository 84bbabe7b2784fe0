"""Measure how fast compressed hashers encode, and how much precision they lose: `python benchmarks/compress.py --help`.

MNIST pixels in [0, 1], float32. A hasher is fitted on rows of the training images; it and every compressed one encode
these rows, which are the database, and the test images, which are the queries. Times are CPU seconds on one thread, the
best of several encodings of all queries. P@10 is the share of a query's ten nearest codes that are of its class, ties
averaged; the loss is the P@10 of the uncompressed hasher minus that of the compressed one.
"""

from __future__ import annotations

import argparse
import json
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from measuring import timed

import starshl
from starshl import StarSHL
from starshl.data import datasets
from starshl.evaluation import precision_at


def measure(hasher, rows, y_rows, queries, y_queries):
    hasher.encode(queries[:200])  # compile before the clock runs
    codes, _, seconds = min((timed(lambda: hasher.encode(queries)) for _ in range(3)), key=lambda result: result[2])
    precision = precision_at(codes, hasher.encode(rows), y_queries, y_rows)
    return {"support": len(hasher.support_), "seconds": seconds, "p_at_10": precision}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--bits", type=int, default=32)
    parser.add_argument("--paper", action="store_true", help="the paper's settings instead of the defaults")
    shares = {"default": [4, 10, 16, 32, 64], "help": "how many old support rows per new one"}
    parser.add_argument("--shares", type=int, nargs="+", **shares)
    parser.add_argument("--seeds", type=int, default=1, help="compress with this many seeds and print means")
    parser.add_argument("--model", type=Path, help="a file for the fitted hasher: written if missing, else read")
    parser.add_argument("--json", action="store_true", dest="as_json")
    options = parser.parse_args()
    warnings.simplefilter("ignore")

    mnist = datasets.get("mnist")
    train, test = (np.flatnonzero(mnist.split == part) for part in (0, 1))
    train = np.random.RandomState(0).permutation(train)[: options.rows]
    data = [part for rows in (train, test) for part in ((mnist.X[rows] / 255.0).astype(np.float32), mnist.y[rows])]
    if options.model is not None and options.model.exists():
        hasher = starshl.load(options.model)
    else:
        make = StarSHL.paper if options.paper else StarSHL
        hasher = make(options.bits, random_state=0).fit(*data[:2])
        if options.model is not None:
            hasher.save(options.model)

    full = measure(hasher, *data)
    compressed = []
    for share in options.shares:
        n_support = len(hasher.support_) // share
        runs = []
        for seed in range(options.seeds):
            small, _, seconds = timed(partial(hasher.compress, n_support, random_state=seed))
            runs.append(measure(small, *data) | {"compress_seconds": seconds})
        mean = {name: float(np.mean([run[name] for run in runs])) for name in runs[0]}
        compressed.append(
            mean | {"speedup": full["seconds"] / mean["seconds"], "loss": full["p_at_10"] - mean["p_at_10"]}
        )
    if options.as_json:
        print(json.dumps({"full": full, "compressed": compressed}, indent=2))
        return
    print(f"{len(data[0]):,} rows, {len(data[2]):,} queries, {hasher.n_bits} bits")
    print(f"uncompressed: {full['support']:,} support rows, encode {full['seconds']:.2f} s, P@10 {full['p_at_10']:.4f}")
    print("support rows   encode s   speed-up   P@10     loss      compress s")
    for row in compressed:
        print(
            f"{row['support']:12,.0f} {row['seconds']:10.3f} {row['speedup']:9.1f}x {row['p_at_10']:8.4f} "
            f"{row['loss']:+8.4f} {row['compress_seconds']:13.1f}"
        )


if __name__ == "__main__":
    main()
