"""StarSHL: hash functions learned via codewords, with all labels, some labels or none."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import fields
from types import MappingProxyType
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_random_state

from ..._common.labels import LabelsLike, check_labels
from ..._common.validation import SamplesLike, Seed
from ...codes.binary import BinaryCodes
from ...codes.codebook import CodewordsLike
from ...learning.graphs.neighbor_graph import NeighborGraph
from ...learning.kernels.choice import KernelsLike, is_precomputed
from ...learning.kernels.views import ViewsLike
from ...learning.solvers.objective import hinge_distances
from ...learning.solvers.problem import Solution
from ..base import all_or_nothing
from ..facts import Facts
from .bound import GeneralizationBound, generalization_bound
from .compression import Compressed, compress_expansion
from .kernel_hasher import KernelHasher, nearest_classes, with_given_labels
from .novelty import learn_novelty, without_novelty
from .samples import Samples, sample_type
from .star_training import (
    PAPER_SETTINGS,
    TrainingSet,
    TrainingSettings,
    choose_start,
    consult_graph,
    descend,
    describe_choice,
    fit_bank,
    warn_about,
)
from .storage import check_star_shl


class StarSHL(KernelHasher):
    """Learn a B-bit code for every sample and a B-bit codeword for every class (*SHL).

    Bit b is the sign of a kernel SVM whose kernel is a learned mixture. Training alternates between SVMs, kernel
    weights (closed form) and codewords, and never raises the objective [1]_. The labels decide the mode: if all rows
    have one, it is supervised; if some do, semi-supervised (or transductive, if you want labels for the others:
    ``transduction_``); if none do, unsupervised with ``n_codewords`` clusters. Unlabeled rows get their class from the
    graph of their neighbors. To mark them, use -1 among numbers, NaN, None or empty text.

    Parameters
    ----------
    n_bits : int, default=32
        Length of the codes.
    kernels : {"scaled", "paper", "graph", "precomputed"} or list, default="scaled"
        "scaled": normalized linear and polynomial, and Gaussians of 0.35, 0.5, 0.7 and 1 median distances between
        training rows; "paper": the eleven kernels of the paper, whose bandwidths are absolute; "graph": one Gaussian
        bent along the neighbor graph of all rows, useful if ``unlabeled`` is "nearest"; a list of kernel objects of
        :mod:`starshl.learning.kernels` or functions of two samples of any type; "precomputed": X holds kernel values,
        (n, n_train) or (n_kernels, n, n_train).
    views : mapping from names to columns, default=None
        Kinds of features that X holds side by side, for example ``{"pixels": slice(0, 784), "hog": slice(784, 2404)}``;
        columns are slices, lists of numbers, or names if X is a table. Every view gets its own kernels, scaled to its
        own distances, and ``view_weights_`` says how much each one counts. None is one view of all columns.
    C : float, default=10.0
        How much the hinge losses count compared with the norms.
    kernel_norm : float, default=2.0
        The p of the kernel weights' p-norm, at least 1; large p gives equal weights, p near 1 sparse ones.
    codewords : {"separated", "random"}, array of shape (n_codewords, n_bits) or Codebook, default="separated"
        Codewords to start from: far apart, random, or given in the order of the sorted classes. Those of a
        :class:`starshl.Codebook` never change, and not every class of it needs rows.
    n_codewords : int, default=None
        Number of clusters if no row has a label; None lets the fit suggest one. With labels, it is the number of
        classes, and you may leave it out.
    kernel_weights : None, "random" or array of shape (n_bits, n_kernels), default=None
        Kernel weights to start from: equal, random (summing to one), or given. With more than 1,500 rows, all labeled,
        bits after the first start from what the first one learned on a sample; the SVMs then use all rows.
    update_codewords : bool, default=True
        Let training change the codewords.
    codeword_constraint : {"distinct", "nonconstant", "none"}, default="distinct"
        What an update must keep: codewords pairwise distinct and no bit equal in all of them, only the
        latter, or nothing (the paper; codewords may then collapse).
    keep_clusters : bool, default=True
        Never let the last row of a codeword move away. False is as in the paper: clusters may become empty.
    unlabeled : {"graph", "nearest"}, default="graph"
        Where unlabeled rows belong. "graph": they get spread labels (:func:`starshl.spread_labels`), which count as far
        as these are sure; without any label, rows belong to clusters of the graph.
        "nearest" is as in the paper: rows join the nearest codeword, by functions learned from the labeled rows, and
        may move in every sweep; without any label, they start from k-means.
    unlabeled_weight : float, default=1.0
        Weight of an unlabeled row's loss, times the trust in its spread label; 0 leaves unlabeled rows to kernels that
        learn from them.
    solver : {"auto", "smo", "libsvm"}, default="auto"
        "auto" and "smo" are the solver of this package, "libsvm" is scikit-learn's, much slower.
    max_iter : int, default=20
        Largest number of sweeps over the bits.
    tol : float, default=1e-3
        Stop after a sweep in which no codeword and no assignment changed and no kernel weight moved by more.
    svm_tol : float, default=1e-3
        Largest KKT violation of a bit's SVM, at least 1e-8. If this or ``tol`` is below 1e-4, kernels on float32 rows
        are computed in float64.
    n_jobs : int, default=None
        Number of threads; None means one, -1 means all. Results do not depend on it.
    max_memory : float, default=None
        GiB that kernels may take during a fit; None is three quarters of what is free. Distances between training
        rows are stored if they fit, and otherwise computed whenever they are needed, which takes longer.
    random_state : int, RandomState or None, default=None
        Seeds random codewords and kernel weights, the choice among equally good separated codewords, and
        k-means.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    classes_ : array of shape (n_codewords,)
    codewords_ : array of shape (n_codewords, n_bits), int8
    codebook_ : Codebook, which class has which codeword
    space_id_ : str, the identity of the space of the codes
    kernel_weights_ : array of shape (n_bits, n_kernels)
    view_weights_ : the share of each view in the sum of the kernel weights, by its name
    dual_coef_ : array of shape (n_bits, n_train)
    intercept_ : array of shape (n_bits,)
    kernels_ : list of fitted kernels
    support_ : indices of the training rows with a coefficient that is not zero
    support_samples_ : these rows
    norms_ : array of shape (n_bits,), the norm of each hash function
    violations_ : array of shape (n_bits,), the KKT violation of each SVM over all training rows
    objective_history_ : J after sweep 0, after each sweep and after the last SVM pass; never rises
    surrogate_history_ : the hinge part of J (paper Eq. 2) at the same points
    distortion_history_ : the Hamming distortion (paper Eq. 1) at the same points
    n_iter_ : number of sweeps after sweep 0
    transduction_ : label of every training row; given labels are kept, others are what the other rows suggest
    assignments_ : codeword index of every training row
    training_codes_ : codes of the training rows as items of a database
    choice_ : one line that says what the fit chose for unlabeled rows, and why
    n_reassigned_ : how often an unlabeled row changed its codeword after its first assignment
    n_flipped_ : how many codeword bits training changed
    n_relaxed_ : how often a codeword constraint was dropped for a bit, because its column violated it already
    n_constant_bits_ : bits whose training labels are all equal
    agreement_ : share of code bits that :meth:`compress` did not change; only after it

    References
    ----------
    .. [1] Y. Huang, M. Georgiopoulos, G. C. Anagnostopoulos: Hash Function Learning via Codewords.
       ECML/PKDD 2015.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from starshl import StarSHL
    >>> X, y = load_digits(return_X_y=True)
    >>> y_few = y.copy()
    >>> y_few[100:] = -1  # keep the first hundred labels
    >>> hasher = StarSHL(16, random_state=0).fit(X[:600], y_few[:600])
    >>> hasher.encode(X[600:]).nbytes  # two bytes per image
    2394
    >>> hasher.score(X[600:], y[600:]) > 0.8
    True
    """

    facts = Facts(
        paper="Huang, Georgiopoulos, Anagnostopoulos: Hash Function Learning via Codewords",
        year=2015,
        labels="optional",
        cost="sweeps x n_bits x SVM(n)",
        samples="vectors, kernels on any samples, or precomputed kernels",
        sparse=True,
    )

    presets = MappingProxyType({"paper": PAPER_SETTINGS})
    _check_state = staticmethod(check_star_shl)

    def __init__(
        self,
        n_bits: int = 32,
        *,
        kernels: KernelsLike = "scaled",
        views: ViewsLike | None = None,
        C: float = 10.0,
        kernel_norm: float = 2.0,
        codewords: CodewordsLike = "separated",
        n_codewords: int | None = None,
        kernel_weights: Literal["random"] | ArrayLike | None = None,
        update_codewords: bool = True,
        codeword_constraint: Literal["distinct", "nonconstant", "none"] = "distinct",
        keep_clusters: bool = True,
        unlabeled: Literal["graph", "nearest"] = "graph",
        unlabeled_weight: float = 1.0,
        solver: Literal["auto", "smo", "libsvm"] = "auto",
        max_iter: int = 20,
        tol: float = 1e-3,
        svm_tol: float = 1e-3,
        n_jobs: int | None = None,
        max_memory: float | None = None,
        random_state: Seed = None,
        verbose: int = 0,
    ):
        self.n_bits = n_bits
        self.kernels = kernels
        self.views = views
        self.C = C
        self.kernel_norm = kernel_norm
        self.codewords = codewords
        self.n_codewords = n_codewords
        self.kernel_weights = kernel_weights
        self.update_codewords = update_codewords
        self.codeword_constraint = codeword_constraint
        self.keep_clusters = keep_clusters
        self.unlabeled = unlabeled
        self.unlabeled_weight = unlabeled_weight
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.svm_tol = svm_tol
        self.n_jobs = n_jobs
        self.max_memory = max_memory
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def paper(cls, n_bits: int = 32, **overrides: Any) -> Self:
        """Return a hasher with the settings of the paper's experiments.

        The authors' published program differs from the paper: it flips a codeword bit if all classes agree in it,
        chooses codewords by wrong signs instead of hinge losses, and sets no limit to the number of sweeps.
        """
        return cls(n_bits, **(PAPER_SETTINGS | overrides))

    @all_or_nothing
    def fit(
        self,
        X: SamplesLike,
        y: LabelsLike = None,
        sample_weight: ArrayLike | None = None,
        initial_assignments: ArrayLike | None = None,
        graph: NeighborGraph | None = None,
    ) -> Self:
        """Learn codewords and hash functions.

        Parameters
        ----------
        X : array or CSR array of shape (n, n_features), list of samples, or kernel values (see ``kernels``)
            Sparse rows, such as TF-IDF, stay sparse; linear, polynomial and Gaussian kernels take them.
        y : array of shape (n,), default=None
            Labels; unlabeled rows are marked as described above.
        sample_weight : array of shape (n,), default=None
            A row of weight 2 counts as two equal rows; a row of weight 0 is not used. The neighbor graph has every row
            of positive weight once.
        initial_assignments : array of shape (n,), default=None
            Codeword index that each unlabeled row starts from; entries of labeled rows are ignored. Rows then move to
            their nearest codeword. None is the choice of ``unlabeled``.
        graph : NeighborGraph, default=None
            The graph of all rows of X, if you have it; otherwise it is computed where it is needed.
        """
        settings = self._settings()
        kernels = self._kernels_to_fit()
        samples = sample_type(kernels, X).read(self, X, fitting=True)
        kernels = self._kernels_of_views(kernels)
        training = TrainingSet.read(settings, samples, y, sample_weight, initial_assignments)
        rng = check_random_state(self.random_state)
        fitted_kernels, bank = fit_bank(settings, kernels, training)
        training = consult_graph(settings, training, bank, graph, rng)
        start = choose_start(settings, training, bank, rng)
        solution = descend(settings, training, bank, start)

        self.sample_kind_ = samples.kind
        self.kernels_ = fitted_kernels
        self.classes_ = training.classes
        self._store(solution, training.rows, len(samples))
        self.codeword_counts_ = np.bincount(solution.assignments, training.cost, minlength=len(training.classes))
        self.support_samples_ = samples.support_samples(self.support_)
        self._label_training_rows(samples, training, solution)
        self.codebook_ = self._codebook(self.codewords, is_named=bool(training.labels.labeled.any()))
        self.choice_ = describe_choice(training, self._store_views())
        novelty = learn_novelty(self.expansion, samples, training.rows, self.assignments_, len(self.classes_))
        self._store_novelty(novelty.rule, novelty)
        warn_about(settings, solution)
        return self

    def score(self, X: SamplesLike, y: LabelsLike = None) -> float:
        """Return the accuracy over labeled rows or, without labels, minus the mean hinge distance to a codeword."""
        scores = self.decision_function(X)
        labels = check_labels(y, len(scores))
        if not labels.labeled.any():
            return -float(hinge_distances(scores, self.codewords_).min(axis=1).mean())
        given = labels.classes[labels.index[labels.labeled]]
        predicted = self.classes_[self._classes_of_scores(scores[labels.labeled])]
        return float(np.mean(predicted == given))

    @property
    def training_codes_(self) -> BinaryCodes:
        """Codes of the training rows as items: the codeword of the label, or the code that the other rows suggest."""
        self._require_fit()
        return BinaryCodes(self.training_packed_, self.n_bits_, self.space_id_)

    def generalization_bound(
        self, X: SamplesLike, y: LabelsLike, rho: float = 1.0, delta: float = 0.05
    ) -> GeneralizationBound:
        """Return every term of Theorem 1 of the paper on labeled rows, its value and a conservative one.

        See :class:`starshl.hashers.GeneralizationBound` for the terms and for the gaps of the theorem.
        """
        return generalization_bound(self, X, y, rho=rho, delta=delta)

    def compress(self, n_support: int | None = None, X: SamplesLike | None = None, random_state: Seed = 0) -> Self:
        """Return a fitted hasher that encodes faster, because it has fewer support rows; this one stays as it is.

        Rows of numbers are replaced by new rows under one Gaussian kernel. Gradient descent places them so that the
        squared error against the scores of this hasher, cut to [-1, 1], is small. Other samples, and rows with kernels
        given as functions, cannot move: the best of the support rows are kept, and the kernels stay. Classes and
        codewords are kept; the codes change, so encode a database again.

        Parameters
        ----------
        n_support : int, default=None
            Number of support rows, fewer than there are; None is a tenth. Encoding time is nearly proportional to it.
        X : rows or list of samples, default=None
            More samples, without labels, on which the new scores should match those of this hasher, in addition to its
            support rows. Give some if support rows are few.
        random_state : int, RandomState or None, default=0
            Seeds the rows that the descent starts from, and the order in which it sees them.

        Returns
        -------
        hasher : StarSHL
            With the parameters of this one. ``dual_coef_``, ``support_``, ``assignments_`` and ``transduction_`` are
            about its own support rows, ``norms_`` about its own functions; histories are those of the fit.
            ``agreement_`` estimates the share of code bits that stay the same: a second compression does not see a
            fifth of the rows, and bits are compared on these. On rows unlike the training rows, fewer bits agree.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from starshl import StarSHL
        >>> X, y = load_digits(return_X_y=True)
        >>> hasher = StarSHL(16, random_state=0).fit(X[:900], y[:900])
        >>> small = hasher.compress(80)
        >>> len(hasher.support_) > 400, len(small.support_)
        (True, 80)
        >>> hasher.score(X[900:], y[900:]) - small.score(X[900:], y[900:]) < 0.02
        True
        """
        self._require_fit()
        further = None if X is None else self._read(X)
        return self._with_expansion(compress_expansion(self.expansion, n_support, further, random_state))

    @property
    def holds_clusters(self) -> bool:
        """Whether the fit had no labels, so that the codewords were given to clusters."""
        return self.codebook_.fit_digest is not None

    def fit_tasks(self, n_rows: int, y: LabelsLike) -> Literal["bits"] | None:
        """Return "bits", unless only the kernel matrix is known."""
        return None if is_precomputed(self.kernels) else "bits"

    def _settings(self) -> TrainingSettings:
        return TrainingSettings(**{each.name: getattr(self, each.name) for each in fields(TrainingSettings)})

    def _with_expansion(self, compressed: Compressed) -> Self:
        """Return a hasher of the same settings and codewords, whose training rows are its support rows."""
        small: Self = clone(self)
        expansion = compressed.expansion
        learned = compressed.learned()
        state = without_novelty(self._learned_state())
        others = {name: value for name, value in state.items() if name not in learned}
        for name, value in (deepcopy(others) | learned).items():
            setattr(small, name, value)
        scores = expansion.scores(expansion.samples_of(expansion.support_samples))
        small.assignments_ = hinge_distances(scores, self.codewords_).argmin(axis=1)
        small.training_packed_ = BinaryCodes.from_scores(scores).packed
        small.transduction_ = self.classes_[self._classes_of_scores(scores)].astype(self.transduction_.dtype)
        return small

    def _store(self, solution: Solution, rows: np.ndarray, n_rows: int) -> None:
        """Set what a descent over some of the ``n_rows`` training rows has found."""
        dual_coef = np.zeros((len(solution.coefficients), n_rows))
        dual_coef[:, rows] = solution.coefficients
        self.codewords_ = solution.codewords
        self.kernel_weights_ = solution.weights
        self.dual_coef_ = dual_coef
        self.intercept_ = solution.intercept
        self.norms_ = np.sqrt(2.0 * solution.penalty)
        self.violations_ = solution.violation
        self.support_ = np.flatnonzero(np.any(dual_coef, axis=0))
        self.objective_history_ = solution.objective
        self.surrogate_history_ = solution.surrogate
        self.distortion_history_ = solution.distortion
        self.n_iter_ = solution.n_iter
        self.n_reassigned_ = solution.n_moved
        self.n_flipped_ = solution.n_flipped
        self.n_relaxed_ = solution.n_dropped
        self.n_constant_bits_ = int(solution.is_constant.sum())

    def _label_training_rows(self, samples: Samples, training: TrainingSet, solution: Solution) -> None:
        """Set ``assignments_``, ``transduction_`` and codes for all rows, also those of weight zero."""
        n_rows, rows, labels = len(samples), training.rows, training.all_labels
        scores = np.empty((n_rows, self.n_bits))
        scores[rows] = solution.scores
        self.assignments_ = np.empty(n_rows, dtype=np.int64)
        self.assignments_[rows] = solution.assignments
        left_out = np.setdiff1d(np.arange(n_rows), rows)
        if len(left_out):
            scores[left_out] = self.expansion.scores(samples.queries(left_out))
            self.assignments_[left_out] = hinge_distances(scores[left_out], self.codewords_).argmin(axis=1)
        index = self._classes_of_scores(scores)
        if training.guess is not None:  # codes of the rows themselves would be memorized
            index[rows] = training.guess.index
            scores[rows] = training.guess.bit_scores(self.codewords_)
        own = labels.positions_in(self.classes_)
        scores[own >= 0] = self.codewords_[own[own >= 0]]
        self.training_packed_ = BinaryCodes.from_scores(scores).packed
        self.transduction_ = with_given_labels(self.classes_[index], labels)

    def _scores(self, X: SamplesLike) -> np.ndarray:
        """Return f_b(x), whose sign is bit b."""
        return self.expansion.scores(self._read(X))

    def _predicted_index(self, X: SamplesLike) -> np.ndarray:
        """Return the class of the nearest codeword: by Hamming distance, ties by hinge distance, then index."""
        return self._classes_of_scores(self.decision_function(X))

    def _kernel_diagonals(self, X: SamplesLike) -> np.ndarray:
        """Return k_m(x, x) for all kernels and rows, shape (n_kernels, n)."""
        return self._read(X).diagonals(self.kernels_)

    def _classes_of_scores(self, scores: np.ndarray) -> np.ndarray:
        return nearest_classes(scores, self.codewords_, self.codeword_counts_)
