"""The compared methods: every row of every table, with its settings, and the estimators that only these rows need."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC

from .._common.labels import LabelsLike
from .._common.threads import single_threaded_blas, tiles
from .._common.validation import SamplesLike
from ..codes.binary import BinaryCodes
from ..codes.codewords import separated_codewords
from ..hashers.base import BaseHasher, all_or_nothing
from ..hashers.catalog import get_class
from ..hashers.facts import Facts
from ..learning.kernels.graph_gaussian import GraphGaussian
from .runner import Classifier, TrainingRows

ROLES = ("*SHL", "squared loss", "supervised", "unsupervised", "partly labeled", "yardstick")
_SVC_COST = 10.0
# Tests replace it, so that a few rows take several rounds.
ROWS_AT_ONCE = 1024  # their kernel values with 10,000 support rows take 80 MB
# Kernel ridge regression on all rows takes 8 n^2 bytes and time O(n^3). The paper has at most 10,000 rows.
_MAX_KERNEL_RIDGE_ROWS = 10_000
_ANCHORS_FOR_MORE_ROWS = 5_000


class TiledSVC(SVC):
    """A Gaussian SVC that predicts many rows at once.

    LIBSVM computes the kernel one pair of rows at a time, which for 50,000 pictures takes many times longer than
    products of matrices. Predictions are the same unless a decision is within rounding of zero.
    """

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the class that wins most of its duels; among equals, the first."""
        if self.kernel != "rbf" or len(self.classes_) < 3 or not isinstance(X, np.ndarray):
            return super().predict(X)
        first, second = np.triu_indices(len(self.classes_), k=1)
        weights = self._duel_weights(first, second)
        winners = np.empty(len(X), dtype=np.int64)
        for tile in tiles(len(X), ROWS_AT_ONCE):
            kernel = rbf_kernel(X[tile].astype(np.float64), self.support_vectors_, gamma=self._gamma)
            won = kernel @ weights + self.intercept_ > 0
            votes = np.zeros((len(won), len(self.classes_)), dtype=np.int64)
            for duel in range(len(first)):
                votes[:, first[duel]] += won[:, duel]
                votes[:, second[duel]] += ~won[:, duel]
            winners[tile] = votes.argmax(axis=1)
        return self.classes_[winners]

    def _duel_weights(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return the weight of every support row in every duel of two classes, shape (n_support, n_duels).

        A support row of class c has one coefficient for each other class, in their order.
        """
        ends = np.cumsum(self.n_support_)
        weights = np.zeros((int(ends[-1]), len(first)))
        for duel, (one, other) in enumerate(zip(first, second, strict=True)):
            rows_of_one = slice(ends[one] - self.n_support_[one], ends[one])
            rows_of_other = slice(ends[other] - self.n_support_[other], ends[other])
            weights[rows_of_one, duel] = self.dual_coef_[other - 1, rows_of_one]
            weights[rows_of_other, duel] = self.dual_coef_[one, rows_of_other]
        return weights


def one_vs_one_svc(seed: int) -> SVC:
    """Return scikit-learn's Gaussian SVC, C = 10, one against one, bandwidth by its own rule."""
    return TiledSVC(C=_SVC_COST)


def label_spreading(seed: int) -> LabelSpreading:
    """Return label spreading (Zhou et al. 2004) with scikit-learn's own 7 neighbors and alpha, and more iterations."""
    return LabelSpreading(kernel="knn", n_neighbors=7, alpha=0.2, max_iter=100)


class MarginSVC(SVC):
    """An SVC whose confidence is the softmax of its one-against-rest margins.

    Platt's calibration needs several rows per class, which is impossible with one label per class.
    """

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Return confidences of shape (n_samples, n_classes)."""
        margins = self.decision_function(X)
        return softmax(margins if margins.ndim == 2 else np.column_stack([-margins, margins]), axis=1)


def self_training_svc(seed: int) -> SelfTrainingClassifier:
    """Return an SVC that labels its 100 most confident rows per round and learns again, for at most 30 rounds."""
    return SelfTrainingClassifier(MarginSVC(C=_SVC_COST), criterion="k_best", k_best=100, max_iter=30)


class KMeansCodes(BaseHasher):
    """Give a codeword to each cluster that the paper's *SHL starts from without labels: what its training must beat.

    Parameters
    ----------
    n_bits : int
    n_clusters : int
    random_state : int

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> X, _ = load_digits(return_X_y=True)
    >>> codes = KMeansCodes(8, n_clusters=10, random_state=0).fit(X).encode(X)
    >>> len(np.unique(codes.packed, axis=0))  # one code per cluster
    10
    """

    facts = Facts(paper="k-means, and a codeword for each cluster", year=2015, labels="ignored", cost="that of k-means")
    supports = frozenset({"predict"})
    n_jobs = None

    def __init__(self, n_bits: int = 32, *, n_clusters: int = 10, random_state: int = 0) -> None:
        self.n_bits = n_bits
        self.n_clusters = n_clusters
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: SamplesLike, y: LabelsLike = None) -> Self:
        """Cluster the rows; y is ignored."""
        rows = np.asarray(X, dtype=np.float64)
        with single_threaded_blas():
            self.k_means_ = KMeans(self.n_clusters, n_init=10, random_state=self.random_state).fit(rows)
        rng = np.random.RandomState(self.random_state)
        self.codewords_ = separated_codewords(self.n_clusters, self.n_bits, rng)
        self.transduction_ = self.k_means_.labels_.astype(np.int64)
        return self

    def predict(self, X: SamplesLike) -> np.ndarray:
        """Return the cluster of each row."""
        with single_threaded_blas():
            return self.k_means_.predict(np.asarray(X, dtype=np.float64)).astype(np.int64)

    def _scores(self, X: SamplesLike) -> np.ndarray:
        """Return the codeword of each row's cluster."""
        return self.codewords_[self.predict(X)]


class FirstBits(BaseHasher):
    """Keep the first ``n_bits`` bits of a hasher that learns more.

    Two-layer anchor graph hashing only has even lengths; at an odd length its last bit is dropped.
    """

    n_jobs = None

    def __init__(self, hasher: BaseHasher, n_bits: int) -> None:
        self.hasher, self.n_bits = hasher, n_bits

    @all_or_nothing
    def fit(self, X: SamplesLike, y: LabelsLike = None) -> Self:
        """Fit the hasher."""
        self.hasher_ = clone(self.hasher).fit(X, y)
        return self

    @property
    def current_facts(self) -> Facts:
        """The facts of the hasher."""
        return self.hasher.current_facts

    def _scores(self, X: SamplesLike) -> np.ndarray:
        """Return the scores of the first bits."""
        return self.hasher_.decision_function(X)[:, : self.n_bits]

    def encode_database(self, X: SamplesLike, y: LabelsLike = None) -> BinaryCodes:
        """Return the first bits of the hasher's database codes."""
        signs = self.hasher_.encode_database(X, y).to_signs()
        return self.as_codes(BinaryCodes.from_signs(signs[:, : self.n_bits]).packed)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of the hasher."""
        return self.hasher.get_params(deep)


@dataclass(frozen=True, slots=True)
class Sizes:
    """What a setting may depend on."""

    n_train: int
    n_classes: int


@dataclass(frozen=True, slots=True)
class ComparedMethod:
    """One row of a table.

    Parameters
    ----------
    key : str
        The stable name: on the command line, in records and in summaries.
    title : str
        The name that readers see. It may change at any time.
    role : one of ``ROLES``
    method : str
        A class of the catalog, or KMeansCodes; empty if it is not a hasher.
    seed_label : str
        The seed of a run comes from its split and this label. Methods with the same label start alike, from the same
        first codewords. It is separate from key and title, so that renaming changes no figure.
    params : dict
        Settings other than n_bits and seed. A value that is a function is called with the :class:`Sizes`.
    preset : str
        A class method that makes the hasher instead of the class itself.
    make : callable of the seed
        Makes a classifier; only without ``method``.
    fit_on : {"train", "labeled", "train+query"}
        See :func:`starshl.reproduction.run`.
    even_bits : bool
        The method only has even lengths; at an odd length its last bit is dropped.
    note : str
        What a reader of the table must know.
    effort : three floats
        Seconds of the first length of a run, of every other length, and of each bit, measured on USPS with 3,000 rows
        by one thread: estimates of the time that is left start from these.
    """

    key: str
    title: str
    role: str
    method: str = ""
    seed_label: str = ""
    params: dict[str, Any] = field(default_factory=dict)
    preset: str = ""
    make: Callable[[int], Classifier] | None = None
    fit_on: TrainingRows = "train"
    even_bits: bool = False
    note: str = ""
    effort: tuple[float, float, float] = (0.7, 0.7, 0.002)

    @property
    def kind(self) -> str:
        """``"hasher"``, ``"classifier"`` or ``"search"`` (of the rows themselves)."""
        if self.method:
            return "hasher"
        return "classifier" if self.make else "search"

    def settings(self, sizes: Sizes) -> dict[str, Any]:
        """Return the settings for data of these sizes."""
        return {name: value(sizes) if callable(value) else value for name, value in self.params.items()}

    def build(self, n_bits: int, seed: int, sizes: Sizes) -> BaseHasher:
        """Return the hasher, not fitted."""
        settings = self.settings(sizes)
        if self.method == "KMeansCodes":
            return KMeansCodes(n_bits, random_state=seed, **settings)
        hasher_class = get_class(self.method)
        if self.preset:
            settings = {**hasher_class.presets[self.preset], **settings}
        if "random_state" in hasher_class().get_params():
            settings["random_state"] = seed
        if self.even_bits and n_bits % 2:
            return FirstBits(hasher_class(n_bits + 1, **settings), n_bits)
        return hasher_class(n_bits, **settings)


def all_rows_or_anchors(sizes: Sizes) -> int | None:
    """Return None, which means all rows, for up to 10,000 rows, and a number of anchors for more."""
    return None if sizes.n_train <= _MAX_KERNEL_RIDGE_ROWS else _ANCHORS_FOR_MORE_ROWS


def one_per_class(sizes: Sizes) -> int:
    """Return the number of classes."""
    return sizes.n_classes


_GRAPH = {"kernels": [GraphGaussian()]}
_HADAMARD = {"variant": "hadamard", "n_anchors": all_rows_or_anchors}
_STAR = ("*SHL", "StarSHL", "*SHL")
_RIDGE = ("squared loss", "StarRidge", "*SHL")
_ABOUT_RIDGE = "The codewords of *SHL with squared loss and a posterior head; not in the paper."
_METHODS = (
    ComparedMethod("starshl-paper", "*SHL, paper settings", *_STAR, preset="paper", effort=(2.5, 2.0, 0.15)),
    ComparedMethod("starshl", "*SHL, defaults", *_STAR, effort=(2.0, 2.0, 0.15)),
    ComparedMethod("starridge", "StarRidge", *_RIDGE, note=_ABOUT_RIDGE, effort=(2.9, 0.15, 0.001)),
    ComparedMethod(
        *("ksh", "KSH", "supervised", "KSH", "KSH"),
        params={"n_labeled": 1000},
        note="Learns from 1,000 labels, as its authors recommend.",
        effort=(0.0, 0.0, 0.09),
    ),
    ComparedMethod(
        *("bre", "BRE", "supervised", "BRE", "BRE"),
        params={"variant": "supervised"},
        note="Learns from 1,000 labeled rows, as its authors recommend.",
        effort=(0.2, 0.2, 0.03),
    ),
    ComparedMethod("1-agh", "1-AGH", "unsupervised", "AnchorGraphHash", "1-AGH"),
    ComparedMethod(
        *("2-agh", "2-AGH", "unsupervised", "AnchorGraphHash", "2-AGH"),
        params={"variant": "two_layers"},
        even_bits=True,
        note="At an odd length it learns one more bit and drops the last.",
    ),
    ComparedMethod("sph", "SPH", "unsupervised", "SpectralHash", "SPH", effort=(0.04, 0.04, 0.003)),
    ComparedMethod("lsh", "LSH", "unsupervised", "LSHash", "LSH", effort=(0.04, 0.04, 0.003)),
    ComparedMethod(
        *("ksh-all", "KSH, all labels", "supervised", "KSH", "KSH, all labels"),
        params={"n_labeled": None},
        note="KSH with every label that *SHL gets; not in the paper.",
        effort=(0.1, 0.1, 0.25),
    ),
    ComparedMethod(
        *("hc-sdh", "HC-SDH, all rows", "supervised", "SDH", "HC-SDH, all rows"),
        params=_HADAMARD,
        note="Fixed Hadamard codewords and one kernel ridge regression; not in the paper.",
        effort=(1.1, 0.2, 0.003),
    ),
    ComparedMethod(
        *("codeword-svm", "codeword SVM", "supervised", "CodewordSVM", "codeword SVM"),
        note="Fixed codewords and one Gaussian SVM per bit: *SHL without its learning; not in the paper.",
        effort=(0.3, 0.3, 0.02),
    ),
    ComparedMethod(
        *("svc", "one-vs-one SVC", "yardstick", "", "one-vs-one SVC"),
        make=one_vs_one_svc,
        fit_on="labeled",
        note="Compare the P@10 of codes with its accuracy.",
        effort=(1.8, 1.8, 0.0),
    ),
    ComparedMethod(
        "float",
        "float search",
        "yardstick",
        note="Euclidean search of the rows themselves.",
        effort=(0.4, 0.4, 0.0),
    ),
    ComparedMethod(
        *("starshl-paper-transductive", "*SHL transductive, paper settings", *_STAR),
        preset="paper",
        fit_on="train+query",
        effort=(0.2, 0.2, 0.05),
    ),
    ComparedMethod(
        "starshl-transductive", "*SHL transductive, defaults", *_STAR, fit_on="train+query", effort=(0.5, 0.5, 0.05)
    ),
    ComparedMethod(
        "starridge-transductive",
        "StarRidge transductive",
        *_RIDGE,
        fit_on="train+query",
        note=_ABOUT_RIDGE,
        effort=(0.5, 0.5, 0.0),
    ),
    ComparedMethod("starshl-graph", "*SHL, graph kernel", *_STAR, params=_GRAPH, effort=(1.5, 1.5, 0.15)),
    ComparedMethod("starshl-labeled", "*SHL, labeled rows only", *_STAR, fit_on="labeled"),
    ComparedMethod("starridge-labeled", "StarRidge, labeled rows only", *_RIDGE, fit_on="labeled", note=_ABOUT_RIDGE),
    ComparedMethod("ssh", "SSH", "partly labeled", "SSH", "SSH", note="Accuracy by the nearest labeled code."),
    ComparedMethod(
        *("hc-sdh-labeled", "HC-SDH, labeled rows only", "supervised", "SDH", "HC-SDH, labeled rows only"),
        params=_HADAMARD,
        fit_on="labeled",
        note="Accuracy by the nearest labeled code.",
    ),
    ComparedMethod(
        *("label-spreading", "label spreading", "yardstick", "", "label spreading"),
        make=label_spreading,
    ),
    ComparedMethod(
        *("self-training", "self-training SVC", "yardstick", "", "self-training SVC"),
        make=self_training_svc,
        effort=(10.0, 10.0, 0.0),
    ),
    ComparedMethod(
        *("starshl-clusters", "*SHL", *_STAR),
        params={"n_codewords": one_per_class, "unlabeled": "nearest"},
        note="Starts from k-means and moves rows to their nearest codewords, as in the paper.",
    ),
    ComparedMethod(
        *("starshl-graph-clusters", "*SHL, clusters of the graph", *_STAR),
        params={"n_codewords": one_per_class},
        note="The defaults: rows belong to clusters of their neighbor graph.",
    ),
    ComparedMethod(
        "starridge-clusters", "StarRidge, clusters", *_RIDGE, params={"n_codewords": one_per_class}, note=_ABOUT_RIDGE
    ),
    ComparedMethod("itq", "ITQ", "unsupervised", "ITQ", "ITQ"),
    ComparedMethod(
        *("k-means", "k-means start", "unsupervised", "KMeansCodes", "k-means start"),
        params={"n_clusters": one_per_class},
        note="The clusters that *SHL of the paper starts from, each with a codeword.",
    ),
)
COMPARED_METHODS: dict[str, ComparedMethod] = {method.key: method for method in _METHODS}


def compared_method(key: str) -> ComparedMethod:
    """Return a compared method by its key; the error for an unknown key lists the closest ones.

    Examples
    --------
    >>> compared_method("sph").title
    'SPH'
    """
    if (wanted := str(key).strip().lower()) in COMPARED_METHODS:
        return COMPARED_METHODS[wanted]
    close = difflib.get_close_matches(wanted, COMPARED_METHODS, n=3, cutoff=0.4)
    advice = f"The closest are {', '.join(close)}." if close else f"Known are {', '.join(COMPARED_METHODS)}."
    raise ValueError(f"There is no method {key!r} to compare. {advice}")


def hashers_among(keys: Iterable[str]) -> list[str]:
    """Return the keys of methods that make codes."""
    return [key for key in keys if key in COMPARED_METHODS and COMPARED_METHODS[key].kind == "hasher"]


def title_of(key: str) -> str:
    """Return the title of a compared method; any other has its key for a title."""
    return COMPARED_METHODS[key].title if key in COMPARED_METHODS else key


def is_star(title: str) -> bool:
    """Return whether a row of a table, by its title, is *SHL under any settings."""
    return title.startswith("*SHL")
