"""Fixed codewords and one support vector machine a bit: error-correcting output codes as hash functions."""

from __future__ import annotations

import numpy as np
from sklearn.svm import SVC
from sklearn.utils.validation import check_is_fitted, check_random_state

from .._threads import run_all
from .._validation import check_choice, check_number, check_integer, check_rows
from ..base import BaseHasher
from ..codebooks import random_codewords, separated_codewords
from ..kernels.anchors import gaussian_expansion, gaussian_features, mean_squared_distance
from ..supervision import require_labels

__all__ = ["CodewordSVM"]


class CodewordSVM(BaseHasher):
    r"""Give each class a fixed codeword and train one kernel SVM a bit to write it.

    Bit b separates the classes whose codewords have +1 there from the others (Dietterich and Bakiri 1995):

    .. math:: f_b(x) = \sum_n \alpha_{bn}\, \mu_{y_n b}\, e^{-\|x_n - x\|^2 / s} + \beta_b,
              \qquad 0 \le \alpha_{bn} \le C.

    This is \*SHL without learning codewords and kernels: the comparison that shows what learning them adds.

    Parameters
    ----------
    n_bits : int, default=32
    codebook : {"separated", "random"} or array of shape (n_classes, n_bits), default="separated"
        Codewords far apart, distinct random ones, or given signs in the order of the sorted classes.
    C : float, default=10.0
    sigma : float or "mean", default="mean"
        :math:`s = 2\sigma^2`; "mean" is half the root mean squared distance between rows.
    decoding : {"hamming", "hinge"}, default="hamming"
        How ``predict`` finds the nearest codeword: by differing bits, or by
        :math:`\sum_b [1 - \mu_{gb} f_b(x)]_+`.
    tol : float, default=1e-3
        Tolerance of the SVM solver (LIBSVM).
    n_jobs : int or None, default=None
        Threads; bits are independent, so codes do not depend on it.
    random_state : int, RandomState or None, default=None
        Draws the codewords.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    codewords_ : array of shape (n_classes, n_bits)
    support_vectors_ : array of shape (n_support, n_features)
        Rows that support some bit.
    dual_coef_ : array of shape (n_bits, n_support)
    intercept_ : array of shape (n_bits,)
    scale_ : float, s above

    Notes
    -----
    The kernel of all training rows is held in memory: 0.8 GB at 10,000 rows. Bits that split the classes
    alike, up to sign, share one SVM.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from starshl.baselines import CodewordSVM
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = CodewordSVM(8, random_state=0).fit(X[:500], y[:500])
    >>> bool((hasher.predict(X[500:]) == y[500:]).mean() > 0.9)
    True
    """

    def __init__(
        self,
        n_bits=32,
        *,
        codebook="separated",
        C=10.0,
        sigma="mean",
        decoding="hamming",
        tol=1e-3,
        n_jobs=None,
        random_state=None,
    ):
        self.n_bits = n_bits
        self.codebook = codebook
        self.C = C
        self.sigma = sigma
        self.decoding = decoding
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X, y=None) -> CodewordSVM:
        """Train the SVMs; y is one class a row."""
        n_bits = check_integer(self.n_bits, "n_bits", low=1)
        check_number(self.C, "C", low=0, strict=True)
        check_number(self.tol, "tol", low=0, strict=True)
        check_choice(self.decoding, "decoding", ("hamming", "hinge"))
        X = check_rows(self, X, fitting=True)
        labels = require_labels(self, y, len(X), n_classes=2)
        self.classes_ = labels.classes
        self.codewords_ = self._make_codewords(len(labels.classes), n_bits)
        if self.sigma == "mean":
            self.scale_ = mean_squared_distance(X, X) / 2
        else:
            self.scale_ = 2 * check_number(self.sigma, "sigma", low=0, strict=True) ** 2
        kernel = gaussian_features(X, X, self.scale_).astype(np.float64)
        # Bits that split the classes alike need one SVM; the first codeword decides the sign.
        splits, first, which = np.unique(
            self.codewords_ * self.codewords_[:1], axis=1, return_index=True, return_inverse=True
        )
        tasks = [lambda split=split: self._separate(kernel, split[labels.index]) for split in splits.T]
        coefficients, intercepts = zip(*run_all(tasks, self.n_jobs), strict=True)
        signs = self.codewords_[0].astype(np.float64)
        dual = np.array(coefficients)[which] * signs[:, None]
        support = np.flatnonzero(dual.any(axis=0))
        self.support_vectors_ = X[support]
        self.dual_coef_ = dual[:, support].astype(X.dtype)
        self.intercept_ = (np.array(intercepts)[which] * signs).astype(X.dtype)
        return self
