"""HybridHasher: the class and the neighbors of a row in one code."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, check_random_state

from .._types import LabelsLike, Rows, SamplesLike, Seed
from .._validation import PartialLabels, check_integer, check_labels, check_rows
from ..base import BaseHasher, all_or_nothing
from ..baselines.itq import ITQ
from ..catalog import pack_inner, unpack_inner
from ..codes import BinaryCodes, make_space_id
from ..exceptions import BundleFormatError
from ..facts import Facts
from ..graphs import NeighborGraph, suggest_n_clusters
from ..index.hybrid import MAX_CLASS_BITS, HybridIndex
from ..models.item_codes import known_labels
from ..models.star_ridge import StarRidge
from ..packing import pack_values, unpack_values
from .weight import DEFAULT_WEIGHT, choose_weight

__all__ = ["HybridHasher"]

_SEEDS = np.iinfo(np.int32).max
# With 500, the precision of a weight is uncertain by more than the tolerance: choices differed between samples.
_MAX_TUNING_ROWS = 3000
_CLASS, _NEIGHBOR = "class_hasher", "neighbor_hasher"


def _class_hasher_has(method: str) -> Callable[[HybridHasher], bool]:
    return lambda self: hasattr(getattr(self, "class_hasher_", self.class_hasher or StarRidge), method)


def _knows_labels(self: HybridHasher) -> bool:
    return getattr(self, "field_holds_", "") == "classes"


class HybridHasher(BaseHasher):
    """Write the class of a row into the first bits of its code, and its neighborhood into the others.

    A supervised code finds items of the right class, but cannot tell them apart. A hybrid code finds the nearest items
    of the right class: the class field is the number of the class in binary, as short as possible, and the other bits
    are those of a hasher of neighbors. The class field of a query holds the predicted class, that of an item its label
    where one is given. The distance of two codes is the Hamming distance of the neighbor bits, plus ``class_weight_``
    if the class fields differ. :meth:`make_index` returns the index that computes it.

    Parameters
    ----------
    class_hasher : hasher with ``predict``, default=None
        Fitted on a clone. None is :class:`starshl.StarRidge`. If there are no labels, the class field then holds one of
        2^(f + 1) clusters, f = ceil(log2 k), where k is a suggested number of clusters.
    neighbor_hasher : hasher, default=None
        Fitted on a clone, which gets the bits that the class field leaves. None is :class:`starshl.baselines.ITQ`.
    n_bits : int, default=32
        Length of the codes, both fields together.
    class_weight : int, default=None
        How many bits of distance another class costs. None chooses by the precision of training rows that are each
        searched without themselves: the smallest weight that is nearly as good as the best. Without labels it is 4.
    n_jobs : int, default=None
        Threads; None is one, -1 all. Codes do not depend on it.
    random_state : int, RandomState or None, default=None
        Seeds the default hashers, and the choice of the rows that choose the weight.

    Attributes
    ----------
    class_hasher_, neighbor_hasher_ : the fitted hashers; the second is None if the class field takes all bits
    classes_ : array of shape (n_classes,)
    class_bits_ : int, length of the class field
    class_weight_ : int
    field_holds_ : "classes", or "clusters" if the fit had no labels

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from starshl import HybridHasher, make_index
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = HybridHasher(n_bits=32, random_state=0).fit(X[:900], y[:900])
    >>> hasher.class_bits_, hasher.neighbor_hasher_.n_bits_
    (4, 28)
    >>> index = make_index(hasher.encode_database(X[:900], y[:900]), hasher=hasher)
    >>> distances, ids = index.search(hasher.encode(X[900:]), k=10)
    >>> float((y[ids] == y[900:, None]).mean()) > 0.94
    True
    """

    facts = Facts(
        paper="this package: a class field and neighbor bits",
        year=2026,
        labels="optional",
        cost="that of both hashers",
        max_bits="rank",
        sparse=True,
    )

    class_hasher_: Any
    neighbor_hasher_: BaseHasher | None

    def __init__(
        self,
        class_hasher: BaseHasher | None = None,
        neighbor_hasher: BaseHasher | None = None,
        n_bits: int = 32,
        *,
        class_weight: int | None = None,
        n_jobs: int | None = None,
        random_state: Seed = None,
    ):
        self.class_hasher = class_hasher
        self.neighbor_hasher = neighbor_hasher
        self.n_bits = n_bits
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: SamplesLike, y: LabelsLike = None, **fit_params: Any) -> Self:
        """Fit the class hasher on the labels, the neighbor hasher on the rows, and choose the weight.

        Parameters
        ----------
        X : array or CSR array of shape (n, n_features)
        y : array of shape (n,), default=None
            Labels, marked as for :class:`starshl.StarRidge` where there are none.
        fit_params : further arguments of ``fit`` of the class hasher, such as ``graph``
        """
        n_bits = check_integer(self.n_bits, "n_bits", low=1)
        if self.class_weight is not None:
            check_integer(self.class_weight, "class_weight", low=0)
        self._check_hashers()
        rows = check_rows(self, X, fitting=True, accept_sparse=True)
        labels = check_labels(y, rows.shape[0])
        seeds = check_random_state(self.random_state).randint(_SEEDS, size=4).tolist()
        self.field_holds_ = "classes" if labels.labeled.any() else "clusters"
        self.class_hasher_ = self._fit_classes(rows, y, seeds, fit_params)
        self.class_bits_ = _n_class_bits(len(self.classes_), n_bits)
        self.neighbor_hasher_ = self._fit_neighbors(rows, n_bits, seeds[2])
        self.n_bits_ = n_bits
        self.class_weight_ = self._choose_weight(rows, labels, seeds[3])
        return self

    def _fit_classes(self, rows: Rows, y: LabelsLike, seeds: list[int], fit_params: dict[str, Any]) -> BaseHasher:
        if self.class_hasher is not None:
            return self._with_threads(clone(self.class_hasher)).fit(rows, y, **fit_params)
        ridge = self._default_class_hasher(seeds[0])
        if self.field_holds_ == "clusters":
            graph = fit_params.get("graph") or NeighborGraph.of_rows(rows, n_jobs=self.n_jobs)
            n_suggested = suggest_n_clusters(graph, np.random.RandomState(seeds[1]))
            ridge.n_codewords = min(2 ** (_n_digits(n_suggested) + 1), rows.shape[0])
            y, fit_params = None, {**fit_params, "graph": graph}
        return self._with_threads(ridge).fit(rows, y, **fit_params)

    def _default_class_hasher(self, seed: int) -> StarRidge:
        return StarRidge(random_state=seed)

    def _fit_neighbors(self, rows: Rows, n_bits: int, seed: int) -> BaseHasher | None:
        n_left = n_bits - self.class_bits_
        if n_left == 0:
            return None
        template = ITQ(random_state=seed) if self.neighbor_hasher is None else clone(self.neighbor_hasher)
        try:
            return self._with_threads(template.set_params(n_bits=n_left)).fit(rows)
        except ValueError as error:
            if "n_bits" not in str(error):
                raise
            raise ValueError(
                f"n_bits is {n_bits}; {self.class_bits_} of them hold the class, and {type(template).__name__} does "
                f"not make the others: {error}"
            ) from error

    def _with_threads(self, hasher: Any) -> Any:
        if self.n_jobs is not None:
            hasher.n_jobs = self.n_jobs
        return hasher

    def _choose_weight(self, rows: Rows, labels: PartialLabels, seed: int) -> int:
        if self.class_weight is not None:
            return int(self.class_weight)
        known = np.flatnonzero(labels.labeled)
        if len(known) < 2 or self.neighbor_hasher_ is None:
            return DEFAULT_WEIGHT
        if not isinstance(self.class_hasher_, StarRidge):
            predicted = self._predicted_index(rows[known])
        else:
            # Each row scored without itself: the class of a query that the fit has not seen.
            predicted = self.class_hasher_._bend(self.class_hasher_.training_scores_[known]).argmax(axis=1)
        own, index = known_labels(labels, self.classes_)
        known, predicted = known[own[known]], predicted[own[known]]
        chosen = np.random.RandomState(seed).permutation(len(known))[:_MAX_TUNING_ROWS]
        codes = self.neighbor_hasher_.encode(rows[known])
        return choose_weight(codes, self._fields(index), chosen, self._fields(predicted[chosen]), index)

    def _scores(self, X: SamplesLike) -> np.ndarray:
        """Return +1 or -1 for the bits of the predicted class, and the scores of the neighbor bits."""
        rows = check_rows(self, X, fitting=False, accept_sparse=True)
        signs = self._signs(self._predicted_index(rows))
        if self.neighbor_hasher_ is None:
            return signs.astype(rows.dtype)
        scores = self.neighbor_hasher_.decision_function(rows)
        return np.hstack([signs.astype(scores.dtype), scores])

    def as_codes(self, packed: np.ndarray) -> BinaryCodes:
        """Return packed bytes that this hasher once made as codes of its space."""
        return replace(super().as_codes(packed), metric="hybrid")

    def _make_space_id(self) -> str:
        neighbors = None if self.neighbor_hasher_ is None else self.neighbor_hasher_.space_id_
        return make_space_id([type(self).__name__, self.class_bits_, self.class_hasher_.space_id_, neighbors], {})

    def encode_database(self, X: SamplesLike, y: LabelsLike = None) -> BinaryCodes:
        """Return the codes of items: with the class of the label where a known one is given, else the predicted one.

        Labels change nothing if the fit had none, because its clusters have no names.
        """
        codes = self.encode(X)
        return self.relabel(codes, y) if y is not None and _knows_labels(self) else codes

    @available_if(_knows_labels)
    def relabel(self, codes: BinaryCodes, y: LabelsLike) -> BinaryCodes:
        """Return the codes with the class fields of these labels; where a label is missing or unknown, as they were."""
        known, index = known_labels(check_labels(y, len(codes)), self.classes_)
        signs = codes.to_signs()
        signs[known, : self.class_bits_] = self._signs(index)
        return replace(codes, packed=BinaryCodes.from_signs(signs).packed)

    def make_index(self, codes: BinaryCodes, ids: ArrayLike | None = None, *, n_jobs: int | None = None) -> HybridIndex:
        """Return an index of these codes that compares them as this hasher means it."""
        check_is_fitted(self)
        rule = {"class_bits": self.class_bits_, "class_weight": self.class_weight_}
        return HybridIndex.from_codes(codes, ids, n_jobs=n_jobs, **rule)

    @available_if(_class_hasher_has("predict"))
    def predict(self, X: SamplesLike, **params: Any) -> np.ndarray:
        """Return the class of each row."""
        return self.class_hasher_.predict(check_rows(self, X, fitting=False, accept_sparse=True), **params)

    @available_if(_class_hasher_has("predict_proba"))
    def predict_proba(self, X: SamplesLike) -> np.ndarray:
        """Return the probability of each class, if the class hasher estimates them."""
        return self.class_hasher_.predict_proba(check_rows(self, X, fitting=False, accept_sparse=True))

    @available_if(_class_hasher_has("novelty"))
    def novelty(self, X: SamplesLike) -> np.ndarray:
        """Return how unlike all training rows each row is, from 0 to 1, if the class hasher can tell."""
        return self.class_hasher_.novelty(check_rows(self, X, fitting=False, accept_sparse=True))

    @available_if(_class_hasher_has("score"))
    def score(self, X: SamplesLike, y: LabelsLike = None) -> float:
        """Return the score of the class hasher, the accuracy if there are labels."""
        return self.class_hasher_.score(check_rows(self, X, fitting=False, accept_sparse=True), y)

    @property
    def classes_(self) -> np.ndarray:
        """The classes of the class hasher; clusters are numbered."""
        return self.class_hasher_.classes_

    @property
    def current_facts(self) -> Facts:
        """The facts of this setting, which depend on the hashers inside."""
        classes, neighbors = self.class_hasher or StarRidge(), self.neighbor_hasher or ITQ()
        of_classes, of_neighbors = classes.current_facts, neighbors.current_facts
        return replace(
            self.facts,
            labels=of_classes.labels,
            sparse=of_classes.sparse and of_neighbors.sparse,
            max_bits=of_neighbors.max_bits,
        )

    def _predicted_index(self, rows: Rows) -> np.ndarray:
        labels, inverse = np.unique(self.class_hasher_.predict(rows), return_inverse=True)
        place = {label: index for index, label in enumerate(self.classes_.tolist())}
        return np.array([place[label] for label in labels.tolist()], np.int64)[inverse]

    def _fields(self, index: np.ndarray) -> np.ndarray:
        """Return the number in the class field; classes share one where the field is too short."""
        return index % (1 << self.class_bits_)

    def _signs(self, index: np.ndarray) -> np.ndarray:
        """Return the bits of the class field, lowest first, as -1 and +1."""
        bits = self._fields(index)[:, None] >> np.arange(self.class_bits_) & 1
        return (2 * bits - 1).astype(np.int8)

    def _check_hashers(self) -> None:
        for name in (_CLASS, _NEIGHBOR):
            given = getattr(self, name)
            if given is not None and not isinstance(given, BaseHasher):
                raise ValueError(f"{name} is of type {type(given).__name__}; it must be a hasher or None.")
        if self.class_hasher is not None and not hasattr(self.class_hasher, "predict"):
            raise ValueError(
                f"class_hasher is a {type(self.class_hasher).__name__}, which predicts no classes. Give a hasher with "
                "predict, such as StarRidge."
            )
        if self.neighbor_hasher is not None and "n_bits" not in self.neighbor_hasher.get_params():
            raise ValueError(
                f"neighbor_hasher is a {type(self.neighbor_hasher).__name__}, which has no parameter n_bits. Give a "
                "hasher such as ITQ, and prepare rows before the HybridHasher."
            )

    def _pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        params, state = self._packable_params(), self._learned_state()
        header: dict[str, Any] = {"hashers": {}, "given": []}
        arrays: dict[str, np.ndarray] = {}
        for name in (_CLASS, _NEIGHBOR):
            inner = state.pop(name + "_")
            if params.pop(name) is not None:
                header["given"].append(name)
            if inner is not None:
                header["hashers"][name], own = pack_inner(inner, name + ".")
                arrays |= own
        header["params"], packed = pack_values(params, "param.")
        header["fitted"], fitted = pack_values(state, "fitted.")
        return header, arrays | packed | fitted

    @classmethod
    def _unpack(
        cls,
        header: dict[str, Any],
        arrays: dict[str, np.ndarray],
        kernels: Sequence[Any] | None = None,
        steps: Sequence[Any] | None = None,
    ) -> Self:
        cls._refuse_given(steps=steps)
        hasher = cls(**unpack_values(header["params"], arrays, "param."))
        for name in (_CLASS, _NEIGHBOR):
            inner = None
            if name in header["hashers"]:
                of_class = kernels if name == _CLASS else None
                inner = unpack_inner(header["hashers"][name], arrays, name + ".", of_class)
            setattr(hasher, name + "_", inner)
            if name in header["given"] and inner is not None:
                setattr(hasher, name, clone(inner))
        hasher._restore_state(unpack_values(header["fitted"], arrays, "fitted."))
        hasher._check_restored()
        return hasher

    def _check_restored(self) -> None:
        """Refuse a file whose parts do not fit together."""
        inner = [self.class_hasher_] + ([] if self.neighbor_hasher_ is None else [self.neighbor_hasher_])
        n_left = 0 if self.neighbor_hasher_ is None else self.neighbor_hasher_.n_bits_
        numbers = (self.n_bits_, self.class_bits_, self.class_weight_, self.n_features_in_)
        fits = (
            all(type(number) is int for number in numbers)
            and 1 <= self.class_bits_ <= MAX_CLASS_BITS
            and self.class_bits_ + n_left == self.n_bits_
            and self.class_weight_ >= 0
            and hasattr(self.class_hasher_, "predict")
            and all(hasher.n_features_in_ == self.n_features_in_ for hasher in inner)
            and self.field_holds_ in ("classes", "clusters")
        )
        if not fits:
            raise BundleFormatError("The model file is damaged: its class field and hashers do not fit together.")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.class_hasher or StarRidge())
        tags.estimator_type, tags.classifier_tags = inner.estimator_type, inner.classifier_tags
        return tags


def _n_digits(n_values: int) -> int:
    """Return how many binary digits count so many values: ceil(log2 n)."""
    return (n_values - 1).bit_length()


def _n_class_bits(n_classes: int, n_bits: int) -> int:
    needed = max(1, _n_digits(n_classes))
    if needed > MAX_CLASS_BITS:
        raise ValueError(f"There are {n_classes:,} classes; a class field holds at most {1 << MAX_CLASS_BITS:,}.")
    if needed > n_bits:
        warnings.warn(
            f"n_bits is {n_bits}; {n_classes} classes need {needed} bits, so several share a class field. "
            f"Use at least {needed + 1} bits.",
            UserWarning,
            stacklevel=4,
        )
    return min(needed, n_bits)
