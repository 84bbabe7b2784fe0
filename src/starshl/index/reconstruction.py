"""Reconstruction: the vector that a code stands for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .._words import counted
from ..codes import BinaryCodes

__all__ = ["Reconstruction", "VectorQueries", "are_orthonormal", "class_fields"]

# Directions of single-precision rows are orthonormal up to a few millionths.
_ORTHONORMAL = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class Reconstruction:
    r"""What turns codes of a class field and neighbor bits back into vectors.

    A code of class c with neighbor bits b, which are -1 and +1, stands for

    .. math:: \hat x = \mu_c + W^\top (s \circ b).

    Parameters
    ----------
    centers : array of shape (n_classes, n_features)
        The vectors :math:`\mu_c`.
    components : array of shape (n_neighbor_bits, n_features)
        The orthonormal rows of W.
    scales : array of shape (n_neighbor_bits,)
        The mean distance s of a vector from its center in each direction.
    unit : float
        What squared distances are divided by.
    """

    centers: np.ndarray
    components: np.ndarray
    scales: np.ndarray
    unit: float

    def __post_init__(self) -> None:
        for name in ("centers", "components", "scales"):
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), np.float64))
        object.__setattr__(self, "unit", float(self.unit))
        centers, components, scales = self.centers, self.components, self.scales
        if centers.ndim != 2 or not len(centers) or components.ndim != 2 or components.shape[1] != centers.shape[1]:
            raise ValueError(
                f"centers has shape {centers.shape} and components {components.shape}; they must be (n_classes, "
                "n_features) and (n_neighbor_bits, n_features)."
            )
        if scales.shape != (len(components),):
            raise ValueError(f"scales has shape {scales.shape}; there are {len(components)} components.")
        if not all(np.isfinite(array).all() for array in (centers, components, scales)):
            raise ValueError("Some numbers of the reconstruction are not finite.")
        if not (np.isfinite(self.unit) and self.unit > 0):
            raise ValueError(f"unit is {self.unit}; it must be positive.")
        if not are_orthonormal(components):
            raise ValueError("The components are not orthonormal. Use directions such as those of ITQ.")

    @property
    def n_neighbor_bits(self) -> int:
        return len(self.components)

    def vectors(self, codes: BinaryCodes) -> np.ndarray:
        """Return the vectors that codes stand for, (n_codes, n_features)."""
        n_class_bits = codes.n_bits - self.n_neighbor_bits
        signs = codes.to_signs()[:, n_class_bits:]
        return self.centers[class_fields(codes, n_class_bits)] + (signs * self.scales) @ self.components


@dataclass(frozen=True, slots=True, eq=False)
class VectorQueries:
    """Queries of an index of reconstructed vectors: their vectors, and their codes, which hold the class.

    Parameters
    ----------
    codes : BinaryCodes
    vectors : array of shape (n_queries, n_features)
    """

    codes: BinaryCodes
    vectors: np.ndarray

    def __post_init__(self) -> None:
        if not isinstance(self.codes, BinaryCodes):
            raise TypeError(
                f"codes is a {type(self.codes).__name__}; it must be BinaryCodes. Get both from "
                "hasher.encode_queries(X)."
            )
        object.__setattr__(self, "vectors", _check_vectors(self.vectors, len(self.codes)))

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: slice | np.ndarray) -> VectorQueries:
        """Select queries."""
        return VectorQueries(self.codes[rows], self.vectors[rows])


def _check_vectors(vectors: ArrayLike, n_codes: int) -> np.ndarray:
    try:
        rows = np.asarray(vectors)
    except ValueError as error:
        raise ValueError(f"vectors has rows of different lengths ({error}). Give rows of equal length.") from error
    if rows.dtype.kind not in "biuf":
        raise ValueError(f"vectors holds {rows.dtype}; it must hold numbers. Give the rows that were encoded.")
    if rows.ndim != 2 or len(rows) != n_codes:
        raise ValueError(
            f"vectors has shape {rows.shape}; with {counted(n_codes, 'code')} it must be ({n_codes}, n_features). Give "
            "one row per code."
        )
    if not np.isfinite(rows).all():
        raise ValueError("vectors holds NaN or infinity; queries are finite numbers. Impute or drop those rows.")
    return rows


def are_orthonormal(components: np.ndarray) -> bool:
    """Return whether the rows have length one and are perpendicular, up to rounding."""
    return bool(np.all(np.abs(components @ components.T - np.eye(len(components))) <= _ORTHONORMAL))


def class_fields(codes: BinaryCodes, n_class_bits: int) -> np.ndarray:
    """Return the number in the first bits of each code, lowest bit first."""
    bits = np.unpackbits(codes.packed, axis=1, bitorder="little", count=n_class_bits)
    return bits.astype(np.int64) @ (1 << np.arange(n_class_bits))
