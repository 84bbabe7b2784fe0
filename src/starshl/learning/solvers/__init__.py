"""Gram matrices in, numbers out: the blocks of the alternating minimization. No labels, no estimators."""

from __future__ import annotations

from .block_descent import BlockDescent
from .objective import hamming_distances, hinge_distances, kernel_weights, nearest_codewords
from .problem import KernelBank, Problem, Solution, Start, SvmSolver, TaskMap, on_threads
from .proposals import SMALLEST_TOL
from .ridge import RidgeFactor, RidgeSums, StreamedSolution
from .svm import ACCEPTED_VIOLATION, DualSolution, LibSVM, PairwiseAscent

__all__ = [
    "ACCEPTED_VIOLATION",
    "BlockDescent",
    "DualSolution",
    "KernelBank",
    "LibSVM",
    "PairwiseAscent",
    "Problem",
    "RidgeFactor",
    "RidgeSums",
    "SMALLEST_TOL",
    "Solution",
    "Start",
    "StreamedSolution",
    "SvmSolver",
    "TaskMap",
    "hamming_distances",
    "hinge_distances",
    "kernel_weights",
    "nearest_codewords",
    "on_threads",
]
