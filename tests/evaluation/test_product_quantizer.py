"""Product quantization by FAISS, against centers and distances computed by hand."""

import numpy as np
import pytest

pytest.importorskip("faiss")

from starshl.evaluation.product_quantizer import ProductQuantizer


@pytest.fixture(scope="module")
def rows():
    # Two pieces of two features, each of at most sixteen different values: 256 centers hold them exactly.
    rng = np.random.default_rng(0)
    return rng.integers(0, 4, (300, 4)).astype(np.float64)


def test_few_different_pieces_are_kept_exactly(rows):
    queries = np.random.default_rng(1).random((20, 4)) * 4
    exact = ((queries[:, None] - rows[None]) ** 2).sum(axis=2)
    found = ProductQuantizer(2).fit(rows).nearest(queries, 10)
    assert np.allclose(np.take_along_axis(exact, found, axis=1), np.sort(exact, axis=1)[:, :10], atol=1e-4)


def test_only_the_rows_asked_for_are_found(rows):
    queries, some = rows[:20] + 0.1, np.arange(0, 300, 3)
    exact = ((queries[:, None] - rows[None, some]) ** 2).sum(axis=2)
    found = ProductQuantizer(2).fit(rows).nearest(queries, 5, some)
    assert np.isin(found, some).all()
    assert np.allclose(
        np.take_along_axis(exact, np.searchsorted(some, found), axis=1), np.sort(exact, axis=1)[:, :5], atol=1e-4
    )


def test_features_are_padded_where_bytes_do_not_divide_them(rows):
    padded = ProductQuantizer(3).fit(rows)
    assert padded.index_.d == 6
    assert padded.model_bytes == 256 * 6 * 4
    assert ((rows[padded.nearest(rows[:9], 1)[:, 0]] - rows[:9]) ** 2).sum() == 0


def test_rows_that_cannot_be_quantized_are_refused(rows):
    with pytest.raises(ValueError, match=r"255 rows.*at least 256"):
        ProductQuantizer(2).fit(rows[:255])
    with pytest.raises(ValueError, match="n_bytes is 5"):
        ProductQuantizer(5).fit(rows)
