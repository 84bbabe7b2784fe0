"""The hashers inside of a hasher: behind the preprocessing, and the one that decides the class."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..answers import Label

__all__ = ["bare_hasher", "class_hasher", "class_names", "holds_clusters"]


def bare_hasher(hasher: Any) -> Any:
    """Return the hasher behind the preprocessing, or the hasher itself."""
    return getattr(hasher, "hasher_", hasher)


def class_hasher(hasher: Any) -> Any:
    """Return the hasher that decides the class of a hybrid one, or the bare hasher."""
    bare = bare_hasher(hasher)
    return getattr(bare, "class_hasher_", bare)


def holds_clusters(hasher: Any) -> bool:
    """Return whether the classes of a hasher are clusters that a fit without labels has found."""
    bare, inner = bare_hasher(hasher), class_hasher(hasher)
    if hasattr(bare, "field_holds_"):
        return bool(bare.field_holds_ == "clusters")
    labeled = getattr(inner, "labeled_", None)
    return labeled is not None and len(labeled) > 0 and not np.any(labeled)


def class_names(hasher: Any) -> list[Label]:
    """Return what pages call the classes of a hasher; the number of a cluster must not be taken for a label."""
    names = np.asarray(getattr(class_hasher(hasher), "classes_", ())).tolist()
    return [f"cluster {name}" for name in names] if holds_clusters(hasher) else names
