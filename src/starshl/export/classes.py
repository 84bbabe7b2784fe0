"""Class scores, probabilities and predicted classes as parts of a graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..baselines import CodewordSVM
from ..hybrid import HybridHasher
from ..models import StarRidge, StarSHL
from ..models.decoding import nearest_classes
from .expansions import bit_expansion
from .graph import Value
from .vectors import gaussian_expansion

__all__ = ["class_index", "estimates_probabilities", "posterior_bits", "predicts", "probabilities"]


def predicts(hasher: Any) -> bool:
    """Tell whether the class that a fitted hasher predicts can be written as a graph."""
    if isinstance(hasher, HybridHasher):
        return predicts(hasher.class_hasher_)
    return isinstance(hasher, StarRidge | StarSHL | CodewordSVM)


def estimates_probabilities(hasher: Any) -> bool:
    """Tell whether a fitted hasher estimates probabilities of classes."""
    return isinstance(hasher.class_hasher_ if isinstance(hasher, HybridHasher) else hasher, StarRidge)


def _bent(ridge: StarRidge, scores: Value) -> Value:
    """Return calibrated class scores, as :meth:`starshl.solvers.calibration.Calibration.bend` does."""
    if ridge.curvature_ == 0:
        return scores + ridge.class_shifts_
    return _asinh(scores * ridge.curvature_) / ridge.curvature_ + ridge.class_shifts_


def _asinh(values: Value) -> Value:
    # Runtimes know the operator of this name in single precision only.
    size = values.apply("Abs")
    return values.apply("Sign") * (size + (size * size + 1.0).apply("Sqrt")).apply("Log")


def posterior_bits(ridge: StarRidge, rows: Value) -> Value:
    """Return the expected codeword bits of queries, or their linear form; see :mod:`starshl.models.posterior`."""
    scores = bit_expansion(ridge, rows)
    if ridge.head_ == "linear":
        return scores @ ridge.codewords_
    return _softmax(_bent(ridge, scores), ridge.query_temperature_) @ ridge.codewords_


def _softmax(scores: Value, temperature: float) -> Value:
    return ((scores - scores.max(axis=1)) * temperature).apply("Softmax", axis=1)


def probabilities(hasher: Any, rows: Value) -> Value:
    """Return the probability of each class, (n, n_classes)."""
    if isinstance(hasher, HybridHasher):
        return probabilities(hasher.class_hasher_, rows)
    return _softmax(_bent(hasher, bit_expansion(hasher, rows)), hasher.temperature_)


def class_index(hasher: Any, rows: Value) -> Value:
    """Return the place of the predicted class among ``classes_``, (n,)."""
    if isinstance(hasher, HybridHasher):
        return class_index(hasher.class_hasher_, rows)
    if isinstance(hasher, StarRidge):
        return _first_largest(_bent(hasher, bit_expansion(hasher, rows)))
    if isinstance(hasher, StarSHL):
        return _speakers(hasher, _nearest_codeword(bit_expansion(hasher, rows), hasher.codewords_))
    own = (hasher.support_vectors_, hasher.scale_, hasher.dual_coef_, hasher.intercept_)
    scores = gaussian_expansion(rows, *own)
    if hasher.decoding_ == "hinge":
        return _first_largest(-_hinge_distances(scores, hasher.codewords_))
    return _nearest_codeword(scores, hasher.codewords_)


def _first_largest(values: Value) -> Value:
    return values.apply("ArgMax", axis=1, keepdims=0, dtype=np.int64)


def _nearest_codeword(scores: Value, codewords: np.ndarray) -> Value:
    """Return the nearest codeword by Hamming distance, ties by hinge distance; see ``solvers.nearest_codewords``."""
    signs = (scores >= 0.0).cast(scores.dtype) * 2.0 - 1.0
    agreement = signs @ codewords.T
    tied = agreement.equals(agreement.max(axis=1))
    distances = _hinge_distances(scores, codewords)
    return _first_largest(tied.where(-distances, -np.inf))


def _hinge_distances(scores: Value, codewords: np.ndarray) -> Value:
    is_plus = (codewords > 0).astype(np.float64)
    return _hinge(scores) @ is_plus.T + _hinge(-scores) @ (1.0 - is_plus).T


def _hinge(margins: Value) -> Value:
    return (1.0 - margins).apply("Max", 0.0)


def _speakers(hasher: StarSHL, nearest: Value) -> Value:
    """Return the class that answers for a codeword: the most frequent of those that share it."""
    own = nearest_classes(hasher.codewords_.astype(np.float64), hasher.codewords_, hasher.codeword_counts_)
    return nearest.graph.rows_of(nearest.graph.constant(own, np.int64), nearest)
