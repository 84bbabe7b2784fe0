"""The scores of every hashing method as parts of a graph: one function per kind of computation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..base import BaseHasher, LinearHasher
from ..baselines import (
    BRE,
    COSDISH,
    KSH,
    LAMP,
    SDH,
    AnchorGraphHash,
    CodewordSVM,
    ForgivingHash,
    KernelLSH,
    KMeansHash,
    LSHash,
    SemanticHashing,
    SignBinarizer,
    SpectralHash,
    SphericalHash,
)
from ..baselines._autoencoder import layer_views
from ..baselines._stumps import StumpHasher
from ..baselines.kmeans_hash import words
from ..codebooks import binary_words
from ..exceptions import NotExpressibleError
from ..hybrid import HybridHasher
from ..hybrid.fields import class_numbers
from ..models import StarRidge, StarSHL
from .classes import class_index, posterior_bits
from .expansions import bit_expansion
from .graph import Value
from .vectors import gaussian_expansion, project, squared_distances, squared_norms

__all__ = ["bit_scores"]


def bit_scores(hasher: BaseHasher, rows: Value) -> Value:
    """Return the scores of all bits, (n, n_bits), as ``hasher.decision_function`` computes them."""
    for hasher_class, scores in SCORES.items():
        if isinstance(hasher, hasher_class):
            return scores(hasher, rows)
    raise NotExpressibleError(
        f"There is no ONNX graph for the scores of a {type(hasher).__name__}. You can export methods of "
        "starshl.catalog, and hashers derived from LinearHasher."
    )


def _hyperplanes(hasher: Any, rows: Value) -> Value:
    return project(rows, hasher.components_, hasher.intercept_)


def _planes_or_sampled_features(hasher: Any, rows: Value) -> Value:
    if hasher.variant_ != "bit_sampling":
        return _hyperplanes(hasher, rows)
    return rows.take(hasher.features_) - hasher.thresholds_


def _first_features(hasher: Any, rows: Value) -> Value:
    return rows.columns(0, hasher.n_bits_) - hasher.thresholds_


def _stumps(hasher: Any, rows: Value) -> Value:
    has_projections = hasher.projections_ is not None
    values = project(rows, hasher.projections_) if has_projections else rows.take(hasher.features_)
    return values - hasher.thresholds_


def _boosted_stumps(hasher: Any, rows: Value) -> Value:
    n_bits, n_stumps = hasher.features_.shape
    values = rows.take(hasher.features_.ravel()).reshape(-1, n_bits, n_stumps)
    is_above = values >= hasher.thresholds_
    votes = rows.graph.constant(hasher.votes_, rows.dtype)
    return is_above.where(votes, -votes).sum(axis=2).reshape(-1, n_bits)


def _anchored_gaussians(coefficients: str, anchors: str = "anchors_") -> Callable[[Any, Value], Value]:
    def scores(hasher: Any, rows: Value) -> Value:
        own = getattr(hasher, coefficients)
        return gaussian_expansion(rows, getattr(hasher, anchors), hasher.scale_, own, hasher.intercept_)

    return scores


def _linear_or_gaussians(hasher: Any, rows: Value) -> Value:
    if hasher.variant_ == "linear":
        return project(rows, hasher.coefficients_, hasher.intercept_)
    return _anchored_gaussians("coefficients_")(hasher, rows)


def _kernel_directions(hasher: Any, rows: Value) -> Value:
    if callable(hasher.kernel_):
        name = getattr(hasher.kernel_, "__name__", type(hasher.kernel_).__name__)
        raise NotExpressibleError(
            f"The kernel {name!r} of this KernelLSH is a function, which cannot be written as an ONNX graph. Fit it "
            "with kernel='gaussian' or 'linear'."
        )
    if hasher.kernel_ == "linear":
        folded = hasher.coefficients_.astype(np.float64) @ hasher.anchors_.astype(np.float64)
        return project(rows, folded, hasher.intercept_)
    return _anchored_gaussians("coefficients_")(hasher, rows)


def _unit_rows(hasher: Any, rows: Value) -> Value:
    centered = rows - hasher.mean_
    lengths = squared_norms(centered).apply("Sqrt")
    is_zero = lengths.equals(0.0)
    return (centered / (lengths + is_zero.cast(rows.dtype))) @ hasher.components_.T


def _spheres(hasher: Any, rows: Value) -> Value:
    return hasher.radii_ - squared_distances(rows, hasher.centers_).apply("Sqrt")


def _eigenfunctions(hasher: Any, rows: Value) -> Value:
    phases = (project(rows, hasher.components_) - hasher.lows_) * (np.pi / hasher.sides_)
    return (phases.take(hasher.directions_) * hasher.modes_).cosine()


def _nearest_anchors(hasher: Any, rows: Value) -> Value:
    graph, k = rows.graph, hasher.n_neighbors_
    distances = squared_distances(rows, hasher.anchors_)
    types = [rows.dtype, np.dtype(np.int64)]
    attributes = {"largest": 0, "sorted": 1, "axis": 1}
    nearest, columns = graph.apply_many("TopK", (distances, graph.constant([k], np.int64)), types, attributes)
    weights = ((nearest.columns(0, 1) - nearest) / hasher.sigma_**2).apply("Exp")
    weights = weights / weights.sum(axis=1)
    Z = graph.apply("ScatterElements", distances * 0.0, columns, weights, axis=1)
    first = Z @ hasher.projections_
    if hasher.variant_ == "one_layer":
        return first
    upper, lower = hasher.thresholds_
    return graph.concat([first, (first >= 0.0).where(first - upper, lower - first)])


def _product_quantizers(hasher: Any, rows: Value) -> Value:
    projected = project(rows, hasher.components_, hasher.intercept_)
    scores: list[Value] = []
    column = center = 0
    for bits, size in zip(hasher.bits_.tolist(), hasher.sizes_.tolist(), strict=True):
        centers = hasher.centers_[center : center + 2**bits, :size]
        distances = squared_distances(projected.columns(column, column + size), centers)
        column, center = column + size, center + 2**bits
        for is_set in (words(bits) > 0).T:
            without = distances.take(np.flatnonzero(~is_set)).min(axis=1)
            scores.append(without - distances.take(np.flatnonzero(is_set)).min(axis=1))
    return rows.graph.concat(scores)


def _autoencoder(hasher: Any, rows: Value) -> Value:
    signal = ((rows - hasher.offset_) * hasher.factor_).clip(0.0, 1.0)
    *hidden, (weights, biases) = layer_views(hasher.encoder_, hasher.layer_sizes_)
    for own_weights, own_biases in hidden:
        signal = (signal @ own_weights + own_biases).apply("Sigmoid")
    return signal @ weights + biases - hasher.threshold_


def _hybrid(hasher: Any, rows: Value) -> Value:
    numbers = class_numbers(hasher.class_hasher_).positions(hasher.classes_) % (1 << hasher.class_bits_)
    fields = rows.graph.constant(binary_words(numbers, hasher.class_bits_), rows.dtype)
    own = rows.graph.rows_of(fields, class_index(hasher.class_hasher_, rows))
    if hasher.neighbor_hasher_ is None:
        return own
    return rows.graph.concat([own, bit_scores(hasher.neighbor_hasher_, rows)])


# The first entry whose class a hasher is an instance of counts.
SCORES: dict[type, Callable[[Any, Value], Value]] = {
    StarSHL: bit_expansion,
    StarRidge: posterior_bits,
    HybridHasher: _hybrid,
    LinearHasher: _hyperplanes,
    LSHash: _planes_or_sampled_features,
    SignBinarizer: _first_features,
    StumpHasher: _stumps,
    ForgivingHash: _boosted_stumps,
    CodewordSVM: _anchored_gaussians("dual_coef_", "support_vectors_"),
    SDH: _anchored_gaussians("coefficients_"),
    KSH: _anchored_gaussians("coefficients_"),
    LAMP: _anchored_gaussians("dual_coef_"),
    COSDISH: _linear_or_gaussians,
    KernelLSH: _kernel_directions,
    BRE: _unit_rows,
    SphericalHash: _spheres,
    SpectralHash: _eigenfunctions,
    AnchorGraphHash: _nearest_anchors,
    KMeansHash: _product_quantizers,
    SemanticHashing: _autoencoder,
}
