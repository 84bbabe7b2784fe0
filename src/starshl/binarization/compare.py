"""Compare a hasher with float search and with other methods at equal length."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from .._types import LabelsLike, Seed
from ..base import BaseHasher
from ..catalog import get_class
from ..lengths import fit_lengths
from .choice import Choice, choose_hasher
from .comparison import Comparison, LengthComparison
from .length_choice import choose_length
from .measure import FROM_VECTORS, Bench, Measured
from .questions import ask
from .split import Split, hold_out
from .verdict import about_rivals, verdict

__all__ = ["RIVALS", "compare", "compare_choice"]

_OF_FLOAT_QUERIES = ("RaBitQ", "PQ")
#: Hashers of the catalog, RaBitQ's estimates, and product quantization.
RIVALS = ("ITQ", "SignBinarizer", "LSHash", *_OF_FLOAT_QUERIES)


@dataclass(frozen=True, slots=True)
class _AtLength:
    """One length: its comparison, and what each method finds."""

    comparison: LengthComparison
    found: dict[str, np.ndarray]


def compare(
    X: ArrayLike,
    y: LabelsLike = None,
    *,
    hasher: BaseHasher | None = None,
    n_bits: int | Sequence[int] | None = None,
    rivals: Sequence[str] = RIVALS,
    n_queries: int | None = None,
    random_state: Seed = 0,
) -> Comparison:
    """Compare a hasher with float search and with other methods at equal length.

    ``rivals`` are names of the catalog. "RaBitQ" stands for its estimates of distances, and "PQ" for product
    quantization by FAISS, at equal bytes where they can be equal. One that cannot be made of these vectors is left
    out, and the page says why. The other arguments are those of :func:`binarize`.
    """
    split = hold_out(X, y, n_queries, random_state)
    return compare_choice(split, choose_hasher(split, hasher, n_bits), rivals)


def compare_choice(split: Split, choice: Choice, rivals: Sequence[str] = RIVALS) -> Comparison:
    """Compare a chosen hasher at all its lengths."""
    bench = Bench(split)
    n_labeled_queries = int((split.label_index[split.query] >= 0).sum())
    parts = [
        _at_length(bench, fitted, seconds, rivals, n_labeled_queries) for fitted, seconds in _fitted(choice, split)
    ]
    lengths = [part.comparison for part in parts]
    n_bits, length_choice = choose_length(lengths, len(split.base))
    found = next(part.found for part in parts if part.comparison.n_bits == n_bits)
    return Comparison(
        choice=choice.reason,
        n_queries=len(split.query),
        n_items=len(split.base),
        n_labeled_queries=n_labeled_queries,
        n_labeled_items=int((split.label_index[split.base] >= 0).sum()),
        precision_ceiling=split.precision_ceiling(),
        exact=bench.exact.figures,
        lengths=lengths,
        n_bits=n_bits,
        length_choice=length_choice,
        questions=ask(split, {bench.exact.figures.name: bench.exact.found, **found}),
    )


def _fitted(choice: Choice, split: Split) -> Iterator[tuple[BaseHasher, float]]:
    """Fit a copy of the hasher at each length; yield it with the seconds that its fit takes."""
    hasher = _seeded(clone(choice.hasher))
    shared = 0.0
    started = time.perf_counter()
    for fitted in fit_lengths(hasher, split.items, split.item_labels, choice.lengths):
        seconds = shared + time.perf_counter() - started
        # A hasher that changes its length had its fit before.
        shared = seconds if hasattr(fitted, "with_bits") and not shared else shared
        yield fitted, seconds
        started = time.perf_counter()


def _seeded(hasher: BaseHasher) -> BaseHasher:
    """Give a hasher without a seed one, so that the same rows make the same page."""
    has_none = hasher.get_params().get("random_state", 0) is None
    return hasher.set_params(random_state=0) if has_none else hasher


def _at_length(
    bench: Bench, fitted: BaseHasher, fit_seconds: float, rivals: Sequence[str], n_labeled_queries: int
) -> _AtLength:
    own = bench.of_hasher(fitted, fit_seconds)
    n_bits = int(fitted.n_bits_)
    measured, left_out = list(own), {}
    for name in rivals:
        if name == type(fitted).__name__ and name not in _OF_FLOAT_QUERIES:
            continue
        try:
            measured.append(_rival(name, n_bits, bench)())
        except ValueError as error:
            # Only the requested hasher must fit these vectors.
            left_out[name] = " ".join(str(error).split())
    unlabeled = own[1].figures if len(own) > 1 else None
    told = verdict(bench.exact.figures, own[0].figures, unlabeled, len(bench.split.base), n_labeled_queries)
    others = about_rivals(own[0].figures, [one.figures for one in measured[len(own) :]])
    told = f"{told} {others}".rstrip()
    comparison = LengthComparison(n_bits, [one.figures for one in measured], told, left_out)
    shown = [one for one in measured if not one.figures.name.endswith(FROM_VECTORS)]
    return _AtLength(comparison, {one.figures.name: one.found for one in shown})


def _rival(name: str, n_bits: int, bench: Bench) -> Callable[[], Measured]:
    if name == "RaBitQ":
        return lambda: bench.of_estimates(n_bits)
    if name == "PQ":
        return lambda: bench.of_products(n_bits)
    return lambda: _measured_hasher(name, n_bits, bench)


def _measured_hasher(name: str, n_bits: int, bench: Bench) -> Measured:
    hasher = _seeded(get_class(name)(n_bits=n_bits))
    started = time.perf_counter()
    hasher.fit(bench.split.items, bench.split.item_labels)
    return bench.of_hasher(hasher, time.perf_counter() - started)[0]
