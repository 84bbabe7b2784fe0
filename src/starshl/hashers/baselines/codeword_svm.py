"""Fixed codewords and one support vector machine per bit: error-correcting output codes as hash functions."""

from __future__ import annotations

from typing import Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_random_state

from ..._common.labels import LabelsLike
from ..._common.threads import run_all
from ..._common.validation import SamplesLike, Seed, check_choice, check_integer, check_number, check_rows
from ..._common.warn import warn_caller
from ...codes.codebook import Codebook, CodewordsLike
from ...codes.codewords import random_codewords, separated_codewords
from ...learning.kernels.anchors import gaussian_expansion, gaussian_features, gaussian_scale
from ...learning.solvers.objective import hinge_distances, nearest_codewords
from ...learning.solvers.svm import DualSolution, PairwiseAscent
from ..base import BaseHasher, all_or_nothing
from ..facts import Facts
from ..supervision import require_labels


class CodewordSVM(BaseHasher):
    r"""Give each class a fixed codeword and train one kernel SVM per bit to write it.

    Bit b separates the classes whose codewords have +1 there from the others (Dietterich and Bakiri 1995):

    .. math:: f_b(x) = \sum_n \alpha_{bn}\, \mu_{y_n b}\, e^{-\|x_n - x\|^2 / s} + \beta_b,
              \qquad 0 \le \alpha_{bn} \le C.

    This is \*SHL without learning codewords and kernels: the comparison that shows what learning them adds.

    Parameters
    ----------
    n_bits : int, default=32
    codewords : {"separated", "random"}, array of shape (n_classes, n_bits) or Codebook, default="separated"
        Codewords far apart, distinct random ones, or given signs in the order of the sorted classes. Not every class
        of a :class:`starshl.Codebook` needs rows.
    C : float, default=10.0
    sigma : float, "rms" or "half_rms", default="half_rms"
        :math:`s = 2\sigma^2`; "rms" is the root mean squared distance between rows.
    decoding : {"hamming", "hinge"}, default="hamming"
        How ``predict`` finds the nearest codeword: by differing bits (ties by hinge), or by the hinge
        :math:`\sum_b [1 - \mu_{gb} f_b(x)]_+`.
    tol : float, default=1e-3
        Largest KKT violation of an SVM.
    n_jobs : int or None, default=None
        Threads; bits are independent, so codes do not depend on it.
    random_state : int, RandomState or None, default=None
        Draws the codewords.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    codewords_ : array of shape (n_classes, n_bits)
    codebook_ : Codebook, which class has which codeword
    support_vectors_ : array of shape (n_support, n_features)
        Rows that support some bit.
    dual_coef_ : array of shape (n_bits, n_support)
    intercept_ : array of shape (n_bits,)
    scale_ : float, s above
    decoding_ : str

    Notes
    -----
    The kernel of all training rows is held in memory: 0.8 GB at 10,000 rows of float64. Bits that split the classes the
    same way, up to sign, share one SVM.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from starshl.hashers.baselines import CodewordSVM
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = CodewordSVM(8, random_state=0).fit(X[:500], y[:500])
    >>> bool((hasher.predict(X[500:]) == y[500:]).mean() > 0.9)
    True
    """

    facts = Facts(
        paper="Dietterich, Bakiri: Solving Multiclass Learning Problems via Error-Correcting Output Codes",
        year=1995,
        labels="required",
        cost="n_bits x SVM(n)",
        samples="vectors and labels",
    )
    supports = frozenset({"predict"})

    def __init__(
        self,
        n_bits: int = 32,
        *,
        codewords: CodewordsLike = "separated",
        C: float = 10.0,
        sigma: float | Literal["rms", "half_rms"] = "half_rms",
        decoding: Literal["hamming", "hinge"] = "hamming",
        tol: float = 1e-3,
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        self.n_bits = n_bits
        self.codewords = codewords
        self.C = C
        self.sigma = sigma
        self.decoding = decoding
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: SamplesLike, y: LabelsLike = None) -> CodewordSVM:
        """Train the SVMs; y holds one class per row."""
        n_bits = check_integer(self.n_bits, "n_bits", low=1)
        check_number(self.C, "C", low=0, strict=True)
        check_number(self.tol, "tol", low=0, strict=True)
        decoding = check_choice(self.decoding, "decoding", ("hamming", "hinge"))
        X = check_rows(self, X, fitting=True)
        labels = require_labels(self, y, len(X), n_classes=2)
        self.decoding_ = decoding
        self.classes_ = labels.classes
        self.codebook_ = self._make_codebook(labels.classes, n_bits)
        self.codewords_ = self.codebook_.words_for(labels.classes, n_bits)
        self.scale_ = gaussian_scale(self.sigma, X, X)
        solutions, which = self._train(gaussian_features(X, X, self.scale_), labels.index)
        signs = self.codewords_[0].astype(np.float64)
        dual = np.array([solution.coefficients for solution in solutions])[which] * signs[:, None]
        intercepts = np.array([solution.intercept for solution in solutions])[which] * signs
        support = np.flatnonzero(dual.any(axis=0))
        self.support_vectors_ = X[support]
        self.dual_coef_ = dual[:, support].astype(X.dtype)
        self.intercept_ = intercepts.astype(X.dtype)
        return self

    def _make_codebook(self, classes: np.ndarray, n_bits: int) -> Codebook:
        if isinstance(self.codewords, Codebook):
            return self.codewords
        if isinstance(self.codewords, str):
            check_choice(self.codewords, "codewords", ("separated", "random"), or_else="a Codebook or an array")
            make = separated_codewords if self.codewords == "separated" else random_codewords
            return Codebook(make(len(classes), n_bits, check_random_state(self.random_state)), classes)
        given = np.asarray(self.codewords)
        shape = (len(classes), n_bits)
        if given.shape != shape or not np.isin(given, (-1, 1)).all():
            raise ValueError(
                f"codewords has shape {given.shape}; {len(classes)} classes and {n_bits} bits need an array of "
                f"-1 and +1 of shape {shape}. Give one row per class, in sorted order."
            )
        return Codebook(given, classes)

    def _train(self, kernel: np.ndarray, classes: np.ndarray) -> tuple[list[DualSolution], np.ndarray]:
        """Return the SVMs of all distinct splits of the classes, and the split of each bit.

        A split and its complement are one; the first class is on the positive side.
        """
        splits, which = np.unique(self.codewords_ * self.codewords_[:1], axis=1, return_inverse=True)
        tasks = [lambda split=split: self._separate(kernel, split[classes]) for split in splits.T]
        solutions = run_all(tasks, self.n_jobs)
        worst = max(solution.violation for solution in solutions)
        if not all(solution.converged for solution in solutions):
            warn_caller(
                f"An SVM stopped with violation {worst:.1e} > tol {self.tol:.1e}. Lower C or raise tol.",
                ConvergenceWarning,
            )
        return solutions, which.ravel()

    def _separate(self, kernel: np.ndarray, targets: np.ndarray) -> DualSolution:
        if (targets == targets[0]).all():
            # All classes on one side: a constant costs nothing.
            zeros = np.zeros(len(targets))
            return DualSolution(
                coefficients=zeros, intercept=float(targets[0]), violation=0.0, n_iter=0, converged=True
            )
        return PairwiseAscent(self.tol).solve(kernel, targets, np.full(len(targets), float(self.C)))

    def _learned_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"codewords_": (len(self.classes_), self.n_bits_)}

    def _scores(self, X: SamplesLike) -> np.ndarray:
        """Return the decision values of all SVMs, shape (n_samples, n_bits)."""
        X = check_rows(self, X, fitting=False)
        return gaussian_expansion(X, self.support_vectors_, self.scale_, self.dual_coef_, self.intercept_)

    def predict(self, X: SamplesLike) -> np.ndarray:
        """Return the class of the nearest codeword, shape (n_samples,)."""
        scores = self.decision_function(X)
        if self.decoding_ == "hinge":
            return self.classes_[hinge_distances(scores, self.codewords_).argmin(axis=1)]
        return self.classes_[nearest_codewords(scores, self.codewords_)]
