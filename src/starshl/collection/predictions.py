"""Predictions of a collection's hasher under the names that its classes have now."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._common.labels import Label
from .._common.validation import SamplesLike
from .model_classes import ShownClasses

if TYPE_CHECKING:
    from ..hashers.base import BaseHasher


class Predicted(NamedTuple):
    """Predicted labels, None where only a removed class was predicted, and probabilities if the hasher has them."""

    labels: list[Label | None]
    shares: np.ndarray | None


def check_has_classes(hasher: BaseHasher) -> None:
    """Refuse to predict labels with a hasher that knows none."""
    hasher.require("predict")
    if hasher.holds_clusters:
        raise ValueError(
            "The codes of this collection were learned without labels: they tell clusters apart, which have no names, "
            "so no label can be predicted. Label some items and fit again, or use a model that was fitted with labels."
        )


def predicted(hasher: BaseHasher, classes: ShownClasses, X: SamplesLike, *, with_shares: bool = False) -> Predicted:
    """Return the class of each row; probabilities of merged classes are added before the most likely one is chosen."""
    hasher.require("predict")
    taking = hasher.for_rows(X)
    if with_shares:
        hasher.require("predict_proba")
    if "predict_proba" in hasher.supports and (with_shares or not classes.is_plain):
        shares = classes.shares(np.asarray(taking.predict_proba(X)))
        names: list[Label | None] = [*classes.labels] or [None]
        best = shares.argmax(axis=1) if classes.labels else np.zeros(len(shares), np.int64)
        return Predicted([names[column] for column in best.tolist()], shares)
    labels = np.asarray(taking.predict(X)).tolist()
    place = {label: number for number, label in enumerate(hasher.class_labels)}
    return Predicted([classes.label(place[label]) for label in labels], None)
