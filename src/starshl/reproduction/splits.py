"""Draw the rows of one run, and split and scale a data set accordingly."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from .._common.files import array_digest
from .._common.validation import check_choice, check_integer
from ..data.datasets.store import Dataset

#: How features are scaled; :func:`split_data` says what the words mean.
Scaling: TypeAlias = Literal["raw", "max", "range", "standard", "unit"]
_MAX_REDRAWS = 1000


@dataclass(frozen=True, slots=True)
class Sampling:
    """Say how many rows are drawn, and how.

    Parameters
    ----------
    n_train, n_query : int or None
        None queries: all rows that do not train.
    n_labels : int or None, default=None
        Labeled training rows per class; None labels all of them.
    database : {"train", "rest", "unseen"}, default="train"
        What queries search: the training rows, all rows that are not queries, or rows that are neither.
    n_items : int or None, default=None
        At most so many unseen rows are in the database.
    per_class : bool, default=False
        Draw the same number of queries and of training rows from every class; otherwise rows are drawn
        uniformly.
    every_class : bool, default=False
        Draw again until every class is among the training rows.
    official : bool, default=False
        Use the split that the data set was published with instead of drawing.
    by_part : bool, default=False
        Draw training rows from the training part of that split, and all others from its test part.
    stream : str, default=""
        Protocols that name the same stream draw the same queries; empty means the protocol's own name.
    """

    n_train: int | None = None
    n_query: int | None = None
    n_labels: int | None = None
    database: Literal["train", "rest", "unseen"] = "train"
    n_items: int | None = None
    per_class: bool = False
    every_class: bool = False
    official: bool = False
    by_part: bool = False
    stream: str = ""

    def __post_init__(self) -> None:
        check_choice(self.database, "database", ("train", "rest", "unseen"))
        if not self.official:
            check_integer(self.n_train, "n_train", low=1)
        if self.n_query is not None:
            check_integer(self.n_query, "n_query", low=1)
        if self.n_labels is not None:
            check_integer(self.n_labels, "n_labels", low=0)
        if self.n_items is not None:
            check_integer(self.n_items, "n_items", low=1)


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Row numbers of one run of a protocol.

    Attributes
    ----------
    protocol, dataset : str
    run : int
    train, database, query : int64 arrays of row numbers
    labeled : bool array of the length of ``train``
    digest : str
        SHA-256 of these four arrays.
    """

    protocol: str
    dataset: str
    run: int
    train: np.ndarray
    database: np.ndarray
    query: np.ndarray
    labeled: np.ndarray

    @property
    def digest(self) -> str:
        parts = {"train": self.train, "database": self.database, "query": self.query}
        return array_digest({name: rows.astype(np.int64) for name, rows in parts.items()} | {"labeled": self.labeled})

    def seed(self, label: str = "") -> int:
        """Return a seed for this run and label (for example a method's name) that no other label influences."""
        text = f"{self.protocol}\n{self.run}\n{label}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little")


def draw_rows(rows: Sampling, dataset: Dataset, run: int, protocol: str) -> Split:
    """Draw the rows of one run.

    Row numbers are sorted by raw 64-bit words of PCG64, whose stream NumPy promises never to change; no
    library's shuffle is involved.
    """
    if rows.official:
        train, query = _official_rows(dataset)
        unseen = np.empty(0, np.int64)
    else:
        n_train = check_integer(rows.n_train, "n_train", low=1)
        _check_sizes(n_train, rows.n_query or 1, dataset, protocol)
        train, query, unseen = _drawn_rows(rows, n_train, dataset, run, rows.stream or protocol)
    database = train
    if rows.database == "rest":
        database = np.setdiff1d(np.arange(len(dataset)), query)
    elif rows.database == "unseen":
        database = unseen[: rows.n_items]
    labeled = _labeled_rows(rows.n_labels, dataset.y[train], dataset.n_classes, protocol)
    return Split(protocol, dataset.name, run, train, database, query, labeled)


def _official_rows(dataset: Dataset) -> tuple[np.ndarray, np.ndarray]:
    part = _official_part(dataset)
    return np.flatnonzero(part == 0), np.flatnonzero(part == 1)


def _official_part(dataset: Dataset) -> np.ndarray:
    if dataset.split is None:
        raise ValueError(f"The data set {dataset.name!r} has no official split. Draw rows instead.")
    return dataset.split


def _check_sizes(n_train: int, n_query: int, dataset: Dataset, protocol: str) -> None:
    if n_train + n_query > len(dataset):
        raise ValueError(
            f"Protocol {protocol!r} needs {n_train:,} training rows and {n_query:,} or more queries; "
            f"{dataset.name!r} has {len(dataset):,} rows. Ask for fewer."
        )


def _drawn_rows(
    rows: Sampling, n_train: int, dataset: Dataset, run: int, stream: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return training rows, queries, and the rows that are neither."""
    for attempt in range(_MAX_REDRAWS):
        order = _random_order(len(dataset), stream, run, attempt)
        if rows.per_class:
            train, query = _rows_per_class(n_train, rows.n_query, dataset, order)
            return train, query, order[~np.isin(order, np.concatenate([train, query]))]
        train, others = order[:n_train], order[n_train:]
        if rows.by_part:
            trains = _official_part(dataset)[order] == 0
            train, others = order[trains][:n_train], order[~trains]
        n_query = len(others) if rows.n_query is None else rows.n_query
        if not rows.every_class or len(np.unique(dataset.y[train])) == dataset.n_classes:
            return train, others[:n_query], others[n_query:]
    raise ValueError(
        f"{n_train:,} random rows of {dataset.name!r} never contained all {dataset.n_classes} classes in "
        f"{_MAX_REDRAWS:,} draws. Ask for more training rows."
    )


def _random_order(n: int, stream: str, run: int, attempt: int) -> np.ndarray:
    digest = hashlib.sha256(stream.encode()).digest()
    seed = np.random.SeedSequence([int.from_bytes(digest[:8], "little"), run, attempt])
    return np.argsort(np.random.PCG64(seed).random_raw(n), kind="stable")


def _rows_per_class(
    n_train: int, n_query: int | None, dataset: Dataset, order: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    n_classes = dataset.n_classes
    if n_query is None or n_train % n_classes or n_query % n_classes:
        raise ValueError(
            f"{n_train} training rows and {n_query} queries cannot be spread equally over "
            f"{n_classes} classes. Ask for multiples of {n_classes}."
        )
    n_query, n_train = n_query // n_classes, n_train // n_classes
    rank = _rank_within_class(dataset.y[order], n_classes)
    available = np.bincount(dataset.y, minlength=n_classes).min()
    if n_query + n_train > available:
        raise ValueError(
            f"{n_train} training rows and {n_query} queries per class are more than the {available} rows of "
            f"the smallest class of {dataset.name!r}. Ask for fewer."
        )
    return order[(rank >= n_query) & (rank < n_query + n_train)], order[rank < n_query]


def _labeled_rows(n_labels: int | None, y_train: np.ndarray, n_classes: int, protocol: str) -> np.ndarray:
    if n_labels is None:
        return np.ones(len(y_train), dtype=bool)
    counts = np.bincount(y_train, minlength=n_classes)
    if (short := counts[counts < n_labels]).size:
        raise ValueError(
            f"Protocol {protocol!r} needs {n_labels} labels per class; one class has {short.min()} training "
            "rows. Ask for more training rows or fewer labels."
        )
    return _rank_within_class(y_train, n_classes) < n_labels


def _rank_within_class(y: np.ndarray, n_classes: int) -> np.ndarray:
    """Return how many earlier entries of y are of the same class, for each entry."""
    rank = np.empty(len(y), dtype=np.int64)
    for label in range(n_classes):
        of_class = np.flatnonzero(y == label)
        rank[of_class] = np.arange(len(of_class))
    return rank


@dataclass(frozen=True, slots=True, eq=False)
class SplitData:
    """What a method gets to see: scaled rows, and labels with -1 where a training row is unlabeled.

    ``y_database`` and ``y_train_true`` hold all labels, for scoring only. ``y_database_known`` has the labels of
    database rows that were labeled in training, -1 elsewhere; it is None if there are none.
    """

    split: Split
    scaling: Scaling
    X_train: np.ndarray
    y_train: np.ndarray
    X_database: np.ndarray
    y_database: np.ndarray
    X_query: np.ndarray
    y_query: np.ndarray
    y_train_true: np.ndarray

    @property
    def has_unseen_items(self) -> bool:
        """Whether no row of the database is among the training rows."""
        return not np.isin(self.split.database, self.split.train).any()

    @property
    def y_database_known(self) -> np.ndarray | None:
        known = np.isin(self.split.database, self.split.train[self.split.labeled])
        return np.where(known, self.y_database, -1) if known.any() else None


def split_data(dataset: Dataset, split: Split, *, scaling: Scaling = "max", dtype: type = np.float32) -> SplitData:
    """Split a data set into its parts and scale the features.

    Parameters
    ----------
    dataset : Dataset
    split : Split
    scaling : {"raw", "max", "range", "standard", "unit"}, default="max"
        "max" divides everything by the largest absolute value of the data set (pixels to [0, 1]); "range"
        maps each feature's range to [0, 1] and "standard" its mean to 0 and deviation to 1, both by the
        training rows alone (a constant feature becomes 0); "unit" gives every row length 1.
    dtype : float32 or float64, default=float32
    """
    check_choice(scaling, "scaling", get_args(Scaling))
    shift, scale = _shift_and_scale(dataset, split, scaling, dtype)

    def scaled(rows: np.ndarray) -> np.ndarray:
        X = dataset.X[rows].astype(dtype)
        X -= shift
        X *= scale
        if scaling == "unit":
            lengths = np.linalg.norm(X, axis=1, keepdims=True)
            X /= np.where(lengths > 0, lengths, 1.0).astype(dtype)
        return X

    X_train = scaled(split.train)
    same = split.database is split.train
    y_train = dataset.y[split.train]
    return SplitData(
        split=split,
        scaling=scaling,
        X_train=X_train,
        y_train=np.where(split.labeled, y_train, -1),
        X_database=X_train if same else scaled(split.database),
        y_database=dataset.y[split.database],
        X_query=scaled(split.query),
        y_query=dataset.y[split.query],
        y_train_true=y_train,
    )


def _shift_and_scale(dataset: Dataset, split: Split, scaling: Scaling, dtype: type) -> tuple[np.ndarray, np.ndarray]:
    if scaling == "max":
        largest = max(float(dataset.X.max()), -float(dataset.X.min()))
        return np.asarray(0.0, dtype), np.asarray(1.0 / (largest or 1.0), dtype)
    if scaling in ("raw", "unit"):
        return np.asarray(0.0, dtype), np.asarray(1.0, dtype)
    X = dataset.X[split.train].astype(np.float64)
    shift, spread = (X.min(axis=0), np.ptp(X, axis=0)) if scaling == "range" else (X.mean(axis=0), X.std(axis=0))
    scale = np.where(spread > 0, 1.0 / np.where(spread > 0, spread, 1.0), 0.0)
    return shift.astype(dtype), scale.astype(dtype)
