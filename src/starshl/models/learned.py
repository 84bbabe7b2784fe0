"""What a finished descent teaches a StarSHL, and what tells its clusters from those of other fits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._digest import array_digest
from ..solvers import Solution

__all__ = ["digest_of_fit", "learned_by_descent"]


def learned_by_descent(solution: Solution, rows: np.ndarray, n_rows: int) -> dict[str, Any]:
    """Return the learned attributes of a StarSHL that a descent over some of its ``n_rows`` training rows gives."""
    dual_coef = np.zeros((len(solution.coefficients), n_rows))
    dual_coef[:, rows] = solution.coefficients
    return {
        "codewords_": solution.codewords,
        "kernel_weights_": solution.weights,
        "dual_coef_": dual_coef,
        "intercept_": solution.intercept,
        "norms_": np.sqrt(2.0 * solution.penalty),
        "violations_": solution.violation,
        "support_": np.flatnonzero(np.any(dual_coef, axis=0)),
        "objective_history_": solution.objective,
        "surrogate_history_": solution.surrogate,
        "distortion_history_": solution.distortion,
        "n_iter_": solution.n_iter,
        "n_reassigned_": solution.n_moved,
        "n_flipped_": solution.n_flipped,
        "n_relaxed_": solution.n_dropped,
        "n_constant_bits_": int(solution.is_constant.sum()),
    }


def digest_of_fit(state: Mapping[str, Any]) -> str:
    """Return a digest of a fit without labels: the numbers of its clusters mean nothing elsewhere."""
    return array_digest({name: state[name] for name in ("assignments_", "dual_coef_", "intercept_")})
