"""BaseHasher: the contract that every hashing method in this package keeps, from StarSHL to its competitors."""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, cast
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted

from .._common.bundle import pack_values, unpack_values, write_bundle
from .._common.labels import LabelsLike, parsed_if_labels
from .._common.threads import using_threads
from .._common.validation import SamplesLike, check_n_jobs, check_rows
from ..codes.binary import BinaryCodes, make_space_id
from ..codes.codebook import Codebook
from ..exceptions import BundleFormatError
from ..learning.linalg import project
from .facts import Facts, Variant
from .fit_record import describe_fit, outermost_fit

# A sealed file may announce any number of features. Beyond this, an array of the file has to be as large.
_MAX_UNBACKED_FEATURES = 2**24
# Not an attribute of the hasher: hashing rows must leave the hasher as it was.
_SPACE_IDS: WeakKeyDictionary[BaseHasher, tuple[dict[str, Any], str]] = WeakKeyDictionary()
Fit = TypeVar("Fit", bound=Callable[..., Any])


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
        if not hasattr(learner, "n_bits_"):
            learner.n_bits_ = int(learner.n_bits)
        if is_outermost:
            holds_kernels = get_tags(learner).input_tags.pairwise
            learner.fit_record_ = describe_fit(X, y, labels, holds_kernels=holds_kernels)
        if not is_learner:
            del learner._is_learner
            self.__dict__ = learner.__dict__
            _SPACE_IDS.pop(self, None)
        return self

    return cast(Fit, fit_completely)


class BaseHasher(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """A hasher writes ``fit`` and ``_scores``; codes and model files follow from them.

    ``fit`` is decorated with :func:`all_or_nothing`. Learned attributes (names ending in ``_``) are arrays, numbers,
    strings or lists of them, so that ``save`` can write each one without executing or pickling anything.

    Attributes
    ----------
    facts : Facts
        Declared by each class: where the method comes from and what it needs, in its default setting.
    variants : tuple of Variant
        Settings that papers list as separate methods.
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

    n_bits: int
    n_jobs: int | None
    n_bits_: int
    codebook_: Codebook
    fit_record_: dict[str, Any]
    n_features_in_: int
    feature_names_in_: np.ndarray
    _is_learner: bool

    if TYPE_CHECKING:
        # Every class has its own parameters; this lets a class that was found by its name be called with them.
        def __init__(self, *args: Any, **params: Any) -> None: ...

    @abstractmethod
    def fit(self, X: SamplesLike, y: LabelsLike = None) -> Self:
        """Learn the hash functions."""

    @abstractmethod
    def _scores(self, X: SamplesLike) -> np.ndarray:
        """Return real scores of shape (n_samples, n_bits), one column per bit."""

    def decision_function(self, X: SamplesLike) -> np.ndarray:
        """Return real scores of shape (n_samples, n_bits), whose signs are the code."""
        check_is_fitted(self)
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
        """Return the codes of queries, given what :meth:`decision_function` returned for them."""
        return self.as_codes(BinaryCodes.from_scores(scores).packed)

    def as_codes(self, packed: np.ndarray) -> BinaryCodes:
        """Return packed bytes that this hasher once made, read from a file for example, as codes of its space."""
        return BinaryCodes(packed, self.n_bits_, getattr(self, "space_id_", None))

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

    @property
    def space_id_(self) -> str:
        """The identity of the space of the codes: that of the codebook, or a digest of what this hasher has learned.

        Codes of equal identity can be searched together, whichever hasher made them. If your own hasher has learned
        something that a model file cannot hold, it has no identity, and its codes are of unknown space.
        """
        check_is_fitted(self)
        state = self._learned_state()
        known, space_id = _SPACE_IDS.get(self, ({}, ""))
        if known.keys() != state.keys() or any(known[name] is not value for name, value in state.items()):
            space_id = self._make_space_id()
            _SPACE_IDS[self] = (state, space_id)
        return space_id

    def _make_space_id(self) -> str:
        codebook = getattr(self, "codebook_", None)
        if codebook is not None:
            return codebook.space_id
        # Names of columns change no code.
        learned = {name: value for name, value in self._packable_state().items() if name != "feature_names_in_"}
        try:
            plain, arrays = pack_values(learned)
        except TypeError as error:
            raise AttributeError(f"This {type(self).__name__} has no space_id_: {error}") from error
        return make_space_id([type(self).__name__, plain], arrays)

    @property
    def current_facts(self) -> Facts:
        """The facts of this hasher's own setting: those of the variant it is set to, or of the class."""
        params = self.get_params(deep=False)
        for variant in self.variants:
            if all(_is_same(params[name], value) for name, value in variant.params.items()):
                return variant.facts(self.facts)
        return self.facts

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted hasher to one file; :func:`starshl.load` reads it back."""
        check_is_fitted(self)
        header, arrays = self._pack()
        record = {"fit_record": self.fit_record_} if hasattr(self, "fit_record_") else {}
        write_bundle(path, {"method": type(self).__name__, **header, **record}, arrays)

    def _pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return header entries and arrays from which :meth:`_unpack` rebuilds this hasher."""
        params, param_arrays = pack_values(self._packable_params(), "param.")
        fitted, fitted_arrays = pack_values(self._packable_state(), "fitted.")
        return {"params": params, "fitted": fitted}, param_arrays | fitted_arrays

    @classmethod
    def _unpack(
        cls,
        header: dict[str, Any],
        arrays: dict[str, np.ndarray],
        kernels: Sequence[Any] | None = None,
        steps: Sequence[Any] | None = None,
    ) -> Self:
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
            _check_learned_numbers(getattr(self, name), name, shape)
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
        codebook = getattr(self, "codebook_", None)
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
        return hasattr(self, "n_bits_")

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

    def _scores(self, X: SamplesLike) -> np.ndarray:
        """Return ``X @ components_.T + intercept_``."""
        rows = check_rows(self, X, fitting=False, accept_sparse=True)
        return project(rows, self.components_, self.intercept_)


def _check_learned_indices(indices: Any, name: str, size: int) -> None:
    is_integer = isinstance(indices, np.ndarray) and indices.dtype.kind in "iu"
    if not is_integer or (indices.size and (indices.min() < 0 or indices.max() >= size)):
        raise BundleFormatError.damaged(f"{name} must hold indices from 0 to {size - 1}")


def _check_learned_numbers(numbers: Any, name: str, shape: tuple[int, ...]) -> None:
    is_numeric = isinstance(numbers, np.ndarray) and numbers.dtype.kind in "biuf"
    if not is_numeric or numbers.shape != shape or not np.isfinite(numbers).all():
        raise BundleFormatError.damaged(f"{name} must hold finite numbers in the shape {shape}")


def _is_same(given: Any, value: Any) -> bool:
    # A parameter may be an array, which has no single answer to ==.
    return type(given) is type(value) and bool(given == value)
