"""Time every retrieval metric at MNIST's size: 10,000 queries against 60,000 codes of 64 bits.

Run with ``python benchmarks/metrics.py [n_jobs]``. Half of the rows have random codes (few ties), half have
one of ten codewords with a few flipped bits (many ties), like learned codes.
"""

import platform
import resource
import sys
import time

import numpy as np

from starshl import BinaryCodes
from starshl.evaluation import (
    average_precision,
    expected_precision,
    hamming_histograms,
    lookup,
    pr_area,
    precision_recall,
)

N_QUERIES, N_ITEMS, N_BITS = 10_000, 60_000, 64


def made_codes(n_codes: int, rng: np.random.Generator) -> tuple[BinaryCodes, np.ndarray]:
    y = rng.integers(0, 10, n_codes)
    codewords = np.random.default_rng(1).choice([-1, 1], (10, N_BITS))
    signs = codewords[y] * np.where(rng.random((n_codes, N_BITS)) < 0.02, -1, 1)
    signs[::2] = rng.choice([-1, 1], signs[::2].shape)
    return BinaryCodes.from_signs(signs), y


def main(n_jobs: int) -> None:
    rng = np.random.default_rng(0)
    queries, y_query = made_codes(N_QUERIES, rng)
    items, y_db = made_codes(N_ITEMS, rng)
    hamming_histograms(queries[:1], items[:1], y_query[:1], y_db[:1])

    start = time.perf_counter()
    histograms = hamming_histograms(queries, items, y_query, y_db, n_jobs=n_jobs)
    counted = time.perf_counter()
    precision = expected_precision(histograms, list(range(10, 55, 5))).mean(axis=0)
    curves = [precision_recall(histograms, average) for average in ("micro", "macro")]
    mean_ap = average_precision(histograms).mean()
    within_two = lookup(histograms, 2)
    scored = time.perf_counter()

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{N_QUERIES:,} x {N_ITEMS:,} at {N_BITS} bits, {n_jobs} threads, Python {platform.python_version()}")
    print(f"histograms {counted - start:.2f} s, metrics {scored - counted:.2f} s, peak memory {peak:.0f} MiB")
    print(f"P@10 {precision[0]:.4f}  mAP {mean_ap:.4f}  micro area {pr_area(curves[0]):.4f}  {within_two}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else -1)
