"""TrainingRows: the rows from which both fields of a code are learned, with what is known about their classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._types import Rows
from .._validation import PartialLabels
from ..models.star_ridge import StarRidge

__all__ = ["TrainingRows", "places_of"]


@dataclass(frozen=True, slots=True, eq=False)
class TrainingRows:
    """Rows and class indices.

    Parameters
    ----------
    rows : array or CSR array of shape (n, n_features)
    label : array of shape (n,)
        Class index of the given label, -1 if there is none.
    guess : array of shape (n,)
        Predicted class index, if possible of a fit without the row itself: the class of such a row as a query.
    """

    rows: Rows
    label: np.ndarray
    guess: np.ndarray

    @classmethod
    def of(cls, class_hasher: Any, rows: Rows, labels: PartialLabels) -> TrainingRows:
        """Return the rows with their labels and the predictions of a fitted class hasher."""
        label = labels.positions_in(class_hasher.classes_)
        if isinstance(class_hasher, StarRidge):
            return cls(rows, label, _left_out_guesses(class_hasher))
        return cls(rows, label, places_of(class_hasher, class_hasher.predict(rows)))

    @classmethod
    def kept_by(cls, ridge: StarRidge) -> TrainingRows:
        """Return the training rows that a fitted StarRidge keeps: all of them, or its landmarks."""
        kept = ridge.support_
        label = np.where(ridge.labeled_, ridge.assignments_, -1)
        return cls(ridge.support_samples_, label[kept], _left_out_guesses(ridge)[kept])

    @property
    def own(self) -> np.ndarray:
        """The class index of each row as an item: that of its label, or the guess."""
        return np.where(self.label >= 0, self.label, self.guess)


def _left_out_guesses(ridge: StarRidge) -> np.ndarray:
    return ridge._bend(ridge.training_scores_).argmax(axis=1)


def places_of(class_hasher: Any, predicted: np.ndarray) -> np.ndarray:
    """Return the place of predicted classes among those of the class hasher."""
    labels, inverse = np.unique(predicted, return_inverse=True)
    place = {label: index for index, label in enumerate(class_hasher.classes_.tolist())}
    return np.array([place[label] for label in labels.tolist()], np.int64)[inverse]
