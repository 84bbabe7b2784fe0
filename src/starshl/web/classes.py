"""The classes of a hasher: which of its parts decides them, and what pages call them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..answers import Label
from ..features import inner_hasher

__all__ = ["class_hasher", "class_names", "holds_clusters"]


def class_hasher(hasher: Any) -> Any:
    """Return the hasher that decides the class of a hybrid one, or the hasher behind the preprocessing."""
    inner = inner_hasher(hasher)
    return getattr(inner, "class_hasher_", inner)


def holds_clusters(hasher: Any) -> bool:
    """Return whether the classes of a hasher are clusters that a fit without labels has found."""
    inner: Any = inner_hasher(hasher)
    if hasattr(inner, "field_holds_"):
        return bool(inner.field_holds_ == "clusters")
    labeled = getattr(class_hasher(hasher), "labeled_", None)
    return labeled is not None and len(labeled) > 0 and not np.any(labeled)


def class_names(hasher: Any) -> list[Label]:
    """Return what pages call the classes of a hasher; the number of a cluster must not be taken for a label."""
    names = np.asarray(getattr(class_hasher(hasher), "classes_", ())).tolist()
    return [f"cluster {name}" for name in names] if holds_clusters(hasher) else names
