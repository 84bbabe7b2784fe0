"""Gram matrices in, numbers out: the blocks of the alternating minimization. No labels, no estimators."""

from .assignments import hamming_distances, hinge_distances, nearest_codewords
from .attempts import SMALLEST_TOL
from .block_descent import BlockDescent, Problem, State
from .kernel_weights import kernel_weights
from .result import DualSolution
from .svm_dual import PairwiseAscent
from .svm_libsvm import LibSVM

__all__ = [
    "SMALLEST_TOL",
    "BlockDescent",
    "DualSolution",
    "LibSVM",
    "PairwiseAscent",
    "Problem",
    "State",
    "hamming_distances",
    "hinge_distances",
    "kernel_weights",
    "nearest_codewords",
]
