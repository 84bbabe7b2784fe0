"""Run one method once and record what it produced, without knowing any method by name.

A method that raises gives a failed record instead of an exception, so that the other runs go on.

Arrays of a record, where the method can give them:

====================  =================================================================================
``database``          packed codes of the database, where labels that are known may take part
``query``             packed codes of the queries
``y_database``        classes, and ``y_query``, ``y_train``
``labeled``           which database rows carried a label in training, if they are the training rows
``predicted_query``   what ``predict`` says of the queries
``codeword_hits``     the share of a query's nearest codewords, by Hamming distance, that stand for its class
``hinge_query``       the class of the codeword nearest by hinge distance
``transduced_query``  what ``transduction_`` says of queries that took part in training, unlabeled
``transduced_train``  what ``transduction_`` says of the training rows
``neighbor_class``    classes of the nearest database rows, nearest first
``labels_coded``      packed codes that stand for the labels of the training rows: see :func:`label_codes`
``posterior_query``   probabilities of all classes for the queries, and ``posterior_database`` for items by their codes
``scores_query``      scores of the queries before they are rounded to bits, of a method without probabilities
====================  =================================================================================
"""

from __future__ import annotations

import platform
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, get_args

import numpy as np
from numba.core.event import install_timer

from .._common.platform import machine, peak_memory
from .._common.result_cache import cached, seconds_saved
from .._common.validation import check_choice, check_integer
from .._version import __version__
from ..codes.binary import BinaryCodes
from ..evaluation.metrics import codeword_hits
from ..hashers.base import BaseHasher
from ..learning.linalg import nearest_rows
from .records import Record, RunKey
from .splits import Split, SplitData

# Called with the name of a stage, measures the block.
Stage: TypeAlias = Callable[[str], AbstractContextManager[None]]
Made = TypeVar("Made")
#: The rows of a fit; :func:`run` says what the words mean.
TrainingRows: TypeAlias = Literal["train", "labeled", "train+query"]
_PARAMETERS_IN_KEY = ("n_bits", "random_state")


class Classifier(Protocol):
    """What :func:`run_classifier` asks of a method."""

    def fit(self, X: np.ndarray, y: np.ndarray | None, /) -> object: ...

    def predict(self, X: np.ndarray, /) -> np.ndarray: ...


def run(
    make_hasher: Callable[[int, int], BaseHasher],
    data: SplitData,
    method: str,
    n_bits: int,
    *,
    fit_on: TrainingRows = "train",
    seed: int | None = None,
) -> Record:
    """Fit a hasher, encode database and queries, and return the record.

    Parameters
    ----------
    make_hasher : callable (n_bits, seed) -> hasher
    data : SplitData
    method : str
        Stable name under which the run is recorded: lower-case letters, digits, - and _.
    n_bits : int
    fit_on : {"train", "labeled", "train+query"}, default="train"
        Rows of the fit: the training rows (unlabeled ones as -1, no y at all if none is labeled), the
        labeled ones alone, or training rows and unlabeled queries (transduction).
    seed : int or None, default=None
        None: the seed of this split for this method, which no other method influences.

    Examples
    --------
    >>> from starshl.data import datasets
    >>> from starshl.hashers.baselines import LSHash
    >>> from starshl.reproduction import protocol, run, split_data
    >>> digits = datasets.get("digits")
    >>> data = split_data(digits, protocol("unsupervised-digits").split(digits, 0))
    >>> record = run(lambda n_bits, seed: LSHash(n_bits, random_state=seed), data, "lsh", 16)
    >>> record.status, record.codes("query")
    ('ok', BinaryCodes(497 codes of 16 bits))
    """
    check_choice(fit_on, "fit_on", get_args(TrainingRows))
    n_bits = check_integer(n_bits, "n_bits", low=1)
    seed = data.split.seed(method) if seed is None else check_integer(seed, "seed", low=0)
    made = _made(lambda: make_hasher(n_bits, seed))

    def work(stage: Stage) -> tuple[dict[str, np.ndarray], int]:
        if isinstance(made, Exception):
            raise made
        X, y = _rows_to_fit(data, fit_on)
        with stage("fit"):
            hasher = _fitted(made, X, y)
        with stage("encode_database"):
            database = _database_codes(hasher, data, fit_on)
        with stage("encode_query"):
            query = hasher.encode(data.X_query)
        if database.n_bits != n_bits:
            raise ValueError(f"The codes have {database.n_bits} bits; {n_bits} were requested.")
        arrays = {"database": database.packed, "query": query.packed, "y_database": small(data.y_database)}
        if data.has_unseen_items:
            arrays |= _beyond_bits(hasher, data, database)
        if data.X_database is data.X_train:
            arrays["labeled"] = data.split.labeled
        return arrays | _predictions(hasher, data, fit_on), labels_used(hasher, y)

    return _record_run(work, _key_of(data, method, n_bits, fit_on, seed, parameters_of(made)), data)


def run_classifier(
    make_classifier: Callable[[int], Classifier],
    data: SplitData,
    method: str,
    *,
    fit_on: TrainingRows = "labeled",
    seed: int | None = None,
) -> Record:
    """Fit a classifier, made by ``make_classifier(seed)``, predict the queries and return the record."""
    check_choice(fit_on, "fit_on", get_args(TrainingRows))
    seed = data.split.seed(method) if seed is None else check_integer(seed, "seed", low=0)
    classifier = _made(lambda: make_classifier(seed))

    def work(stage: Stage) -> tuple[dict[str, np.ndarray], int]:
        if isinstance(classifier, Exception):
            raise classifier
        X, y = _rows_to_fit(data, fit_on)
        with stage("fit"):
            classifier.fit(X, y)
        with stage("predict"):
            predictions = {"predicted_query": small(classifier.predict(data.X_query))}
            # Those of scikit-learn that spread labels have it, too.
            predictions |= _transduced(getattr(classifier, "transduction_", None), data, fit_on)
            return predictions, 0 if y is None else int((y >= 0).sum())

    return _record_run(work, _key_of(data, method, None, fit_on, seed, parameters_of(classifier)), data)


def run_float_search(data: SplitData, method: str, *, n_neighbors: int = 50) -> Record:
    """Search the nearest database rows by Euclidean distance (ties by row) and return the record."""
    n_neighbors = min(check_integer(n_neighbors, "n_neighbors", low=1), len(data.X_database))

    def work(stage: Stage) -> tuple[dict[str, np.ndarray], int]:
        with stage("search"):
            nearest = nearest_rows(data.X_query, data.X_database, n_neighbors)
        return {"neighbor_class": small(data.y_database)[nearest]}, 0

    return _record_run(work, _key_of(data, method, None, "none", 0, {"n_neighbors": n_neighbors}), data)


def planned_key(
    split: Split,
    scaling: str,
    method: str,
    n_bits: int | None = None,
    *,
    dtype: str = "float32",
    fit_on: str = "train",
    seed: int | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> RunKey:
    """Return the key under which a run is recorded, to check whether it has been done already.

    The seed is the split's own for the method unless one is given. ``parameters`` are those of the method, see
    :func:`parameters_of`; other parameters make another run.
    """
    seed = split.seed(method) if seed is None else check_integer(seed, "seed", low=0)
    settings = {"scaling": scaling, "dtype": dtype, "fit_on": fit_on, **(parameters or {})}
    return RunKey(split.protocol, split.run, method, n_bits, seed, split.digest, settings)


def _key_of(
    data: SplitData, method: str, n_bits: int | None, fit_on: str, seed: int, parameters: Mapping[str, Any]
) -> RunKey:
    dtype = data.X_train.dtype.name
    return planned_key(
        data.split, data.scaling, method, n_bits, dtype=dtype, fit_on=fit_on, seed=seed, parameters=parameters
    )


def parameters_of(estimator: object) -> dict[str, str]:
    """Return all parameters of an estimator as text, defaults included, without the code length and the seed."""
    if not hasattr(estimator, "get_params"):
        return {}
    parameters = estimator.get_params(deep=False)
    return {name: repr(value) for name, value in parameters.items() if name not in _PARAMETERS_IN_KEY}


def labels_used(fitted: BaseHasher, y: np.ndarray | None) -> int:
    """Return how many labels a hasher learned from.

    One that samples its labels says so in ``n_labeled_``; one whose ``current_facts`` say that it ignores labels used
    none; any other used all that it was given.
    """
    if y is None or fitted.current_facts.labels == "ignored":
        return 0
    n_sampled = fitted.fit_summary.n_labeled
    return int((y >= 0).sum()) if n_sampled is None else n_sampled


def _made(make: Callable[[], Made]) -> Made | Exception:
    """Return the result of a function, or why it failed."""
    try:
        return make()
    except Exception as error:
        return error


def _rows_to_fit(data: SplitData, fit_on: str) -> tuple[np.ndarray, np.ndarray | None]:
    X, y = data.X_train, data.y_train
    if fit_on == "labeled":
        X, y = X[data.split.labeled], y[data.split.labeled]
    elif fit_on == "train+query":
        X = np.concatenate([X, data.X_query])
        y = np.concatenate([y, np.full(len(data.X_query), -1)])
    return X, y if (y >= 0).any() else None


def _fitted(hasher: BaseHasher, X: np.ndarray, y: np.ndarray | None) -> BaseHasher:
    """Return the fitted hasher; one that can change its length takes over a fit of another length that is shared."""
    if "with_bits" not in hasher.supports:
        return hasher.fit(X, y)
    arguments = (type(hasher), parameters_of(hasher), repr(hasher.get_params()["random_state"]), X, y)
    known = cached("fit", arguments, partial(hasher.fit, X, y))
    return known if known.n_bits == hasher.n_bits else known.with_bits(hasher.n_bits)


def _database_codes(fitted: BaseHasher, data: SplitData, fit_on: str) -> BinaryCodes:
    """Return the codes of the database, whose rows may be the first ones of the fit."""
    if data.X_database is not data.X_train or fit_on == "labeled":
        return fitted.encode_database(data.X_database, data.y_database_known)
    return fitted.encode_training(data.X_database, data.y_database_known)[np.arange(len(data.X_train))]


def _beyond_bits(fitted: BaseHasher, data: SplitData, items: BinaryCodes) -> dict[str, np.ndarray]:
    """Return codes of the labels of training rows, and queries that are not rounded to bits."""
    arrays = {"labels_coded": label_codes(fitted, data.X_train, data.y_train).packed}
    words, posteriors = fitted.words, fitted.encode_queries(data.X_query).posteriors
    if words is None or posteriors is None:
        return arrays | {"scores_query": fitted.decision_function(data.X_query).astype(np.float32)}
    n_classes = 1 + max(int(y.max()) for y in (data.y_train, data.y_query, data.y_database))
    classes = np.array(fitted.class_labels, dtype=np.int64)
    for name, known in {"posterior_query": posteriors, "posterior_database": words.posteriors_of(items)}.items():
        arrays[name] = np.zeros((len(known), n_classes), dtype=np.float32)
        arrays[name][:, classes] = known
    return arrays


def label_codes(fitted: BaseHasher, X: np.ndarray, y: np.ndarray) -> BinaryCodes:
    """Return the code of the label of each row, class numbers y: the codeword of its class, where a method has them.

    Of any other method it is the majority of each bit among the codes of the rows of the class.
    """
    classes, number = np.unique(y, return_inverse=True)
    words = fitted.class_words
    if words is not None:
        words = words[np.searchsorted(fitted.class_labels, classes)]
    else:
        signs = fitted.encode_database(X).to_signs().astype(np.int64)
        words = np.array([np.where(signs[number == place].sum(axis=0) >= 0, 1, -1) for place in range(len(classes))])
    return BinaryCodes.from_signs(words[number].astype(np.int8))


def _predictions(fitted: BaseHasher, data: SplitData, fit_on: str) -> dict[str, np.ndarray]:
    predictions = {}
    if "predict" in fitted.supports:
        predictions["predicted_query"] = small(fitted.predict(data.X_query))
    if "codeword_distances" in fitted.supports:
        nearest = fitted.codeword_distances(data.X_query, metric="hinge").argmin(axis=1)
        predictions["hinge_query"] = small(fitted.classes_[nearest])
        distances = fitted.codeword_distances(data.X_query)
        predictions["codeword_hits"] = codeword_hits(distances, data.y_query, fitted.classes_)
    return predictions | _transduced(fitted.fit_summary.transduction, data, fit_on)


def _transduced(labels: np.ndarray | None, data: SplitData, fit_on: str) -> dict[str, np.ndarray]:
    """Return the labels that a fit has found for its own rows, those of training rows and of queries apart."""
    if labels is None or fit_on == "labeled":
        return {}
    n_train = len(data.X_train)
    of_queries = {"transduced_query": small(labels[n_train:])} if fit_on == "train+query" else {}
    return {"transduced_train": small(labels[:n_train]), **of_queries}


def small(labels: np.ndarray) -> np.ndarray:
    """Return classes from 0 in the smallest unsigned type that holds them."""
    labels = np.asarray(labels)
    return labels.astype(np.min_scalar_type(int(labels.max(initial=0))))


def _record_run(work: Callable[[Stage], tuple[dict[str, np.ndarray], int]], key: RunKey, data: SplitData) -> Record:
    """Do ``work(stage)`` and record arrays, labels used, time and memory, or why it failed."""
    stopwatch = Stopwatch()
    status, message = "ok", ""
    arrays: dict[str, np.ndarray] = {}
    n_labeled: int | None = None
    with peak_memory() as memory, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        try:
            arrays, n_labeled = work(stopwatch.stage)
            arrays |= {"y_query": small(data.y_query), "y_train": small(data.y_train_true)}
        except Exception as error:
            status, message, arrays = "failed", f"{type(error).__name__}: {error}", {}
    return Record(
        key=key,
        dataset=data.split.dataset,
        status=status,
        message=message,
        seconds=stopwatch.seconds,
        peak_bytes=memory.peak_bytes,
        n_labeled=n_labeled,
        versions=versions(),
        machine=machine(),
        warnings=sorted({f"{entry.category.__name__}: {entry.message}" for entry in caught}),
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        arrays=arrays,
    )


@dataclass(slots=True)
class Stopwatch:
    """Wall seconds by stage, as if each run were alone: what it shares with others counts in full.

    Compiling loops happens once per machine and is counted separately, as "compile".
    """

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Measure the block."""
        compiling: list[float] = []
        start = time.perf_counter() + seconds_saved()
        try:
            with install_timer("numba:compile", compiling.append):
                yield
        finally:
            self.seconds[name] = max(0.0, time.perf_counter() - start + seconds_saved() - sum(compiling))
            if compiling:
                self.seconds["compile"] = self.seconds.get("compile", 0.0) + sum(compiling)


def versions() -> dict[str, str]:
    """Return the versions of Python, this package and the libraries that decide its numbers."""
    libraries = ("numpy", "scipy", "scikit-learn", "numba")
    return {
        "python": platform.python_version(),
        "starshl": __version__,
        **{name: version(name) for name in libraries},
    }
