"""Print one line per method of the catalog: labels used, precision, mAP, seconds to fit and to encode, model size.

    STARSHL_DATA=folder/with/mnist.npz python benchmarks/baselines_table.py
    STARSHL_DATA=... python benchmarks/baselines_table.py --rows 5000 --bits 16 --methods LSHash KSH

MNIST rows are scaled to unit length and split at random: the training rows are the database, other rows the
queries. The reference columns are figures of independent prototypes at 5,000 rows, 1,000 queries and one split,
some with other settings (KSH with 600 labels, BRE with 400 rows, the two terms of SSH scaled differently): a broken
method falls far below them. Methods made for one bit per feature (SignBinarizer, RaBitQ) are run at that length.
On a busy machine, processor seconds of all threads divided by the number of cores tell roughly how long a fit would
take on an idle one.
"""

import argparse
import os
import platform
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy
import sklearn
from sklearn.preprocessing import normalize

from starshl.evaluation import mean_average_precision, precision_at
from starshl.hashers import configurations
from starshl.reproduction.runner import labels_used

# bits -> name -> (P@10, mAP)
REFERENCE = {
    16: {
        "LSHash": (0.45, 0.24),
        "SpectralHash": (0.65, 0.28),
        "AnchorGraphHash": (0.77, 0.49),
        "AnchorGraphHash two layers": (0.74, 0.60),
        "BRE": (0.61, 0.33),
        "BRE supervised": (0.62, 0.41),
        "PCAHash": (0.65, 0.27),
        "RandomRotation": (0.66, 0.33),
        "ITQ": (0.72, 0.41),
        "ITQ CCA": (0.81, 0.75),
        "KernelLSH": (0.45, 0.19),
        "SphericalHash": (0.56, 0.27),
        "SSH": (0.66, 0.32),
        "SDH": (0.90, 0.91),
        "FSDH": (0.90, 0.90),
        "HC-SDH": (0.92, 0.93),
        "CodewordSVM": (0.95, 0.96),
        "KSH": (0.80, 0.72),
        "SelfTaughtHash": (0.64, 0.37),
        "LDAHash": (0.66, 0.39),
    },
    32: {
        "LSHash": (0.57, 0.28),
        "SpectralHash": (0.73, 0.27),
        "AnchorGraphHash": (0.83, 0.42),
        "AnchorGraphHash two layers": (0.80, 0.60),
        "BRE": (0.72, 0.37),
        "BRE supervised": (0.73, 0.47),
        "PCAHash": (0.70, 0.24),
        "RandomRotation": (0.74, 0.35),
        "ITQ": (0.80, 0.43),
        "ITQ CCA": (0.82, 0.78),
        "KernelLSH": (0.62, 0.25),
        "SphericalHash": (0.69, 0.31),
        "SSH": (0.74, 0.43),
        "SDH": (0.92, 0.93),
        "FSDH": (0.91, 0.92),
        "HC-SDH": (0.92, 0.93),
        "KSH": (0.83, 0.77),
        "SelfTaughtHash": (0.71, 0.32),
        "LDAHash": (0.64, 0.31),
    },
}


def main() -> None:
    options = parse_options()
    X, y = load_mnist(options.seed)
    train, queries = slice(0, options.rows), slice(options.rows, options.rows + options.queries)
    print(
        f"MNIST, {options.rows:,} x {X.shape[1]} training rows, {options.queries:,} queries, {options.bits} bits, "
        f"seed {options.seed}; encoding {options.encode_rows:,} rows; {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}, "
        f"scikit-learn {sklearn.__version__}"
    )
    print(
        f"{'method':32}{'bits':>5}{'labels':>8}{'P@10':>7}{'mAP':>7}{'reference':>13}"
        f"{'fit s':>9}{'fit CPU s':>11}{'encode s':>10}{'model kB':>10}"
    )
    for method in configurations():
        if options.methods and not {method.method, method.name} & set(options.methods):
            continue
        n_bits = X.shape[1] if method.facts.full_length else options.bits
        hasher = method.make(n_bits, seed=options.seed)
        try:
            line = measure(hasher, X, y, train, queries, options.encode_rows)
        except ValueError as error:
            print(f"{method.name:32}{error}", flush=True)
            continue
        precision, average, fit_seconds, fit_processor_seconds, encode_seconds, size = line
        known = REFERENCE.get(options.bits, {}).get(method.name)
        reference = "" if known is None else f"{known[0]:.2f} {known[1]:.2f}"
        print(
            f"{method.name:32}{n_bits:5}{labels_used(hasher, y[train]):8,}{precision:7.3f}{average:7.3f}"
            f"{reference:>13}"
            f"{fit_seconds:9.2f}{fit_processor_seconds:11.2f}{encode_seconds:10.2f}{size / 1e3:10.0f}",
            flush=True,
        )


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--encode-rows", type=int, default=60_000)
    parser.add_argument("--bits", type=int, default=32)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--methods", nargs="*", help="names of methods or variants; all by default")
    return parser.parse_args()


def load_mnist(seed: int) -> tuple[np.ndarray, np.ndarray]:
    folder = os.environ.get("STARSHL_DATA")
    if folder is None:
        raise SystemExit("Set STARSHL_DATA to the folder that holds mnist.npz (arrays X and y).")
    with np.load(Path(folder) / "mnist.npz", allow_pickle=False) as file:
        X, y = file["X"], file["y"]
    order = np.random.default_rng(seed).permutation(len(X))
    return normalize(X[order].astype(np.float64)), y[order]


def measure(hasher, X, y, train: slice, queries: slice, encode_rows: int) -> tuple[float, ...]:
    start, processor_start = time.perf_counter(), time.process_time()
    hasher.fit(X[train], y[train])
    fit_seconds, fit_processor_seconds = time.perf_counter() - start, time.process_time() - processor_start
    database, codes = hasher.encode_database(X[train], y[train]), hasher.encode(X[queries])
    start = time.perf_counter()
    hasher.encode(X[:encode_rows])
    encode_seconds = time.perf_counter() - start
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.star"
        hasher.save(path)
        size = path.stat().st_size
    precision = precision_at(codes, database, y[queries], y[train])
    average = mean_average_precision(codes, database, y[queries], y[train])
    return precision, average, fit_seconds, fit_processor_seconds, encode_seconds, size


if __name__ == "__main__":
    main()
