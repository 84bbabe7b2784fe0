"""PreparedHasher: a hasher together with the preprocessing that its rows need, in one model file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._common.bundle import pack_values, unpack_values
from .._common.labels import Label, Labels, LabelsLike
from .._common.validation import SamplesLike
from ..codes.binary import BinaryCodes, make_space_id
from ..codes.codebook import Codebook
from ..data.features.pictures import PictureFeatures
from ..data.features.step_files import (
    HASHER_PREFIX,
    Probe,
    check_arrays_have_owners,
    pack_steps,
    take_probes,
    unpack_steps,
)
from ..exceptions import BundleFormatError
from .base import BaseHasher, all_or_nothing
from .catalog import pack_inner, unpack_inner
from .facts import Facts
from .star.star_ridge import StarRidge

_FITTED = ("n_bits_", "n_features_in_", "feature_names_in_")


def _hasher_has(method: str) -> Callable[[PreparedHasher], bool]:
    return lambda self: hasattr(self.hasher, method)


class PreparedHasher(BaseHasher):
    """Prepare rows by steps, then hash them.

    It takes raw rows wherever a hasher takes rows: in ``fit``, ``encode``, ``predict``, collections and commands. The
    steps of :mod:`starshl.data.features` are saved with the model, as data. Any other scikit-learn transformer works
    too, but a file holds no code: pass it again, fitted, to ``load``.

    Parameters
    ----------
    steps : list of transformers
        Applied in this order; fitted on clones.
    hasher : BaseHasher
        Fitted on a clone.

    Attributes
    ----------
    steps_ : list of the fitted steps
    hasher_ : the fitted hasher
    n_bits_ : int
    n_features_in_ : int, number of columns of the raw rows

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from starshl import StarSHL
    >>> from starshl.data.features import Scale
    >>> from starshl.hashers import PreparedHasher
    >>> X, y = load_wine(return_X_y=True)
    >>> hasher = PreparedHasher([Scale()], StarSHL(8, random_state=0)).fit(X[::2], y[::2])
    >>> hasher.score(X[1::2], y[1::2]) > 0.9
    True
    """

    steps_: list[Any]
    hasher_: BaseHasher
    feature_names_in_: np.ndarray
    probes_: list[Probe | None]

    def __init__(self, steps: Sequence[BaseEstimator], hasher: BaseHasher):
        self.steps = steps
        self.hasher = hasher

    @classmethod
    def from_pipeline(cls, pipeline: Pipeline, X: SamplesLike | None = None) -> Self:
        """Return the steps and the hasher of a scikit-learn pipeline as one hasher, fitted if the pipeline is.

        Parameters
        ----------
        pipeline : Pipeline
            Its last step is a hasher.
        X : rows, default=None
            A few raw rows. With them, a model file can check that transformers passed to ``load`` are the right
            ones.
        """
        *before, (_, hasher) = pipeline.steps
        if not isinstance(hasher, BaseHasher):
            raise ValueError(f"The last step of the pipeline is a {type(hasher).__name__}; it must be a hasher.")
        steps = [step for _, step in before if step is not None and step != "passthrough"]
        prepared = cls([clone(step) for step in steps], clone(hasher))
        if hasattr(hasher, "n_bits_"):
            prepared._adopt(steps, hasher)
            prepared._record_columns(pipeline)
            prepared.probes_ = take_probes(steps, X)
        return prepared

    @all_or_nothing
    def fit(self, X: SamplesLike, y: LabelsLike = None, **fit_params: Any) -> Self:
        """Fit each step on the output of the earlier ones, and the hasher on the result.

        ``fit_params`` go to the hasher. A neighbor graph among them (``graph``) must be of the prepared rows.
        """
        self._check_settings()
        rows, steps = X, []
        given = np.asarray(y) if isinstance(y, Labels) else y  # a step of another library may expect an array
        for step in self.steps:
            fitted: Any = clone(step)
            rows = fitted.fit_transform(rows, given)
            steps.append(fitted)
        self._adopt(steps, clone(self.hasher).fit(rows, y, **fit_params))
        self._record_columns(steps[0] if steps else self.hasher_, X)
        self.probes_ = take_probes(steps, X)
        return self

    def prepare(self, X: SamplesLike) -> Any:
        """Return the rows as the steps leave them, ready for the hasher inside."""
        check_is_fitted(self)
        rows = X
        for step in self.steps_:
            rows = step.transform(rows)
        return rows

    def _scores(self, X: SamplesLike) -> np.ndarray:
        return self.hasher_.decision_function(self.prepare(X))

    def encode(self, X: SamplesLike) -> BinaryCodes:
        """Return the codes of queries as packed bytes."""
        return self.as_codes(self.hasher_.encode(self.prepare(X)).packed)

    @available_if(_hasher_has("encode_queries"))
    def encode_queries(self, X: SamplesLike) -> Any:
        """Return queries for the index of :meth:`make_index`."""
        queries = self._classifier.encode_queries(self.prepare(X))
        if isinstance(queries, BinaryCodes):
            return replace(queries, space_id=self.space_id_)
        return replace(queries, codes=replace(queries.codes, space_id=self.space_id_))

    def encode_database(self, X: SamplesLike, y: LabelsLike = None) -> BinaryCodes:
        """Return the codes of items that queries are compared with, as packed bytes."""
        return self.as_codes(self.hasher_.encode_database(self.prepare(X), y).packed)

    def as_codes(self, packed: np.ndarray) -> BinaryCodes:
        """Return packed bytes that this hasher once made as codes of its space."""
        return replace(self.hasher_.as_codes(packed), space_id=getattr(self, "space_id_", None))

    @available_if(_hasher_has("predict"))
    def predict(self, X: SamplesLike, **params: Any) -> np.ndarray:
        """Return the class of each row, if the hasher inside predicts."""
        return self._classifier.predict(self.prepare(X), **params)

    @available_if(_hasher_has("predict_proba"))
    def predict_proba(self, X: SamplesLike) -> np.ndarray:
        """Return the probability of each class, if the hasher inside estimates them."""
        return self._classifier.predict_proba(self.prepare(X))

    @available_if(_hasher_has("novelty"))
    def novelty(self, X: SamplesLike) -> np.ndarray:
        """Return how different each row is from all training rows, from 0 to 1, if the hasher inside can tell."""
        return self._classifier.novelty(self.prepare(X))

    @available_if(_hasher_has("with_bits"))
    def with_bits(self, n_bits: int, **params: Any) -> Self:
        """Return this fitted hasher with codes of another length, without a new fit, if the hasher inside can."""
        check_is_fitted(self)
        return self.with_hasher(self._classifier.with_bits(n_bits, **params))

    @available_if(_hasher_has("compress"))
    def compress(self, n_support: int | None = None, X: SamplesLike | None = None, **params: Any) -> Self:
        """Return a fitted hasher that encodes faster, if the hasher inside can; X are more raw rows."""
        check_is_fitted(self)
        rows = None if X is None else self.prepare(X)
        return self.with_hasher(self._classifier.compress(n_support, rows, **params))

    def with_hasher(self, hasher: BaseHasher) -> Self:
        """Return the same fitted steps before another fitted hasher."""
        other = type(self)([clone(step) for step in self.steps], clone(hasher))
        for name, value in self._learned_state().items():
            setattr(other, name, value)
        other._adopt(self.steps_, hasher)
        return other

    @available_if(_hasher_has("make_index"))
    def make_index(self, codes: BinaryCodes, ids: ArrayLike | None = None, *, n_jobs: int | None = None) -> Any:
        """Return an index of these codes that uses the distance of the hasher inside."""
        return self._classifier.make_index(codes, ids, n_jobs=n_jobs)

    @available_if(_hasher_has("score"))
    def score(self, X: SamplesLike, y: LabelsLike = None, **params: Any) -> float:
        """Return the score of the hasher inside, the accuracy if there are labels."""
        return self._classifier.score(self.prepare(X), y, **params)

    @property
    def classes_(self) -> np.ndarray:
        """The classes of the hasher inside."""
        return self._classifier.classes_

    @property
    def codebook_(self) -> Codebook:  # type: ignore[override]  # nobody sets it: it belongs to the hasher inside
        """The codebook of the hasher inside, if it has one."""
        return self._classifier.codebook_

    def _make_space_id(self) -> str:
        codebook = getattr(self.hasher_, "codebook_", None)
        if not self.steps_ or (codebook is not None and codebook.space_id == self.hasher_.space_id_):
            return self.hasher_.space_id_
        arrays: dict[str, np.ndarray] = {}
        specs = pack_steps(self.steps_, self.probes_, arrays)
        return make_space_id([type(self).__name__, specs, self.hasher_.space_id_], arrays)

    @property
    def transduction_(self) -> np.ndarray:
        """The labels of all rows of the fit, from the hasher inside."""
        return self._classifier.transduction_

    @property
    def training_codes_(self) -> BinaryCodes:
        """The codes of the rows of the fit as items, from the hasher inside."""
        return self.as_codes(self._classifier.training_codes_.packed)

    @property
    def choice_(self) -> str:
        """What the fit of the hasher inside chose and why, in one line."""
        return self._classifier.choice_

    @property
    def view_weights_(self) -> dict[str, float]:
        """How much each view counts, from the hasher inside."""
        return self._classifier.view_weights_

    @property
    def facts(self) -> Facts:  # type: ignore[override]  # a fact of the class elsewhere
        """The facts of the hasher inside."""
        return self.hasher.facts

    @property
    def current_facts(self) -> Facts:
        """The facts of the hasher inside, in its own setting."""
        return self.hasher.current_facts

    @property
    def n_bits(self) -> int:  # type: ignore[override]  # nobody sets it: the hasher inside knows it
        """The requested code length of the hasher inside."""
        return self.hasher.n_bits

    @property
    def n_jobs(self) -> int | None:
        """The number of threads of the hasher inside."""
        return getattr(self.hasher, "n_jobs", None)

    @n_jobs.setter
    def n_jobs(self, value: int | None) -> None:
        self.hasher.n_jobs = value
        if hasattr(self, "hasher_"):
            self.hasher_.n_jobs = value

    @property
    def _classifier(self) -> Any:
        """The hasher inside, where it is known to predict."""
        return self.hasher_

    def _check_settings(self) -> None:
        if not isinstance(self.hasher, BaseHasher):
            raise ValueError(f"hasher is of type {type(self.hasher).__name__}; it must be a hasher such as StarSHL.")
        if not isinstance(self.steps, (list, tuple)):
            raise ValueError(f"steps is of type {type(self.steps).__name__}; give a list of transformers.")
        for position, step in enumerate(self.steps):
            if not (hasattr(step, "fit") and hasattr(step, "transform")):
                raise ValueError(f"steps[{position}] is of type {type(step).__name__}; it must have fit and transform.")

    def _adopt(self, steps: list[Any], hasher: BaseHasher) -> None:
        self.steps_, self.hasher_, self.n_bits_ = steps, hasher, hasher.n_bits_

    def _record_columns(self, first: Any, X: Any = None) -> None:
        """Copy the number and the names of columns from the step that sees the raw rows."""
        n_features = getattr(first, "n_features_in_", None)
        self.n_features_in_ = int(n_features if n_features is not None else np.shape(X)[1] if np.ndim(X) == 2 else 1)
        if hasattr(first, "feature_names_in_"):
            self.feature_names_in_ = np.asarray(first.feature_names_in_, dtype=object)

    def _pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        arrays: dict[str, np.ndarray] = {}
        specs = pack_steps(self.steps_, self.probes_, arrays)
        inner, hasher_arrays = pack_inner(self.hasher_, HASHER_PREFIX)
        arrays |= hasher_arrays
        fitted = {name: value for name, value in self._learned_state().items() if name in _FITTED}
        plain, packed = pack_values(fitted, "fitted.")
        return {"steps": specs, "hasher": inner, "fitted": plain}, arrays | packed

    @classmethod
    def _unpack(
        cls,
        header: dict[str, Any],
        arrays: dict[str, np.ndarray],
        kernels: Sequence[Any] | None = None,
        steps: Sequence[Any] | None = None,
    ) -> Self:
        specs = header["steps"]
        check_arrays_have_owners(specs, arrays)
        fitted, probes = unpack_steps(specs, arrays, steps, "load(path, steps=[...])")
        hasher = unpack_inner(header["hasher"], arrays, HASHER_PREFIX, kernels)
        prepared = cls([clone(step) for step in fitted], clone(hasher))
        prepared._adopt(fitted, hasher)
        prepared._restore_state(unpack_values(header["fitted"], arrays, "fitted."))
        prepared.probes_ = probes
        prepared._check_restored()
        return prepared

    def _check_restored(self) -> None:
        """Refuse steps whose features do not fit what comes after them."""
        if self.n_bits_ != self.hasher_.n_bits_ or type(self.n_features_in_) is not int:
            raise BundleFormatError.damaged("its n_bits_ or n_features_in_ does not fit the rest")
        names = getattr(self, "feature_names_in_", None)
        if names is not None and np.shape(names) != (self.n_features_in_,):
            raise BundleFormatError.damaged("it does not have one name per column")
        n_features: int | None = self.n_features_in_
        for step in [*self.steps_, self.hasher_]:
            if n_features is not None and getattr(step, "n_features_in_", n_features) != n_features:
                raise BundleFormatError.damaged(
                    f"{type(step).__name__} takes {step.n_features_in_} features and gets {n_features}"
                )
            n_features = getattr(step, "n_features_out_", None)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.hasher)
        tags.estimator_type, tags.classifier_tags = inner.estimator_type, inner.classifier_tags
        if self.steps:
            tags.input_tags = get_tags(self.steps[0]).input_tags
        return tags


def inner_hasher(hasher: BaseHasher) -> BaseHasher:
    """Return the fitted hasher inside all preprocessing, or the hasher itself if there is none."""
    return inner_hasher(hasher.hasher_) if isinstance(hasher, PreparedHasher) else hasher


# A hasher of pictures in one line: features, views and hash functions.


def picture_hasher(
    shape: Sequence[int], hasher: BaseHasher | None = None, *, parts: Sequence[str] | None = None
) -> PreparedHasher:
    """Return a hasher that takes pictures: their features are computed first, and each kind of them is a view.

    Parameters
    ----------
    shape : (height, width) or (height, width, 3)
    hasher : BaseHasher, default=None
        None is ``StarRidge()``. Hashers without views get all features side by side.
    parts : sequence of {"pixels", "hog", "color"}, default=None
        See :class:`PictureFeatures`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from starshl import StarRidge
    >>> from starshl.hashers import picture_hasher
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = picture_hasher((8, 8), StarRidge(16, random_state=0)).fit(X[:500], y[:500])
    >>> sorted(hasher.view_weights_)
    ['hog_2', 'pixels']
    >>> hasher.score(X[500:], y[500:]) > 0.95
    True
    """
    features = PictureFeatures(shape, parts=parts)
    inner: BaseHasher = StarRidge() if hasher is None else clone(hasher)
    if "views" in inner.get_params(deep=False):
        inner.set_params(views=features.views)
    return PreparedHasher([features], inner)


# Rows of a table, which hold more than numbers: a collection keeps them as the steps of its hasher leave them.


def takes_cells(hasher: BaseHasher) -> bool:
    """Return whether a hasher takes rows of text and numbers, which its own steps turn into vectors."""
    return isinstance(hasher, PreparedHasher) and bool(hasher.steps) and get_tags(hasher).input_tags.string


def kept_width(hasher: BaseHasher) -> int | None:
    """Return how many numbers are kept of a row, None if the hasher was not fitted on rows of columns."""
    found = getattr(_inner(hasher), "n_features_in_", None)
    return None if found is None else int(found)


def vector_hasher(hasher: BaseHasher, X: SamplesLike) -> BaseHasher:
    """Return the hasher that takes X: the same without its steps if X are kept vectors of a hasher of cells."""
    if not takes_cells(hasher) or not isinstance(X, np.ndarray) or X.dtype.kind != "f" or X.ndim != 2:
        return hasher
    return without_steps(hasher) if X.shape[1] == kept_width(hasher) != hasher.n_features_in_ else hasher


def without_steps(hasher: BaseHasher) -> BaseHasher:
    """Return a hasher of kept vectors that makes the same codes, of the same space."""
    if not takes_cells(hasher):
        return hasher
    bare = cast(PreparedHasher, copy(hasher))
    bare.steps_, bare.n_features_in_ = [], cast(int, kept_width(hasher))
    vars(bare).pop("feature_names_in_", None)
    return bare


def rewrapped(present: BaseHasher, new: BaseHasher) -> BaseHasher:
    """Return a hasher of kept vectors behind the steps that made them, so that rows can still be asked for."""
    if takes_cells(present) and not takes_cells(new) and kept_width(new) == kept_width(present):
        return cast(PreparedHasher, present).with_hasher(new)
    return new


def same_steps(one: BaseHasher, other: BaseHasher) -> bool:
    """Return whether two hashers of cells share their fitted steps, so that they make the same vectors."""
    return getattr(one, "steps_", None) is getattr(other, "steps_", None)


def _inner(hasher: BaseHasher) -> Any:
    return cast(PreparedHasher, hasher).hasher_ if takes_cells(hasher) else hasher


# The classes of a hasher: which of its parts decides them, and what pages call them.


def class_hasher(hasher: Any) -> Any:
    """Return the hasher that decides the class of a hybrid one, or the hasher behind the preprocessing."""
    inner = inner_hasher(hasher)
    return getattr(inner, "class_hasher_", inner)


def holds_clusters(hasher: Any) -> bool:
    """Return whether the classes of a hasher are clusters that a fit without labels has found."""
    inner: Any = inner_hasher(hasher)
    if hasattr(inner, "field_holds_"):
        return bool(inner.field_holds_ == "clusters")
    labeled = getattr(class_hasher(hasher), "labeled_", None)
    return labeled is not None and len(labeled) > 0 and not np.any(labeled)


def class_names(hasher: Any) -> list[Label]:
    """Return what pages call the classes of a hasher; the number of a cluster must not be taken for a label."""
    names = np.asarray(getattr(class_hasher(hasher), "classes_", ())).tolist()
    return [f"cluster {name}" for name in names] if holds_clusters(hasher) else names
