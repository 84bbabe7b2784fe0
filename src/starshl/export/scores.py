"""The scores of every hashing method as parts of a graph, and the classes and probabilities of those that have them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from ..codes.codewords import binary_words
from ..exceptions import NotExpressibleError
from ..hashers.base import BaseHasher, LinearHasher
from ..hashers.baselines._stumps import StumpHasher
from ..hashers.baselines.anchor_graph import AnchorGraphHash
from ..hashers.baselines.bre import BRE
from ..hashers.baselines.codeword_svm import CodewordSVM
from ..hashers.baselines.cosdish import COSDISH
from ..hashers.baselines.forgiving import ForgivingHash
from ..hashers.baselines.kernel_lsh import KernelLSH
from ..hashers.baselines.kmeans_hash import KMeansHash, all_words
from ..hashers.baselines.ksh import KSH
from ..hashers.baselines.lamp import LAMP
from ..hashers.baselines.lsh import LSHash
from ..hashers.baselines.sdh import SDH
from ..hashers.baselines.semantic import SemanticHashing, layer_views
from ..hashers.baselines.sign_binarizer import SignBinarizer
from ..hashers.baselines.spectral import SpectralHash
from ..hashers.baselines.spherical import SphericalHash
from ..hashers.classifier import LEAST_SHARE, ClassifierHasher
from ..hashers.hybrid import HybridHasher
from ..hashers.star.kernel_hasher import nearest_classes
from ..hashers.star.star_ridge import StarRidge
from ..hashers.star.star_shl import StarSHL
from .classifiers import classifier_probabilities
from .graph import MAX_MODEL_BYTES, Value, gaussian_expansion, project, squared_distances, squared_norms
from .kernels import kernel_expansion

Writers: TypeAlias = Mapping[type, Callable[[Any, Value], Value]]
"""Functions that write fitted hashers of a class as parts of a graph."""


def bit_scores(hasher: BaseHasher, rows: Value) -> Value:
    """Return the scores of all bits, (n, n_bits), as ``hasher.decision_function`` computes them."""
    return _written(hasher, SCORES, "scores", rows)


def class_index(hasher: BaseHasher, rows: Value) -> Value:
    """Return the index of the predicted class among ``classes_``, (n,)."""
    return _written(hasher.class_part, CLASSES, "classes", rows)


def probabilities(hasher: BaseHasher, rows: Value) -> Value:
    """Return the probability of each class, (n, n_classes)."""
    return _written(hasher.class_part, PROBABILITIES, "probabilities", rows)


def can_be_written(hasher: BaseHasher, table: Writers) -> bool:
    """Tell whether a table says how to write a fitted hasher."""
    return any(each in table for each in type(hasher).__mro__)


def _written(hasher: BaseHasher, table: Writers, what: str, rows: Value) -> Value:
    for each in type(hasher).__mro__:
        if each in table:
            return table[each](hasher, rows)
    raise NotExpressibleError(
        f"There is no ONNX graph for the {what} of a {type(hasher).__name__}. You can export methods of "
        "starshl.hashers.catalog, and hashers derived from LinearHasher."
    )


def bit_expansion(hasher: Any, rows: Value) -> Value:
    """Return the functions of a hasher over a kernel mixture: of its bits, or of its classes."""
    expansion = hasher.expansion
    if hasher.sample_kind_ == "precomputed":
        raise NotExpressibleError(
            f"This {type(hasher).__name__} was fitted on precomputed kernel values, so its kernel is not known "
            "here. Fit it on rows with kernels of starshl.learning.kernels, or compute scores from your kernel values "
            "yourself: these are a matrix product with dual_coef_."
        )
    if hasher.sample_kind_ == "objects":
        names = ", ".join(sorted({type(kernel).__name__ for kernel in expansion.kernels}))
        raise NotExpressibleError(
            f"This {type(hasher).__name__} compares samples that are not rows of numbers ({names}), and an ONNX graph "
            "takes rows of numbers. Turn the samples into vectors, and fit a hasher with a kernel on vectors to the "
            "codebook of this one."
        )
    support = _dense(expansion.support_samples, rows.dtype)
    scores = kernel_expansion(rows, expansion.kernels, support, expansion.weights, expansion.coefficients)
    return scores + expansion.intercept


def _dense(kept: Any, dtype: np.dtype) -> np.ndarray:
    """Return support rows as an array; sparse ones may be far larger than they were."""
    n_bytes = kept.shape[0] * kept.shape[1] * dtype.itemsize
    if n_bytes > MAX_MODEL_BYTES:
        raise NotExpressibleError(
            f"The support rows take {n_bytes / 2**30:.1f} GiB in the graph, and an ONNX file holds 2 GiB at most. "
            "Compress the hasher first (hasher.compress), or reduce the features."
        )
    return kept if isinstance(kept, np.ndarray) else kept.toarray()


def posterior_bits(ridge: StarRidge, rows: Value) -> Value:
    """Return the expected codeword bits, or their linear form."""
    scores = bit_expansion(ridge, rows)
    if ridge.head_ == "linear":
        return scores @ ridge.codewords_
    return _softmax(_bent(ridge, scores), ridge.temperature_) @ ridge.codewords_


def _bent(ridge: StarRidge, scores: Value) -> Value:
    """Return calibrated class scores, as :meth:`starshl.learning.solvers.calibration.Calibration.bend` does."""
    if ridge.curvature_ == 0:
        return scores + ridge.class_shifts_
    return _asinh(scores * ridge.curvature_) / ridge.curvature_ + ridge.class_shifts_


def _asinh(values: Value) -> Value:
    # Runtimes know the operator of this name in single precision only.
    size = values.apply("Abs")
    return values.apply("Sign") * (size + (size * size + 1.0).apply("Sqrt")).apply("Log")


def _softmax(scores: Value, temperature: float) -> Value:
    return ((scores - scores.max(axis=1)) * temperature).apply("Softmax", axis=1)


def _ridge_probabilities(ridge: StarRidge, rows: Value) -> Value:
    return _softmax(_bent(ridge, bit_expansion(ridge, rows)), ridge.temperature_)


def _tempered(hasher: ClassifierHasher, rows: Value) -> Value:
    said = classifier_probabilities(hasher.estimator_, rows, hasher.n_features_in_).cast(np.float64)
    return _softmax(said.apply("Max", LEAST_SHARE).apply("Log"), hasher.temperature_).cast(rows.dtype)


def _expected_bits(hasher: ClassifierHasher, rows: Value) -> Value:
    return _tempered(hasher, rows) @ hasher.codewords_


def _largest_probability(hasher: ClassifierHasher, rows: Value) -> Value:
    return _first_largest(_tempered(hasher, rows))


def _largest_class_score(ridge: StarRidge, rows: Value) -> Value:
    return _first_largest(_bent(ridge, bit_expansion(ridge, rows)))


def _class_of_nearest_codeword(hasher: StarSHL, rows: Value) -> Value:
    return _speakers(hasher, _nearest_codeword(bit_expansion(hasher, rows), hasher.codewords_))


def _decoded(svm: CodewordSVM, rows: Value) -> Value:
    scores = gaussian_expansion(rows, svm.support_vectors_, svm.scale_, svm.dual_coef_, svm.intercept_)
    if svm.decoding_ == "hinge":
        return _first_largest(-_hinge_distances(scores, svm.codewords_))
    return _nearest_codeword(scores, svm.codewords_)


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
        for is_set in (all_words(bits) > 0).T:
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
    words = hasher.words
    first, logs = words.learned_logs
    fields = rows.graph.constant(binary_words(first + np.arange(len(logs)), words.n_bits), rows.dtype)
    shares = probabilities(hasher, rows).cast(np.float32)
    own = rows.graph.rows_of(fields, _first_largest(shares @ logs.T))
    if hasher.neighbor_hasher_ is None:
        return own
    return rows.graph.concat([own, bit_scores(hasher.neighbor_hasher_, rows)])


# Which function writes which method: the entry of the nearest class that a hasher derives from.

SCORES: Writers = {
    StarSHL: bit_expansion,
    StarRidge: posterior_bits,
    ClassifierHasher: _expected_bits,
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
CLASSES: Writers = {
    StarRidge: _largest_class_score,
    ClassifierHasher: _largest_probability,
    StarSHL: _class_of_nearest_codeword,
    CodewordSVM: _decoded,
}
PROBABILITIES: Writers = {StarRidge: _ridge_probabilities, ClassifierHasher: _tempered}
