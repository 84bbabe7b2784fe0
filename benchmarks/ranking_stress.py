"""P(same class) where the rows of a search are not like those of the fit, and indexes of many words.

    python benchmarks/ranking_stress.py shares      # other class shares than in the fit
    python benchmarks/ranking_stress.py late        # classes that come after the fit
    python benchmarks/ranking_stress.py landmarks   # fits of more rows than max_exact_rows
    python benchmarks/ranking_stress.py million     # 1,000,000 items made of MNIST by small shifts and rotations
    python benchmarks/ranking_stress.py classes     # 1,000 made classes

need mnist.npz, and `shares` also cifar10_gray.npz, in the folder STARSHL_DATA (docs/datasets.md). Items are coded from
their vectors, `shares`, `late` and `landmarks` by 32 bits, and queries keep their posteriors. "said" and "true" are the
mean probability of the first ten hits, and the share that is of the query's class; ECE is the calibration error of
P(same) over all pairs. Times are those of the processor.
"""

from __future__ import annotations

import argparse
import os
from functools import partial
from pathlib import Path

import numpy as np
from measuring import peak_gib, show, timed
from ranking import pooled_areas, read
from scipy.ndimage import affine_transform
from sklearn.metrics import roc_auc_score

from starshl import BinaryCodes, HybridHasher, StarRidge, make_index
from starshl.codes import WordDictionary
from starshl.evaluation.whole_lists import expected_lists, reliability

N_TRAIN, N_QUERIES, N_ITEMS = 3000, 1000, 5000
EVEN, UNEVEN = np.ones(10), np.repeat([10.0, 1.0], 5)  # shares of the ten digits
LATE = (8, 9)
CHUNK = 10_000
FIGURES = ("said", "true", "ECE", "PR area")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    studies = parser.add_subparsers(required=True, metavar="study")
    for action in (shares, late, landmarks, million, classes):
        study = studies.add_parser(action.__name__, help=action.__doc__)
        study.add_argument("--seed", type=int, default=0)
        study.add_argument("--items", type=int, default=50_000 if action is classes else 1_000_000)
        study.set_defaults(action=action)
    options = parser.parse_args()
    options.action(options)


def data(name: str = "mnist") -> tuple[np.ndarray, np.ndarray]:
    return read(str(Path(os.environ["STARSHL_DATA"]) / f"{name}.npz"))


def shares(options: argparse.Namespace) -> None:
    """Items or queries in which half of the classes are ten times as frequent as the others."""
    rows = []
    for name in ("mnist", "cifar10_gray"):
        X, y = data(name)
        for asked, stored in ((EVEN, EVEN), (UNEVEN, EVEN), (EVEN, UNEVEN), (UNEVEN, UNEVEN)):
            deal = Deal(y, options.seed)
            train, queries, items = deal(N_TRAIN, EVEN), deal(N_QUERIES, asked), deal(N_ITEMS, stored)
            fits = {"even rows": (train, None)}
            if asked is stored is UNEVEN:
                fits["even rows, weighted"] = train, (UNEVEN / UNEVEN.mean())[y[train]]
                fits |= {f"{n_rows} uneven rows": (deal(n_rows, UNEVEN), None) for n_rows in (500, N_TRAIN)}
            for how, (some, weights) in fits.items():
                hasher = StarRidge(32, random_state=options.seed).fit(X[some], y[some], weights)
                figures = ranked(hasher, X[queries], y[queries], X[items], y[items])
                kinds = ("uneven" if kind is UNEVEN else "even" for kind in (asked, stored))
                rows.append((name, how, *kinds, *(f"{figures[each]:.3f}" for each in FIGURES)))
    show(("data", "learned from", "queries", "items", *FIGURES), *rows)


class Deal:
    """Deals out rows, each once, with given class shares."""

    def __init__(self, y: np.ndarray, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.of_class = [list(self.rng.permutation(np.flatnonzero(y == g))) for g in range(10)]

    def __call__(self, n_rows: int, of: np.ndarray) -> np.ndarray:
        counts = self.rng.multinomial(n_rows, of / of.sum())
        return np.array([self.of_class[g].pop() for g, count in enumerate(counts) for _ in range(count)])


def ranked(hasher, queries, asked, X, y) -> dict[str, float]:
    """Return how well the whole list ranks, and how right its probabilities are."""
    codes, encoded = hasher.encode_database(X), hasher.encode_queries(queries)
    index = hasher.make_index(codes)
    distances, ids = index.search(encoded, len(X))
    said, same = index.probabilities(encoded, ids), y[ids] == asked[:, None]
    share, _ = expected_lists(distances, same)
    return {
        "said": said[:, :10].mean(),
        "true": share[:, :10].mean(),
        "ECE": reliability(said, same).calibration_error,
        "PR area": pooled_areas(distances, same)["area"],
    }


def late(options: argparse.Namespace) -> None:
    """Queries and items of two digits that the fit has not seen, and of the eight others."""
    X, y = data()
    order = np.random.default_rng(options.seed).permutation(len(X))
    train, queries, items = np.split(order[: N_TRAIN + N_QUERIES + N_ITEMS], (N_TRAIN, N_TRAIN + N_QUERIES))
    known, is_late = train[~np.isin(y[train], LATE)], np.isin(y[queries], LATE)
    rows = []
    for method in (StarRidge, HybridHasher):
        early = method(32, random_state=options.seed).fit(X[known], y[known])
        labels = np.where(np.isin(y[items], LATE), y[items], -1)
        assert early.encode_database(X[items], labels) == early.encode_database(X[items])  # unknown labels are none
        novelty = early.novelty(X[queries])
        print(f"{method.__name__}: area under ROC of novelty {roc_auc_score(is_late, novelty):.3f}")
        fits = {"eight digits": early, "ten digits": method(32, random_state=options.seed).fit(X[train], y[train])}
        for name, hasher in fits.items():
            index = hasher.make_index(hasher.encode_database(X[items]))
            encoded = hasher.encode_queries(X[queries])
            ids = index.search(encoded, 10).ids
            said, same = index.probabilities(encoded, ids), y[items][ids] == y[queries][:, None]
            rejected = hasher.novelty(X[queries]) >= 0.95
            for kind, some in {"known": ~is_late, "late": is_late, "late, not rejected": is_late & ~rejected}.items():
                wrong = said[some][~same[some]]
                figures = (same[some], said[some], wrong, wrong > 0.5, rejected[some])
                rows.append((method.__name__, name, kind, *(f"{each.mean():.3f}" for each in figures)))
    show(("method", "learned from", "queries", "true", "said", "of wrong hits", "of these > .5", "rejected"), *rows)


def landmarks(options: argparse.Namespace) -> None:
    """Fits over landmarks: with the default number, and with few of them."""
    X, y = data()
    rows = []
    for n_rows, n_landmarks in ((3000, None), (3000, 500), (6000, 1000), (25_000, None)):
        order = np.random.default_rng(options.seed).permutation(len(X))
        train, queries, items = np.split(order[: n_rows + N_QUERIES + N_ITEMS], (n_rows, n_rows + N_QUERIES))
        limit = 1000 if n_landmarks else 20_000
        hasher = StarRidge(32, max_exact_rows=limit, n_landmarks=n_landmarks, random_state=options.seed)
        _, _, seconds = timed(lambda hasher=hasher, train=train: hasher.fit(X[train], y[train]))
        figures = ranked(hasher, X[queries], y[queries], X[items], y[items])
        used = len(hasher.support_)
        shown = (f"{figures[each]:.4f}" for each in FIGURES)
        rows.append((f"{n_rows:,}", "all" if used == n_rows else f"{used:,}", *shown, f"{seconds:.0f}"))
    show(("rows", "landmarks", *FIGURES, "fit s"), *rows)


def million(options: argparse.Namespace) -> None:
    """Items made of MNIST by small shifts and rotations."""
    X, y = data()
    rng = np.random.default_rng(options.seed)
    train, queries, others = np.split(rng.permutation(len(X)), (1000, 1000 + N_QUERIES))
    hybrid = HybridHasher(64, random_state=options.seed).fit(X[train], y[train])
    chunks = (X[rng.choice(others, CHUNK)] @ shift_and_rotation(rng) for _ in range(options.items // CHUNK))
    search(hybrid, chunks, X[queries])


def shift_and_rotation(rng: np.random.Generator) -> np.ndarray:
    """Return the matrix that turns pictures by up to 12 degrees and moves them by up to two pixels."""
    angle, center = np.deg2rad(rng.uniform(-12, 12)), np.full(2, 13.5)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    offset = center - turn @ (center + rng.uniform(-2, 2, 2))
    pixels = np.eye(784).reshape(784, 28, 28)
    return np.array([affine_transform(pixel, turn, offset, order=1).ravel() for pixel in pixels], np.float32)


def classes(options: argparse.Namespace) -> None:
    """1,000 classes around random centers, five rows of each in the fit."""
    rng = np.random.default_rng(options.seed)
    centers = rng.standard_normal((1000, 64))

    def drawn(own: np.ndarray) -> np.ndarray:
        return (centers[own] + 1.5 * rng.standard_normal((len(own), 64))).astype(np.float32)

    own = np.repeat(np.arange(1000), 5)
    hybrid, _, seconds = timed(lambda: HybridHasher(64, random_state=options.seed).fit(drawn(own), own))
    asked = rng.integers(0, 1000, N_QUERIES)
    queries = drawn(asked)
    posteriors = hybrid.class_hasher_.training_proba()
    n_bits = hybrid.words.n_bits
    _, _, learning = timed(lambda: WordDictionary.fitted(posteriors, n_bits))
    accuracy = hybrid.class_hasher_.score(queries, asked)
    print(f"fit {seconds:.0f} s; dictionary of {n_bits} bits {learning:.1f} s; accuracy {accuracy:.3f}")
    search(hybrid, (drawn(rng.integers(0, 1000, CHUNK)) for _ in range(options.items // CHUNK)), queries)


def search(hybrid: HybridHasher, chunks, queries: np.ndarray) -> None:
    """Print words, memory and time per query of items without labels: hybrid codes, and the classes alone."""
    star = hybrid.class_hasher_.with_bits(32)
    packed = {"HybridIndex, 64 bits": [], "PosteriorIndex, 32 bits": []}
    for chunk in chunks:
        posteriors = star.predict_proba(chunk)  # once for both
        neighbors = hybrid.neighbor_hasher_.encode_database(chunk).to_signs()
        joined = np.hstack([hybrid.words.encode(posteriors), neighbors])
        words = joined, star.words.encode(posteriors)
        for codes, signs in zip(packed.values(), words, strict=True):
            codes.append(BinaryCodes.from_signs(signs).packed)
    assert BinaryCodes.from_signs(joined) == BinaryCodes(hybrid.encode_database(chunk).packed, hybrid.n_bits_)
    rows = []
    for (name, parts), hasher in zip(packed.items(), (hybrid, star), strict=True):
        codes = hasher.as_codes(np.concatenate(parts))
        index = make_index(codes, hasher=hasher)
        n_words = len(np.unique(codes.to_signs()[:, : hasher.words.n_bits] > 0, axis=0))
        encoded = hasher.encode_queries(queries)
        times = []
        for batch in (1, 64):
            some = [encoded[start : start + batch] for start in range(0, 4 * batch, batch)]
            index.search(some[0], 10)
            best = min(timed(partial(search_all, index, some))[2] for _ in range(3))
            times.append(f"{1e3 * best / (4 * batch):.2f}")
        rows.append((name, f"{len(codes):,}", f"{n_words:,}", f"{index.nbytes / len(codes):.1f}", *times))
    show(("index", "items", "words", "bytes per item", "ms, batch of 1", "of 64"), *rows)
    print(f"peak memory {peak_gib():.1f} GiB")


def search_all(index, batches) -> None:
    for queries in batches:
        index.search(queries, 10)


if __name__ == "__main__":
    main()
