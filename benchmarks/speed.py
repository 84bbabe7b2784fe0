"""Time training and encoding against a plain implementation and a matrix product: `python benchmarks/speed.py --help`.

Every part prints a table. Both sides of a ratio are measured in the same run, warm, on float32 MNIST pixels and with
the same number of threads. Peak memory is that of the whole process, so start one part at a time to read it.
"""

from __future__ import annotations

import argparse
import resource
import warnings

import numpy as np
import plain_star_shl as plain_shl
from measuring import peak_gib, show, timed
from sklearn.svm import SVC

from starshl import StarRidge, StarSHL
from starshl.codes import random_codewords
from starshl.data import datasets
from starshl.evaluation import precision_at
from starshl.learning.kernels import rich_kernels
from starshl.learning.kernels.choice import fit_kernels
from starshl.learning.kernels.vector_bank import VectorBank
from starshl.learning.solvers.ridge import RidgeFactor


def best_of(n_times, action):
    return min(timed(action)[1] for _ in range(n_times))


def product_seconds(A, B):
    """Time A @ B.T into memory that has been touched before."""
    out = np.empty((len(A), len(B)), dtype=A.dtype)
    return best_of(4, lambda: np.matmul(A, B.T, out=out))


def training_rows(n_rows, seed=0):
    mnist = datasets.get("mnist")
    order = np.random.RandomState(seed).permutation(np.flatnonzero(mnist.split == 0))[:n_rows]
    return scaled(mnist.X[order]), mnist.y[order]


def test_rows():
    mnist = datasets.get("mnist")
    rows = mnist.split == 1
    return scaled(mnist.X[rows]), mnist.y[rows]


def scaled(pixels):
    return (pixels / 255.0).astype(np.float32)


def random_start(n_bits):
    rng = np.random.RandomState(1)
    codewords = random_codewords(10, n_bits, rng, distinct=False)
    weights = rng.uniform(size=(n_bits, 11))
    return {"codewords": codewords, "kernel_weights": weights / weights.sum(axis=1, keepdims=True)}


def compile_loops(options):
    """Fit once on each path that the solver takes, before any clock runs."""
    X, y = training_rows(2000)
    for hasher in (
        StarSHL.paper(2, random_state=0, n_jobs=options.jobs), StarSHL(2, random_state=0), StarRidge(2, random_state=0)
    ):  # fmt: skip
        hasher.fit(X, y).transform(X[:300])


def plain_model(grams, y, n_bits):
    start = random_start(n_bits)
    labeled = np.ones(len(y), dtype=bool)
    return plain_shl.Model(grams, y, labeled, start["codewords"], start["kernel_weights"], C=1000.0, svm_tol=1e-3)


def fit(options):
    """Full fit with the paper's settings, compared with the plain implementation and one X @ X.T."""
    X, y = training_rows(options.rows)
    product = product_seconds(X, X)
    hasher = StarSHL.paper(options.bits, **random_start(options.bits), n_jobs=options.jobs)
    _, ours, ours_cpu = timed(lambda: hasher.fit(X, y))
    rows = [
        ("starshl", f"{ours:.2f}", f"{ours_cpu:.2f}", hasher.n_iter_, f"{ours / product:.0f}", f"{peak_gib():.2f}", "1")
    ]
    if not options.without_plain:
        seconds, n_sweeps = plain_seconds(X, y, options, hasher.n_iter_)
        ratios = f"{seconds / product:.0f}", f"{peak_gib():.2f}", f"{seconds / ours:.1f}"
        rows.append(("plain", f"{seconds:.2f}", "", n_sweeps, *ratios))
    print(f"N = {options.rows:,}, {options.bits} bits, paper settings; one float32 X @ X.T takes {product:.3f} s")
    show(("", "wall s", "CPU s", "sweeps", "x product", "peak GiB", "ratio"), *rows)


def plain_seconds(X, y, options, n_sweeps):
    """Time the plain implementation, or the requested part of it, and extrapolate over bits and sweeps.

    Sweep 0 and the last pass cost as much as a sweep; the plain side gets as many sweeps as ours needed, or more.
    """
    X = X.astype(np.float64)
    grams, gram_seconds, _ = timed(lambda: plain_shl.paper_grams(X, X))
    n_bits = options.plain_bits or options.bits
    plain = plain_model(grams, y, n_bits)
    _, seconds, _ = timed(lambda: plain_shl.fit(plain, max_iter=options.plain_sweeps or 20, tol=0.05))
    if options.plain_sweeps is None:
        n_sweeps = plain.n_iter
    share = options.bits / n_bits * (n_sweeps + 2) / (plain.n_iter + 2)
    if share > 1:
        print(f"plain: {gram_seconds:.1f} s for kernels, {seconds:.1f} s for {n_bits} bits and {plain.n_iter} sweeps")
    return gram_seconds + share * seconds, n_sweeps


def reference(options):
    """The plain implementation alone: CPU seconds of one sweep with 8 bits, and the system's share of them.

    The system's share is that of touching fresh memory, which some virtual machines make expensive.
    """
    rows = []
    for n_rows in (500, 1000, 2000, 3000):
        X, y = training_rows(n_rows)
        everyone, before = np.arange(n_rows), resource.getrusage(resource.RUSAGE_SELF)
        wide = X.astype(np.float64)
        grams, _, gram_cpu = timed(lambda wide=wide: plain_shl.paper_grams(wide, wide))
        plain = plain_model(grams, y, 8)
        _, _, sweep_cpu = timed(lambda plain=plain, rows=everyone: sweep(plain, rows))
        system = resource.getrusage(resource.RUSAGE_SELF).ru_stime - before.ru_stime
        rows.append((n_rows, *(f"{value:.2f}" for value in (gram_cpu, sweep_cpu, gram_cpu + sweep_cpu, system))))
    show(("N", "11 Gram matrices", "one sweep, 8 bits", "CPU s", "of these system"), *rows)


def sweep(plain, rows):
    for b in range(len(plain.theta)):
        plain_shl.train_bit(plain, b, rows)
        plain_shl.weigh_kernels(plain, b)


def growth(options):
    """Fit time over the number of rows, 16 bits; the exponent is the slope of a line through the logarithms."""
    sizes = [2500, 5000, 10000, 20000]
    for name, make in (
        ("paper settings", lambda: StarSHL.paper(16, random_state=0, n_jobs=options.jobs)),
        ("default settings", lambda: StarSHL(16, random_state=0, n_jobs=options.jobs)),
    ):
        seconds, rows = [], []
        for n_rows in sizes:
            X, y = training_rows(n_rows)
            hasher, wall, cpu = timed(lambda X=X, y=y, make=make: make().fit(X, y))
            seconds.append(wall)
            rows.append((n_rows, f"{wall:.2f}", f"{cpu:.2f}", hasher.n_iter_, f"{wall / (hasher.n_iter_ + 2):.2f}"))
        show(("N", "wall s", "CPU s", "sweeps", "s per sweep"), *rows)
        print(f"{name}: exponent {np.polyfit(np.log(sizes), np.log(seconds), 1)[0]:.2f}")


def modes(options):
    """Wall seconds of a sweep: all labels, a tenth of the labels, none."""
    X, y = training_rows(options.rows)
    few = np.where(np.arange(len(y)) < len(y) // 10, y, -1)
    rows, base = [], None
    for name, labels, others in (
        ("supervised", y, {}), ("semi-supervised", few, {}), ("unsupervised", None, {"n_codewords": 10}),
    ):  # fmt: skip
        hasher = StarSHL(options.bits, random_state=0, n_jobs=options.jobs, **others)
        _, wall, _ = timed(lambda hasher=hasher, labels=labels: hasher.fit(X, labels))
        each = wall / (hasher.n_iter_ + 2)
        base = base or each
        rows.append((name, f"{wall:.2f}", hasher.n_iter_, hasher.n_reassigned_, f"{each:.2f}", f"{each / base:.2f}"))
    print(f"N = {options.rows:,}, {options.bits} bits, default settings")
    show(("", "wall s", "sweeps", "rows moved", "s per sweep", "ratio"), *rows)


def encode(options):
    """Encoding 10,000 images, all bits and kernels, compared with the bare product of images and support rows."""
    X, y = training_rows(options.rows)
    images, _ = test_rows()
    rows = []
    for name, hasher in (
        ("default settings", StarSHL(options.bits, random_state=0, n_jobs=options.jobs)),
        ("paper settings", StarSHL.paper(options.bits, random_state=0, n_jobs=options.jobs)),
    ):
        hasher.fit(X, y)
        product = product_seconds(images, hasher.support_samples_)
        encoding = best_of(4, lambda hasher=hasher: hasher.encode(images))
        rows.append((name, len(hasher.support_), f"{product:.3f}", f"{encoding:.3f}", f"{encoding / product:.2f}"))
    print(f"N = {options.rows:,}, {options.bits} bits")
    show(("", "support rows", "product s", "encode s", "ratio"), *rows)


def ridge(options):
    """The exact step of kernel ridge regression up to --rows rows: eight kernels, Cholesky factor, inverse diagonal."""
    rows = []
    for n_rows in (3000, 6000, 10000, 20000):
        if n_rows <= options.rows:
            X, y = training_rows(n_rows)
            rows.append((n_rows, *ridge_seconds(X, y, options.jobs), f"{peak_gib():.2f}"))
    print("float32, ridge .01, equal weights; the accuracy is that of leave-one-out scores")
    show(("N", "kernels s", "factor s", "inverse s", "together s", "CPU s", "accuracy", "peak GiB"), *rows)


def ridge_seconds(X, y, n_jobs):
    """Return wall seconds of each step and of all, CPU seconds of all, and leave-one-out accuracy."""
    kernels = fit_kernels(rich_kernels(), X)
    bank = VectorBank(kernels, X, n_jobs, stores_distances=False)
    gram, *evaluation = timed(lambda: bank.combine(np.full(len(kernels), 1 / len(kernels))))
    gram += 1
    factor, *factoring = timed(lambda: RidgeFactor(gram, 0.01, overwrite=True))
    diagonal, *inversion = timed(factor.inverse_diagonal)
    targets = np.eye(10)[y]
    scores = targets - factor.solve(targets) / diagonal[:, None]
    walls, cpus = zip(evaluation, factoring, inversion, strict=True)
    accuracy = np.mean(scores.argmax(axis=1) == y)
    return *(f"{wall:.2f}" for wall in (*walls, sum(walls))), f"{sum(cpus):.2f}", f"{accuracy:.4f}"


def peers(options):
    """A whole fit of StarRidge beside one of SVC with its defaults: CPU seconds, and accuracy on 4,000 test images."""
    X, y = training_rows(options.rows)
    images, answers = (array[:4000] for array in test_rows())
    rows = []
    for name, model in (("StarRidge", StarRidge(32, random_state=0, n_jobs=options.jobs)), ("SVC", SVC())):
        fitted, _, cpu = timed(lambda model=model: model.fit(X, y))
        rows.append((name, f"{cpu:.1f}", f"{fitted.score(images, answers):.4f}"))
        print(getattr(fitted, "choice_", ""))
    print(f"N = {options.rows:,}")
    show(("", "CPU s", "accuracy"), *rows)


def classes(options):
    """A fit of StarRidge on 5,000 rows of 128 features over the number of classes, beside SVC."""
    rows, base = [], None
    for n_classes in (10, 100, 1000):
        rng = np.random.RandomState(0)
        y = np.concatenate([np.arange(n_classes), rng.randint(n_classes, size=5000 - n_classes)])
        X = (rng.randn(n_classes, 128)[y] + 0.8 * rng.randn(5000, 128)).astype(np.float32)
        hasher = StarRidge(16, random_state=0, n_jobs=options.jobs)
        own = min(timed(lambda X=X, y=y, hasher=hasher: hasher.fit(X, y))[2] for _ in range(3))
        svc = timed(lambda X=X, y=y: SVC().fit(X, y))[2]
        base = base or own
        rows.append((n_classes, f"{own:.2f}", f"{own / base:.2f}", f"{svc:.2f}"))
    show(("classes", "StarRidge CPU s", "ratio to 10", "SVC CPU s"), *rows)


def full(options):
    """An exact fit on all 60,000 images, default settings, and its P@10 on the 10,000 test images."""
    X, y = training_rows(60000)
    images, answers = test_rows()
    hasher = StarSHL(options.bits, random_state=0, n_jobs=options.jobs, verbose=1)
    _, wall, cpu = timed(lambda: hasher.fit(X, y))
    peak = peak_gib()
    database, encoding, _ = timed(lambda: hasher.encode(X))
    precision = precision_at(hasher.encode(images), database, answers, y, 10)
    print(f"N = 60,000, {options.bits} bits, default settings")
    show(
        ("minutes", "CPU min", "sweeps", "peak GiB", "largest KKT violation", "P@10", "accuracy", "encode s"),
        (
            f"{wall / 60:.1f}", f"{cpu / 60:.1f}", hasher.n_iter_, f"{peak:.1f}", f"{hasher.violations_.max():.2e}",
            f"{precision:.4f}", f"{hasher.score(images, answers):.4f}", f"{encoding:.1f}",
        ),
    )  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(required=True, metavar="part")
    for action in (fit, reference, growth, modes, encode, ridge, peers, classes, full):
        part = parts.add_parser(action.__name__, help=action.__doc__)
        part.add_argument("--rows", type=int, default=10000 if action in (encode, ridge, peers) else 3000)
        part.add_argument("--bits", type=int, default=64 if action is full else 16)
        part.add_argument("--jobs", type=int, default=2)
        part.add_argument("--plain-sweeps", type=int, help="stop the plain side early and extrapolate")
        part.add_argument("--plain-bits", type=int, help="give the plain side fewer bits and extrapolate")
        part.add_argument("--without-plain", action="store_true")
        part.set_defaults(action=action)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    compile_loops(options)
    options.action(options)


if __name__ == "__main__":
    main()
