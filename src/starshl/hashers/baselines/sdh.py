"""Supervised discrete hashing (Shen et al. 2015) and its fast relatives."""

from __future__ import annotations

from typing import Literal

import numpy as np
from sklearn.utils.validation import check_random_state

from ..._common.labels import LabelsLike
from ..._common.result_cache import cached
from ..._common.threads import single_threaded_blas
from ..._common.validation import SamplesLike, Seed, check_choice, check_integer, check_number, check_rows
from ...codes.binary import signs_of
from ...codes.codebook import Codebook
from ...codes.codewords import random_codewords, separated_codewords
from ...learning.kernels.anchors import choose_anchors, gaussian_expansion, gaussian_features, gaussian_scale
from ...learning.solvers.ridge import FeatureRidge, KernelRidge, ridge_solve, share_of_diagonal
from ..base import BaseHasher, all_or_nothing
from ..facts import Facts, Variant
from ..supervision import require_labels

_FEATURE_REGULARIZATION = 1e-4  # share of the mean diagonal: keeps the system solvable, and shrinks little
_KERNEL_REGULARIZATION = 1e-2  # larger, because a kernel matrix can memorize its rows


class SDH(BaseHasher):
    r"""Learn codes of the training rows from their classes, and kernel ridge regression onto these codes.

    With one-hot classes Y, codes H and kernel features :math:`\Phi`, where
    :math:`\phi_a(x) = \exp(-\|x - a\|^2 / 2\sigma^2)` for anchors a plus a constant feature:

    ``variant="sdh"`` (Shen, Shen, Liu and Shen 2015) classifies linearly from the codes,

    .. math:: \min_{H, W, P}\ \|Y - H W\|^2 + \lambda \|W\|^2
              + \nu \left( \|H - \Phi P\|^2 + \rho \|P\|^2 \right),

    H by discrete cyclic coordinate descent, one column at a time, from random signs.

    ``variant="fsdh"`` (Gui, Liu, Sun, Tao and Tan 2018) regresses codes on classes instead,
    :math:`\|H - Y W\|^2 + \lambda\|W\|^2 + \nu(\dots)`, so that the code step has the closed form
    :math:`H = \mathrm{sign}(Y W + \nu \Phi P)`. It starts from distinct random codewords, one per class: the
    majority signs of a random start are such codewords too, but may coincide.

    ``variant="hadamard"`` (after Koutaki, Shirai and Ambai 2018) fixes H: one codeword per class, columns
    and rows of a Hadamard matrix chosen to lie far apart, so nothing is left but one ridge regression.
    Any comparison of supervised codes should include it.

    All steps are exact minimizers, so the objective never rises. Codes of new rows and of training rows
    alike are the signs of :math:`\Phi P`; the learned H is not kept, because a database of learned codes
    would compare rows by two different functions.

    Parameters
    ----------
    n_bits : int, default=32
    variant : {"sdh", "fsdh", "hadamard"}, default="sdh"
    codewords : "separated" or Codebook, default="separated"
        Codewords far apart, or given ones; "hadamard" only. Not every class of a :class:`starshl.Codebook` needs rows.
    n_anchors : int or None, default=1000
        Random training rows to measure from. None takes all rows and regularizes
        :math:`\rho\,\mathrm{tr}(P^\top K P)`, kernel ridge regression proper: more accurate, O(n^3) to fit.
    sigma : float, "rms" or "half_rms", default="half_rms"
        Width of the Gaussian; "rms" is the root mean squared distance to the anchors. The authors' 0.4 is meant for
        rows of unit length.
    class_penalty : float, default=1.0
        :math:`\lambda`; not used by "hadamard".
    code_penalty : float, default=1e-5
        :math:`\nu`; not used by "hadamard".
    regularization : float or None, default=None
        :math:`\rho` as a share of the mean diagonal of the matrix it is added to, :math:`\Phi^\top\Phi` (without the
        constant feature) or, with all rows as anchors, the kernel. None is 1e-4, with all rows 1e-2.
    max_iter : int, default=5
        Iterations over all blocks.
    max_inner_iter : int, default=10
        Most sweeps over the columns of H per iteration, "sdh" only; they end when no sign changes.
    n_jobs : int, default=None
        Number of threads; None means one, -1 means all. Codes do not depend on it.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    anchors_ : array of shape (n_anchors, n_features)
    coefficients_ : array of shape (n_bits, n_anchors)
    intercept_ : array of shape (n_bits,)
    scale_ : float, :math:`2\sigma^2`
    classes_ : array of shape (n_classes,)
    codewords_ : array of shape (n_classes, n_bits), "hadamard" only
    codebook_ : Codebook, which class has which codeword, "hadamard" only
    objective_history_ : array, the objective after every block
    n_iter_ : int, iterations made

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from starshl.hashers.baselines import SDH
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = SDH(16, variant="hadamard", random_state=0).fit(X, y)
    >>> bool((hasher.transform(X) == hasher.codewords_[y]).mean() > 0.99)
    True
    """

    facts = Facts(
        paper="Shen, Shen, Liu, Shen: Supervised Discrete Hashing",
        year=2015,
        labels="required",
        cost="n x anchors^2 + anchors^3",
        samples="vectors and labels",
    )
    variants = (
        Variant(
            "FSDH",
            {"variant": "fsdh"},
            {"paper": "Gui, Liu, Sun, Tao, Tan: Fast Supervised Discrete Hashing", "year": 2018},
        ),
        Variant(
            "HC-SDH",
            {"variant": "hadamard"},
            {"paper": "Koutaki, Shirai, Ambai: Hadamard Coding for Supervised Discrete Hashing", "year": 2018},
        ),
    )

    def __init__(
        self,
        n_bits: int = 32,
        *,
        variant: Literal["sdh", "fsdh", "hadamard"] = "sdh",
        codewords: Literal["separated"] | Codebook = "separated",
        n_anchors: int | None = 1000,
        sigma: float | Literal["rms", "half_rms"] = "half_rms",
        class_penalty: float = 1.0,
        code_penalty: float = 1e-5,
        regularization: float | None = None,
        max_iter: int = 5,
        max_inner_iter: int = 10,
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        self.n_bits = n_bits
        self.variant = variant
        self.codewords = codewords
        self.n_anchors = n_anchors
        self.sigma = sigma
        self.class_penalty = class_penalty
        self.code_penalty = code_penalty
        self.regularization = regularization
        self.max_iter = max_iter
        self.max_inner_iter = max_inner_iter
        self.n_jobs = n_jobs
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: SamplesLike, y: LabelsLike = None) -> SDH:
        """Learn codes and the regression onto them; y holds one class per row."""
        n_bits = check_integer(self.n_bits, "n_bits", low=1)
        check_choice(self.variant, "variant", ("sdh", "fsdh", "hadamard"))
        if self.regularization is not None:
            check_number(self.regularization, "regularization", low=0, strict=True)
        check_number(self.class_penalty, "class_penalty", low=0, strict=True)
        check_number(self.code_penalty, "code_penalty", low=0, strict=True)
        check_integer(self.max_iter, "max_iter", low=1)
        check_integer(self.max_inner_iter, "max_inner_iter", low=1)
        X = check_rows(self, X, fitting=True)
        labels = require_labels(self, y, len(X), n_classes=2)
        rng = check_random_state(self.random_state)
        self.classes_ = labels.classes
        self._check_codewords(n_bits)
        regression = self._prepare_regression(X, rng)
        n_classes = len(labels.classes)
        if self.variant == "hadamard":
            self.codebook_ = self._make_codebook(n_bits, rng)
            self.codewords_ = self.codebook_.words_for(self.classes_, n_bits)
            codes = self.codewords_[labels.index].astype(np.float64)
            solution = regression.solve(codes)
            history = [regression.loss(codes, solution)]
        else:
            solution, history = self._alternate(regression, labels.index, n_classes, n_bits, rng)
        self.coefficients_, self.intercept_ = (part.astype(X.dtype) for part in regression.split(solution))
        self.objective_history_ = np.array(history)
        self.n_iter_ = 1 if self.variant == "hadamard" else self.max_iter
        return self

    def _check_codewords(self, n_bits: int) -> None:
        """Refuse codewords that cannot be used, before the fit spends any time."""
        if not isinstance(self.codewords, Codebook):
            check_choice(self.codewords, "codewords", ("separated",))
        elif self.variant != "hadamard":
            raise ValueError(
                f"codewords is a Codebook, and variant={self.variant!r} learns its own codes. Set variant='hadamard'."
            )
        else:
            self.codewords.words_for(self.classes_, n_bits)

    def _make_codebook(self, n_bits: int, rng: np.random.RandomState) -> Codebook:
        if isinstance(self.codewords, Codebook):
            return self.codewords
        return Codebook(separated_codewords(len(self.classes_), n_bits, rng), self.classes_)

    def _prepare_regression(self, X: np.ndarray, rng: np.random.RandomState) -> FeatureRidge | KernelRidge:
        self.anchors_ = X.copy() if self.n_anchors is None else choose_anchors(X, "random", self.n_anchors, rng)
        self.scale_ = gaussian_scale(self.sigma, X, self.anchors_)
        features = gaussian_features(X, self.anchors_, self.scale_).astype(np.float64)
        if self.n_anchors is None:
            share = _KERNEL_REGULARIZATION if self.regularization is None else self.regularization
            ridge = share_of_diagonal(share, np.diag(features))
            return cached("kernel ridge", (features, ridge), lambda: KernelRidge(features, ridge), KernelRidge.size_of)
        share = _FEATURE_REGULARIZATION if self.regularization is None else self.regularization
        return FeatureRidge(features, share_of_diagonal(share, np.sum(features**2, axis=0)))

    def _alternate(
        self,
        regression: FeatureRidge | KernelRidge,
        classes: np.ndarray,
        n_classes: int,
        n_bits: int,
        rng: np.random.RandomState,
    ) -> tuple[np.ndarray, list[float]]:
        """Minimize over W, codes and regression in turn; return the regression and the history."""
        coupling = ClassesFromCodes(self.max_inner_iter) if self.variant == "sdh" else CodesFromClasses()
        Y = np.eye(n_classes)[classes]
        H = coupling.start(classes, n_classes, n_bits, rng)
        P = regression.solve(H)
        history: list[float] = []

        def record(W: np.ndarray) -> None:
            penalty = self.class_penalty * float(np.sum(W**2))
            history.append(coupling.loss(Y, H, W) + penalty + self.code_penalty * regression.loss(H, P))

        for _ in range(self.max_iter):
            W = coupling.solve(Y, H, self.class_penalty)
            record(W)
            H = coupling.best_codes(Y, H, W, self.code_penalty * regression.predict(P))
            record(W)
            P = regression.solve(H)
            record(W)
        return P, history

    def _scores(self, X: SamplesLike) -> np.ndarray:
        """Return the regression onto codes, shape (n_samples, n_bits)."""
        X = check_rows(self, X, fitting=False)
        return gaussian_expansion(X, self.anchors_, self.scale_, self.coefficients_, self.intercept_)


class ClassesFromCodes:
    r"""SDH: :math:`\|Y - H W\|^2`, classes predicted linearly from codes."""

    def __init__(self, max_iter: int) -> None:
        self.max_iter = max_iter

    def start(self, classes: np.ndarray, n_classes: int, n_bits: int, rng: np.random.RandomState) -> np.ndarray:
        return signs_of(rng.standard_normal((len(classes), n_bits))).astype(np.float64)

    def solve(self, Y: np.ndarray, H: np.ndarray, penalty: float) -> np.ndarray:
        return ridge_solve(H, Y, penalty)

    def loss(self, Y: np.ndarray, H: np.ndarray, W: np.ndarray) -> float:
        return float(np.sum((Y - H @ W) ** 2))

    def best_codes(self, Y: np.ndarray, H: np.ndarray, W: np.ndarray, pull: np.ndarray) -> np.ndarray:
        r"""Minimize :math:`\|Y - H W\|^2 - 2\,\mathrm{tr}(H^\top \mathrm{pull})` one column at a time.

        Column k is :math:`\mathrm{sign}(q_k - H_{-k} W_{-k} w_k)` with :math:`Q = Y W^\top + \mathrm{pull}`
        (Shen et al. 2015); an entry of zero keeps its sign, so the sweeps end.
        """
        H = H.copy()
        with single_threaded_blas():
            Q, interaction = Y @ W.T + pull, W @ W.T
            np.fill_diagonal(interaction, 0.0)
            for _ in range(self.max_iter):
                before = H.copy()
                for k in range(H.shape[1]):
                    argument = Q[:, k] - H @ interaction[:, k]
                    H[:, k] = np.where(argument == 0, H[:, k], signs_of(argument))
                if np.array_equal(H, before):
                    break
        return H


class CodesFromClasses:
    r"""FSDH: :math:`\|H - Y W\|^2`, codes predicted from classes."""

    def start(self, classes: np.ndarray, n_classes: int, n_bits: int, rng: np.random.RandomState) -> np.ndarray:
        return random_codewords(n_classes, n_bits, rng)[classes].astype(np.float64)

    def solve(self, Y: np.ndarray, H: np.ndarray, penalty: float) -> np.ndarray:
        return ridge_solve(Y, H, penalty)

    def loss(self, Y: np.ndarray, H: np.ndarray, W: np.ndarray) -> float:
        return float(np.sum((H - Y @ W) ** 2))

    def best_codes(self, Y: np.ndarray, H: np.ndarray, W: np.ndarray, pull: np.ndarray) -> np.ndarray:
        r"""Return :math:`\mathrm{sign}(Y W + \mathrm{pull})`, the exact minimizer."""
        with single_threaded_blas():
            return signs_of(Y @ W + pull).astype(np.float64)
