"""The hasher for users who do not name one."""

from __future__ import annotations

import numpy as np

from .._types import LabelsLike, SamplesLike
from .._validation import as_label_array, check_labels
from ..base import BaseHasher
from ..catalog import get_class
from ..linalg import principal_directions

__all__ = ["default_hasher", "default_method"]

_N_BITS = 32


def default_method(*, has_labels: bool) -> str:
    """Return the name of the method that measured best: StarRidge with labels, ITQ without.

    AG News embeddings, 2,000 items, 32 bits, precision at 10 and recall of 10 in 100: StarRidge .898 and .18, StarSHL
    .885 and .18, SDH .861 and .19, ITQ .792 and .91, LSH .662 and .65.
    """
    return "StarRidge" if has_labels else "ITQ"


def default_hasher(X: SamplesLike, y: LabelsLike) -> BaseHasher:
    """Return a hasher with codes of 32 bits, or of fewer if ITQ gets rows that vary in fewer directions."""
    has_labels = y is not None and bool(check_labels(as_label_array(y), np.shape(X)[0]).labeled.any())
    name, n_bits = default_method(has_labels=has_labels), _N_BITS
    if name == "ITQ":
        n_bits = max(1, len(principal_directions(np.asarray(X, dtype=np.float64), _N_BITS)[0]))
    return get_class(name)(n_bits, random_state=0)
