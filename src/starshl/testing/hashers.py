"""check_hasher: the contract of BaseHasher as named checks, like scikit-learn's ``check_estimator``."""

from __future__ import annotations

import pickle
import re
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from joblib import parallel_config
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from threadpoolctl import threadpool_limits

from .._common.bundle import read_bundle
from ..collection.collection import Collection
from ..exceptions import MissingCapabilityError
from ..hashers.base import CAPABILITIES, BaseHasher, Capability
from ..hashers.catalog import METHODS
from .expectations import Case, Interruption, expect, expect_error, expect_same, interrupted_after, reload, run_checks

_CALLS_BEFORE_INTERRUPTION = (1, 10, 40, 160, 640, 2560)  # early and late in a fit, whatever its length


def check_hasher(hasher: BaseHasher | Callable[[], BaseHasher]) -> None:
    """Run every check of the contract; raise an AssertionError that lists all that fail, and how to pass each.

    The hasher is fitted several dozen times on 300 rows of 64 features, so give it settings under which that is
    quick. Checks follow what it declares: in ``facts``, what it does with labels and what limits the length of its
    codes, and in ``supports``, what it can do besides.
    ``sklearn.utils.estimator_checks.check_estimator`` covers the part of the contract that is scikit-learn's.

    Parameters
    ----------
    hasher : BaseHasher, or a function without arguments that returns one
        Not fitted. It needs a fixed ``random_state`` if it draws numbers.

    Examples
    --------
    >>> from starshl.hashers.baselines import LSHash
    >>> from starshl.testing import check_hasher
    >>> check_hasher(LSHash(4, random_state=0))
    """
    run_checks(hasher_checks(hasher), {name: check.__doc__ for name, check in _CHECKS.items()})


def hasher_checks(hasher: BaseHasher | Callable[[], BaseHasher]) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield the name of each check and a function that runs it, for a test runner that reports them one by one."""
    template = hasher if isinstance(hasher, BaseHasher) else hasher()
    case = Case(clone(template))
    for name, check in _CHECKS.items():
        yield name, partial(check, case)


# The docstring of a check says how to pass it.

# Checks of a fitted hasher: scores and codes, files, and the collections that it serves.


def check_codes_are_signs_of_scores_unless_they_stand_for_posteriors(case: Case) -> None:
    """Return real scores of shape (n_samples, n_bits_) from ``_scores``, and leave transform and encode as they are."""
    hasher = case.fitted()
    scores, signs, codes = hasher.decision_function(case.X), hasher.transform(case.X), hasher.encode(case.X)
    expect(scores.shape == signs.shape == (len(case.X), hasher.n_bits_), f"scores have shape {scores.shape}.")
    expect(signs.dtype == np.int8, f"transform gives {signs.dtype}; it must be int8.")
    if hasher.words is None:
        expect_same(signs, np.where(scores >= 0, 1, -1), "transform against the signs of decision_function")
    expect_same(codes.to_signs(), signs, "encode against transform")
    expect(codes.space_id == hasher.space_id_, f"codes are of space {codes.space_id}, the hasher {hasher.space_id_}.")


def check_items_have_codes_of_the_same_length(case: Case) -> None:
    """Leave ``encode_database`` as it is, or return one code of n_bits_ bits per row, made with ``as_codes``."""
    hasher = case.fitted()
    for items in (hasher.encode_database(case.X), hasher.encode_database(case.X, case.y)):
        expect(len(items) == len(case.X), f"encode_database gives {len(items)} codes for {len(case.X)} rows.")
        expect(items.n_bits == hasher.n_bits_, f"items have {items.n_bits} bits, queries {hasher.n_bits_}.")
        expect(items.space_id == hasher.space_id_, f"items are of space {items.space_id}, queries {hasher.space_id_}.")


def check_one_row_alone_has_the_scores_it_has_among_others(case: Case) -> None:
    """Let ``_scores`` compute nothing from the rows it gets, such as their mean; learn that in ``fit``."""
    hasher = case.fitted()
    scores, alone = hasher.decision_function(case.X), hasher.decision_function(case.X[7:8])
    expect(np.allclose(alone[0], scores[7], atol=1e-9 * np.abs(scores).max()), "row 7 alone gets other scores.")


def check_float32_rows_get_float32_scores(case: Case) -> None:
    """Let ``check_rows`` keep the dtype, and convert learned arrays: ``self.components_.astype(X.dtype)``."""
    rows = case.X.astype(np.float32)
    dtype = case.make().fit(rows, case.y).decision_function(rows).dtype
    expect(dtype == np.float32, f"float32 rows get scores of {dtype}.")


def check_bad_rows_are_named(case: Case) -> None:
    """Begin ``fit`` with ``X = check_rows(self, X, fitting=True)``, and ``_scores`` with ``fitting=False``."""
    hasher, broken = case.fitted(), case.X
    broken[5, 3] = np.nan
    expect_error("NaN in column 3, first in row 5", lambda: hasher.transform(broken))
    expect_error("NaN in column 3, first in row 5", lambda: case.make().fit(broken, case.y))
    expect_error("63 features", lambda: hasher.transform(case.X[:, :63]))


def check_sparse_rows_get_the_codes_of_dense_ones_or_are_refused(case: Case) -> None:
    """Pass X through ``check_rows``, which refuses sparse rows unless told to accept them."""
    hasher, sparse = case.fitted(), csr_array(case.X)
    _same_or_refused(lambda: hasher.decision_function(sparse), hasher.decision_function(case.X))
    _same_or_refused(
        lambda: case.make().fit(sparse, case.y).decision_function(case.X), hasher.decision_function(case.X)
    )


def _same_or_refused(scores_of: Callable[[], np.ndarray], dense: np.ndarray) -> None:
    try:
        scores = scores_of()
    except TypeError:
        expect_error(r"sparse.*TruncatedSVD", scores_of, (TypeError,))
    else:
        expect(np.allclose(scores, dense, atol=1e-6 * np.abs(dense).max()), "sparse rows get other scores.")


def check_parameters_set_after_the_fit_do_not_change_scores(case: Case) -> None:
    """Let ``_scores`` read attributes that ``fit`` has learned, whose names end in ``_``, never parameters."""
    hasher = case.fitted()
    scores = hasher.decision_function(case.X)
    hasher.set_params(**dict.fromkeys(hasher.get_params()))
    expect_same(hasher.decision_function(case.X), scores, "scores after set_params")


def check_saved_hasher_comes_back_the_same(case: Case) -> None:
    """Learn arrays, numbers, strings or lists of these; a model file holds nothing else."""
    hasher = case.fitted()
    with tempfile.TemporaryDirectory() as folder:
        loaded = reload(hasher, Path(folder) / "model.star")
    expect(type(loaded) is type(hasher), f"a {type(loaded).__name__} came back.")
    expect(loaded.get_params() == hasher.get_params(), "other parameters came back.")
    expect_same(loaded.decision_function(case.X), hasher.decision_function(case.X), "scores of the loaded hasher")
    expect(loaded.space_id_ == hasher.space_id_, "the loaded hasher makes codes of another space.")


def check_pickled_hasher_comes_back_the_same(case: Case) -> None:
    """Keep functions, locks and open files out of the attributes of the hasher."""
    hasher = case.fitted()
    loaded = pickle.loads(pickle.dumps(hasher))
    expect_same(loaded.decision_function(case.X), hasher.decision_function(case.X), "scores of the unpickled hasher")


def check_hasher_of_the_catalog_backs_a_collection(case: Case) -> None:
    """Let ``encode_database`` give each row the code that it also gets among others."""
    hasher = case.fitted()
    if METHODS.get(type(hasher).__name__) != type(hasher).__module__:
        return  # a collection finds its hasher again by the name that the catalog knows
    with tempfile.TemporaryDirectory() as folder, Collection.create(Path(folder) / "items", hasher) as items:
        ids = items.add(case.X)
        expect(items.codes(ids) == hasher.encode_database(case.X), "the collection holds other codes.")


# Checks of what only some hashers can do.


def check_declared_capabilities_are_there_and_no_others(case: Case) -> None:
    """Name in ``supports`` those methods of ``CAPABILITIES`` that the class has, and no others."""
    hasher = case.fitted()
    unknown = set(hasher.supports) - set(CAPABILITIES)
    expect(not unknown, f"supports names {sorted(unknown)}; known are {sorted(CAPABILITIES)}.")
    for capability in CAPABILITIES:
        is_there = capability in hasher.supports if capability == "probability" else hasattr(hasher, capability)
        if capability in hasher.supports:
            expect(is_there, f"supports names {capability!r}, and there is no such method.")
        else:
            expect(not is_there, f"there is a method {capability}, which supports does not name.")
            expect_error("", partial(hasher.require, capability), (MissingCapabilityError,))


def check_rows_are_classified_as_declared(case: Case) -> None:
    """Return one value per row, or a column per class in the order of ``classes_``."""
    if not case.template.supports:
        return
    hasher = case.fitted()
    n_rows, labels = len(case.X), hasher.class_labels
    shapes: dict[Capability, tuple[int, ...]] = {
        "predict": (n_rows,),
        "predict_proba": (n_rows, len(labels)),
        "class_scores": (n_rows, len(labels)),
        "codeword_distances": (n_rows, len(labels)),
        "novelty": (n_rows,),
    }
    for capability, shape in shapes.items():
        if capability in hasher.supports:
            given = getattr(hasher, capability)(case.X)
            expect(given.shape == shape, f"{capability} gives the shape {given.shape}; it must be {shape}.")
    if "predict" in hasher.supports:
        predicted = {*hasher.predict(case.X).tolist(), *hasher.predict_training(case.X).tolist()}
        expect(predicted <= set(labels), f"predicted are {predicted - set(labels)}, which classes_ does not hold.")
    if "predict_proba" in hasher.supports:
        expect(np.allclose(hasher.predict_proba(case.X).sum(axis=1), 1), "probabilities of a row do not sum to one.")
    if "score" in hasher.supports:
        expect(bool(np.isfinite(hasher.score(case.X, case.y))), "score is not a finite number.")
    if "contributions" in hasher.supports:
        parts = hasher.contributions(case.X[:1])
        expect(np.allclose(parts.by_kernel.sum(axis=1), parts.by_row.sum(axis=1)), "contributions do not add up.")


def check_items_are_found_by_the_index_of_the_hasher(case: Case) -> None:
    """Leave ``encode_training``, ``encode_queries`` and ``make_index`` as they are, or override all that belong
    together.
    """
    hasher = case.fitted()
    items, stored = hasher.encode_database(case.X), hasher.encode_training(case.X, case.y)
    expect(len(stored) == len(items), f"encode_training gives {len(stored)} codes for {len(items)} rows.")
    expect(stored.space_id == items.space_id, "encode_training gives codes of another space.")
    queries: Any = hasher.encode_queries(case.X[:5])
    expect(queries.codes == hasher.encode(case.X[:5]), "encode_queries has other codes than encode.")
    expect(queries.codes.space_id == items.space_id, "encode_queries has codes of another space.")
    shape = hasher.make_index(items).search(queries, 3).ids.shape
    expect(shape == (5, 3), f"five queries for three items each find ids of shape {shape}.")
    expect(hasher.encode_database(case.X[:7]) == items[:7], "codes of items depend on other items.")
    words = hasher.class_words
    expect(words is None or len(words) == len(hasher.class_labels), "class_words does not hold one word per class.")
    if "relabel" in hasher.supports:
        expect(hasher.relabel(items, case.y) == hasher.encode_database(case.X, case.y), "relabel gives other codes.")


def check_codes_stand_for_posteriors_as_declared(case: Case) -> None:
    """Declare "probability" where ``words`` are known, and let queries have the posteriors of ``predict_proba``."""
    hasher = case.fitted()
    queries, words = hasher.encode_queries(case.X), hasher.words
    if words is None:
        expect("probability" not in hasher.supports, "supports names 'probability', and words is None.")
        expect(queries.posteriors is None, "queries have posteriors, and words is None.")
        return
    expect("probability" in hasher.supports, "there are words of classes, and supports does not name 'probability'.")
    shape = len(case.X), len(hasher.class_labels)
    given: Any = queries.posteriors
    expect(np.shape(given) == shape, f"posteriors of queries must have the shape {shape}.")
    expect(
        np.allclose(given, hasher.predict_proba(case.X), atol=1e-5), "queries have other posteriors than predict_proba."
    )
    kept = hasher.training_proba(case.X)
    expect(kept.shape == shape and np.allclose(kept.sum(axis=1), 1), f"training_proba must have the shape {shape}.")
    for items in (hasher.encode_database(case.X), hasher.encode_training(case.X), queries.codes):
        shares = words.posteriors_of(items)
        expect(shares.shape == shape, f"words stand for posteriors of shape {shares.shape}; it must be {shape}.")
        expect(np.allclose(shares.sum(axis=1), 1, atol=1e-5), "posteriors that codes stand for do not sum to one.")
    columns = np.array([hasher.class_labels.index(label) for label in case.y.tolist()])
    labeled = hasher.encode_database(case.X, case.y)
    expect_same(words.columns_of(labeled), columns, "the classes of items with labels")
    expect_same(words.posteriors_of(labeled), np.eye(shape[1])[columns], "the posteriors of items with labels")


def check_fitted_hasher_is_changed_as_declared(case: Case) -> None:
    """Return a fitted copy of the new length from ``with_bits``, and one with fewer kept rows from ``compress``."""
    if not case.template.supports & {"with_bits", "compress"}:
        return
    hasher = case.fitted()
    if "with_bits" in hasher.supports:
        n_bits = hasher.n_bits_ + case.facts.bits_multiple_of
        given = hasher.with_bits(n_bits).encode(case.X).n_bits
        expect(given == n_bits, f"with_bits({n_bits}) gives {given} bits.")
    if "compress" in hasher.supports:
        small = hasher.compress(len(hasher.kept_samples) // 2)
        expect(small.encode(case.X).n_bits == hasher.n_bits_, "compress changes the number of bits.")
        expect(small.fit_summary.agreement is not None, "compress does not say which share of the bits stays.")


# Checks of fit: the same bytes every time, for any threads and layout, and completely or not at all.


def check_same_seed_gives_the_same_scores(case: Case) -> None:
    """Draw all numbers from ``sklearn.utils.check_random_state(self.random_state)``, and pass a fixed random_state
    here.
    """
    first, second = case.fitted(), case.make().fit(case.X, case.y)
    expect_same(first.decision_function(case.X), second.decision_function(case.X), "scores of two fits")
    expect(first.space_id_ == second.space_id_, "two fits make codes of two spaces.")


def check_bytes_do_not_depend_on_threads(case: Case) -> None:
    """Run matrix products, decompositions and solvers of NumPy and SciPy inside ``threadpoolctl.threadpool_limits(1)``,
    in ``fit`` and in ``_scores``: sums of BLAS change in the last bits with its threads.
    """
    # More rows than a tile holds; sums of whole numbers, such as pixels, would be exact in any order.
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 1100)
    rows = rng.standard_normal((3, 100))[y] + rng.standard_normal((1100, 100))
    for X in (rows, rows.astype(np.float32)):
        with parallel_config("sequential"), threadpool_limits(1):
            alone = _model_and_scores(case.make().fit(X, y), X)
        with parallel_config("threading", n_jobs=4), threadpool_limits(4):
            shared = _model_and_scores(case.make().fit(X, y), X)
        expect(shared == alone, f"one thread and four learn different models from {X.dtype} rows.")
        several = case.make(n_jobs=3).fit(X, y).decision_function(X)
        expect(several.tobytes() == alone[2], f"n_jobs=3 gives other scores for {X.dtype} rows.")


def _model_and_scores(hasher: BaseHasher, X: np.ndarray) -> tuple[dict[str, Any], dict[str, bytes], bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.star"
        hasher.save(path)
        header, arrays = read_bundle(path)
    return header, {name: array.tobytes() for name, array in arrays.items()}, hasher.decision_function(X).tobytes()


def check_memory_layout_does_not_change_scores(case: Case) -> None:
    """Use the array that ``check_rows`` returns, not the X that came."""
    scores = case.fitted().decision_function(case.X)
    frozen = case.X
    frozen.flags.writeable = False
    for rows in (np.asfortranarray(case.X), frozen, np.repeat(case.X, 2, axis=0)[::2]):
        expect_same(case.make().fit(rows, case.y).decision_function(rows), scores, "scores in another layout")


def check_rows_are_left_as_they_came(case: Case) -> None:
    """Copy before you change: write ``X = X - mean``, not ``X -= mean``."""
    rows, labels = case.X, case.y
    case.make().fit(rows, labels).transform(rows)
    expect_same(rows, case.X, "X before and after the fit")
    expect_same(labels, case.y, "y before and after the fit")


def check_awkward_rows_get_codes(case: Case) -> None:
    """Divide by no scale, norm or eigenvalue that can be zero, as for constant columns, equal rows and rows of
    zeros.
    """
    X = case.X
    X[:, [0, 9]] = 3.0  # constant columns
    X[100:200] = X[:100]  # equal rows, with other labels
    X[::50] = 0.0  # rows of zeros
    hasher = case.make().fit(X, case.y)
    for rows in (X, 1e3 * X[:5]):
        expect(bool(np.isfinite(hasher.decision_function(rows)).all()), "some scores are not finite.")


def check_history_of_the_objective_is_finite(case: Case) -> None:
    """Let ``objective_history_`` be a vector of finite numbers, or leave it out."""
    history = case.fitted().fit_summary.objective
    is_finite = history is None or (np.ndim(history) == 1 and bool(np.isfinite(history).all()))
    expect(is_finite, "objective_history_ is not a finite vector.")


def check_few_bits_are_given_or_refused_by_the_rule(case: Case) -> None:
    """Allow a single bit, or declare ``bits_multiple_of`` in ``facts`` and refuse other lengths."""
    multiple = case.facts.bits_multiple_of
    for n_bits in (1, 2):
        if n_bits % multiple == 0:
            shape = case.make(n_bits=n_bits).fit(case.X, case.y).transform(case.X).shape
            expect(shape == (len(case.X), n_bits), f"n_bits={n_bits} gives codes of shape {shape}.")
        else:
            fit = partial(case.make(n_bits=n_bits).fit, case.X, case.y)
            expect_error(f"n_bits is {n_bits};.*[Uu]se {multiple}", fit)


def check_more_bits_than_possible_name_the_largest_number(case: Case) -> None:
    """Give any number of bits, or declare ``max_bits`` in ``facts`` and raise a ValueError that names the largest."""
    n_bits = 80  # the rows have 64 features
    if case.facts.max_bits != "any":
        message = expect_error(r"n_bits is 10000;.*at most \d+", lambda: case.make(n_bits=10_000).fit(case.X, case.y))
        n_bits = int(re.findall(r"at most (\d+)", message)[0])
    shape = case.make(n_bits=n_bits).fit(case.X, case.y).transform(case.X).shape
    expect(shape == (len(case.X), n_bits), f"n_bits={n_bits} gives codes of shape {shape}.")


def check_impossible_numbers_of_bits_are_refused(case: Case) -> None:
    """Begin ``fit`` with ``check_integer(self.n_bits, "n_bits", low=1)``."""
    for n_bits in (0, -8, 2.5, True, "8", None):
        fit = partial(case.make(n_bits=n_bits).fit, case.X, case.y)
        expect_error(f"n_bits is {n_bits!r}; it must be an integer", fit)


def check_interrupted_fit_leaves_the_hasher_as_it_was(case: Case) -> None:
    """Decorate ``fit`` with ``all_or_nothing``."""
    hasher = case.fitted()
    before = pickle.dumps(hasher)
    for n_calls in _CALLS_BEFORE_INTERRUPTION:
        try:
            with interrupted_after(n_calls):
                hasher.fit(case.X[::-1], case.y[::-1])
        except (Interruption, Exception):  # NumPy turns some interruptions into a TypeError
            expect(pickle.dumps(hasher) == before, f"a fit interrupted after {n_calls} calls changed the hasher.")
        else:
            expect(n_calls > 1, "the fit was not interrupted.")
            break


def check_refit_that_fails_leaves_the_hasher_as_it_was(case: Case) -> None:
    """Decorate ``fit`` with ``all_or_nothing``, and pass X through ``check_rows``."""
    hasher = case.fitted()
    before = pickle.dumps(hasher)
    broken = case.X
    broken[5, 3] = np.inf
    bad_inputs = {
        "an infinite entry": lambda: hasher.fit(broken, case.y),
        "one row": lambda: hasher.fit(case.X[:1], case.y[:1]),
        "a vector": lambda: hasher.fit(case.X[0], case.y),
    }
    if case.facts.needs_labels:
        bad_inputs["too few labels"] = lambda: hasher.fit(case.X, case.y[:10])
    for what, refit in bad_inputs.items():
        try:
            expect_error("", refit, (ValueError, TypeError))
        except AssertionError:
            raise AssertionError(f"a refit on {what} should raise a ValueError or a TypeError.") from None
        expect(pickle.dumps(hasher) == before, f"a refit that failed on {what} changed the hasher.")


def check_failed_first_fit_cannot_be_saved(case: Case) -> None:
    """Decorate ``fit`` with ``all_or_nothing``."""
    hasher = case.make()
    try:
        with interrupted_after(20):
            hasher.fit(case.X, case.y)
    except (Interruption, Exception):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.star"
            expect_error("not fitted", lambda: hasher.save(path), (NotFittedError,))
            expect(not path.exists(), "a hasher whose fit failed left a file.")


# Checks that a hasher does with labels what its facts say.


def check_ignored_labels_change_nothing(case: Case) -> None:
    """Do not read y, or declare in ``facts`` that labels are optional or required."""
    if case.facts.labels != "ignored":
        return
    n_rows = len(case.X)
    scores = case.make().fit(case.X).decision_function(case.X)
    shuffled = np.random.default_rng(0).integers(-1, 2, n_rows)
    for poison in (shuffled, np.full(n_rows, np.nan), np.full(n_rows, "poison", dtype=object), ["one label"]):
        expect_same(case.make().fit(case.X, poison).decision_function(case.X), scores, "scores with other labels")


def check_missing_labels_point_to_methods_that_need_none(case: Case) -> None:
    """Raise a ValueError that ends with "use a method that needs no labels" if no row has a label."""
    if not case.facts.needs_labels:
        return
    for nothing in (None, np.full(len(case.X), -1)):
        expect_error("use a method that needs no labels", partial(case.make().fit, case.X, nothing))


def check_some_labels_are_enough_where_the_facts_say_so(case: Case) -> None:
    """Learn from rows with and without labels, or declare labels="required" and name how many rows lack one."""
    if case.facts.labels == "ignored":
        return
    some = np.where(np.arange(len(case.X)) % 2, case.y, -1)
    if case.facts.labels == "required":
        expect_error("150 of 300 rows unlabeled", lambda: case.make().fit(case.X, some))
    else:
        n_codes = len(case.make().fit(case.X, some).encode(case.X))
        expect(n_codes == len(case.X), "rows without a label got no code.")


def check_classes_of_a_fit_without_labels_are_clusters(case: Case) -> None:
    """Override ``holds_clusters``: True after a fit without labels, when no label changes a code; else False."""
    if case.facts.labels != "optional" or "predict" not in case.template.supports:
        return
    expect(not case.fitted().holds_clusters, "holds_clusters is True after a fit with labels.")
    unnamed = case.make().fit(case.X)
    expect(unnamed.holds_clusters, "holds_clusters is False after a fit without labels.")
    numbers = np.arange(len(case.X)) % 3
    same = unnamed.encode_database(case.X, numbers) == unnamed.encode_database(case.X)
    expect(same, "a fit without labels gives items the codes of clusters whose numbers are their labels.")


def check_labels_may_be_words(case: Case) -> None:
    """Use ``y.index``, the position of each label among ``y.classes``; y is parsed by ``all_or_nothing``."""
    if case.facts.labels == "ignored":
        return
    words = np.array([f"digit {label}" for label in case.y])
    numbered, worded = case.fitted(), case.make().fit(case.X, words)
    expect_same(numbered.decision_function(case.X), worded.decision_function(case.X), "scores")


_CHECKS = {
    name.removeprefix("check_"): check
    for name, check in list(globals().items())
    if name.startswith("check_") and check is not check_hasher
}
