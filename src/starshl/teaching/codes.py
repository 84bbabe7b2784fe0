"""Codes that follow a lesson: a hasher fitted to what is believed of a sample of the items, and the codes of all."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..base import BaseHasher
from ..codebooks import Codebook
from ..codes import BinaryCodes
from ..collection import Collection
from ..features import PreparedHasher
from ..hybrid import HybridHasher
from ..models import StarRidge
from .beliefs import Beliefs
from .events import Label
from .items import LessonItems

__all__ = ["codes_of", "fit_codes", "store_codes"]

_MOST_ROWS = 2500  # a fit takes seconds; what the others say is in the spread labels already
_FEWEST_PER_CLASS = 10  # discriminant analysis needs as many
_FEWEST_WORDS = 16  # room for new classes before codes have to change their space
_LEAST_TRUST = 0.02  # a weight must be positive; such a row counts next to nothing
_BATCH = 4096  # items between two reports of progress


def fit_codes(
    items: LessonItems, classes: Sequence[Label], given: np.ndarray, beliefs: Beliefs, current: BaseHasher
) -> BaseHasher:
    """Return a hybrid hasher of the length of the current one, fitted to given labels and, with less weight, to others.

    The class of an item takes the place of its word in a codebook with words in reserve. As long as these suffice, and
    unless a rare class needs further rows, codes before and after are of one space.
    """
    rows = _sampled(given, beliefs)
    labels = np.array(classes)[beliefs.index[rows]]
    confidences = beliefs.confidences[rows]
    trust = np.where(given[rows] >= 0, 1.0, np.maximum(2 * confidences - 1, _LEAST_TRUST))
    codebook = _codebook(classes, current)
    n_digits = (len(codebook.words) - 1).bit_length()
    n_bits = min(max(current.n_bits_, n_digits + 1), n_digits + min(items.rows.shape[1], len(rows) - 1))
    ridge = StarRidge(codebook.n_bits, codewords=codebook, random_state=0)
    hybrid = HybridHasher(ridge, n_bits=n_bits, codewords=codebook, random_state=0)
    hybrid.fit(items.rows[rows], labels, sample_weight=trust)
    fitted = current.with_hasher(hybrid) if isinstance(current, PreparedHasher) else hybrid
    # Not all labels of the fit come from a person, and its record must say so.
    n_given = int((given[rows] >= 0).sum())
    origin = {"labels_given": n_given, "labels_believed": len(rows) - n_given}
    fitted.fit_record_ = hybrid.fit_record_ | origin
    return fitted


def codes_of(
    hasher: BaseHasher, items: LessonItems, classes: Sequence[Label], beliefs: Beliefs, report: Callable[[int], None]
) -> BinaryCodes:
    """Return the codes of all items, with the class that is believed of each; ``report`` is told how many are done."""
    inner = hasher.hasher_ if isinstance(hasher, PreparedHasher) else hasher
    assert isinstance(inner, HybridHasher)
    names, packed = np.array(classes), []
    for start in range(0, len(items.ids), _BATCH):
        report(start)
        part = slice(start, start + _BATCH)
        packed.append(inner.relabel(inner.encode(items.rows[part]), names[beliefs.index[part]]).packed)
    return hasher.as_codes(np.concatenate(packed))


def store_codes(collection: Collection, hasher: BaseHasher, ids: np.ndarray, codes: BinaryCodes) -> None:
    """Replace the hasher of a collection by another one that gives these items these codes.

    Items that were added since they were computed get the codes of their kept vectors; those that were removed are left
    out.
    """
    held = collection.ids
    if not np.array_equal(held, ids):
        added = held[~np.isin(held, ids)]
        stays = np.isin(ids, held)
        parts = [codes.packed[stays]]
        if len(added):
            parts.append(hasher.encode_database(collection.vectors(added)).packed)
        ids, codes = np.concatenate([ids[stays], added]), hasher.as_codes(np.concatenate(parts))
    collection.replace_hasher(hasher, ids, codes=codes)


def _sampled(given: np.ndarray, beliefs: Beliefs) -> np.ndarray:
    """Return the rows to fit: always the same ones but for classes that are rare among them."""
    n_items = len(given)
    order = np.random.RandomState(0).permutation(n_items)
    chosen = np.zeros(n_items, dtype=bool)
    chosen[order[:_MOST_ROWS]] = True
    for number in range(beliefs.probabilities.shape[1]):
        members = beliefs.index == number
        n_missing = min(_FEWEST_PER_CLASS, int(members.sum())) - int((members & chosen).sum())
        if n_missing > 0:
            outside = members & ~chosen
            ranked = np.lexsort((np.arange(n_items), -beliefs.confidences, ~outside))
            chosen[ranked[:n_missing]] = True
    return np.flatnonzero(chosen)


def _codebook(classes: Sequence[Label], current: BaseHasher) -> Codebook:
    """Return the codebook of the current hasher with words for new classes or, if that cannot be, a new one."""
    inner = current.hasher_ if isinstance(current, PreparedHasher) else current
    kept = getattr(getattr(inner, "class_hasher_", None), "codebook_", None)
    if isinstance(inner, HybridHasher) and inner.field_holds_ == "classes" and isinstance(kept, Codebook):
        new = [label for label in classes if label not in kept.classes.tolist()]
        same_type = isinstance(kept.classes.tolist()[0], str) == isinstance(classes[0], str)
        if same_type and len(new) <= kept.n_reserved and kept.fit_digest is None:
            for label in new:
                kept = kept.assign(label)
            return kept
    n_words = max(_FEWEST_WORDS, 1 << (2 * len(classes) - 1).bit_length())
    return Codebook.numbered(list(classes), n_reserved=n_words - len(classes))
