"""Checks shared by many estimators: each error says what arrived, what is allowed and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike

from ..exceptions import InputError
from .lazy import library
from .outliers import question_spread

if TYPE_CHECKING:
    from scipy.sparse import csr_array
    from sklearn.base import BaseEstimator

sparse = library("scipy.sparse")
sklearn_validation = library("sklearn.utils.validation")

SamplesLike: TypeAlias = "ArrayLike | csr_array | Sequence[Any]"
"""What users pass as X: anything NumPy reads as a matrix, a table, sparse rows, or objects that a kernel compares."""
Rows: TypeAlias = "np.ndarray | csr_array"
"""X after the checks: a matrix of numbers, dense or sparse."""
Seed: TypeAlias = int | np.random.RandomState | None
"""What users pass as ``random_state``."""


@overload
def check_rows(
    estimator: BaseEstimator,
    X: SamplesLike,
    *,
    fitting: bool,
    accept_sparse: Literal[False] = False,
    any_scale: bool = False,
) -> np.ndarray: ...


@overload
def check_rows(
    estimator: BaseEstimator, X: SamplesLike, *, fitting: bool, accept_sparse: bool, any_scale: bool = False
) -> Rows: ...


def check_rows(
    estimator: BaseEstimator,
    X: SamplesLike,
    *,
    fitting: bool,
    accept_sparse: bool = False,
    any_scale: bool = False,
) -> Rows:
    """Return X as a C-ordered float64 or float32 matrix of finite numbers, or as a CSR matrix if it came sparse.

    ``fitting`` records the number and names of the features and asks for two rows; otherwise they are
    compared with those of the fit. Unless ``any_scale`` is set, squares must stay in range (see
    :func:`check_scale`), and a fit warns of outliers.
    """
    is_sparse = not isinstance(X, np.ndarray) and sparse.issparse(X)
    if is_sparse and not accept_sparse:
        raise TypeError(
            f"X is a sparse matrix, and {type(estimator).__name__} does not support sparse input here. Reduce it to a "
            "dense matrix of fewer columns first (sklearn.decomposition.TruncatedSVD), make it dense if it fits in "
            "memory (toarray), or choose another method."
        )
    rows: Any = X
    if not fitting and isinstance(X, np.ndarray) and X.ndim == 2:
        _check_width(estimator, X)
    if fitting or not _needs_no_conversion(estimator, X):
        rows = sklearn_validation.validate_data(
            estimator,
            X,
            reset=fitting,
            accept_sparse="csr" if accept_sparse else False,
            dtype=[np.float64, np.float32],
            order="C",
            ensure_all_finite=False,
            ensure_min_samples=2 if fitting else 1,
        )
    if sparse.issparse(rows):
        rows = sparse.csr_array(rows)
    if not np.isfinite(_largest_entry(rows)):
        _refuse_bad_entries(estimator, rows)
    if not any_scale:
        check_scale(rows, fitting=fitting)
        if fitting and not sparse.issparse(rows):
            question_spread(rows)
    return rows


def _check_width(estimator: BaseEstimator, X: np.ndarray) -> None:
    """Refuse rows of another width than those of the fit, in the words of scikit-learn, and say what to do."""
    width = getattr(estimator, "n_features_in_", None)
    if width not in (None, X.shape[1]):
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting {width} features as input. Give "
            "rows made in the same way as those of the fit."
        )


def _needs_no_conversion(estimator: BaseEstimator, X: object) -> bool:
    """Tell whether X is as scikit-learn would return it, which takes longer to find out than encoding a row."""
    learned = vars(estimator)
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.dtype in (np.float64, np.float32)
        and X.flags.c_contiguous
        and len(X) > 0
        and X.shape[1] == learned.get("n_features_in_")
        and "feature_names_in_" not in learned  # about which an array makes scikit-learn warn
    )


def check_scale(rows: Rows, *, fitting: bool) -> Rows:
    """Refuse rows whose squares overflow or, if all entries are that small, vanish in their precision.

    A fit adds up the squares of all rows; rows to be hashed stand alone.
    """
    largest = _largest_entry(rows)
    limits = np.finfo(rows.dtype)
    n_squares = rows.shape[1] * (rows.shape[0] if fitting else 1)
    too_large = largest > np.sqrt(float(limits.max) / (4 * n_squares))
    too_small = 0 < largest < np.sqrt(float(limits.tiny) / float(limits.eps))
    if too_large or (fitting and too_small):
        raise ValueError(
            f"The largest entry of X is {largest:.0e} in size, and its square leaves the range of {rows.dtype}. "
            "Rescale the features, for example with sklearn.preprocessing.StandardScaler."
        )
    return rows


def _largest_entry(rows: Rows) -> float:
    """Return the largest size of an entry, NaN if one is NaN."""
    return float(np.maximum(rows.max(), -rows.min()))


def _refuse_bad_entries(estimator: BaseEstimator, X: Rows) -> None:
    entries = sparse.coo_array(X)
    bad = np.flatnonzero(~np.isfinite(entries.data))
    row, column = int(entries.row[bad[0]]), int(entries.col[bad[0]])
    names = getattr(estimator, "feature_names_in_", None)
    raise InputError(
        "Input X contains {what} in column {column!r}, first in row {row}",
        "every entry must be a finite number",
        "Fill or drop such entries first, for example with sklearn.impute.SimpleImputer.",
        parameter="X",
        what="NaN" if np.isnan(entries.data[bad[0]]) else "infinity (inf)",
        column=column if names is None else str(names[column]),
        row=row,
    )


def check_integer(value: object, name: str, *, low: int, high: int | None = None) -> int:
    """Return ``value`` as int if it is one within [low, high]."""
    number = int(value) if isinstance(value, Integral) and not isinstance(value, (bool, np.bool_)) else None
    if number is None or number < low or (high is not None and number > high):
        allowed = "of at least {low}" if high is None else "from {low} to {high}"
        raise _refusal(
            f"it must be an integer {allowed}", name, value if number is None else number, low=low, high=high
        )
    return number


def check_number(value: object, name: str, *, low: float, strict: bool = False, finite: bool = True) -> float:
    """Return ``value`` as float if it is a number >= low (> low if strict)."""
    number = float(value) if isinstance(value, Real) and not isinstance(value, (bool, np.bool_)) else np.nan
    if np.isnan(number) or number < low or (strict and number == low) or (finite and np.isinf(number)):
        kind, bound = "finite number" if finite else "number", "above" if strict else "of at least"
        raise _refusal(f"it must be a {kind} {bound} {{low:g}}", name, value, low=low)
    return number


def check_share(value: object, name: str) -> float:
    """Return ``value`` as float if it is a share of something."""
    share = check_number(value, name, low=0)
    if share > 1:
        raise _refusal("it must be a share from 0 to 1, such as 0.05", name, value)
    return share


def check_choice(value: object, name: str, choices: tuple[str, ...], *, or_else: str = "") -> str:
    """Return ``value`` if it is one of the words allowed; ``or_else`` names what else could have been given."""
    if not isinstance(value, str) or value not in choices:
        more = ", or give {or_else}" if or_else else ""
        words = ", ".join(map(repr, choices))
        raise _refusal(f"choose one of {{words}}{more}", name, value, words=words, or_else=or_else)
    return value


def check_flag(value: object, name: str) -> bool:
    """Return ``value`` as bool if it is True or False; the word "no" would count as true."""
    if not isinstance(value, (bool, np.bool_)):
        raise _refusal("it must be True or False", name, value)
    return bool(value)


def check_n_jobs(value: object) -> int | None:
    """Return the number of threads if it is None or an integer that joblib understands."""
    if value is None:
        return None
    if not isinstance(value, Integral) or isinstance(value, (bool, np.bool_)) or value == 0:
        raise _refusal("it must be None (one thread), a number of threads or -1 (all cores)", "n_jobs", value)
    return int(value)


def _refusal(allowed: str, name: str, value: object, **fields: Any) -> InputError:
    return InputError("{parameter} is {value!r}", allowed, parameter=name, value=value, **fields)


def n_rows(X: Any) -> int:
    """Return how many samples a list, an array, a table or a sparse matrix holds; the last has no length."""
    return X.shape[0] if hasattr(X, "shape") else len(X)


def check_length(values: ArrayLike, name: str, n_samples: int) -> np.ndarray:
    """Return values as an array with one entry per row."""
    values = np.asarray(values)
    if values.shape != (n_samples,):
        raise InputError(
            "{parameter} has shape {shape}",
            "it must be ({n_samples},), one entry per row of X",
            parameter=name,
            shape=values.shape,
            n_samples=n_samples,
        )
    return values


def check_weights(sample_weight: ArrayLike | None, n_samples: int) -> np.ndarray:
    """Return sample weights as float64; None means weight 1 for every row."""
    if sample_weight is None:
        return np.ones(n_samples)
    if isinstance(sample_weight, Real):
        sample_weight = np.full(n_samples, float(sample_weight))
    weights = check_length(sample_weight, "sample_weight", n_samples).astype(np.float64)
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError("sample_weight has negative, infinite or NaN entries; weights must be finite and >= 0.")
    if not weights.any():
        raise ValueError("All entries of sample_weight are zero, so no row is left. Give some row a weight.")
    return weights


def check_storable(text: str, role: str) -> None:
    """Refuse text that databases and files cannot hold; ``role`` is what it is, as the beginning of a sentence.

    >>> check_storable("one\\0two", "The label")
    Traceback (most recent call last):
    ...
    ValueError: The label contains the NUL character, where a database would end the text. Leave it out.
    """
    if "\0" in text:
        raise ValueError(f"{role} contains the NUL character, where a database would end the text. Leave it out.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{role} contains half of a surrogate pair ({text[error.start]!r}), which is not Unicode text. Give whole "
            "characters."
        ) from error
