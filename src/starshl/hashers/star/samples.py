"""Samples: rows of numbers, dense, sparse or in a file, objects of any type, or kernel values computed elsewhere.

Each kind is one class, which knows how to read what a user gives, how to take rows, which bank evaluates the kernels
between them and how to expand a hash function over them. Nothing else in the package asks which kind it has.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
from scipy.sparse import csr_array, issparse

from ..._common.lazy import library
from ..._common.threads import tiles
from ..._common.validation import Rows, SamplesLike, check_rows, check_scale
from ...data.tables.row_source import ArrayRows, RowSource
from ...learning.graphs.neighbor_graph import mean_kernel
from ...learning.graphs.plain_kernel import GivenKernel, PlainKernel, RowsKernel
from ...learning.kernels.banks import Bank, GramBank, MemoryPlan, RemoteBank, make_bank
from ...learning.kernels.distances import distinct_rows
from ...learning.kernels.expansion import expand_grams
from ...learning.kernels.kernel import Kernel, check_gram
from ...learning.kernels.kernel_k_means import kernel_k_means
from ...learning.kernels.views import balance_columns

if TYPE_CHECKING:
    from .expansion import Expansion
    from .kernel_hasher import KernelHasher

sklearn_cluster = library("sklearn.cluster")
_K_MEANS_STARTS = 10  # of which the best is taken
_BLOCK_ROWS = 4096  # of a file, which are read together: 32 MB if a row has 2,000 float32 numbers


class Samples(ABC):
    """Samples of one kind, in the array ``values``."""

    kind: ClassVar[str]

    def __init__(self, values: Rows):
        self.values = values

    @classmethod
    @abstractmethod
    def read(cls, estimator: KernelHasher, X: SamplesLike, *, fitting: bool) -> Self:
        """Check what a user gave to an estimator."""

    @staticmethod
    def pack(support_samples: Rows) -> dict[str, np.ndarray]:
        """Return what :meth:`support_samples` returned as arrays for a model file."""
        return {"samples": support_samples}

    @classmethod
    @abstractmethod
    def unpack(cls, arrays: dict[str, np.ndarray], n_support: int, n_features: int) -> Rows | None:
        """Return what :meth:`pack` was given, or None if the arrays cannot have come from there."""

    def __len__(self) -> int:
        return self.values.shape[0]

    def take(self, rows: np.ndarray) -> Self:
        """Return some of the training samples, to train on."""
        return type(self)(self.values[rows])

    def queries(self, rows: np.ndarray) -> Self:
        """Return some of the samples, to be hashed."""
        return self.take(rows)

    def support_samples(self, rows: np.ndarray) -> Rows:
        """Return what a fitted hasher must hold of its support rows."""
        return self.values[rows]

    def blocks(self, rows: np.ndarray, size: int) -> Iterator[Rows]:
        """Return the values of some of the samples, in rising order, ``size`` at a time."""
        for piece in tiles(len(rows), size):
            yield self.queries(rows[piece]).values

    def bank(self, kernels: Sequence[Kernel], plan: MemoryPlan) -> Bank:
        """Return the bank that evaluates fitted kernels between these samples."""
        return make_bank(kernels, self.values, plan)

    def expand(self, expansion: Expansion) -> np.ndarray:
        """Return the values of all functions on these samples, without their bias."""
        return expansion.over_rows(self.values)

    def diagonals(self, kernels: Sequence[Kernel]) -> np.ndarray:
        """Return k_m(x, x) for all kernels and samples, shape (n_kernels, n)."""
        return np.array([kernel.diagonal(self.values) for kernel in kernels])

    def clusters(
        self, bank: Bank | RemoteBank, weights: np.ndarray, n_clusters: int, rng: np.random.RandomState
    ) -> np.ndarray:
        """Return a cluster for each sample, by k-means in the feature space of the mean kernel."""
        mean_kernel = bank.combine(np.full(bank.n_kernels, 1.0 / bank.n_kernels))
        return kernel_k_means(mean_kernel, weights, n_clusters, _K_MEANS_STARTS, rng)

    def plain_kernel(self, kernels: Sequence[Kernel], make_bank: Callable[[], Bank | RemoteBank]) -> PlainKernel:
        """Return the kernel by which samples are neighbors: the mean of those in their bank."""
        bank = make_bank()
        assert isinstance(bank, GramBank), "Only vectors have banks that do not hold their matrices."
        return GivenKernel(mean_kernel(bank.grams))


class Vectors(Samples):
    """Rows of finite numbers, shape (n, n_features)."""

    kind = "vectors"

    @classmethod
    def read(cls, estimator: KernelHasher, X: SamplesLike, *, fitting: bool) -> Self:
        """Check rows; those to be hashed may be sparse, whatever those of the fit were, if the kernels take both."""
        _refuse_texts(X)
        accept_sparse = not fitting and take_sparse(estimator.kernels_)
        return cls(check_rows(estimator, X, fitting=fitting, accept_sparse=accept_sparse))

    @classmethod
    def unpack(cls, arrays: dict[str, np.ndarray], n_support: int, n_features: int) -> np.ndarray | None:
        rows = arrays.get("samples")
        if rows is None or rows.shape != (n_support, n_features) or rows.dtype.kind != "f":
            return None
        return rows if np.isfinite(rows).all() else None

    def clusters(
        self, bank: Bank | RemoteBank, weights: np.ndarray, n_clusters: int, rng: np.random.RandomState
    ) -> np.ndarray:
        """Return a cluster for each row, by k-means."""
        # Merging equal rows makes a weight of two and two equal rows the same problem.
        rows, number = distinct_rows(self.values)
        if rows.shape[0] <= n_clusters:
            return number
        totals = np.bincount(number, weights, minlength=rows.shape[0])
        k_means = sklearn_cluster.KMeans(n_clusters, n_init=_K_MEANS_STARTS, random_state=rng).fit(
            rows, sample_weight=totals
        )
        return k_means.labels_[number].astype(np.int64)

    def plain_kernel(self, kernels: Sequence[Kernel], make_bank: Callable[[], Bank | RemoteBank]) -> PlainKernel:
        """Return the Gaussian kernel by which rows are neighbors, whatever kernels their hash functions have."""
        return RowsKernel(balance_columns(self.values, kernels))


class SparseVectors(Vectors):
    """Rows of finite numbers, most of them zero, as a CSR array of shape (n, n_features)."""

    kind = "sparse_vectors"

    @classmethod
    def read(cls, estimator: KernelHasher, X: SamplesLike, *, fitting: bool) -> Self:
        return cls(check_rows(estimator, X, fitting=fitting, accept_sparse=True))

    @staticmethod
    def pack(support_samples: Rows) -> dict[str, np.ndarray]:
        return {name: getattr(support_samples, name) for name in ("data", "indices", "indptr")}

    @classmethod
    def unpack(cls, arrays: dict[str, np.ndarray], n_support: int, n_features: int) -> csr_array | None:
        if arrays.keys() != {"data", "indices", "indptr"}:
            return None
        data, columns, ends = arrays["data"], arrays["indices"], arrays["indptr"]
        # Compiled products read wherever an index points, and SciPy does not refuse all that a file may hold.
        are_ends = ends.dtype.kind == "i" and ends.shape == (n_support + 1,) and ends[0] == 0
        are_ends = are_ends and ends[-1] == data.size and bool(np.all(np.diff(ends) >= 0))
        are_columns = columns.dtype.kind == "i" and columns.shape == data.shape == (data.size,)
        are_columns = are_columns and bool(np.all((columns >= 0) & (columns < n_features)))
        if not are_ends or not are_columns or data.dtype.kind != "f" or not np.isfinite(data).all():
            return None
        return csr_array((data, columns, ends), shape=(n_support, n_features))


class StoredVectors(Vectors):
    """Rows of a :class:`starshl.data.tables.RowSource`, or some of them; each block is checked when it is read.

    Parameters
    ----------
    source : RowSource
    numbers : array of shape (n,), default=None
        Which rows of the source these are, in rising order; None is all of them.
    """

    def __init__(self, source: RowSource, numbers: np.ndarray | None = None):
        self.source = source
        self.numbers = np.arange(len(source)) if numbers is None else numbers

    def __reduce__(self) -> tuple[Any, ...]:
        """Send the numbers of rows to other processes only if they are not just all of them."""
        return type(self), (self.source, None if len(self) == len(self.source) else self.numbers)

    @property
    def values(self) -> Rows:  # type: ignore[override]  # read when asked for, not stored
        """All rows at once, for whatever cannot do with blocks."""
        return self.take(np.arange(len(self))).values

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, rows: np.ndarray) -> Vectors:  # type: ignore[override]  # in memory, so that it can be trained on
        return Vectors(check_scale(self.source.take(self.numbers[rows]), fitting=False))

    def queries(self, rows: np.ndarray) -> Self:
        return type(self)(self.source, self.numbers[rows])

    def support_samples(self, rows: np.ndarray) -> Rows:
        # Not a view of what the user gave, whose next change would be one of the model.
        return self.take(rows).values.copy()

    def blocks(self, rows: np.ndarray, size: int) -> Iterator[Rows]:
        for block in self.source.blocks(self.numbers[rows], size):
            yield check_scale(block, fitting=False)

    def expand(self, expansion: Expansion) -> np.ndarray:
        blocks = self.blocks(np.arange(len(self)), _BLOCK_ROWS)
        return np.concatenate([expansion.over_rows(block) for block in blocks])


class Objects(Samples):
    """Samples of any type, shape (n,)."""

    kind = "objects"

    @classmethod
    def read(cls, estimator: KernelHasher, X: SamplesLike, *, fitting: bool) -> Self:
        if isinstance(X, (str, bytes)) or not hasattr(X, "__len__"):
            raise ValueError(f"X is a {type(X).__name__}; give a list or a one-dimensional array of samples.")
        items = list(cast("Iterable[Any]", X))
        least = 2 if fitting else 1
        if len(items) < least:
            raise ValueError(f"X has {len(items)} samples; at least {least} are needed.")
        samples = np.empty(len(items), dtype=object)
        samples[:] = items
        return cls(samples)

    @classmethod
    def unpack(cls, arrays: dict[str, np.ndarray], n_support: int, n_features: int) -> np.ndarray | None:
        samples = arrays.get("samples")
        return samples if samples is not None and samples.shape == (n_support,) else None


class Precomputed(Samples):
    """Kernel values between samples and training rows, shape (n_kernels, n, n_train)."""

    kind = "precomputed"

    @classmethod
    def read(cls, estimator: KernelHasher, X: SamplesLike, *, fitting: bool) -> Self:
        return cls(_read_precomputed(estimator, X, fitting))

    @classmethod
    def unpack(cls, arrays: dict[str, np.ndarray], n_support: int, n_features: int) -> np.ndarray | None:
        return arrays.get("samples")

    def __len__(self) -> int:
        return self.values.shape[1]

    def take(self, rows: np.ndarray) -> Self:
        return type(self)(self.values[:, rows][:, :, rows])

    def queries(self, rows: np.ndarray) -> Self:
        return type(self)(self.values[:, rows])

    def support_samples(self, rows: np.ndarray) -> np.ndarray:
        return self.values[:0]

    def bank(self, kernels: Sequence[Kernel], plan: MemoryPlan) -> GramBank:
        # The check draws rows from a separate stream, so that it never changes what is learned.
        rng = np.random.RandomState(0)
        for position, gram in enumerate(self.values):
            check_gram(gram, f"The precomputed kernel {position}", rng)
        return GramBank(self.values, plan.n_jobs)

    def expand(self, expansion: Expansion) -> np.ndarray:
        coefficients = expansion.coefficients
        weights = np.broadcast_to(expansion.weights, (len(coefficients), len(self.values)))
        return expand_grams(self.values[:, :, expansion.support], weights, coefficients)

    def diagonals(self, kernels: Sequence[Kernel]) -> np.ndarray:
        if self.values.shape[1] != self.values.shape[2]:
            raise ValueError(
                f"X has shape {self.values.shape}; with precomputed kernels k(x, x) is only known for training rows, "
                "so the bound needs the square kernel matrix of the fit."
            )
        return np.einsum("mnn->mn", self.values)


SAMPLE_TYPES: dict[str, type[Samples]] = {each.kind: each for each in (Vectors, SparseVectors, Objects, Precomputed)}


def sample_type(kernels: str | Sequence[Kernel], X: SamplesLike) -> type[Samples]:
    """Return the kind of the samples: vectors if any kernel asks for them or X is a matrix of numbers."""
    if isinstance(kernels, str):
        return Precomputed
    if issparse(X) and take_sparse(kernels):
        return SparseVectors
    if any(kernel.on_vectors for kernel in kernels):
        return Vectors
    shape, dtype = getattr(X, "shape", ()), getattr(X, "dtype", None)
    is_table = len(shape) == 2 and (dtype is None or getattr(dtype, "kind", "O") in "biuf")
    return Vectors if is_table else Objects


def take_sparse(kernels: Sequence[Kernel]) -> bool:
    """Tell whether all kernels take sparse rows."""
    return all(kernel.takes_sparse for kernel in kernels)


def read_training_samples(
    estimator: KernelHasher, X: SamplesLike, kernels: str | Sequence[Kernel], max_rows: int
) -> Samples:
    """Check what a user gave to ``fit``; of more than ``max_rows`` rows no copy is made.

    X may be a :class:`starshl.data.tables.RowSource`, too.
    """
    source = _as_source(X, kernels, max_rows)
    if source is None:
        return sample_type(kernels, X).read(estimator, X, fitting=True)
    if len(source) <= max_rows or isinstance(kernels, str):
        rows = source.take(np.arange(len(source)))
        return sample_type(kernels, rows).read(estimator, rows, fitting=True)
    check_rows(estimator, source.take(np.arange(2)), fitting=True, any_scale=True)  # records the number of features
    return StoredVectors(source)


def _as_source(X: SamplesLike, kernels: str | Sequence[Kernel], max_rows: int) -> RowSource | None:
    if isinstance(X, RowSource):
        return X
    if isinstance(kernels, str) or not any(kernel.on_vectors for kernel in kernels):
        return None
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype.kind not in "biuf" or 0 in X.shape:
        return None
    return ArrayRows(X) if len(X) > max_rows else None


def _refuse_texts(X: SamplesLike) -> None:
    """Say what to do with texts where rows of numbers are asked for."""
    first = X[0] if isinstance(X, (list, tuple, np.ndarray)) and len(X) else None
    if isinstance(first, str):
        raise ValueError(
            f"X holds texts, such as {first[:40]!r}, and these kernels compare rows of numbers. Use a kernel on texts, "
            "for example kernels=[starshl.learning.kernels.SpectrumKernel()], or turn texts into numbers, such as with "
            "sklearn.feature_extraction.text.TfidfVectorizer."
        )


def _read_precomputed(estimator: KernelHasher, X: SamplesLike, fitting: bool) -> np.ndarray:
    # Not np.ndim, which asks objects that only convert to arrays.
    n_axes = len(X.shape) if hasattr(X, "shape") else np.asarray(X).ndim
    if n_axes != 3:
        samples = check_rows(estimator, X, fitting=fitting, any_scale=True)[None]
    else:
        samples = np.asarray(X)
        samples = samples.astype(np.float32 if samples.dtype == np.float32 else np.float64, copy=False)
        if not np.isfinite(samples).all():
            column = int(np.argwhere(~np.isfinite(samples))[0, 2])
            raise ValueError(
                f"Input X contains NaN or infinity in column {column}; kernel values must be finite numbers."
            )
        if fitting:
            estimator.n_features_in_ = samples.shape[2]
    if fitting:
        if samples.shape[1] != samples.shape[2]:
            raise ValueError(
                f"Precomputed metric requires shape (n, n), or (n_kernels, n, n) for several kernels; X has shape "
                f"{np.shape(X)}. Compute the kernel between all training rows; X should be a square kernel matrix."
            )
        if samples.shape[1] < 2 or samples.shape[0] < 1:
            raise ValueError(f"X has shape {np.shape(X)}; at least one kernel and two rows are needed.")
    elif samples.shape[0] != estimator.kernel_weights_.shape[-1] or samples.shape[2] != estimator.n_features_in_:
        raise ValueError(
            f"X has shape {np.shape(X)}; this hasher was fitted on {estimator.kernel_weights_.shape[-1]} kernels and "
            f"{estimator.n_features_in_} rows, so it needs kernel values of shape (n_kernels, n, n_train)."
        )
    return samples
