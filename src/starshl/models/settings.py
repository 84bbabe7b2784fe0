"""The checked settings of a StarSHL, as training sees them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .._validation import check_choice, check_flag, check_integer, check_n_jobs, check_number
from ..codebooks import Codebook
from ..kernels import KernelsLike, ViewsLike, check_views
from ..solvers import SMALLEST_TOL

__all__ = ["PAPER_SETTINGS", "Settings"]

# Those of the experiments in Huang et al. 2015.
PAPER_SETTINGS: dict[str, Any] = {
    "kernels": "paper",
    "C": 1000.0,
    "kernel_norm": 2.0,
    "codewords": "random",
    "kernel_weights": "random",
    "codeword_constraint": "none",
    "keep_clusters": False,
    "unlabeled": "nearest",
    "tol": 0.05,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The parameters of :class:`starshl.StarSHL` that training reads, each within its range.

    Codewords, kernels and kernel weights are checked where they are used: that takes the number of classes and kernels.
    """

    n_bits: int
    kernels: KernelsLike
    views: ViewsLike | None
    C: float
    kernel_norm: float
    codewords: str | np.ndarray | Codebook
    n_codewords: int | None
    kernel_weights: str | np.ndarray | None
    update_codewords: bool
    codeword_constraint: Literal["distinct", "nonconstant", "none"]
    keep_clusters: bool
    unlabeled: Literal["graph", "nearest"]
    unlabeled_weight: float
    solver: Literal["auto", "smo", "libsvm"]
    max_iter: int
    tol: float
    svm_tol: float
    n_jobs: int | None
    max_memory: float | None
    verbose: int

    def __post_init__(self) -> None:
        check_integer(self.n_bits, "n_bits", low=1)
        check_number(self.C, "C", low=0, strict=True)
        check_number(self.kernel_norm, "kernel_norm", low=1, finite=False)
        check_choice(self.unlabeled, "unlabeled", ("graph", "nearest"))
        check_number(self.unlabeled_weight, "unlabeled_weight", low=0)
        check_flag(self.update_codewords, "update_codewords")
        check_flag(self.keep_clusters, "keep_clusters")
        check_choice(self.codeword_constraint, "codeword_constraint", ("distinct", "nonconstant", "none"))
        check_choice(self.solver, "solver", ("auto", "smo", "libsvm"))
        check_integer(self.max_iter, "max_iter", low=1)
        check_number(self.tol, "tol", low=0)
        check_number(self.svm_tol, "svm_tol", low=SMALLEST_TOL)
        check_n_jobs(self.n_jobs)
        if self.max_memory is not None:
            check_number(self.max_memory, "max_memory", low=0, strict=True)
        if self.n_codewords is not None:
            check_integer(self.n_codewords, "n_codewords", low=1)
        if self.views is not None:
            check_views(self.views)
