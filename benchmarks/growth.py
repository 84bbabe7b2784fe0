"""How cost grows with the number of rows: fits, encoding, searches and memory, beside FAISS and scikit-learn.

    python benchmarks/growth.py                      # measure what docs/growth.json lacks, and draw docs/growth.svg
    python benchmarks/growth.py --largest 100000     # only so many rows
    python benchmarks/growth.py --seconds 600        # leave a line alone after a point that took longer
    python benchmarks/growth.py --draw               # only draw

Each point is a process of its own, with one thread, on rows or codes that it makes. What is measured stays in the file,
so you can stop at any time and go on later; delete the file, or points of it, to measure them again. Figures are CPU
seconds, and peak memory above that of a process which has the rows and the libraries. Fits learn 32 bits of 64 numbers
in 10 classes of four groups each. Codes of 64 bits are signs of projected Gaussians around 2,000 centers; searches ask
for the ten nearest, 64 queries at a time.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from measuring import peak_gib

DOCS = Path(__file__).resolve().parents[1] / "docs"
FIGURES, PICTURE = DOCS / "growth.json", DOCS / "growth.svg"
SIZES = [10**power * first for power in (3, 4, 5, 6, 7) for first in (1, 3) if 10**power * first <= 10**7]
N_COLUMNS, N_BITS, N_CLASSES = 64, 32, 10
N_TRAINING, BLOCK = 3000, 100_000  # rows of the fit before rows are encoded, and how many are encoded at a time
_LARGEST_FIT = 300_000
CODE_BITS, N_CENTERS, N_QUERIES, K = 64, 2000, 64, 10


def rows(n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and classes; every class has four groups, and the groups overlap."""
    centers = np.random.default_rng(0).standard_normal((N_CLASSES, 4, N_COLUMNS), dtype=np.float32)
    rng = np.random.default_rng(seed)
    y = rng.integers(0, N_CLASSES, n_rows)
    X = rng.standard_normal((n_rows, N_COLUMNS), dtype=np.float32)
    return X + 0.7 * centers[y, rng.integers(0, 4, n_rows)], y


def codes(n_rows: int, seed: int) -> np.ndarray:
    """Return packed codes, most of them different."""
    fixed, rng = np.random.default_rng(0), np.random.default_rng(seed)
    centers, planes = fixed.standard_normal((N_CENTERS, 32)), fixed.standard_normal((32, CODE_BITS))
    packed = np.empty((n_rows, CODE_BITS // 8), np.uint8)
    for start in range(0, n_rows, BLOCK):
        n = min(BLOCK, n_rows - start)
        points = centers[rng.integers(0, N_CENTERS, n)] + 0.5 * rng.standard_normal((n, 32))
        packed[start : start + n] = np.packbits(points @ planes > 0, axis=1, bitorder="little")
    return packed


# Fits: functions of rows and classes.


def fit_star_ridge(X, y):
    from starshl import StarRidge

    return StarRidge(N_BITS, random_state=0, n_jobs=1).fit(X, y)


def fit_itq(X, y):
    from starshl.hashers.baselines import ITQ

    return ITQ(N_BITS, random_state=0, n_jobs=1).fit(X)


def fit_svc(X, y):
    from sklearn.svm import SVC

    return SVC(C=10).fit(X, y)


def fit_logistic(X, y):
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=300).fit(X, y)


def fit_faiss_itq(X, y):
    import faiss

    turned = faiss.ITQTransform(X.shape[1], N_BITS, True)
    turned.train(X)
    return turned


FITS = {
    "StarRidge": fit_star_ridge,
    "ITQ": fit_itq,
    "SVC of scikit-learn": fit_svc,
    "LogisticRegression of scikit-learn": fit_logistic,
    "ITQ of FAISS": fit_faiss_itq,
}
ENCODERS: dict[str, Callable] = {
    "StarRidge": lambda model, X: model.encode(X),
    "ITQ": lambda model, X: model.encode(X),
    "SVC of scikit-learn": lambda model, X: model.predict(X),
    "ITQ of FAISS": lambda model, X: np.packbits(model.apply(X) >= 0, axis=1, bitorder="little"),
}


# Searches: functions of packed codes that return a function of packed queries.


def flat(packed):
    from starshl.index import FlatIndex

    return _index_of(FlatIndex, packed)


def buckets(packed):
    from starshl.index import BucketIndex

    return _index_of(BucketIndex, packed)


def ivf(packed):
    from starshl.index.adapters import FaissIndex

    return _index_of(FaissIndex, packed, kind="ivf")


def _index_of(index_type, packed, **settings):
    from starshl import BinaryCodes

    index = index_type.from_codes(BinaryCodes(packed, CODE_BITS), **settings)
    return lambda queries: index.search(BinaryCodes(queries, CODE_BITS), K)


def faiss_flat(packed):
    import faiss

    faiss.omp_set_num_threads(1)
    index = faiss.IndexBinaryFlat(CODE_BITS)
    index.add(packed)
    return lambda queries: index.search(queries, K)


def sklearn_neighbors(packed):
    from sklearn.neighbors import NearestNeighbors

    signs = np.unpackbits(packed, axis=1).astype(np.bool_)
    neighbors = NearestNeighbors(n_neighbors=K, metric="hamming", algorithm="brute").fit(signs)
    return lambda queries: neighbors.kneighbors(np.unpackbits(queries, axis=1).astype(np.bool_))


SEARCHES = {
    "flat": flat,
    "buckets, 1,000 different codes": buckets,
    "lists of FAISS by the adapter (approximate)": ivf,
    "flat of FAISS": faiss_flat,
    "brute force of scikit-learn": sklearn_neighbors,
}
PARTS = {"fit": FITS, "encode": ENCODERS, "search": SEARCHES}


def point(part: str, line: str, size: int) -> dict[str, float]:
    """Measure one point in this process."""
    if part == "fit":
        FITS[line](*rows(300, 2))  # loads the libraries and compiles
        X, y = rows(size, 1)
        before = peak_gib()
        seconds = _seconds(lambda: FITS[line](X, y))
        return {"seconds": seconds, "peak_mib": round(1024 * (peak_gib() - before), 1)}
    if part == "encode":
        model, X = FITS[line](*rows(N_TRAINING, 1)), rows(min(size, BLOCK), 2)[0]
        ENCODERS[line](model, X[:300])
        blocks = [X[: min(BLOCK, size - start)] for start in range(0, size, BLOCK)]
        return {"seconds": _seconds(lambda: [ENCODERS[line](model, block) for block in blocks])}
    packed, queries = codes(size, 1), codes(N_QUERIES, 2)
    if line.startswith("buckets"):
        packed = packed[np.random.default_rng(3).integers(0, min(1000, size), size)]
    search = SEARCHES[line](packed)
    search(queries)
    repeats = 1 + int(0.2 / max(_seconds(lambda: search(queries)), 1e-4))
    seconds = [_seconds(lambda: search(queries)) for _ in range(min(repeats, 30))]
    return {"seconds": float(np.median(seconds)) / N_QUERIES}


def _seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def measure(figures: dict[str, dict[str, float]], largest: int, limit: float) -> None:
    """Measure the points that are not there, small ones first, and write each at once."""
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    given_up: set[tuple[str, str]] = set()
    for size in (size for size in SIZES if size <= largest):
        for part, line in [(part, line) for part, lines in PARTS.items() for line in lines]:
            key = f"{part} / {line} / {size}"
            if key not in figures and (part, line) not in given_up and not (part == "fit" and size > _LARGEST_FIT):
                command = [sys.executable, __file__, "--point", part, line, str(size)]
                done = subprocess.run(command, env=os.environ | one_thread, capture_output=True, text=True)
                if done.returncode:
                    print(f"{key}: {done.stderr.strip().splitlines()[-1:]}", flush=True)
                    given_up.add((part, line))
                    continue
                figures[key] = json.loads(done.stdout.splitlines()[-1])
                FIGURES.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
                print(f"{key}: {figures[key]}", flush=True)
            if key in figures and figures[key]["seconds"] * (N_QUERIES if part == "search" else 1) > limit:
                given_up.add((part, line))


def draw(figures: dict[str, dict[str, float]]) -> None:
    """Write the picture."""
    from starshl.evaluation.reports.svg import render_standalone

    names = list(dict.fromkeys(name for lines in PARTS.values() for name in lines))
    charts = [
        _chart(figures, "fit", "Fit", "CPU seconds", "seconds"),
        _chart(figures, "fit", "Memory of a fit", "peak MiB", "peak_mib"),
        _chart(figures, "encode", "Encode rows", "CPU seconds", "seconds"),
        _chart(figures, "search", "Search codes of 64 bits, top 10", "CPU ms per query", "seconds", scale=1000.0),
    ]
    styles = {name: number for number, name in enumerate(names)}
    title = "How cost grows with the number of rows, one thread"
    PICTURE.write_text(render_standalone(charts, styles, title=title), encoding="utf-8")


def _chart(figures, part, title, y_label, measured, *, scale=1.0):
    from starshl.evaluation.reports.document import Chart, Series

    lines = []
    for name in PARTS[part]:
        found = {size: figures.get(f"{part} / {name} / {size}", {}).get(measured, 0.0) for size in SIZES}
        points = [(float(size), scale * value) for size, value in found.items() if value > 0]
        if points:
            own = name in ("StarRidge", "ITQ", "flat") or name.startswith("buckets")
            lines.append(Series(name, *zip(*points, strict=True), emphasized=own))
    ticks = tuple(float(size) for size in SIZES if str(size)[0] == "1" and any(size in line.x for line in lines))
    return Chart(title, "rows", y_label, tuple(lines), ticks, log_x=True, log_y=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--largest", type=int, default=10**7)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--draw", action="store_true")
    parser.add_argument("--point", nargs=3, metavar=("PART", "LINE", "ROWS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.point:
        part, line, size = options.point
        print(json.dumps(point(part, line, int(size))))
        return
    figures = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}
    if not options.draw:
        measure(figures, options.largest, options.seconds)
    draw(figures)


if __name__ == "__main__":
    main()
