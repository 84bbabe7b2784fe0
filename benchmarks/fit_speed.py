"""Fit time beside a plain NumPy + LIBSVM implementation, in one run: `python benchmarks/fit_speed.py --help`.

Both sides get the same rows, codewords and kernel weights, stop by the paper's rule and use two BLAS threads or two
threads. Times are wall seconds; CPU seconds stand beside them, because a busy machine stretches the former.
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings

import numpy as np
from plain_star_shl import PlainStarSHL, paper_grams

from starshl import StarSHL, datasets
from starshl.codebooks import random_codewords


def timed(action):
    wall, cpu = time.perf_counter(), time.process_time()
    result = action()
    return result, time.perf_counter() - wall, time.process_time() - cpu


def start(n_bits, rng):
    codewords = random_codewords(10, n_bits, rng, distinct=False)
    weights = rng.uniform(size=(n_bits, 11))
    return codewords, weights / weights.sum(axis=1, keepdims=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--bits", type=int, default=16)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--plain-sweeps", type=int, default=None, help="stop the plain side early and extrapolate")
    parser.add_argument("--without-plain", action="store_true")
    parser.add_argument("--defaults", action="store_true", help="time the default settings instead of the paper's")
    options = parser.parse_args()
    warnings.simplefilter("ignore")

    mnist = datasets.get("mnist")
    order = np.random.RandomState(0).permutation(len(mnist.X))[: options.rows]
    X, y = (mnist.X[order] / 255.0).astype(np.float32), mnist.y[order]
    codewords, weights = start(options.bits, np.random.RandomState(1))
    StarSHL.paper(2, random_state=0).fit(X[:100], y[:100])  # compile before the clock runs

    _, gram_seconds, _ = timed(lambda: X @ X.T)
    if options.defaults:
        hasher = StarSHL(options.bits, n_jobs=options.jobs, random_state=0)
    else:
        hasher = StarSHL.paper(options.bits, codewords=codewords, kernel_weights=weights, n_jobs=options.jobs)
    _, ours, ours_cpu = timed(lambda: hasher.fit(X, y))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"rows {options.rows}, bits {options.bits}: one float32 X @ X.T takes {gram_seconds:.2f} s")
    print(f"starshl: {ours:.2f} s wall, {ours_cpu:.2f} s CPU, {hasher.n_iter_} sweeps, peak memory {peak:.2f} GiB,")
    print(f"         {ours / gram_seconds:.0f} times X @ X.T")
    if options.without_plain or options.defaults:
        return

    def fit_plainly():
        grams = paper_grams(X.astype(np.float64), X.astype(np.float64))
        labeled = np.ones(len(y), dtype=bool)
        settings = {"C": 1000.0, "tol": 0.05, "svm_tol": 1e-3, "max_iter": options.plain_sweeps or 20}
        return PlainStarSHL(grams, y, labeled, codewords, weights, **settings).fit(late=False)

    plain, theirs, theirs_cpu = timed(fit_plainly)
    print(f"plain:   {theirs:.2f} s wall, {theirs_cpu:.2f} s CPU, {plain.n_iter} sweeps")
    if plain.n_iter < hasher.n_iter_:
        theirs *= (hasher.n_iter_ + 2) / (plain.n_iter + 2)
        print(f"plain, extrapolated to {hasher.n_iter_} sweeps: {theirs:.1f} s")
    print(f"ratio:   {theirs / ours:.1f}")


if __name__ == "__main__":
    main()
