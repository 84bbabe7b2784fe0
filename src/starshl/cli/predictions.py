"""Predictions: labels of rows, perhaps with probabilities, and perhaps with rows that were rejected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Predictions"]


@dataclass(frozen=True, slots=True)
class Predictions:
    """What a model says of rows.

    Parameters
    ----------
    labels : array of shape (n_rows,), the predicted label, also where it was rejected
    rejected : bool array of shape (n_rows,)
    classes : array of shape (n_classes,)
    proba : array of shape (n_rows, n_classes) of probabilities, None if they were not asked for
    novelty : array of shape (n_rows,), None if rows are not to be rejected
    """

    labels: np.ndarray
    rejected: np.ndarray
    classes: np.ndarray
    proba: np.ndarray | None = None
    novelty: np.ndarray | None = None

    @classmethod
    def of(cls, classifier: Any, X: Any, *, proba: bool = False, reject: float | None = None) -> Predictions:
        """Ask a classifier."""
        import numpy as np

        labels = classifier.predict(X)
        shares = classifier.predict_proba(X) if proba else None
        if reject is None:
            return cls(labels, np.zeros(len(labels), dtype=bool), classifier.classes_, shares)
        novelty = classifier.novelty(X)
        return cls(labels, novelty >= 1.0 - reject, classifier.classes_, shares, novelty)

    @property
    def confidence(self) -> np.ndarray | None:
        """The probability of each predicted label."""
        import numpy as np

        if self.proba is None:
            return None
        return self.proba[np.arange(len(self.proba)), np.searchsorted(self.classes, self.labels)]

    @property
    def marked(self) -> np.ndarray:
        """The labels, marked as unlabeled where they were rejected."""
        from ..models.rejection import marked_labels

        return marked_labels(self.labels, self.rejected) if self.rejected.any() else self.labels

    def answers(self) -> list[Any]:
        """Return the labels, None where they were rejected."""
        return [None if no else label for label, no in zip(self.labels.tolist(), self.rejected, strict=True)]

    def totals(self) -> dict[str, Any]:
        """Return figures about all rows."""
        found: dict[str, Any] = {}
        if self.confidence is not None:
            found["mean_confidence"] = float(self.confidence.mean())
        if self.novelty is not None:
            found["n_rejected"] = int(self.rejected.sum())
        return found

    def listed(self) -> dict[str, Any]:
        """Return everything, as lists."""
        found: dict[str, Any] = {}
        if self.proba is not None and self.confidence is not None:
            found |= {"confidence": self.confidence.tolist(), "classes": self.classes.tolist()}
            found["probabilities"] = self.proba.tolist()
        if self.novelty is not None:
            found["novelty"] = self.novelty.tolist()
        return found | {"predictions": self.answers()}
