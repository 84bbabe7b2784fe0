"""What codes stand for: centers of classes and scales of bits that reconstruct the training rows best."""

from __future__ import annotations

import numpy as np

from ..base import BaseHasher, LinearHasher
from ..codes import BinaryCodes
from ..index import Reconstruction
from ..index.reconstruction import are_orthonormal, class_fields
from ..linalg import gram, project

__all__ = ["components_of", "fit_reconstruction"]


def fit_reconstruction(rows: np.ndarray, codes: BinaryCodes, components: np.ndarray, n_fields: int) -> Reconstruction:
    r"""Return the centers and scales of least squared error, in squared distances of unit one.

    .. math:: \min_{\mu, s} \sum_n |x_n - \mu_{c_n} - W^\top (s \circ b_n)|^2

    Because the rows of W are orthonormal, each scale is a regression coefficient within classes, of the projections
    on the bit. A field that no row has gets the mean of all centers.

    Parameters
    ----------
    rows : array of shape (n, n_features)
    codes : their codes as items; the bits after the class field are b
    components : W, array of shape (n_neighbor_bits, n_features)
    n_fields : how many numbers a class field may hold
    """
    n_class_bits = codes.n_bits - len(components)
    fields, signs = class_fields(codes, n_class_bits), codes.to_signs()[:, n_class_bits:].astype(np.float64)
    sizes = np.bincount(fields, minlength=n_fields)
    projected = project(rows, components).astype(np.float64)
    centered = signs - _means(signs, fields, sizes)[fields]
    spread = np.einsum("nj,nj->j", centered, centered)
    shared = np.einsum("nj,nj->j", centered, projected)
    scales = np.divide(np.maximum(shared, 0.0), spread, out=np.zeros(len(components)), where=spread > 0)
    centers = _means(rows, fields, sizes) - (_means(signs, fields, sizes) * scales) @ components
    centers[sizes == 0] = centers[sizes > 0].mean(axis=0)
    return Reconstruction(centers, components, scales, 1.0)


def _means(rows: np.ndarray, fields: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    members = np.zeros((len(fields), len(sizes)))
    members[np.arange(len(fields)), fields] = 1.0
    return gram(members, rows.astype(np.float64)) / np.maximum(sizes, 1)[:, None]


def components_of(neighbor_hasher: BaseHasher | None, n_features: int) -> np.ndarray:
    """Return the directions of a fitted hasher of neighbors, (n_bits, n_features), if these are orthonormal."""
    if neighbor_hasher is None:
        return np.empty((0, n_features))
    components = neighbor_hasher.components_ if isinstance(neighbor_hasher, LinearHasher) else None
    if components is None or not are_orthonormal(components):
        raise ValueError(
            f"form is 'residual', and the neighbor_hasher is a {type(neighbor_hasher).__name__}, whose bits are not "
            "those of orthonormal directions. Use ITQ, or form='hamming'."
        )
    return components
