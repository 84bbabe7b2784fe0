"""Theorem 1 of the paper: how far a hash function's true error may lie above its training error."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

import numpy as np

from ..._common.labels import LabelsLike, check_labels
from ..._common.validation import SamplesLike, check_number
from ...codes.codewords import minimum_distance

if TYPE_CHECKING:
    from .star_shl import StarSHL

_NO_DIAGONAL = "The largest diagonal value of some kernel is not known (precomputed or user-defined)."


class _ConservativeTerms(TypedDict):
    conservative: float | None
    conservative_reason: str
    conservative_complexity: float | None
    conservative_deviation: float | None
    conservative_radius: float | None


class GeneralizationBound(_ConservativeTerms):
    """The terms of Theorem 1.

    With probability of at least 1 - delta over N labeled samples, the expected share of wrong code bits is
    at most ``er_hat + complexity + deviation``, where

    - ``er_hat`` is the mean of Q(u) = min(1, max(0, 1 - u / rho)) over the margins u = codeword bit * f_b(x),
    - ``complexity`` is 2 r / (rho B sqrt(N)) * sum_b R_b with R_b = ``norms[b]`` the norm of f_b and r^2 =
      ``radius ** 2`` the largest k_b(x, x) over the rows given,
    - ``deviation`` is sqrt(log(1 / delta) / (2 N)).

    ``paper`` is their sum. Taken as printed, the theorem asks that R_b, the kernel weights and the codewords be
    fixed before the data are seen, leaves out the bias, and contracts a supremum over codewords without
    proof. ``conservative`` pays for all of these: norms and biases on a doubling grid with a union bound,
    the bias term, a factor sqrt(G) for the codewords, and every kernel weight at its largest value 1
    (``conservative_radius`` squared is the sum of all kernels' largest diagonals). It is None, with a reason,
    if some kernel's largest diagonal is unknown. Values above 1 say nothing; ``vacuous`` tells.

    ``misclassification`` bounds the chance that the nearest codeword is a wrong one: that takes half the
    smallest codeword distance d in wrong bits, so it is at most 2 B / d times the bound (Markov).
    """

    er_hat: float
    complexity: float
    deviation: float
    paper: float
    vacuous: bool
    misclassification: float
    radius: float
    norms: np.ndarray
    rho: float
    delta: float
    n_samples: int


def generalization_bound(
    hasher: StarSHL, X: SamplesLike, y: LabelsLike, *, rho: float, delta: float
) -> GeneralizationBound:
    """Return the terms of Theorem 1 for a fitted hasher on the labeled rows of X."""
    rho = check_number(rho, "rho", low=0, strict=True)
    delta = check_number(delta, "delta", low=0, strict=True)
    if delta >= 1:
        raise ValueError(f"delta is {delta:g}; it is a probability of failure and must lie between 0 and 1.")
    scores = np.asarray(hasher.decision_function(X), dtype=np.float64)
    codeword_index = _codeword_index(hasher, y, len(scores))
    labeled = codeword_index >= 0
    n_samples, n_bits = int(labeled.sum()), hasher.codewords_.shape[1]
    margins = hasher.codewords_[codeword_index[labeled]] * scores[labeled]
    er_hat = float(np.clip(1.0 - margins / rho, 0.0, 1.0).mean())
    radius = float(np.sqrt((hasher.kernel_weights_ @ hasher._kernel_diagonals(X)[:, labeled]).max()))
    norms = hasher.norms_
    complexity = float(2.0 * radius * norms.sum() / (rho * n_bits * np.sqrt(n_samples)))
    deviation = float(np.sqrt(np.log(1.0 / delta) / (2.0 * n_samples)))
    paper = er_hat + complexity + deviation
    distance = minimum_distance(hasher.codewords_)
    return {
        "er_hat": er_hat,
        "complexity": complexity,
        "deviation": deviation,
        "paper": paper,
        "vacuous": paper >= 1.0,
        "misclassification": 2.0 * n_bits / distance * paper if distance else np.inf,
        "radius": radius,
        "norms": norms.copy(),
        "rho": rho,
        "delta": delta,
        "n_samples": n_samples,
        **_conservative_terms(hasher, er_hat, rho, delta, n_samples),
    }


def _conservative_terms(hasher: StarSHL, er_hat: float, rho: float, delta: float, n_samples: int) -> _ConservativeTerms:
    largest = [kernel.largest_diagonal for kernel in hasher.kernels_]
    known = [value for value in largest if value is not None]
    if not known or len(known) < len(largest):
        return {
            "conservative": None,
            "conservative_reason": _NO_DIAGONAL,
            "conservative_complexity": None,
            "conservative_deviation": None,
            "conservative_radius": None,
        }
    n_codewords, n_bits = hasher.codewords_.shape
    radius = float(np.sqrt(np.sum(known)))
    norms, biases = (2.0 * np.maximum(np.abs(values), 1.0) for values in (hasher.norms_, hasher.intercept_))
    total = float(np.sum(radius * norms + biases))
    complexity = float(2.0 * np.sqrt(n_codewords) * total / (rho * n_bits * np.sqrt(n_samples)))
    # The union over grid points 2^j costs log(j^2 pi^2 / 6) for each norm and each bias.
    grid = sum(float(np.sum(2.0 * np.log(np.log2(v) + 1.0) + np.log(np.pi**2 / 6.0))) for v in (norms, biases))
    deviation = float(np.sqrt((np.log(1.0 / delta) + grid) / (2.0 * n_samples)))
    return {
        "conservative": er_hat + complexity + deviation,
        "conservative_reason": "",
        "conservative_complexity": complexity,
        "conservative_deviation": deviation,
        "conservative_radius": radius,
    }


def _codeword_index(hasher: StarSHL, y: LabelsLike, n_rows: int) -> np.ndarray:
    """Return each row's codeword, -1 where it is unlabeled."""
    labels = check_labels(y, n_rows)
    if not labels.labeled.any():
        raise ValueError("y has no labels; the bound compares codes with the codewords of given labels.")
    positions = labels.positions_in(hasher.classes_)
    unknown = np.unique(labels.index[labels.labeled & (positions < 0)])
    if len(unknown):
        raise ValueError(
            f"y has classes {labels.classes[unknown].tolist()!r}, for which this hasher has no codeword. Leave their "
            "rows out, or mark them as unlabeled."
        )
    return positions
