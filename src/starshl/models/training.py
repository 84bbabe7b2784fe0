"""From checked input to a finished descent: the steps of ``StarSHL.fit``, in their order."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from joblib import effective_n_jobs
from sklearn.exceptions import ConvergenceWarning

from .._memory import Scratch, available_bytes
from .._progress import sweep_progress
from .._validation import PartialLabels
from ..kernels import (
    DistanceTiles,
    GramBank,
    Kernel,
    KernelMix,
    VectorBank,
    check_gram,
    compute_grams,
    fit_kernels,
    is_built_in,
)
from ..solvers import BlockDescent, LibSVM, PairwiseAscent, Problem, Solution, Start
from .initial import check_assignments, initial_clusters, initial_codewords, initial_weights

if TYPE_CHECKING:
    from .star_shl import StarSHL

__all__ = ["choose_classes", "choose_start", "descend", "prepare_bank", "warn_about"]

_FREE_SHARE = 0.75  # of the free memory that a fit may take for kernels
_TABLE_SHARE = 0.65  # of that, what is stored all the time; the rest is for the matrices of active rows
_LEAST_TOL_OF_FLOAT32 = 1e-4  # below it the rounding of kernels, not the tolerance, would end a descent
_FIT = 4  # stack level of the line that called fit, seen from a function that fit calls


def choose_classes(settings: StarSHL, labels: PartialLabels) -> np.ndarray:
    """Return the classes, one codeword each: those of y or, without labels, cluster numbers."""
    if not labels.labeled.any():
        if settings.n_codewords is None:
            raise ValueError(
                "y has no labels, so the number of clusters must be given: set n_codewords, for example "
                "StarSHL(n_codewords=10). With labels in y, one codeword a class is learned."
            )
        if settings.unlabeled_weight == 0:
            raise ValueError(
                "unlabeled_weight is 0 and no row has a label, so nothing is left to learn from. "
                "Give some labels or a positive unlabeled_weight."
            )
        return np.arange(settings.n_codewords)
    n_classes = len(labels.classes)
    if settings.n_codewords not in (None, n_classes):
        raise ValueError(
            f"n_codewords is {settings.n_codewords}, but y has {n_classes} classes, each of which gets one codeword. "
            "Leave n_codewords out when y has labels."
        )
    if n_classes == 1:
        unlabeled = int(np.sum(~labels.labeled))
        is_marked = unlabeled > 0 and labels.dtype.kind in "iu"
        marked = f" The {unlabeled} rows of y that are -1 count as unlabeled. If -1 is a class, name it otherwise, for "
        marked += "example by numpy.where(y == -1, 0, y)."
        warnings.warn(
            f"y has one class only ({labels.classes[0]!r}), so every code will be that class's codeword. "
            f"Give rows of two classes or more, or no labels and n_codewords.{marked if is_marked else ''}",
            UserWarning,
            stacklevel=_FIT,
        )
    return labels.classes


def prepare_bank(
    settings: StarSHL,
    kernels: str | Sequence[Kernel],
    samples: np.ndarray,
    weights: np.ndarray,
    cost: np.ndarray,
) -> tuple[list[Kernel], GramBank | VectorBank]:
    """Return fitted kernels, and the bank that evaluates them between training rows."""
    # The check draws rows from a stream of its own, so that it never changes what is learned.
    rng = np.random.RandomState(0)
    if isinstance(kernels, str):
        for position, gram in enumerate(samples):
            check_gram(gram, f"The precomputed kernel {position}", rng)
        return [], GramBank(samples, settings.n_jobs)
    # Bandwidths of presets count rows as every other statistic does; other kernels learn from all rows.
    row_weights = cost if isinstance(settings.kernels, str) and settings.kernels != "graph" else weights
    fitted = fit_kernels(kernels, samples, row_weights)
    if samples.dtype == np.float32 and min(settings.tol, settings.svm_tol) < _LEAST_TOL_OF_FLOAT32:
        samples = samples.astype(np.float64)
    budget = _memory_budget(settings)
    scratch = Scratch((1.0 - _TABLE_SHARE) * budget / effective_n_jobs(settings.n_jobs))
    if KernelMix.covers(fitted, samples):
        fits = DistanceTiles.stored_bytes(len(samples), samples.dtype.itemsize) <= _TABLE_SHARE * budget
        return fitted, VectorBank(fitted, samples, settings.n_jobs, scratch, stores_distances=fits)
    _require_grams(samples, len(fitted), _TABLE_SHARE * budget)
    grams = compute_grams(fitted, samples, settings.n_jobs)
    for position, (kernel, gram) in enumerate(zip(fitted, grams, strict=True)):
        if not is_built_in(kernel):
            check_gram(gram, f"The Gram matrix of kernels[{position}]", rng)
    return fitted, GramBank(grams, settings.n_jobs, scratch)


def _memory_budget(settings: StarSHL) -> float:
    """Return the bytes that kernels may take."""
    if settings.max_memory is not None:
        return settings.max_memory * 2**30
    available = available_bytes()
    return np.inf if available is None else _FREE_SHARE * available


def _require_grams(samples: np.ndarray, n_kernels: int, budget: float) -> None:
    """Refuse rows whose stored kernel matrices do not fit into memory."""
    n_rows = len(samples)
    n_bytes = n_kernels * n_rows**2 * (4 if samples.dtype == np.float32 else 8)
    if n_bytes > budget:
        raise MemoryError(
            f"Fitting {n_rows:,} rows stores {n_kernels} kernel matrices of {n_bytes / 2**30:.2g} GiB together, and "
            f"max_memory leaves {budget / 2**30:.2g} GiB to them. Use fewer rows, fewer kernels, a larger max_memory "
            "or, for vectors, the built-in kernels, which need not be stored."
        )


def choose_start(
    settings: StarSHL,
    samples: np.ndarray,
    bank: GramBank | VectorBank,
    kind: str,
    labels: PartialLabels,
    n_codewords: int,
    cost: np.ndarray,
    initial_assignments: np.ndarray | None,
    rng: np.random.RandomState,
) -> Start:
    """Return where the descent starts: codewords, kernel weights and assignments."""
    n_bits, norm = settings.n_bits, float(settings.kernel_norm)
    if n_codewords > 2**n_bits:
        warnings.warn(
            f"{n_codewords} codewords do not fit into {n_bits} bits, which make {2**n_bits} codes: some classes share "
            f"one. Use n_bits >= {int(np.ceil(np.log2(n_codewords)))}.",
            UserWarning,
            stacklevel=_FIT,
        )
    distinct = settings.codeword_constraint == "distinct"
    codewords = initial_codewords(settings.codewords, n_codewords, n_bits, rng, distinct=distinct)
    weights = initial_weights(settings.kernel_weights, n_bits, bank.n_kernels, norm, rng)
    if initial_assignments is not None:
        assignments = check_assignments(initial_assignments, labels.index, n_codewords)
    elif labels.labeled.any():
        assignments = np.maximum(labels.index, 0)
    else:
        assignments = initial_clusters(samples, bank, kind, cost, n_codewords, rng)
    return Start(codewords, assignments, weights)


def descend(
    settings: StarSHL,
    bank: GramBank | VectorBank,
    labels: PartialLabels,
    cost: np.ndarray,
    start: Start,
    *,
    late: bool,
) -> Solution:
    """Run the block descent; ``late`` rows enter it after the labeled ones have been fitted."""
    constraint = settings.codeword_constraint
    if constraint == "distinct" and len(start.codewords) > 2**settings.n_bits:
        constraint = "nonconstant"
    svm = LibSVM if settings.solver == "libsvm" else PairwiseAscent
    with sweep_progress(settings.n_bits, settings.max_iter, shown=bool(settings.verbose)) as on_progress:
        problem = Problem(
            bank=bank,
            svm=svm(settings.svm_tol),
            cost=cost,
            free=~labels.labeled,
            late=late,
            C=float(settings.C),
            kernel_norm=float(settings.kernel_norm),
            constraint=constraint,
            update_codewords=settings.update_codewords,
            keep_clusters=settings.keep_clusters,
            max_iter=settings.max_iter,
            tol=settings.tol,
            n_jobs=settings.n_jobs,
            on_progress=on_progress,
        )
        return BlockDescent(problem).run(start)


def warn_about(settings: StarSHL, state: Solution) -> None:
    """Warn about non-convergence and collapsed codewords."""
    if not state.converged:
        warnings.warn(
            f"Codewords, assignments or kernel weights still changed in sweep {state.n_iter} (tol={settings.tol:g}). "
            "Increase max_iter, or accept the result: every sweep lowered the objective.",
            ConvergenceWarning,
            stacklevel=_FIT,
        )
    # LIBSVM checks its own running gradient, so its violation may be a little above what it was asked for.
    if np.any(state.violation > 2.0 * settings.svm_tol):
        warnings.warn(
            f"The SVM of {int(np.sum(state.violation > 2.0 * settings.svm_tol))} bits stopped at a KKT violation of up "
            f"to {state.violation.max():.1e} (svm_tol={settings.svm_tol:g}). Rescale the kernels, lower C or raise "
            "svm_tol.",
            ConvergenceWarning,
            stacklevel=_FIT,
        )
    if settings.codeword_constraint != "none" or len(state.codewords) == 1:
        return
    n_constant = int(np.sum(np.all(state.codewords == state.codewords[:1], axis=0)))
    n_distinct = len(np.unique(state.codewords, axis=0))
    if n_constant or n_distinct < len(state.codewords):
        warnings.warn(
            f"Unconstrained, the codewords have {n_constant} constant bits and {n_distinct} distinct rows for "
            f"{len(state.codewords)} classes. Set codeword_constraint='distinct' to keep them apart.",
            ConvergenceWarning,
            stacklevel=_FIT,
        )
