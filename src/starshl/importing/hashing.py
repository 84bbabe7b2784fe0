"""The hasher of a new collection: learned from labels where they can teach something, and from vectors otherwise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.base import clone

from .._types import LabelsLike
from .._validation import check_labels
from .._words import counted
from ..base import BaseHasher
from ..baselines.lsh import LSHash
from ..binarization.choice import choose_hasher
from ..binarization.split import hold_out

__all__ = ["LearnedHasher", "learn_hasher"]

_FEWEST = 20  # items to learn from
_SHOWN = 5  # classes named in a sentence
_N_BITS = 32  # as binarize has them


@dataclass(frozen=True, slots=True)
class LearnedHasher:
    """A fitted hasher, the labels that taught it, and in plain words what became of labels and how it was chosen."""

    hasher: BaseHasher
    taught_by: LabelsLike
    labels: str
    choice: str


def learn_hasher(X: np.ndarray, y: LabelsLike, n_bits: int | None = None) -> LearnedHasher:
    """Fit the hasher that :func:`starshl.binarize` would choose; without two classes, labels teach it nothing."""
    known = check_labels(y, len(X))
    n_labeled, classes = int(known.labeled.sum()), [str(name) for name in known.classes.tolist()]
    taught_by = y if len(classes) > 1 else None
    sentence = _about_labels(len(X), n_labeled, classes)
    if len(X) < _FEWEST:
        # A single row is given twice: hashers are fitted on two rows or more.
        hasher: BaseHasher = LSHash(n_bits or _N_BITS, random_state=0).fit(X if len(X) > 1 else np.repeat(X, 2, axis=0))
        few = f"{counted(len(X), 'item')} {'is' if len(X) == 1 else 'are'} too few to learn from"
        reason = f"LSHash was chosen, because {few}; {_FEWEST} would be enough."
        return LearnedHasher(hasher, None, sentence, reason)
    choice = choose_hasher(hold_out(X, taught_by, None, 0), None, n_bits)
    return LearnedHasher(clone(choice.hasher).fit(X, taught_by), taught_by, sentence, choice.reason)


def _about_labels(n_items: int, n_labeled: int, classes: list[str]) -> str:
    if not classes:
        return "No item has a label: codes were learned without labels (the unsupervised mode)."
    shown = ", ".join(classes[:_SHOWN]) + (", ..." if len(classes) > _SHOWN else "")
    of = "all" if n_labeled == n_items else f"{n_labeled:,} of {n_items:,}"
    if len(classes) == 1:
        return (
            f"Labels: {of} items are {classes[0]!r}. One class alone teaches nothing, so codes were learned without "
            "labels (the unsupervised mode); the labels are stored."
        )
    return f"Labels: {of} items have one of {len(classes)} classes ({shown})."
