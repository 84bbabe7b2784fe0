"""Checks of a fitted hasher: scores and codes, files, and the collections that it serves."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from ..catalog import METHODS
from ..collection import Collection
from ._expectations import Case, expect, expect_error, expect_same, reload


def check_codes_are_signs_of_scores(case: Case) -> None:
    hasher = case.fitted()
    scores, signs, codes = hasher.decision_function(case.X), hasher.transform(case.X), hasher.encode(case.X)
    expect(scores.shape == signs.shape == (len(case.X), hasher.n_bits_), f"scores have shape {scores.shape}.")
    expect(signs.dtype == np.int8, f"transform gives {signs.dtype}; it must be int8.")
    expect_same(signs, np.where(scores >= 0, 1, -1), "transform against the signs of decision_function")
    expect_same(codes.to_signs(), signs, "encode against transform")
    expect(codes.space_id == hasher.space_id_, f"codes are of space {codes.space_id}, the hasher {hasher.space_id_}.")


def check_items_have_codes_of_the_same_length(case: Case) -> None:
    hasher = case.fitted()
    for items in (hasher.encode_database(case.X), hasher.encode_database(case.X, case.y)):
        expect(len(items) == len(case.X), f"encode_database gives {len(items)} codes for {len(case.X)} rows.")
        expect(items.n_bits == hasher.n_bits_, f"items have {items.n_bits} bits, queries {hasher.n_bits_}.")
        expect(items.space_id == hasher.space_id_, f"items are of space {items.space_id}, queries {hasher.space_id_}.")


def check_one_row_alone_has_the_scores_it_has_among_others(case: Case) -> None:
    hasher = case.fitted()
    scores, alone = hasher.decision_function(case.X), hasher.decision_function(case.X[7:8])
    expect(np.allclose(alone[0], scores[7], atol=1e-9 * np.abs(scores).max()), "row 7 alone gets other scores.")


def check_float32_rows_get_float32_scores(case: Case) -> None:
    rows = case.X.astype(np.float32)
    dtype = case.make().fit(rows, case.y).decision_function(rows).dtype
    expect(dtype == np.float32, f"float32 rows get scores of {dtype}.")


def check_bad_rows_are_named(case: Case) -> None:
    hasher, broken = case.fitted(), case.X.copy()
    broken[5, 3] = np.nan
    expect_error("NaN in column 3, first in row 5", lambda: hasher.transform(broken))
    expect_error("NaN in column 3, first in row 5", lambda: case.make().fit(broken, case.y))
    expect_error("63 features", lambda: hasher.transform(case.X[:, :63]))


def check_sparse_rows_get_the_codes_of_dense_ones_or_are_refused(case: Case) -> None:
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
    hasher = case.fitted()
    scores = hasher.decision_function(case.X)
    hasher.set_params(**dict.fromkeys(hasher.get_params()))
    expect_same(hasher.decision_function(case.X), scores, "scores after set_params")


def check_saved_hasher_comes_back_the_same(case: Case) -> None:
    hasher = case.fitted()
    with tempfile.TemporaryDirectory() as folder:
        loaded = reload(hasher, Path(folder) / "model.star")
    expect(type(loaded) is type(hasher), f"a {type(loaded).__name__} came back.")
    expect(loaded.get_params() == hasher.get_params(), "other parameters came back.")
    expect_same(loaded.decision_function(case.X), hasher.decision_function(case.X), "scores of the loaded hasher")
    expect(loaded.space_id_ == hasher.space_id_, "the loaded hasher makes codes of another space.")


def check_pickled_hasher_comes_back_the_same(case: Case) -> None:
    hasher = case.fitted()
    loaded = pickle.loads(pickle.dumps(hasher))
    expect_same(loaded.decision_function(case.X), hasher.decision_function(case.X), "scores of the unpickled hasher")


def check_hasher_of_the_catalog_backs_a_collection(case: Case) -> None:
    hasher = case.fitted()
    if METHODS.get(type(hasher).__name__) != type(hasher).__module__:
        return  # a collection finds its hasher again by the name that the catalog knows
    with tempfile.TemporaryDirectory() as folder, Collection.create(Path(folder) / "items", hasher) as items:
        ids = items.add(case.X)
        expect(items.codes(ids) == hasher.encode_database(case.X), "the collection holds other codes.")
