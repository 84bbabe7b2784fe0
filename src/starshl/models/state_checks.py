"""Checks of learned attributes that came out of a model file, before any of them is used as an index."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from ..codebooks import Codebook
from ..exceptions import BundleFormatError
from ..kernels import OnColumns
from .samples import SAMPLE_TYPES, Precomputed, SparseVectors, take_sparse

__all__ = ["StateCheck", "check_star_ridge", "check_star_shl", "mismatch"]

StateCheck: TypeAlias = Callable[[Mapping[str, Any], int, int], None]
"""A check of learned attributes, given the number of bits and the number of training rows."""


def check_star_shl(state: Mapping[str, Any], n_bits: int, n_train: int) -> None:
    """Refuse arrays that do not belong to one StarSHL."""
    n_codewords, n_support = len(state["classes_"]), len(state["support_"])
    shapes = {
        "classes_": (n_codewords,),
        "codewords_": (n_codewords, n_bits),
        "codeword_counts_": (n_codewords,),
        "kernel_weights_": (n_bits, _n_kernels(state)),
        "intercept_": (n_bits,),
        "norms_": (n_bits,),
        "support_": (n_support,),
        "dual_coef_": (n_bits, n_support),
        "assignments_": (n_train,),
        "training_packed_": (n_train, -(-n_bits // 8)),
        "transduction_": (n_train,),
    }
    numbers = ("codewords_", "codeword_counts_", "kernel_weights_", "intercept_", "norms_", "dual_coef_")
    wrong = _wrong_arrays(state, shapes, numbers) + _wrong_codes(state, n_bits) + _wrong_samples(state, n_train)
    if not _are_indices(state["assignments_"], n_codewords):
        wrong.append("assignments_")
    if state["training_packed_"].dtype != np.uint8:
        wrong.append("training_packed_")
    wrong += _wrong_novelty(state, n_codewords, n_support, n_train)
    if wrong:
        raise mismatch(wrong[0])


def check_star_ridge(state: Mapping[str, Any], n_bits: int, n_train: int) -> None:
    """Refuse arrays that do not belong to one StarRidge; after ``compress`` its support rows are no training rows."""
    n_classes, n_support, n_rows = len(state["classes_"]), len(state["support_"]), len(state["transduction_"])
    shapes = {
        "classes_": (n_classes,),
        "codewords_": (n_classes, n_bits),
        "kernel_weights_": (_n_kernels(state),),
        "intercept_": (n_classes,),
        "support_": (n_support,),
        "dual_coef_": (n_classes, n_support),
        "class_shifts_": (n_classes,),
        "training_scores_": (n_rows, n_classes),
        "assignments_": (n_rows,),
        "labeled_": (n_rows,),
        "transduction_": (n_rows,),
    }
    numbers = ("codewords_", "kernel_weights_", "intercept_", "dual_coef_", "class_shifts_", "training_scores_")
    wrong = _wrong_arrays(state, shapes, numbers) + _wrong_codes(state, n_bits) + _wrong_samples(state, n_train)
    if not _are_indices(state["assignments_"], n_classes):
        wrong.append("assignments_")
    if state["labeled_"].dtype != np.bool_ or n_train not in (n_rows, n_support):
        wrong.append("labeled_")
    for name in ("temperature_", "query_temperature_", "database_temperature_", "ridge_"):
        if type(state[name]) is not float or not 0 < state[name] < np.inf:
            wrong.append(name)
    if type(state["curvature_"]) is not float or not 0 <= state["curvature_"] < np.inf:
        wrong.append("curvature_")
    if state["head_"] not in ("posterior", "linear"):
        wrong.append("head_")
    if type(state["codebook_seed_"]) is not int or not 0 <= state["codebook_seed_"] < 2**32:
        wrong.append("codebook_seed_")
    wrong += _wrong_novelty(state, n_classes, n_support, n_train)
    if wrong:
        raise mismatch(wrong[0])


def mismatch(name: str) -> BundleFormatError:
    return BundleFormatError(f"The model file is damaged: its {name} does not match the rest of the model.")


def _n_kernels(state: Mapping[str, Any]) -> int:
    # Precomputed kernels are not in the file: only the weights say how many there were.
    return len(state["kernels_"]) or int(state["kernel_weights_"].shape[-1])


def _wrong_arrays(
    state: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]], numbers: tuple[str, ...]
) -> list[str]:
    wrong = [name for name, shape in shapes.items() if np.shape(state[name]) != shape]
    return wrong + [name for name in numbers if not np.isfinite(state[name]).all()]


def _wrong_codes(state: Mapping[str, Any], n_bits: int) -> list[str]:
    if not np.isin(state["codewords_"], (-1, 1)).all():
        return ["codewords_"]
    codebook = state["codebook_"]
    is_consistent = isinstance(codebook, Codebook) and codebook.holds(state["classes_"], state["codewords_"])
    wrong = [] if is_consistent else ["codebook_"]
    return wrong if state["n_bits_"] == n_bits else [*wrong, "n_bits_"]


def _wrong_novelty(state: Mapping[str, Any], n_classes: int, n_support: int, n_train: int) -> list[str]:
    """Return what cannot be a rule of novelty; ``compress`` leaves none."""
    if "novelty_calibration_" not in state:
        return []
    shapes: dict[str, tuple[int, ...]] = {
        "novelty_units_": (2, 2),
        "novelty_calibration_": (len(state["novelty_calibration_"]),),
    }
    wrong = []
    if "novelty_rows_" in state:
        rows = state["novelty_rows_"]
        shapes |= {"novelty_intercept_": (n_classes,), "novelty_coef_": (n_classes, n_support + len(rows))}
        wrong += [] if _are_indices(rows, n_train) else ["novelty_rows_"]
        n_support += len(rows)
    wrong += _wrong_arrays(state, shapes, tuple(shapes))
    if type(state["novelty_weight_"]) is not float or not 0 <= state["novelty_weight_"] <= 1:
        wrong.append("novelty_weight_")
    if type(state["novelty_neighbors_"]) is not int or not 1 <= state["novelty_neighbors_"] <= max(1, n_support):
        wrong.append("novelty_neighbors_")
    if np.any(state["novelty_units_"][:, 1] <= 0) or np.any(np.diff(state["novelty_calibration_"]) < 0):
        wrong.append("novelty_calibration_")
    return wrong


def _wrong_samples(state: Mapping[str, Any], n_train: int) -> list[str]:
    wrong = []
    if not _are_indices(state["support_"], n_train) or np.any(np.diff(state["support_"]) <= 0):
        wrong.append("support_")
    n_features = state.get("n_features_in_", 0)
    if any(isinstance(kernel, OnColumns) and kernel.columns.max() >= n_features for kernel in state["kernels_"]):
        wrong.append("kernels_")
    if len(state["view_names_"]) != len(state["view_shares_"]):
        wrong.append("view_shares_")
    samples_of = SAMPLE_TYPES[state["sample_kind_"]]
    if (samples_of is Precomputed) != (len(state["kernels_"]) == 0):
        wrong.append("sample_kind_")
    if samples_of is SparseVectors and not take_sparse(state["kernels_"]):
        wrong.append("sample_kind_")
    return wrong


def _are_indices(values: np.ndarray, size: int) -> bool:
    return values.dtype.kind == "i" and bool(np.all((values >= 0) & (values < size)))
