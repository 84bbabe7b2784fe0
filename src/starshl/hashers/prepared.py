"""PreparedHasher: a hasher together with the preprocessing that its rows need, in one model file."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if

from .._common.bundle import pack_values, unpack_values
from .._common.labels import Labels, LabelsLike
from .._common.validation import Rows, SamplesLike
from ..codes.binary import BinaryCodes, Metric, make_space_id
from ..codes.codebook import Codebook
from ..codes.queries import EncodedQueries
from ..codes.score_rule import ScoreRule
from ..codes.word_dictionary import Words
from ..data.features.pictures import PictureFeatures
from ..data.features.step_files import (
    HASHER_PREFIX,
    Probe,
    check_arrays_have_owners,
    pack_steps,
    take_probes,
    unpack_steps,
)
from ..exceptions import BundleFormatError, MissingCapabilityError
from ..index.memory import MemoryIndex
from .base import BaseHasher, Capability, FitSummary, all_or_nothing, supported
from .catalog import pack_inner, unpack_inner
from .facts import Facts
from .outer import OuterHasher
from .star.star_ridge import StarRidge

_FITTED = ("n_bits_", "n_features_in_", "feature_names_in_")


class PreparedHasher(OuterHasher):
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
        if hasher.__sklearn_is_fitted__():
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
        kept = None if self.takes_cells or not steps else _numbers_of(X)
        if kept is not None:
            self.hasher_.measure_vectors(kept)
        self.probes_ = take_probes(steps, X)
        return self

    @property
    def supports(self) -> frozenset[Capability]:
        """What the hasher inside can do; its training rows are prepared ones."""
        return self._answering.supports - {"training_rows"}

    @property
    def _answering(self) -> BaseHasher:
        if not isinstance(self.hasher, BaseHasher):
            raise ValueError(f"hasher is of type {type(self.hasher).__name__}; it must be a hasher such as StarSHL.")
        return vars(self).get("hasher_", self.hasher)

    def _lacking(self, capability: Capability, parameter: str | None) -> MissingCapabilityError:
        return self._answering._lacking(capability, parameter)

    @property
    def inner(self) -> BaseHasher:
        """The hasher behind all preprocessing."""
        return self._answering.inner

    @property
    def fitted_steps(self) -> tuple[Any, ...]:
        """The fitted steps of this hasher, and those of the hasher inside."""
        return (*self.steps_, *self.hasher_.fitted_steps)

    def prepare(self, X: SamplesLike) -> Any:
        """Return the rows as the steps leave them, ready for the hasher inside."""
        self._require_fit()
        rows = X
        for step in self.steps_:
            rows = step.transform(rows)
        return rows

    def _inward(self, X: SamplesLike) -> Any:
        return self.prepare(X)

    def with_hasher(self, hasher: BaseHasher) -> Self:
        """Return the same fitted steps before another fitted hasher."""
        other = type(self)([clone(step) for step in self.steps], clone(hasher))
        for name, value in self._learned_state().items():
            setattr(other, name, value)
        other._adopt(self.steps_, hasher)
        return other

    def at_length(self, n_bits: int) -> Self:
        """Return a copy that is not fitted and makes codes of another length."""
        return clone(self).set_params(hasher=self.hasher.at_length(n_bits))

    # Rows of a table, which hold more than numbers: a collection keeps them as the steps leave them.

    @property
    def takes_cells(self) -> bool:
        """Whether rows hold text and numbers, which the steps turn into vectors."""
        return bool(self.steps) and get_tags(self).input_tags.string

    @property
    def vector_width(self) -> int | None:
        """How many numbers a collection keeps of a row: those after the steps if rows are of cells."""
        return self.hasher_.row_width if self.takes_cells else self.row_width

    def without_steps(self) -> BaseHasher:
        """Return a hasher that makes the same codes of kept vectors."""
        if not self.takes_cells:
            return self
        bare = copy(self)
        bare.steps_, bare.n_features_in_ = [], cast(int, self.vector_width)
        vars(bare).pop("feature_names_in_", None)
        return bare

    def for_rows(self, X: SamplesLike) -> BaseHasher:
        """Return the hasher that takes X: one without steps if X are kept vectors of a hasher that takes cells."""
        if not self.takes_cells or not isinstance(X, np.ndarray) or X.dtype.kind != "f" or X.ndim != 2:
            return self
        return self.without_steps() if X.shape[1] == self.vector_width != self.n_features_in_ else self

    # Codes.

    def _scores(self, X: SamplesLike) -> np.ndarray:
        return self.hasher_.decision_function(self.prepare(X))

    def encode(self, X: SamplesLike) -> BinaryCodes:
        """Return the codes of queries as packed bytes."""
        return self._own(self.hasher_.encode(self.prepare(X)))

    def _own(self, codes: BinaryCodes) -> BinaryCodes:
        """Return codes of the hasher inside as codes of the space of this one."""
        return replace(codes, space_id=self.space_id_)

    def encode_queries(self, X: SamplesLike) -> EncodedQueries:
        """Return queries for the index of :meth:`make_index`."""
        queries = self.hasher_.encode_queries(self.prepare(X))
        return replace(queries, codes=self._own(queries.codes))

    def hamming_codes(self, codes: BinaryCodes | EncodedQueries) -> BinaryCodes:
        """Return codes for systems that only compare bits, as the hasher inside makes them."""
        return self.hasher_.hamming_codes(codes)

    def encode_database(self, X: SamplesLike, y: LabelsLike = None) -> BinaryCodes:
        """Return the codes of items that queries are compared with, as packed bytes."""
        return self._own(self.hasher_.encode_database(self.prepare(X), y))

    def encode_left_out(self, X: SamplesLike) -> BinaryCodes:
        """Return the codes of the rows of the fit as items without labels, each coded without itself if it can be."""
        return self._own(self.hasher_.encode_left_out(self.prepare(X)))

    @property
    def training_codes_(self) -> BinaryCodes | None:
        """The codes of the rows of the fit as items, from the hasher inside."""
        kept = self.hasher_.training_codes_
        return None if kept is None else self._own(kept)

    @available_if(supported("relabel"))
    def relabel(self, codes: BinaryCodes, y: LabelsLike) -> BinaryCodes:
        """Return the codes of items with these labels, if labels change the codes of the hasher inside."""
        return self.hasher_.relabel(codes, y)

    @property
    def code_metric(self) -> Metric:
        """How codes are compared, as the hasher inside does."""
        return self._answering.code_metric

    @property
    def words(self) -> Words | None:
        """What codes of items stand for, as the hasher inside says."""
        return self.hasher_.words

    def vector_rule(self, metric: Literal["euclidean", "cosine"]) -> ScoreRule | None:
        """Return how items whose vectors are kept are ordered, as the hasher inside says."""
        return self.hasher_.vector_rule(metric)

    def make_index(self, codes: BinaryCodes, ids: ArrayLike | None = None, *, n_jobs: int | None = None) -> MemoryIndex:
        """Return an index of these codes that uses the distance of the hasher inside."""
        return self.hasher_.make_index(codes, ids, n_jobs=n_jobs)

    def _make_space_id(self) -> str | None:
        inside, codebook = self.hasher_.space_id_, self.hasher_.class_codebook
        if inside is None or not self.steps_ or (codebook is not None and codebook.space_id == inside):
            return inside
        arrays: dict[str, np.ndarray] = {}
        specs = pack_steps(self.steps_, self.probes_, arrays)
        return make_space_id([type(self).__name__, specs, inside], arrays)

    # What the hasher inside knows and can do.

    @available_if(supported("class_scores"))
    def class_scores(self, X: SamplesLike) -> np.ndarray:
        """Return the scores of the classes, if the hasher inside has some."""
        return self.hasher_.class_scores(self.prepare(X))

    @available_if(supported("codeword_distances"))
    def codeword_distances(self, X: SamplesLike, metric: Literal["hamming", "hinge"] = "hamming") -> np.ndarray:
        """Return the distance of each row to each codeword, if the hasher inside has codewords."""
        return self.hasher_.codeword_distances(self.prepare(X), metric)

    @available_if(supported("with_bits"))
    def with_bits(self, n_bits: int, **params: Any) -> Self:
        """Return this fitted hasher with codes of another length, without a new fit, if the hasher inside can."""
        self._require_fit()
        return self.with_hasher(self.hasher_.with_bits(n_bits, **params))

    @available_if(supported("compress"))
    def compress(self, n_support: int | None = None, X: SamplesLike | None = None, **params: Any) -> Self:
        """Return a fitted hasher that encodes faster, if the hasher inside can; X are more raw rows."""
        self._require_fit()
        rows = None if X is None else self.prepare(X)
        return self.with_hasher(self.hasher_.compress(n_support, rows, **params))

    @property
    def codebook_(self) -> Codebook:  # type: ignore[override]  # nobody sets it: it belongs to the hasher inside
        """The codebook of the hasher inside, if it has one."""
        return self.hasher_.codebook_

    @property
    def class_words(self) -> np.ndarray | None:
        """The signs that stand for each class in a code of the hasher inside."""
        return self.hasher_.class_words

    @property
    def class_codebook(self) -> Codebook | None:
        """The codebook of the hasher inside, if it has one."""
        return self.hasher_.class_codebook

    @property
    def holds_clusters(self) -> bool:
        """Whether the classes of the hasher inside are clusters."""
        return self.hasher_.holds_clusters

    @property
    def fit_summary(self) -> FitSummary:
        """What the fit of the hasher inside found."""
        return self.hasher_.fit_summary

    def leave_one_out(self, *, precision: bool = True) -> dict[str, Any] | None:
        """Return what the fit of the hasher inside says about unseen rows."""
        return self.hasher_.leave_one_out(precision=precision)

    @property
    def transduction_(self) -> np.ndarray:
        """The labels of all rows of the fit, from the hasher inside."""
        return cast(Any, self.hasher_).transduction_

    @property
    def choice_(self) -> str:
        """What the fit of the hasher inside chose and why, in one line."""
        return cast(Any, self.hasher_).choice_

    @property
    def view_weights_(self) -> dict[str, float]:
        """How much each view counts, from the hasher inside."""
        return cast(Any, self.hasher_).view_weights_

    @property
    def facts(self) -> Facts:  # type: ignore[override]  # a fact of the class elsewhere
        """The facts of the hasher inside."""
        return self.hasher.facts

    @property
    def current_facts(self) -> Facts:
        """The facts of the hasher inside, in its own setting; the steps want all rows in memory."""
        return replace(self.hasher.current_facts, reads_blocks=False)

    @property
    def n_bits(self) -> int:  # type: ignore[override]  # nobody sets it: the hasher inside knows it
        """The requested code length of the hasher inside."""
        return self.hasher.n_bits

    @property
    def n_jobs(self) -> int | None:
        """The number of threads of the hasher inside."""
        return self._answering.n_jobs

    @n_jobs.setter
    def n_jobs(self, value: int | None) -> None:
        self.hasher.n_jobs = self._answering.n_jobs = value

    def _check_settings(self) -> None:
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

    def pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        arrays: dict[str, np.ndarray] = {}
        specs = pack_steps(self.steps_, self.probes_, arrays)
        inner, hasher_arrays = pack_inner(self.hasher_, HASHER_PREFIX)
        arrays |= hasher_arrays
        fitted = {name: value for name, value in self._learned_state().items() if name in _FITTED}
        plain, packed = pack_values(fitted, "fitted.")
        return {"steps": specs, "hasher": inner, "fitted": plain}, arrays | packed

    @classmethod
    def unpack(
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
        names = vars(self).get("feature_names_in_")
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
        if self.steps:
            tags.input_tags = get_tags(self.steps[0]).input_tags
        return tags


def _numbers_of(X: Any) -> Rows | None:
    """Return rows as a collection keeps them, None if they are no rows of numbers."""
    if issparse(X):
        return cast(Rows, X)
    try:
        rows = np.asarray(X)
        rows = rows if rows.dtype.kind in "iuf" else rows.astype(np.float64)
    except (TypeError, ValueError):
        return None
    return rows if rows.ndim == 2 else None


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
