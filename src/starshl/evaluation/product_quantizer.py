"""Product quantization by FAISS: the usual short code of a vector, for comparisons at equal bytes."""

from __future__ import annotations

import numpy as np

from .._common.extras import require
from .._common.validation import check_integer

faiss = require("faiss", extra="faiss")
_CENTERS_PER_BYTE = 256


class ProductQuantizer:
    """Cut vectors into pieces and keep one byte per piece: the number of the nearest of 256 centers.

    A query keeps its full precision. If ``n_bytes`` does not divide the number of features, vectors are padded with
    zeros.

    Parameters
    ----------
    n_bytes : int
        Bytes per item, at most one per feature.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().data
    >>> items = ProductQuantizer(8).fit(X)
    >>> bool((items.nearest(X[:100], 10)[:, :3] == np.arange(100)[:, None]).any(axis=1).mean() > 0.9)
    True
    """

    def __init__(self, n_bytes: int) -> None:
        self.n_bytes = check_integer(n_bytes, "n_bytes", low=1)

    def fit(self, X: np.ndarray) -> ProductQuantizer:
        """Learn the centers from these rows, and keep the codes of all of them."""
        n_rows, n_features = X.shape
        if n_rows < _CENTERS_PER_BYTE:
            raise ValueError(f"There are {n_rows} rows; product quantization needs at least {_CENTERS_PER_BYTE}.")
        if self.n_bytes > n_features:
            raise ValueError(
                f"n_bytes is {self.n_bytes}; X has {n_features} feature(s), and product quantization takes at most one "
                "byte per feature."
            )
        self._n_padding = -n_features % self.n_bytes
        padded = self._padded(X)
        self.index_ = faiss.IndexPQ(padded.shape[1], self.n_bytes, 8)
        # FAISS would warn on standard error about fewer than 39 rows per center.
        self.index_.pq.cp.min_points_per_centroid = 1
        self.index_.train(padded)
        self.index_.add(padded)
        return self

    @property
    def model_bytes(self) -> int:
        """Bytes of the centers, which take 1 kB per feature."""
        return _CENTERS_PER_BYTE * int(self.index_.d) * 4

    def nearest(self, X: np.ndarray, k: int, among: np.ndarray | None = None) -> np.ndarray:
        """Return the positions of the k nearest rows of the fit, or of those ``among`` them, shape (n, k)."""
        if among is None or len(among) == self.index_.ntotal:
            return self.index_.search(self._padded(X), k)[1]
        # FAISS cannot filter this index.
        codes = faiss.vector_to_array(self.index_.codes).reshape(self.index_.ntotal, self.n_bytes)
        some = faiss.clone_index(self.index_)
        some.reset()
        some.add_sa_codes(np.ascontiguousarray(codes[among]))
        return among[some.search(self._padded(X), k)[1]]

    def _padded(self, X: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(np.pad(np.asarray(X, np.float32), ((0, 0), (0, self._n_padding))))
