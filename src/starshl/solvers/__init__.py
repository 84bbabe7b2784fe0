"""Gram matrices in, numbers out: the blocks of the alternating minimization. No labels, no estimators."""

from .assignments import nearest_codewords
from .attempts import SMALLEST_TOL
from .block_descent import BlockDescent, Problem
from .cholesky import RidgeFactor
from .kernel_weights import kernel_weights
from .objective import hamming_distances, hinge_distances
from .protocols import KernelBank, SvmSolver
from .result import ACCEPTED_VIOLATION, DualSolution
from .solution import Solution, Start
from .streamed_ridge import RidgeSums, StreamedSolution
from .svm_dual import PairwiseAscent
from .svm_libsvm import LibSVM
from .task_map import TaskMap, on_threads

__all__ = [
    "ACCEPTED_VIOLATION",
    "SMALLEST_TOL",
    "BlockDescent",
    "DualSolution",
    "KernelBank",
    "LibSVM",
    "PairwiseAscent",
    "Problem",
    "RidgeFactor",
    "RidgeSums",
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
