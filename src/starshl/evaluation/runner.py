"""Run one method once and keep what it produced; knows objects, no method names.

A method that raises gives a failed record instead of an exception, so that the other runs go on.

Arrays of a record, where the method can give them:

====================  =================================================================================
``database``          packed codes of the database
``query``             packed codes of the queries
``y_database``        classes, and ``y_query``, ``y_train``
``labeled``           which database rows carried a label in training, if they are the training rows
``predicted_query``   what ``predict`` says of the queries
``codeword_hits``     the share of a query's nearest codewords, by Hamming distance, that stand for its class
``hinge_query``       the class of the codeword nearest by hinge distance
``transduced_query``  what ``transduction_`` says of queries that took part in training, unlabeled
``transduced_train``  what ``transduction_`` says of the training rows
``neighbor_class``    classes of the nearest database rows, nearest first
====================  =================================================================================
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import numpy as np

from .._threads import run_all, single_threaded_blas, tiles
from .._validation import check_choice, check_integer
from .accuracy import codeword_hits
from .records import Record, RunKey
from .resources import machine, peak_memory, versions
from .splits import Split, SplitData

__all__ = ["parameters_of", "planned_key", "run", "run_classifier", "run_float_search", "run_key"]

TRAINING_ROWS = ("train", "labeled", "train+query")

_QUERIES_PER_TILE = 256


def run_key(
    data: SplitData,
    method: str,
    n_bits: int | None = None,
    *,
    fit_on: str = "train",
    seed: int | None = None,
    settings: dict[str, Any] | None = None,
) -> RunKey:
    """Return the key under which a run is recorded, to ask whether it has been done already.

    Parameters are those of :func:`run`; the seed is the split's own for the method unless one is given.
    """
    dtype = data.X_train.dtype.name
    return planned_key(
        data.split, data.scaling, method, n_bits, dtype=dtype, fit_on=fit_on, seed=seed, settings=settings
    )


def planned_key(
    split: Split,
    scaling: str,
    method: str,
    n_bits: int | None = None,
    *,
    dtype: str = "float32",
    fit_on: str = "train",
    seed: int | None = None,
    settings: dict[str, Any] | None = None,
) -> RunKey:
    """Return the key of :func:`run_key` from the rows alone, before any are cut and scaled."""
    seed = split.seed(method) if seed is None else check_integer(seed, "seed", low=0)
    settings = {"scaling": scaling, "dtype": dtype, "fit_on": fit_on} | (settings or {})
    return RunKey(split.protocol, split.run, method, n_bits, seed, split.digest, settings)


def run(
    make_hasher: Callable[[int, int], Any],
    data: SplitData,
    method: str,
    n_bits: int,
    *,
    fit_on: str = "train",
    seed: int | None = None,
    settings: dict[str, Any] | None = None,
) -> Record:
    """Fit a hasher, encode database and queries, and return the record.

    Parameters
    ----------
    make_hasher : callable (n_bits, seed) -> hasher
    data : SplitData
    method : str
        Name under which the run is recorded.
    n_bits : int
    fit_on : {"train", "labeled", "train+query"}, default="train"
        Rows of the fit: the training rows (unlabeled ones as -1, no y at all if none is labeled), the
        labeled ones alone, or training rows and unlabeled queries (transduction).
    seed : int or None, default=None
        None: the seed of this split for this method name, which no other method influences.
    settings : dict or None, default=None
        Whatever else tells this run from others of the same name.

    Examples
    --------
    >>> from starshl import datasets
    >>> from starshl.baselines import LSHash
    >>> from starshl.evaluation import protocol, run, split_data
    >>> digits = datasets.get("digits")
    >>> data = split_data(digits, protocol("unsupervised-digits").split(digits, 0))
    >>> record = run(lambda n_bits, seed: LSHash(n_bits, random_state=seed), data, "LSH", 16)
    >>> record.status, record.codes("query")[:2].packed.shape
    ('ok', (2, 2))
    """
    check_choice(fit_on, "fit_on", TRAINING_ROWS)
    n_bits = check_integer(n_bits, "n_bits", low=1)
    key = run_key(data, method, n_bits, fit_on=fit_on, seed=seed, settings=settings)

    def work(hasher, stage) -> dict[str, np.ndarray]:
        X, y = _rows_to_fit(data, fit_on)
        with stage("fit"):
            hasher.fit(X, y)
        with stage("encode_database"):
            database = hasher.encode(data.X_database)
        with stage("encode_query"):
            query = hasher.encode(data.X_query)
        if database.n_bits != n_bits:
            raise ValueError(f"{database.n_bits} bits came out where {n_bits} were asked for.")
        arrays = {"database": database.packed, "query": query.packed, "y_database": small(data.y_database)}
        if data.X_database is data.X_train:
            arrays["labeled"] = data.split.labeled
        return arrays | _predictions(hasher, data, fit_on)

    return _recorded(lambda: make_hasher(n_bits, key.seed), work, key, data)


def run_classifier(
    make_classifier: Callable[[int], Any],
    data: SplitData,
    method: str,
    *,
    fit_on: str = "labeled",
    seed: int | None = None,
    settings: dict[str, Any] | None = None,
) -> Record:
    """Fit a classifier, made by ``make_classifier(seed)``, predict the queries and return the record."""
    check_choice(fit_on, "fit_on", TRAINING_ROWS)
    key = run_key(data, method, fit_on=fit_on, seed=seed, settings=settings)

    def work(classifier, stage) -> dict[str, np.ndarray]:
        X, y = _rows_to_fit(data, fit_on)
        with stage("fit"):
            classifier.fit(X, y)
        with stage("predict"):
            return _predictions(classifier, data, fit_on)

    return _recorded(lambda: make_classifier(key.seed), work, key, data)


def run_float_search(
    data: SplitData, method: str = "float search", *, n_neighbors: int = 50, n_jobs: int | None = None
) -> Record:
    """Search the nearest database rows by Euclidean distance (ties by row) and return the record."""
    n_neighbors = min(check_integer(n_neighbors, "n_neighbors", low=1), len(data.X_database))
    key = run_key(data, method, fit_on="none", seed=0, settings={"n_neighbors": n_neighbors})

    def work(_, stage) -> dict[str, np.ndarray]:
        with stage("search"):
            nearest = _nearest_rows(data.X_query, data.X_database, n_neighbors, n_jobs)
        return {"neighbor_class": small(data.y_database)[nearest]}

    return _recorded(lambda: None, work, key, data)


def _recorded(make: Callable[[], Any], work: Callable, key: RunKey, data: SplitData) -> Record:
    """Make an object, do ``work(object, stage)`` and record arrays, time and memory, or why it failed."""
    seconds: dict[str, float] = {}

    @contextmanager
    def stage(name: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            seconds[name] = time.perf_counter() - start

    status, message, arrays, made = "ok", "", {}, None
    with peak_memory() as memory, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        try:
            made = make()
            arrays = work(made, stage) | {"y_query": small(data.y_query), "y_train": small(data.y_train_true)}
        except Exception as error:
            status, message, arrays = "failed", f"{type(error).__name__}: {error}", {}
    return Record(
        key=key,
        dataset=data.split.dataset,
        status=status,
        message=message,
        seconds=seconds,
        peak_bytes=memory.peak_bytes,
        parameters=parameters_of(made),
        versions=versions(),
        machine=machine(),
        warnings=sorted({f"{entry.category.__name__}: {entry.message}" for entry in caught}),
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        arrays=arrays,
    )


def _rows_to_fit(data: SplitData, fit_on: str) -> tuple[np.ndarray, np.ndarray | None]:
    X, y = data.X_train, data.y_train
    if fit_on == "labeled":
        X, y = X[data.split.labeled], y[data.split.labeled]
    elif fit_on == "train+query":
        X = np.concatenate([X, data.X_query])
        y = np.concatenate([y, np.full(len(data.X_query), -1)])
    return X, y if (y >= 0).any() else None


def _predictions(fitted, data: SplitData, fit_on: str) -> dict[str, np.ndarray]:
    found = {}
    if hasattr(fitted, "predict"):
        found["predicted_query"] = small(fitted.predict(data.X_query))
    if hasattr(fitted, "codeword_distances"):
        nearest = fitted.codeword_distances(data.X_query, metric="hinge").argmin(axis=1)
        found["hinge_query"] = small(fitted.classes_[nearest])
        distances = fitted.codeword_distances(data.X_query)
        found["codeword_hits"] = codeword_hits(distances, data.y_query, fitted.classes_)
    if hasattr(fitted, "transduction_") and fit_on != "labeled":
        n_train = len(data.X_train)
        found["transduced_train"] = small(fitted.transduction_[:n_train])
        if fit_on == "train+query":
            found["transduced_query"] = small(fitted.transduction_[n_train:])
    return found


def small(labels: np.ndarray) -> np.ndarray:
    """Return classes from 0 in the smallest unsigned type that holds them."""
    labels = np.asarray(labels)
    return labels.astype(np.min_scalar_type(int(labels.max(initial=0))))


def parameters_of(made) -> dict[str, str]:
    """Return the parameters of an estimator as text, as they are recorded."""
    if not hasattr(made, "get_params"):
        return {}
    return {name: repr(value) for name, value in made.get_params(deep=False).items()}


def _nearest_rows(queries: np.ndarray, rows: np.ndarray, n_neighbors: int, n_jobs: int | None) -> np.ndarray:
    squared = np.einsum("ij,ij->i", rows, rows)
    nearest = np.empty((len(queries), n_neighbors), dtype=np.int64)

    def search(tile: slice) -> None:
        # Without the query's own squared length, which moves all its distances alike.
        distances = squared[None, :] - 2.0 * (queries[tile] @ rows.T)
        farthest = np.partition(distances, n_neighbors - 1, axis=1)[:, n_neighbors - 1]
        for query, row, bound in zip(range(tile.start, tile.stop), distances, farthest, strict=True):
            near = np.flatnonzero(row <= bound)
            nearest[query] = near[np.argsort(row[near], kind="stable")][:n_neighbors]

    with single_threaded_blas():
        run_all([lambda tile=tile: search(tile) for tile in tiles(len(queries), _QUERIES_PER_TILE)], n_jobs)
    return nearest
