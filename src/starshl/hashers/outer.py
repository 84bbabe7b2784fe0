"""OuterHasher: a hasher that passes questions about the classes of rows on to one inside."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if

from .._common.labels import Label, LabelsLike
from .._common.validation import SamplesLike
from .base import BaseHasher, supported
from .star.contributions import Contributions


class OuterHasher(BaseHasher):
    """A hasher that has another one inside, which knows the classes of rows."""

    @property
    @abstractmethod
    def _answering(self) -> BaseHasher:
        """The fitted hasher that knows the classes or, before the fit, the given one or the default."""

    @abstractmethod
    def _inward(self, X: SamplesLike) -> Any:
        """Return rows as the hasher inside takes them."""

    @available_if(supported("predict"))
    def predict(self, X: SamplesLike, **params: Any) -> np.ndarray:
        """Return the class of each row, if the hasher inside predicts."""
        return self._answering.predict(self._inward(X), **params)

    @available_if(supported("predict_proba"))
    def predict_proba(self, X: SamplesLike) -> np.ndarray:
        """Return the probability of each class, if the hasher inside estimates them."""
        return self._answering.predict_proba(self._inward(X))

    @available_if(supported("novelty"))
    def novelty(self, X: SamplesLike) -> np.ndarray:
        """Return how different each row is from all training rows, from 0 to 1, if the hasher inside can tell."""
        return self._answering.novelty(self._inward(X))

    @available_if(supported("score"))
    def score(self, X: SamplesLike, y: LabelsLike = None) -> float:
        """Return the score of the hasher inside, the accuracy if there are labels."""
        return self._answering.score(self._inward(X), y)

    @available_if(supported("contributions"))
    def contributions(self, X: SamplesLike) -> Contributions:
        """Return how much each kernel, view and training row adds to the scores of the classes of the one row in X."""
        return self._answering.contributions(self._inward(X))

    def training_proba(self, X: SamplesLike) -> np.ndarray:
        """Return the probabilities of the classes of the rows of the fit, each without itself if it can be."""
        return self._answering.training_proba(self._inward(X))

    def predict_training(self, X: SamplesLike) -> np.ndarray:
        """Return the class of the rows of the fit, predicted for each of them without itself if it can be."""
        return self._answering.predict_training(self._inward(X))

    @property
    def classes_(self) -> np.ndarray:  # type: ignore[override]  # nobody sets it: it belongs to the hasher inside
        """The classes of the hasher inside; clusters are numbered."""
        return self._answering.classes_

    @property
    def class_part(self) -> BaseHasher:
        """The hasher that decides the class of a row as the hasher inside takes it."""
        return self._answering.class_part

    @property
    def class_labels(self) -> list[Label]:
        """The labels of the classes; clusters are numbered."""
        return self._answering.class_labels

    @property
    def kept_samples(self) -> Any:
        """The training samples that the hasher inside computes codes with, as it takes them."""
        return self._answering.kept_samples

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._answering)
        tags.estimator_type, tags.classifier_tags = inner.estimator_type, inner.classifier_tags
        return tags
