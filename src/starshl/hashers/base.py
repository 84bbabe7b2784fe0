"""BaseHasher: the contract that every hashing method in this package keeps, from StarSHL to its competitors.

What every hasher can answer has a default here. What only some can do is declared in ``supports``, and nothing else
finds out what a hasher can do: callers ask ``supports``, and :func:`starshl.testing.check_hasher` checks it.
"""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar, cast
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted

from .._common.bundle import pack_values, unpack_values, write_bundle
from .._common.labels import Label, LabelsLike, parsed_if_labels
from .._common.threads import using_threads
from .._common.validation import Rows, SamplesLike, check_n_jobs, check_rows
from ..codes.binary import BinaryCodes, Metric, make_space_id
from ..codes.codebook import Codebook
from ..codes.queries import EncodedQueries
from ..codes.score_rule import ScoreRule
from ..codes.word_dictionary import Words
from ..exceptions import BundleFormatError, MissingCapabilityError
from ..index.choice import make_index
from ..index.memory import MemoryIndex
from ..index.posterior import PosteriorIndex
from ..learning.linalg import project
from .facts import Facts, Variant
from .fit_record import describe_fit, outermost_fit

if TYPE_CHECKING:
    from .star.contributions import Contributions
    from .supervision import TrainingRows

Capability = Literal[
    "predict",
    "predict_proba",
    "class_scores",
    "codeword_distances",
    "score",
    "novelty",
    "relabel",
    "with_bits",
    "compress",
    "contributions",
    "training_rows",
    "probability",
]
#: What only some hashers can do: what one without it is like, and what to do then. Each one is a method, except
#: "probability", by which an item's code stands for a class posterior (see ``words``) and queries have one, too.
CAPABILITIES: Mapping[Capability, tuple[str, str]] = MappingProxyType(
    {
        "predict": ("learns codes, not classes", "Use a hasher that predicts, such as StarRidge."),
        "predict_proba": ("works without probabilities of classes", "Use StarRidge or ClassifierHasher."),
        "class_scores": ("does not score classes", "Use a StarRidge."),
        "codeword_distances": ("compares no rows with codewords", "Use a StarRidge or a StarSHL."),
        "score": ("has no score of its own", "Measure its codes with starshl.evaluation."),
        "novelty": (
            "cannot tell whether a row is like its training rows",
            "StarRidge, StarSHL and HybridHasher can: use one of them.",
        ),
        "relabel": ("makes codes that no label changes", "Use a StarRidge, StarSHL or HybridHasher fitted to labels."),
        "with_bits": ("needs a fit for every length", "Fit it with the other length."),
        "compress": ("keeps no training rows to encode with, so nothing can be compressed", "Use it as it is."),
        "contributions": ("has no kernels whose parts of a score can be told", "Use a StarRidge or a StarSHL."),
        "training_rows": ("does not keep all rows of its fit", "Use a StarRidge."),
        "probability": (
            "compares codes by a distance that is no probability",
            "Use a hasher that knows how likely classes are, such as StarRidge or HybridHasher fitted to labels.",
        ),
    }
)

# A sealed file may announce any number of features. Beyond this, an array of the file has to be as large.
_MAX_UNBACKED_FEATURES = 2**24
# Not an attribute of the hasher: hashing rows must leave the hasher as it was.
_DERIVED: WeakKeyDictionary[BaseHasher, tuple[dict[str, Any], dict[str, Any]]] = WeakKeyDictionary()
Derived = TypeVar("Derived")
Fit = TypeVar("Fit", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, eq=False)
class FitSummary:
    """What a fit found besides the hash functions; None or empty where a method has nothing to say.

    Attributes
    ----------
    choice : what the fit chose and why, in one line
    n_iter : number of sweeps
    objective : array of shape (n,), the objective from sweep to sweep
    n_labeled : how many labels the fit has read, if it took a sample of them
    transduction : label of every training row
    kernels : pairs of a kernel and its share in the kernel weights
    views : the share of each view in the kernel weights, by its name
    agreement : share of code bits that a compression did not change
    knows_probabilities : whether labels could tell how right the probabilities are; too few of them cannot
    figures : further facts as pages show them, by their names
    """

    choice: str | None = None
    n_iter: int | None = None
    objective: np.ndarray | None = None
    n_labeled: int | None = None
    transduction: np.ndarray | None = None
    kernels: Sequence[tuple[Any, float]] = ()
    views: Mapping[str, float] = field(default_factory=dict)
    agreement: float | None = None
    knows_probabilities: bool = True
    figures: Mapping[str, str] = field(default_factory=dict)

    @property
    def cautions(self) -> list[str]:
        """What whoever reads its probabilities should know."""
        return [] if self.knows_probabilities else ["Too few labels were given to tell how right probabilities are."]


def all_or_nothing(fit: Fit) -> Fit:
    """Make a ``fit`` method change its hasher completely or not at all.

    The method runs on a copy without learned attributes, whose state replaces that of the hasher in one assignment at
    the end. A fit that fails or is interrupted leaves the hasher as it was; only a generator passed as
    ``random_state`` has moved on, because it belongs to the caller.

    Labels are parsed before the method runs, which gets them as :class:`~starshl._common.labels.Labels`. To use a y
    that may hold something else, pass it through ``np.asarray``.
    """

    @wraps(fit)
    def fit_completely(self: BaseHasher, X: Any, y: Any = None, *args: Any, **kwargs: Any) -> BaseHasher:
        # On the copy already: a subclass called super().fit, and what it has learned so far stays.
        is_learner = "_is_learner" in vars(self)
        learner = self if is_learner else self._without_learned_state()
        learner._is_learner = True
        labels = parsed_if_labels(y)
        with outermost_fit() as is_outermost, using_threads(check_n_jobs(self.n_jobs)):
            fit(learner, X, labels, *args, **kwargs)
        if "n_bits_" not in vars(learner):
            learner.n_bits_ = int(learner.n_bits)
        if is_outermost:
            holds_kernels = get_tags(learner).input_tags.pairwise
            learner.fit_record_ = describe_fit(X, y, labels, holds_kernels=holds_kernels)
        if not is_learner:
            del learner._is_learner
            _DERIVED.pop(self, None)
            # The last step, and not a call: whoever interrupts a fit finds the hasher as it was.
            self.__dict__ = learner.__dict__
        return self

    return cast(Fit, fit_completely)


def supported(capability: Capability) -> Callable[[BaseHasher], bool]:
    """Return the check that makes a method an attribute of the hashers that support it, for ``available_if``."""

    def check(hasher: BaseHasher) -> bool:
        hasher.require(capability)
        return True

    return check


class BaseHasher(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """A hasher writes ``fit`` and ``_scores``; codes and model files follow from them.

    ``fit`` is decorated with :func:`all_or_nothing`. Learned attributes (names ending in ``_``) are arrays, numbers,
    strings or lists of them, so that ``save`` can write each one without executing or pickling anything.

    Everything else here has a default. A method that knows better codes for items overrides ``encode_database``. One
    that can do more writes the methods and declares them: ``supports = frozenset({"predict"})``. The names of learned
    attributes that others understand are ``classes_``, ``codewords_`` and ``codebook_`` (of classes), ``choice_``,
    ``n_iter_``, ``objective_history_``, ``n_labeled_`` and ``transduction_`` (see :attr:`fit_summary`).

    Attributes
    ----------
    facts : Facts
        Declared by each class: where the method comes from and what it needs, in its default setting.
    variants : tuple of Variant
        Settings that papers list as separate methods.
    presets : dict
        Settings under a name, such as "paper".
    n_bits_ : int
        Length of the codes; learned by ``fit``.
    codebook_ : Codebook
        Only for methods whose codes are codewords of classes.
    fit_record_ : dict
        What ``fit`` was given: sizes, hashes, label counts and versions, for the card of the model
        (:func:`starshl.model_card`).
    """

    facts: ClassVar[Facts]
    variants: ClassVar[tuple[Variant, ...]] = ()
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = MappingProxyType({})

    n_bits: int
    n_jobs: int | None
    n_bits_: int
    classes_: np.ndarray
    codebook_: Codebook
    fit_record_: dict[str, Any]
    n_features_in_: int
    feature_names_in_: np.ndarray
    _is_learner: bool

    if TYPE_CHECKING:
        # Every class has its own parameters; this lets a class that was found by its name be called with them.
        def __init__(self, *args: Any, **params: Any) -> None: ...

        # Only of hashers that declare them in ``supports``.
        def predict(self, X: SamplesLike, *args: Any, **params: Any) -> np.ndarray: ...
        def predict_proba(self, X: SamplesLike) -> np.ndarray: ...
        def class_scores(self, X: SamplesLike) -> np.ndarray: ...
        def codeword_distances(self, X: SamplesLike, metric: Literal["hamming", "hinge"] = "hamming") -> np.ndarray: ...
        def score(self, X: SamplesLike, y: LabelsLike = None) -> float: ...
        def novelty(self, X: SamplesLike) -> np.ndarray: ...
        def relabel(self, codes: BinaryCodes, y: LabelsLike) -> BinaryCodes: ...
        def with_bits(self, n_bits: int, *args: Any, **params: Any) -> Self: ...
        def compress(
            self, n_support: int | None = None, X: SamplesLike | None = None, *args: Any, **params: Any
        ) -> Self: ...
        def contributions(self, X: SamplesLike) -> Contributions: ...
        def training_rows(self) -> TrainingRows: ...

    @abstractmethod
    def fit(self, X: SamplesLike, y: LabelsLike = None) -> Self:
        """Learn the hash functions."""

    @abstractmethod
    def _scores(self, X: SamplesLike) -> np.ndarray:
        """Return real scores of shape (n_samples, n_bits), one column per bit."""

    def decision_function(self, X: SamplesLike) -> np.ndarray:
        """Return real scores of shape (n_samples, n_bits), one per bit.

        Their signs are the code, unless the hasher has ``words``: then they are the bits that codewords are expected to
        have under the posterior of the classes.
        """
        self._require_fit()
        with using_threads(self.n_jobs):
            scores = self._scores(X)
        # NaN has no sign, and a sum over all entries is finite if each of them is (or it overflows).
        if not np.isfinite(scores.sum()) and not np.isfinite(scores).all():
            raise ValueError(
                f"Some scores of this {type(self).__name__} are not finite numbers: entries of X are too large for "
                "its arithmetic. Rescale the features, for example with sklearn.preprocessing.StandardScaler."
            )
        return scores

    def transform(self, X: SamplesLike) -> np.ndarray:
        """Return the codes of queries, int8 of -1 and +1 of shape (n_samples, n_bits)."""
        return self.encode(X).to_signs()

    def encode(self, X: SamplesLike) -> BinaryCodes:
        """Return the codes of queries as packed bytes."""
        return self.codes_of_scores(self.decision_function(X))

    def codes_of_scores(self, scores: np.ndarray) -> BinaryCodes:
        """Return the codes of queries, given what :meth:`decision_function` returned, of a hasher without ``words``."""
        return self.as_codes(BinaryCodes.from_scores(scores).packed)

    def as_codes(self, packed: np.ndarray) -> BinaryCodes:
        """Return packed bytes that this hasher once made, read from a file for example, as codes of its space.

        Bytes do not say which codes follow from labels; where that is known, ``words.with_labels`` adds it.
        """
        return BinaryCodes(packed, self.n_bits_, self.space_id_, self.code_metric)

    @property
    def code_metric(self) -> Metric:
        """How codes are compared, as in :class:`starshl.BinaryCodes`."""
        return "hamming"

    def encode_queries(self, X: SamplesLike) -> EncodedQueries:
        """Return queries for the index of :meth:`make_index`: codes, with what else it compares items with."""
        return EncodedQueries(self.encode(X))

    def encode_database(self, X: SamplesLike, y: LabelsLike = None) -> BinaryCodes:
        """Return the codes of items that queries are compared with, as packed bytes.

        Most methods hash items like queries and do not read y. A method that knows better codes for items, for
        example from their labels, returns these.

        Parameters
        ----------
        X : samples as for ``fit``
        y : array of shape (n_samples,), default=None
            Labels of the items, where they are known.
        """
        return self.encode(X)

    def hamming_codes(self, codes: BinaryCodes | EncodedQueries) -> BinaryCodes:
        """Return codes for systems that only compare bits, whose Hamming distance comes near the order of this hasher.

        Parameters
        ----------
        codes : BinaryCodes or EncodedQueries
            The codes of items, or what :meth:`encode_queries` returned for queries.
        """
        return codes.codes if isinstance(codes, EncodedQueries) else codes

    @property
    def training_codes_(self) -> BinaryCodes | None:
        """The codes of the rows of the fit as items, None if the fit keeps none."""
        return None

    def encode_training(self, X: SamplesLike, y: LabelsLike = None) -> BinaryCodes:
        """Return the codes of the rows of the fit as items, given these rows and their labels.

        A hasher has seen these rows, so its scores of them are too sure. One that knows better keeps codes for them in
        ``training_codes_``: codewords of labels, and leave-one-out codes of unlabeled rows.
        """
        kept = self.training_codes_
        # A large fit may keep the codes of some rows only.
        return self.encode_database(X, y) if kept is None or len(kept) != np.shape(cast(Any, X))[0] else kept

    def encode_left_out(self, X: SamplesLike) -> BinaryCodes:
        """Return the codes of the rows of the fit as items without labels, each coded without itself if it can be."""
        return self.encode_database(X)

    def make_index(self, codes: BinaryCodes, ids: ArrayLike | None = None, *, n_jobs: int | None = None) -> MemoryIndex:
        """Return an index of these codes that compares them as this hasher does; see :func:`starshl.make_index`."""
        if self.words is not None:
            return PosteriorIndex.from_codes(codes, ids, words=self.words, n_jobs=n_jobs)
        return make_index(codes, ids, n_jobs=n_jobs)

    @property
    def words(self) -> Words | None:
        """The class posteriors that codes of items, or their first bits, stand for; None if they stand for none."""
        return None

    def measure_vectors(self, X: Rows) -> None:
        """Learn what :meth:`vector_rule` needs from the training rows as a collection keeps them.

        It keeps raw rows, and whatever prepares these calls this after the fit.
        """
        return

    def vector_rule(self, metric: Literal["euclidean", "cosine"]) -> ScoreRule | None:
        """Return how items whose vectors are kept are ordered by exact distances and probabilities of the class.

        None if codes do not hold classes and neighbors: then one of the two decides alone.
        """
        return None

    @property
    def space_id_(self) -> str | None:
        """The identity of the space of the codes: that of the codebook, or a digest of what this hasher has learned.

        Codes of equal identity can be searched together, whichever hasher made them. If your own hasher has learned
        something that a model file cannot hold, this is None, and its codes are of unknown space.
        """
        self._require_fit()
        return self._derived("space_id", self._make_space_id)

    def _derived(self, name: str, derive: Callable[[], Derived]) -> Derived:
        """Return what follows from the learned attributes, computed once as long as these stay."""
        state = self._learned_state()
        known, derived = _DERIVED.get(self, ({}, {}))
        if known.keys() != state.keys() or any(known[name] is not value for name, value in state.items()):
            derived = {}
            _DERIVED[self] = (state, derived)
        if name not in derived:  # two threads may both compute it, with the same result
            derived[name] = derive()
        return derived[name]

    def _make_space_id(self) -> str | None:
        if self.class_codebook is not None:
            return self.class_codebook.space_id
        # Names of columns change no code.
        learned = {name: value for name, value in self._packable_state().items() if name != "feature_names_in_"}
        try:
            plain, arrays = pack_values(learned)
        except TypeError:  # a value that no file holds
            return None
        return make_space_id([type(self).__name__, plain], arrays)

    # What it can do besides.

    @property
    def supports(self) -> frozenset[Capability]:
        """What this hasher can do of :data:`CAPABILITIES`; some of it depends on its fit."""
        return frozenset()

    def require(self, *capabilities: Capability, parameter: str | None = None) -> None:
        """Raise a :class:`~starshl.exceptions.MissingCapabilityError` unless this hasher supports all of these.

        Give the name of the parameter if it was passed as one.
        """
        for capability in capabilities:
            if capability not in self.supports:
                raise self._lacking(capability, parameter)

    def _lacking(self, capability: Capability, parameter: str | None) -> MissingCapabilityError:
        lacks, advice = CAPABILITIES[capability]
        arrived = f"This {{method}} {lacks}" if parameter is None else f"{{parameter}} is {{method}}, which {lacks}"
        return MissingCapabilityError(
            arrived, "", advice, parameter=parameter, method=self.method_name, capability=capability
        )

    @property
    def current_facts(self) -> Facts:
        """The facts of this hasher's own setting: those of the variant it is set to, or of the class."""
        params = self.get_params(deep=False)
        for variant in self.variants:
            if all(_is_same(params[name], value) for name, value in variant.params.items()):
                return variant.facts(self.facts)
        return self.facts

    def at_length(self, n_bits: int) -> Self:
        """Return a copy that is not fitted and makes codes of another length."""
        return clone(self).set_params(n_bits=n_bits)

    # Classes.

    @property
    def class_part(self) -> BaseHasher:
        """The hasher that decides the class of a row: a part of this one, or the hasher behind the preprocessing."""
        return self

    @property
    def class_labels(self) -> list[Label]:
        """The labels of the classes in the order of ``classes_``; none if the method learns no classes."""
        return np.asarray(vars(self).get("classes_", ())).tolist()

    @property
    def class_words(self) -> np.ndarray | None:
        """The signs that stand for each class in the first bits of a code, (n_classes, n_bits or fewer), if any do."""
        return vars(self).get("codewords_") if self.class_labels else None

    @property
    def class_codebook(self) -> Codebook | None:
        """The codebook whose words the codes are, if they are words of classes."""
        return vars(self).get("codebook_")

    @property
    def holds_clusters(self) -> bool:
        """Whether the classes are clusters that a fit without labels has found."""
        return False

    def predict_training(self, X: SamplesLike) -> np.ndarray:
        """Return the class of the rows of the fit, predicted for each of them without itself if the method can."""
        return self.predict(X)

    def training_proba(self, X: SamplesLike) -> np.ndarray:
        """Return the probabilities of the classes of the rows of the fit, each without itself if the method can."""
        return self.predict_proba(X)

    # What it is made of.

    @property
    def inner(self) -> BaseHasher:
        """The hasher behind all preprocessing: this one, unless it prepares rows for another."""
        return self

    @property
    def method_name(self) -> str:
        """The name of the method, whatever prepares its rows."""
        return type(self.inner).__name__

    @property
    def fitted_steps(self) -> tuple[Any, ...]:
        """The steps that prepare rows, the first one first."""
        return ()

    def prepare(self, X: SamplesLike) -> Any:
        """Return rows as the steps of this hasher leave them."""
        return X

    def with_hasher(self, hasher: BaseHasher) -> BaseHasher:
        """Return another fitted hasher behind the same fitted steps."""
        return hasher

    # What rows it takes. Of a row of a table, which holds more than numbers, a collection keeps what the steps make.

    @property
    def row_width(self) -> int | None:
        """The number of columns of the rows of the fit, None if its samples had none."""
        return vars(self).get("n_features_in_")

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the columns of the fit, none if they had none."""
        return tuple(map(str, vars(self).get("feature_names_in_", ())))

    @property
    def takes_cells(self) -> bool:
        """Whether rows hold text and numbers, which the steps of this hasher turn into vectors."""
        return False

    @property
    def vector_width(self) -> int | None:
        """How many numbers a collection keeps of a row, None if samples have no columns."""
        return self.row_width

    def without_steps(self) -> BaseHasher:
        """Return a hasher that makes the same codes of kept vectors."""
        return self

    def for_rows(self, X: SamplesLike) -> BaseHasher:
        """Return the hasher that takes X: one without steps if X are kept vectors of a hasher that takes cells."""
        return self

    # Fits.

    @property
    def fit_record(self) -> Mapping[str, Any]:
        """What ``fit`` was given, nothing if that was not recorded."""
        return vars(self).get("fit_record_", {})

    @property
    def fit_summary(self) -> FitSummary:
        """What the fit found besides the hash functions."""
        learned = vars(self)
        n_iter = learned.get("n_iter_")
        return FitSummary(
            choice=learned.get("choice_"),
            n_iter=n_iter,
            objective=learned.get("objective_history_"),
            n_labeled=learned.get("n_labeled_"),
            transduction=learned.get("transduction_"),
            figures={} if n_iter is None else {"sweeps": f"{n_iter:.4g}"},
        )

    def leave_one_out(self, *, precision: bool = True) -> dict[str, Any] | None:
        """Return what the fit itself says about unseen rows, for the card of the model, None if it says nothing.

        ``precision`` asks for the precision of searches, too.
        """
        return None

    @property
    def hyperplanes(self) -> np.ndarray | None:
        """The directions whose signs the bits are, (n_bits, n_features), if they are signs of projections."""
        return None

    @property
    def kept_samples(self) -> Any:
        """The training samples that codes are computed with, None if there are none."""
        return vars(self).get("support_samples_")

    def fit_tasks(self, n_rows: int, y: LabelsLike) -> Literal["blocks", "bits"] | None:
        """Return what a fit of so many rows hands to an engine: blocks of rows, bits, or None if it is one task."""
        return None

    # Model files.

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted hasher to one file; :func:`starshl.load` reads it back."""
        self._require_fit()
        header, arrays = self.pack()
        record = {"fit_record": self.fit_record} if self.fit_record else {}
        write_bundle(path, {"method": type(self).__name__, **header, **record}, arrays)

    def pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the entries of a file's header and the arrays from which :meth:`unpack` rebuilds this hasher.

        A hasher whose learned attributes are arrays, numbers and strings inherits both methods; one that holds other
        objects, such as kernels or hashers, overrides both.
        """
        params, param_arrays = pack_values(self._packable_params(), "param.")
        fitted, fitted_arrays = pack_values(self._packable_state(), "fitted.")
        return {"params": params, "fitted": fitted}, param_arrays | fitted_arrays

    @classmethod
    def unpack(
        cls,
        header: dict[str, Any],
        arrays: dict[str, np.ndarray],
        kernels: Sequence[Any] | None = None,
        steps: Sequence[Any] | None = None,
    ) -> Self:
        """Return the fitted hasher that :meth:`pack` was called on.

        Parameters
        ----------
        header : dict
            Entries of the file's header; others than those of :meth:`pack` may be among them.
        arrays : dict of arrays
            The arrays of the file, by name.
        kernels, steps : sequence, default=None
            Kernels and steps that the file names but cannot hold.

        Raises
        ------
        BundleFormatError
            If the parts do not fit together.
        """
        cls._refuse_given(kernels=kernels, steps=steps)
        hasher = cls(**unpack_values(header["params"], arrays, "param."))
        hasher._restore_state(unpack_values(header["fitted"], arrays, "fitted."))
        hasher._check_restored()
        return hasher

    @classmethod
    def _refuse_given(cls, **parts: object) -> None:
        for name, part in parts.items():
            if part is not None:
                raise ValueError(f"This file holds a {cls.__name__}, which takes no {name}. Load it without them.")

    def _restore_state(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            if not name.isidentifier() or name.startswith("_") or not name.endswith("_") or hasattr(type(self), name):
                raise BundleFormatError.damaged(f"it sets {name!r}, which is not a learned attribute")
            setattr(self, name, value)

    def _check_restored(self) -> None:
        """Refuse a file whose arrays do not fit together: it cannot hash even a row of zeros."""
        self._check_restored_sizes()
        for name, size in self._learned_indices().items():
            _check_learned_indices(getattr(self, name), name, size)
        for name, shape in self._learned_shapes().items():
            check_learned_numbers(getattr(self, name), name, shape)
        self._check_restored_codebook()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # zeros have no feature names
            scores = self._scores(np.zeros((1, self.n_features_in_)))
        if scores.shape != (1, self.n_bits_) or not np.isfinite(scores).all():
            raise BundleFormatError.damaged(f"the arrays of its {type(self).__name__} do not fit together")

    def _check_restored_sizes(self) -> None:
        sizes = [np.size(value) for value in self._learned_state().values()]
        for name, largest in (
            ("n_bits_", max(sizes)),  # every method learns at least one number per bit
            ("n_features_in_", max(_MAX_UNBACKED_FEATURES, *sizes)),
        ):
            size = getattr(self, name)
            if type(size) is not int or not 1 <= size <= largest:
                raise BundleFormatError.damaged(f"it sets {name} to {size!r}, and its arrays allow 1 to {largest}")

    def _check_restored_codebook(self) -> None:
        codebook = self.class_codebook
        if codebook is None:
            return
        state = self._learned_state()
        if not isinstance(codebook, Codebook) or not codebook.holds(state["classes_"], state["codewords_"]):
            raise BundleFormatError.damaged("its codebook does not match its codewords")

    def _learned_indices(self) -> dict[str, int]:
        """Return the names of learned arrays of indices, each with the number of entries that it indexes.

        They are checked before a model file is used: compiled loops read wherever an index points.
        """
        return {}

    def _learned_shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the names of learned arrays that scores do not depend on but other methods do, each with its shape.

        They are checked when a model file is read: the scores of a row would not show that they are wrong.
        """
        return {}

    def _without_learned_state(self) -> Self:
        # Not copy.copy: a subclass may leave things out of its pickles that fit needs.
        twin = type(self).__new__(type(self))
        learned = self._learned_state()
        twin.__dict__ = {name: value for name, value in vars(self).items() if name not in learned}
        return twin

    def _packable_params(self) -> dict[str, Any]:
        params = self.get_params(deep=False)
        # A generator's state is history, not a setting: the reloaded hasher starts from None.
        if not isinstance(params.get("random_state"), (int, np.integer, type(None))):
            params["random_state"] = None
        return params

    def _learned_state(self) -> dict[str, Any]:
        """Return the learned attributes by name."""
        return {name: value for name, value in vars(self).items() if name.endswith("_") and name[0] != "_"}

    def _packable_state(self) -> dict[str, Any]:
        """Return the learned attributes that decide how rows are hashed; the record of the fit does not."""
        return {name: value for name, value in self._learned_state().items() if name != "fit_record_"}

    @property
    def _n_features_out(self) -> int:
        return self.n_bits_

    def __sklearn_is_fitted__(self) -> bool:
        return "n_bits_" in vars(self)

    def _require_fit(self) -> None:
        # Asking scikit-learn takes as long as encoding a row.
        if not self.__sklearn_is_fitted__():
            check_is_fitted(self)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # codes are int8 whatever X is
        tags.input_tags.sparse = self.current_facts.sparse
        tags.target_tags.required = self.current_facts.needs_labels
        return tags


class LinearHasher(BaseHasher):
    """A hasher whose ``fit`` leaves hyperplanes.

    Attributes
    ----------
    components_ : array of shape (n_bits, n_features)
    intercept_ : array of shape (n_bits,)
    """

    components_: np.ndarray
    intercept_: np.ndarray

    @property
    def hyperplanes(self) -> np.ndarray:
        """The directions whose signs the bits are, after intercepts."""
        return self.components_

    def _scores(self, X: SamplesLike) -> np.ndarray:
        """Return ``X @ components_.T + intercept_``."""
        rows = check_rows(self, X, fitting=False, accept_sparse=True)
        return project(rows, self.components_, self.intercept_)


def _check_learned_indices(indices: Any, name: str, size: int) -> None:
    is_integer = isinstance(indices, np.ndarray) and indices.dtype.kind in "iu"
    if not is_integer or (indices.size and (indices.min() < 0 or indices.max() >= size)):
        raise BundleFormatError.damaged(f"{name} must hold indices from 0 to {size - 1}")


def check_learned_numbers(numbers: Any, name: str, shape: tuple[int, ...]) -> None:
    """Refuse what a file holds in place of numbers of this shape."""
    is_numeric = isinstance(numbers, np.ndarray) and numbers.dtype.kind in "biuf"
    if not is_numeric or numbers.shape != shape or not np.isfinite(numbers).all():
        raise BundleFormatError.damaged(f"{name} must hold finite numbers in the shape {shape}")


def _is_same(given: Any, value: Any) -> bool:
    # A parameter may be an array, which has no single answer to ==.
    return type(given) is type(value) and bool(given == value)
