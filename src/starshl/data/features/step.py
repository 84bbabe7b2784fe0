"""Step: a transformer whose settings and learned state a model file can hold as data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags

from ..._common.bundle import pack_values, unpack_values
from ..._common.labels import LabelsLike
from ..._common.validation import Rows, SamplesLike
from ...exceptions import BundleFormatError


class Step(TransformerMixin, BaseEstimator, ABC):
    """A preprocessing step.

    Learned attributes (names ending in ``_``) are arrays, numbers, strings or other steps, so that a model file holds
    each of them without pickling anything.
    """

    n_features_in_: int
    n_features_out_: int

    @abstractmethod
    def fit(self, X: SamplesLike, y: LabelsLike = None) -> Self:
        """Learn the step from rows."""

    @abstractmethod
    def transform(self, X: SamplesLike) -> Rows:
        """Return the features of rows, shape (n_samples, n_features_out_)."""

    @property
    def views(self) -> Mapping[str, slice]:
        """The columns of each kind of features, by name; empty if they are all of one kind."""
        return {}

    @abstractmethod
    def _check_restored(self) -> None:
        """Raise a BundleFormatError if the learned attributes do not fit together."""

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_out_")

    def pack(self, prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
        """Return what a file's header says about this step; add its arrays to ``arrays``."""
        state = {name: value for name, value in vars(self).items() if name.endswith("_")}
        parts = {name: value for name, value in state.items() if isinstance(value, Step)}
        plain = {name: value for name, value in state.items() if name not in parts}
        spec: dict[str, Any] = {"name": type(self).__name__}
        for key, values in (("params", self.get_params(deep=False)), ("fitted", plain)):
            spec[key], packed = pack_values(values, f"{prefix}{key}.")
            arrays |= packed
        spec["parts"] = {name: part.pack(f"{prefix}{name}.", arrays) for name, part in parts.items()}
        return spec

    @classmethod
    def unpack(
        cls, spec: dict[str, Any], prefix: str, arrays: dict[str, np.ndarray], known: dict[str, type[Step]]
    ) -> Step:
        """Rebuild a step from what :meth:`pack` returned; ``known`` are the steps that a file may name."""
        if spec["name"] not in known:
            raise BundleFormatError.damaged(f"it names a step {spec['name']!r} that this version does not know")
        step = known[spec["name"]](**unpack_values(spec["params"], arrays, f"{prefix}params."))
        state = unpack_values(spec["fitted"], arrays, f"{prefix}fitted.")
        for name, part in spec["parts"].items():
            state[name] = cls.unpack(part, f"{prefix}{name}.", arrays, known)
        for name, value in state.items():
            if not name.isidentifier() or name[0] == "_" or name[-1] != "_" or hasattr(type(step), name):
                raise BundleFormatError.damaged(f"it sets {name!r}, which is not a learned attribute")
            setattr(step, name, value)
        step._check_restored()
        return step

    def _require_counts(self) -> None:
        """Refuse feature counts that are not positive integers."""
        for name in ("n_features_in_", "n_features_out_"):
            value = getattr(self, name, None)
            self._require(type(value) is int and value >= 1, name)

    def _require(self, holds: bool, name: str) -> None:
        """Refuse a file in which a learned attribute does not fit the rest of the step."""
        if not holds:
            raise BundleFormatError.damaged(f"{name} of its step {type(self).__name__} does not fit the rest")

    def _require_numbers(self, name: str, shape: tuple[int, ...]) -> None:
        array = getattr(self, name, None)
        is_right = (
            isinstance(array, np.ndarray)
            and array.dtype.kind == "f"
            and array.shape == shape
            and bool(np.isfinite(array).all())
        )
        self._require(is_right, name)


class Reader(Step):
    """A step that reads raw items, such as a network: it learns nothing, and gives an item the same row every time.

    What a network made of items is kept in a cache if ``is_slow``. ``weights_``, where there are any, is the SHA-256
    of its weights: a file names it, and does not hold them.
    """

    is_slow: ClassVar[bool] = False
    weights_: str

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.requires_fit = False
        return tags
