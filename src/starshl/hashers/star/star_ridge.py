"""StarRidge: codewords, a kernel mixture and squared loss; every length and codebook from one factorization."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_random_state

from ..._common.labels import Labels, LabelsLike, check_labels
from ..._common.threads import using_threads
from ..._common.validation import SamplesLike, Seed
from ...codes.binary import BinaryCodes
from ...codes.codebook import Codebook, CodewordsLike
from ...codes.hamming_words import HammingWords, spread_rows
from ...learning.graphs.label_spreading import FEWEST_TELLING, SpreadLabels
from ...learning.graphs.neighbor_graph import NeighborGraph
from ...learning.kernels.choice import KernelsLike, is_precomputed
from ...learning.kernels.views import ViewsLike
from ...learning.solvers.calibration import Calibration
from ..base import Capability, FitSummary, all_or_nothing
from ..facts import Facts
from ..supervision import TrainingRows
from ..word_hasher import WordHasher
from .compression import compress_expansion
from .kernel_hasher import KernelHasher, with_given_labels
from .landmarks import solve_by_landmarks
from .novelty import NoveltyTraining, without_novelty
from .ridge_targets import choose_targets, weighted_labels
from .ridge_training import (
    RidgeSettings,
    RidgeSolution,
    RidgeTrainingSet,
    Targets,
    calibrate,
    describe,
    discriminate,
    solve_exactly,
    without_own_label,
)
from .samples import Samples, read_training_samples
from .star_training import check_codebook
from .storage import check_star_ridge

_SEEDS = np.iinfo(np.int32).max
# The left-out rows from which the precision at 10 is estimated.
_N_NEAREST, _N_QUERIES, _N_ITEMS = 10, 500, 2000


class StarRidge(WordHasher, KernelHasher):
    r"""Learn class scores by kernel ridge regression, and turn them into codes of any length.

    Every class has a codeword :math:`\mu_g`, a row of signs. One kernel ridge regression onto the classes gives scores
    h(x); kernel weights and ridge minimize the leave-one-out log loss, and so do discriminant analysis and calibration,
    which turn h into the posterior p = softmax(T z). The code of an item is the word that keeps most of it, near the
    codewords of likely classes; see :class:`starshl.codes.HammingWords`. An item with a label gets its codeword. A
    query keeps its own posterior, and items are ordered by how likely they are of the same class,

    .. math:: P = \sum_g p_g(\mathrm{query})\, h_g(\mathrm{item}),

    h being what the word of the item stands for. Only the words know the length of the code, so :meth:`with_bits` gives
    other lengths at once. To mark a row as unlabeled, use -1 among numbers, NaN, None or empty text.

    Parameters
    ----------
    n_bits : int, default=32
        Length of the codes.
    kernels : {"rich", "scaled", "paper", "precomputed"} or list, default="rich"
        "rich": Gaussians of 0.35, 0.5, 0.7 and 1 median distances between training rows, a Cauchy kernel, and powers
        of the shifted cosine; "scaled" and "paper" as for :class:`starshl.StarSHL`; a list of kernel objects of
        :mod:`starshl.learning.kernels` or functions of two samples of any type; "precomputed": X holds kernel values,
        (n, n_train) or (n_kernels, n, n_train).
    views : mapping from names to columns, default=None
        Kinds of features that X holds side by side, for example ``{"pixels": slice(0, 784), "hog": slice(784, 2404)}``;
        columns are slices, lists of numbers, or names if X is a table. Every view gets its own kernels, scaled to its
        own distances, and ``view_weights_`` says how much each one counts. None is one view of all columns.
    codewords : {"separated", "random"}, array of shape (n_classes, n_bits) or Codebook, default="separated"
        Codewords far apart, random, or given in the order of the sorted classes. Not every class of a
        :class:`starshl.Codebook` needs rows: ``predict`` returns those that have some.
    n_codewords : int, default=None
        The number of clusters if no row has a label; None suggests one, and ``choice_`` says so.
    head : {"posterior", "linear"}, default="posterior"
        "linear" leaves out softmax and discriminant analysis: ridge regression onto codewords, whose codes are
        compared by Hamming distance.
    unlabeled : {"graph", "ignore"}, default="graph"
        "graph": they get spread labels (:func:`starshl.spread_labels`), which count as far as left-out labels show that
        the graph is right; "ignore".
    max_exact_rows : int, default=20000
        Largest number of rows whose kernel matrix is solved exactly: by a factorization or, from 10,000 rows on, by
        conjugate gradients, where leave-one-out scores are approximate. Above it, class scores come from kernels to
        landmarks, and rows may stay in a file. ``choice_`` says so. Precomputed kernels are always solved exactly.
    n_landmarks : int, default=None
        Number of landmarks above that; None is 3,000. More give better precision; time grows with the square.
    n_jobs : int, default=None
        Number of threads; None means one, -1 means all. Results do not depend on it.
    max_memory : float, default=None
        GiB that kernels may take during a fit; None is three quarters of what is free.
    random_state : int, RandomState or None, default=None
        Seeds the codewords and the choice of the rows from which kernel weights are learned.
    verbose : int, default=0
        1 shows a progress bar if there are landmarks.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    codewords_ : array of shape (n_classes, n_bits), int8
    codebook_ : Codebook, which class has which codeword
    space_id_ : str, the identity of the space of the codes
    kernels_ : list of fitted kernels
    kernel_weights_ : array of shape (n_kernels,), shared by all classes and bits; zero for kernels that were dropped
    view_weights_ : the share of each view in the sum of the kernel weights, by its name
    ridge_ : the ridge of a labeled row of weight one, for kernel weights that sum to one
    temperature_ : T above
    curvature_, class_shifts_ : how scores are bent and shifted before the softmax, so that probabilities are calibrated
    sharpness_ : how fast words of this length lose the probability of a class with the distance from its codeword
    dual_coef_ : array of shape (n_classes, n_train)
    intercept_ : array of shape (n_classes,)
    support_ : indices of the training rows that the fit used
    support_samples_ : these rows
    training_scores_ : array of shape (n_train, n_classes), class scores of the training rows, each without itself
    assignments_ : class index of every training row
    labeled_ : whether each training row came with a label, of a class that has a row of positive weight
    transduction_ : label of every training row; given labels are kept
    choice_ : one line that says what the fit chose and why
    codebook_seed_ : seed of the codewords
    agreement_ : share of code bits that :meth:`compress` did not change; only after it

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from starshl import StarRidge
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = StarRidge(32, random_state=0).fit(X[:900], y[:900])
    >>> hasher.score(X[900:], y[900:]) > 0.95
    True
    >>> hasher.with_bits(8).encode(X[900:]).nbytes  # one byte per image, no second fit
    897
    """

    facts = Facts(
        paper="this package: the squared-loss form of *SHL with a posterior head",
        year=2026,
        labels="optional",
        cost="n^3 / 3, for any number of bits",
        samples="vectors, kernels on any samples, or precomputed kernels",
        sparse=True,
        reads_blocks=True,
    )

    _check_state = staticmethod(check_star_ridge)

    def __init__(
        self,
        n_bits: int = 32,
        *,
        kernels: KernelsLike = "rich",
        views: ViewsLike | None = None,
        codewords: CodewordsLike = "separated",
        n_codewords: int | None = None,
        head: Literal["posterior", "linear"] = "posterior",
        unlabeled: Literal["graph", "ignore"] = "graph",
        max_exact_rows: int = 20_000,
        n_landmarks: int | None = None,
        n_jobs: int | None = None,
        max_memory: float | None = None,
        random_state: Seed = None,
        verbose: int = 0,
    ):
        self.n_bits = n_bits
        self.kernels = kernels
        self.views = views
        self.codewords = codewords
        self.n_codewords = n_codewords
        self.head = head
        self.unlabeled = unlabeled
        self.max_exact_rows = max_exact_rows
        self.n_landmarks = n_landmarks
        self.n_jobs = n_jobs
        self.max_memory = max_memory
        self.random_state = random_state
        self.verbose = verbose

    @property
    def supports(self) -> frozenset[Capability]:
        """What every hasher over a kernel mixture can do, and more, because there are class scores."""
        own: set[Capability] = {"predict_proba", "class_scores", "with_bits"}
        if vars(self).get("head_", self.head) == "posterior" and not ("labeled_" in vars(self) and self.holds_clusters):
            own.add("probability")
        keeps_rows = "agreement_" not in vars(self)  # a compressed one has others instead
        if keeps_rows and vars(self).get("sample_kind_", "vectors") in ("vectors", "sparse_vectors"):
            own.add("training_rows")
        return super().supports | own

    @all_or_nothing
    def fit(
        self,
        X: SamplesLike,
        y: LabelsLike = None,
        sample_weight: ArrayLike | None = None,
        graph: NeighborGraph | None = None,
        spread: SpreadLabels | None = None,
    ) -> Self:
        """Learn class scores and codewords.

        Parameters
        ----------
        X : array or CSR array of shape (n, n_features), list of samples, or kernel values (see ``kernels``)
            With more than ``max_exact_rows`` rows, a memory-mapped array or a :class:`starshl.data.tables.RowSource`
            is read block by block.
        y : array of shape (n,), default=None
            Labels; unlabeled rows are marked as described above. Without any label, clusters take the place of classes.
        sample_weight : array of shape (n,), default=None
            A row of weight w has 1 / w of the ridge and w of the loss; a row of weight 0 is not used. Unlike two equal
            rows, it is left out as a whole, and is in the neighbor graph once.
        graph : NeighborGraph, default=None
            The graph of the rows of X, for unlabeled rows, if you have it.
        spread : SpreadLabels, default=None
            What :func:`starshl.spread_labels` returned for X and y, if you have it, for example with shares of the
            classes.
        """
        settings = self._settings()
        kernels = self._kernels_to_fit()
        samples = read_training_samples(self, X, kernels, settings.max_exact_rows)
        kernels = self._kernels_of_views(kernels)
        labels, weights = weighted_labels(self, y, sample_weight, len(samples))
        check_codebook(self.codewords, labels, settings.n_bits)
        codebook_seed, search_seed = check_random_state(self.random_state).randint(_SEEDS, size=2).tolist()
        labels, targets = choose_targets(samples, kernels, labels, weights, settings, graph, spread, search_seed)
        n_classes = len(labels.classes)
        if settings.is_exact(len(targets.rows)):
            training = RidgeTrainingSet.take(samples, kernels, targets, n_classes)
            solution = solve_exactly(training, settings.memory_plan, search_seed)
        else:
            training, solution = solve_by_landmarks(samples, kernels, targets, n_classes, settings, search_seed)
        solution = discriminate(training, solution) if settings.head == "posterior" else solution
        calibration = calibrate(training, targets, solution)

        self.classes_ = labels.classes
        self.head_ = settings.head
        self.codebook_seed_ = codebook_seed
        self._store(samples, training, targets, solution)
        self._store_calibration(calibration)
        self._store_views()
        self.choice_ = describe(training, targets, solution, calibration)
        self._store_training_rows(samples, labels, targets, solution, calibration)
        self._learn_novelty(samples, targets, solution, search_seed)
        self.transduction_ = with_given_labels(self.classes_[self.assignments_], check_labels(y, len(samples)))
        self._set_codewords(settings.n_bits, self.codewords)
        return self

    @property
    def words(self) -> HammingWords | None:
        """What codes of items stand for; None with a linear head."""
        self._require_fit()
        return None if self.head_ == "linear" else super().words

    def predict_proba(self, X: SamplesLike) -> np.ndarray:
        """Return the probability of each class, shape (n, n_classes), in the order of ``classes_``."""
        return self._posteriors(self.class_scores(X))

    def training_proba(self, X: SamplesLike | None = None) -> np.ndarray:
        """Return the probability of each class for each training row, by a fit without that row."""
        self._require_fit()
        return self._posteriors(self.training_scores_.astype(np.float64))

    def class_scores(self, X: SamplesLike) -> np.ndarray:
        """Return the scores h of the classes, near 1 for the class of a sample, shape (n, n_classes)."""
        self._require_fit()
        with using_threads(self.n_jobs):
            scores = self._class_scores(X)
        if not np.isfinite(scores).all():
            raise ValueError(
                "Some class scores are not finite numbers: entries of X are too large. Rescale the features, for "
                "example with sklearn.preprocessing.StandardScaler."
            )
        return scores

    @property
    def training_codes_(self) -> BinaryCodes:
        """Codes of the training rows as items: codewords of labels, and leave-one-out codes where unlabeled."""
        self._require_fit()
        if self.words is None:
            scores = self._bits_of_scores(self.training_scores_)
            scores[self.labeled_] = self.codewords_[self.assignments_[self.labeled_]]
            return BinaryCodes.from_scores(scores, self.space_id_)
        return self._item_codes(self.training_proba(), np.where(self.labeled_, self.assignments_, -1))

    def training_rows(self) -> TrainingRows:
        """Return the rows of the fit that this hasher keeps: all of them, or its landmarks."""
        self.require("training_rows")
        label, kept = np.where(self.labeled_, self.assignments_, -1), self.support_
        return TrainingRows(self.support_samples_, label[kept], self.training_proba()[kept])

    def predict_training(self, X: SamplesLike) -> np.ndarray:
        """Return the class of each row of the fit, as the other rows predict it."""
        return self.classes_[self._left_out_index()]

    @property
    def holds_clusters(self) -> bool:
        """Whether the fit had no labels."""
        return not self.labeled_.any()

    @property
    def fit_summary(self) -> FitSummary:
        """What the fit found besides the hash functions, with its rows, its ridge and its temperature."""
        figures = {
            "training rows": f"{len(self.labeled_):,}, of which {int(self.labeled_.sum()):,} had a label",
            "ridge": f"{self.ridge_:.4g}",
            "temperature": f"{self.temperature_:.4g}",
        }
        knows = bool(self.labeled_.all()) or self.holds_clusters or len(self._telling_rows) >= FEWEST_TELLING
        return replace(super().fit_summary, figures=figures, knows_probabilities=knows)

    @property
    def _telling_rows(self) -> np.ndarray:
        """The labeled rows whose class has another one: without its label, the only row of a class is not found."""
        labeled = np.flatnonzero(self.labeled_)
        own = self.assignments_[labeled]
        return labeled[np.bincount(own)[own] > 1]

    def leave_one_out(self, *, precision: bool = True) -> dict[str, Any] | None:
        """Return the accuracy, and the precision of searches, of labeled training rows that are each left out.

        None if labels are too few to tell.
        """
        rows = self._telling_rows
        if not len(rows) or not self.fit_summary.knows_probabilities:
            return None
        posteriors, classes = self.training_proba()[rows], self.assignments_[rows]
        result: dict[str, Any] = {
            "how": f"leave-one-out: {len(rows):,} labeled training rows, each scored without itself",
            "accuracy": round(float(np.mean(posteriors.argmax(axis=1) == classes)), 4),
        }
        if precision and self.words is not None and len(rows) > _N_NEAREST:
            # In random order, so that items of equal codes are, too.
            few = np.random.RandomState(0).permutation(len(rows))[:_N_ITEMS]
            stored, asked = self.words.decode(self.words.encode(posteriors[few])), posteriors[few[:_N_QUERIES]]
            likely = asked @ stored.T
            np.fill_diagonal(likely, -1.0)  # a query is no item of its own list
            found = np.argsort(-likely, axis=1, kind="stable")[:, :_N_NEAREST]
            same = classes[few][found] == classes[few[:_N_QUERIES], None]
            result["precision_at_10"] = round(float(same.mean()), 4)
            result["how"] += f"; precision of {len(asked):,} of them among {len(few):,} as items without labels"
        return result

    def fit_tasks(self, n_rows: int, y: LabelsLike) -> Literal["blocks"] | None:
        """Return "blocks" if there are too many labeled rows to factorize a kernel matrix."""
        labeled = check_labels(y, n_rows).labeled
        if is_precomputed(self.kernels) or int(labeled.sum()) <= self.max_exact_rows:
            return None
        if self.unlabeled == "graph" and not labeled.all():
            raise ValueError(
                f"{int(np.sum(~labeled)):,} of {n_rows:,} rows have no label. Spreading labels needs the "
                "neighbor graph of all rows, which cannot be spread over a cluster. Set unlabeled='ignore', or give "
                "these rows labels."
            )
        return "blocks"

    def compress(
        self,
        n_support: int | None = None,
        X: SamplesLike | None = None,
        random_state: Seed = 0,
        *,
        codes_of: Callable[[np.ndarray], BinaryCodes] | None = None,
    ) -> Self:
        """Return a fitted hasher that encodes faster, because it has fewer support rows; this one stays as it is.

        The class scores are learned anew over fewer rows; see :meth:`starshl.StarSHL.compress` for how, and for the
        parameters. Classes, codewords, temperatures and everything about the training rows are kept. ``agreement_``
        estimates the share of code bits that stay the same, of the codes that ``codes_of`` makes of posteriors if these
        are used in another code.
        """
        self._require_fit()
        further = None if X is None else self._read(X)
        of_scores = self._codes_of_scores if codes_of is None else lambda scores: codes_of(self._posteriors(scores))
        compressed = compress_expansion(self.expansion, n_support, further, random_state, of_scores)
        small: Self = clone(self)
        learned = compressed.learned()
        del learned["norms_"]
        for name, value in (without_novelty(self._learned_state()) | learned).items():
            setattr(small, name, value)
        return small

    def _settings(self) -> RidgeSettings:
        return RidgeSettings(**{each.name: getattr(self, each.name) for each in fields(RidgeSettings)})

    def _store(self, samples: Samples, training: RidgeTrainingSet, targets: Targets, solution: RidgeSolution) -> None:
        self.sample_kind_ = samples.kind
        self.kernels_ = training.kernels
        self.kernel_weights_ = solution.mixture.weights
        self.ridge_ = solution.mixture.ridge
        self.support_ = targets.rows if solution.landmarks is None else targets.rows[solution.landmarks]
        self.support_samples_ = samples.support_samples(self.support_)
        self.dual_coef_ = np.zeros((len(solution.dual), len(samples)), dtype=solution.dual.dtype)
        self.dual_coef_[:, self.support_] = solution.dual
        self.intercept_ = solution.intercept

    def _store_calibration(self, calibration: Calibration) -> None:
        self.temperature_ = calibration.temperature
        self.curvature_ = calibration.curvature
        self.class_shifts_ = calibration.shifts

    def _store_training_rows(
        self, samples: Samples, labels: Labels, targets: Targets, solution: RidgeSolution, calibration: Calibration
    ) -> None:
        """Set what is about the training rows, also those that the fit left out."""
        scores = np.empty((len(samples), len(self.classes_)), dtype=np.float32)
        scores[targets.rows] = without_own_label(targets, solution, calibration, self.head_)
        if len(left_out := np.flatnonzero(targets.index < 0)):
            scores[left_out] = self.expansion.scores(samples.queries(left_out))
        self.training_scores_ = scores
        self.labeled_ = labels.labeled
        self.assignments_ = np.where(labels.labeled, labels.index, self._bend(scores).argmax(axis=1))

    def _learn_novelty(self, samples: Samples, targets: Targets, solution: RidgeSolution, seed: int) -> None:
        rows, mixture = targets.rows, solution.mixture
        training = NoveltyTraining(
            samples,
            rows,
            targets.index[rows],
            solution.scores,
            self.expansion,
            targets.index[self.support_],
            mixture.ridge,
            mixture.constant,
            solution.gram,
        )
        self._store_novelty(training.rule(seed))

    def _make_codebook(self, given: CodewordsLike) -> Codebook:
        return self._codebook(given, is_named=not self.holds_clusters)

    def _unseen_posteriors(self) -> np.ndarray:
        return self._posteriors(self.training_scores_[spread_rows(len(self.training_scores_))].astype(np.float64))

    def _predicted_index(self, X: SamplesLike) -> np.ndarray:
        """Return the most probable class, also where several classes share a codeword."""
        return self._bend(self.class_scores(X)).argmax(axis=1)

    def _left_out_index(self) -> np.ndarray:
        return self._bend(self.training_scores_).argmax(axis=1)

    def _bend(self, scores: np.ndarray) -> np.ndarray:
        return Calibration(self.temperature_, self.curvature_, self.class_shifts_).bend(scores)

    def _class_scores(self, X: SamplesLike) -> np.ndarray:
        return self.expansion.scores(self._read(X))

    def _scores(self, X: SamplesLike) -> np.ndarray:
        """Return the expected codeword bits."""
        return self._bits_of_scores(self._class_scores(X))

    def _bits_of_scores(self, scores: np.ndarray) -> np.ndarray:
        shares = scores if self.head_ == "linear" else self._posteriors(scores)
        return shares @ self.codewords_.astype(scores.dtype)

    def _posteriors(self, scores: np.ndarray) -> np.ndarray:
        """Return the posteriors of class scores, in their precision."""
        values = self._bend(scores)
        values -= values.max(axis=1, keepdims=True)
        values *= values.dtype.type(self.temperature_)
        np.exp(values, out=values)
        values /= values.sum(axis=1, keepdims=True)
        return values

    def _codes_of_scores(self, scores: np.ndarray) -> BinaryCodes:
        if self.words is None:
            return BinaryCodes.from_scores(self._bits_of_scores(scores), self.space_id_)
        return self._query_codes(self._posteriors(scores))
