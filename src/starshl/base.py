"""BaseHasher: what every hashing method of this package is, StarSHL and its competitors alike."""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ._validation import check_rows
from .bundle import pack_values, unpack_values, write_bundle
from .codes import BinaryCodes, signs_of
from .exceptions import BundleFormatError
from .linalg import project

__all__ = ["BaseHasher", "LinearHasher"]


class BaseHasher(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """A hasher writes ``fit`` and ``decision_function``; codes and model files follow from them.

    Learned attributes (names ending in ``_``) are arrays, numbers, strings or lists of them, so that
    ``save`` can write each one without executing or pickling anything.
    """

    n_bits: int
    # Whether fit cannot do without y (or pairs, or triplets); a property where a parameter decides it.
    _needs_labels: bool = False

    @abstractmethod
    def fit(self, X, y=None) -> Self:
        """Learn the hash functions."""

    @abstractmethod
    def decision_function(self, X) -> np.ndarray:
        """Return real scores of shape (n_samples, n_bits), one column a bit."""

    def transform(self, X) -> np.ndarray:
        """Return codes of shape (n_samples, n_bits), int8 of -1 and +1; a score of zero gives +1."""
        return signs_of(self.decision_function(X))

    def encode(self, X) -> BinaryCodes:
        """Return codes as packed bytes."""
        return BinaryCodes.from_signs(signs_of(self.decision_function(X)))

    def save(self, path: str | os.PathLike) -> None:
        """Write the fitted hasher to one file; :func:`starshl.load` reads it back."""
        check_is_fitted(self)
        header, arrays = self._pack()
        write_bundle(path, {"method": type(self).__name__, **header}, arrays)

    def _pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return header entries and arrays from which :meth:`_unpack` rebuilds this hasher."""
        params, param_arrays = pack_values(self._packable_params(), "param.")
        fitted, fitted_arrays = pack_values(self._packable_state(), "fitted.")
        return {"params": params, "fitted": fitted}, param_arrays | fitted_arrays

    @classmethod
    def _unpack(cls, header: dict[str, Any], arrays: dict[str, np.ndarray], kernels=None) -> Self:
        if kernels is not None:
            raise ValueError(f"This file holds a {cls.__name__}, which takes no kernels. Load it without them.")
        hasher = cls(**unpack_values(header["params"], arrays, "param."))
        hasher._restore_state(unpack_values(header["fitted"], arrays, "fitted."))
        hasher._check_restored()
        return hasher

    def _restore_state(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            if not name.isidentifier() or name.startswith("_") or not name.endswith("_") or hasattr(type(self), name):
                raise BundleFormatError(f"The model file sets {name!r}, which is no learned attribute.")
            setattr(self, name, value)

    def _check_restored(self) -> None:
        """Refuse a file whose arrays do not fit together: it cannot hash even a row of zeros."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # zeros have no feature names
            scores = self.decision_function(np.zeros((1, self.n_features_in_)))
        if scores.shape != (1, self.n_bits) or not np.isfinite(scores).all():
            raise BundleFormatError(f"The arrays of this {type(self).__name__} do not fit together.")

    def _packable_params(self) -> dict[str, Any]:
        params = self.get_params(deep=False)
        # A generator's state is history, not a setting: the reloaded hasher starts from None.
        if not isinstance(params.get("random_state"), (int, np.integer, type(None))):
            params["random_state"] = None
        return params

    def _packable_state(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name.endswith("_") and name[0] != "_"}

    @property
    def _n_features_out(self) -> int:
        return self.n_bits

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # codes are int8 whatever X is
        tags.target_tags.required = self._needs_labels
        return tags


class LinearHasher(BaseHasher):
    """A hasher whose ``fit`` leaves hyperplanes: ``components_`` (n_bits, n_features), ``intercept_`` (n_bits,)."""

    def decision_function(self, X) -> np.ndarray:
        """Return ``X @ components_.T + intercept_``, shape (n_samples, n_bits)."""
        check_is_fitted(self)
        return project(check_rows(self, X, fitting=False), self.components_, self.intercept_)
