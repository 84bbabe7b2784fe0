"""Float search, alone and behind a classifier, compared with plain NumPy; and all figures of a page, computed again."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from starshl import binarize
from starshl.evaluation import compare
from starshl.evaluation.float_search import ByClass, ByVectors
from starshl.hashers.baselines import ITQ, LSHash


def untied_digits():
    """Digits whose gray levels differ a little, so that no two distances are equal."""
    X, y = load_digits(return_X_y=True)
    return X + 0.2 * np.random.default_rng(0).random(X.shape), y


def distances(queries, items):
    queries, items = queries.astype(np.float64), items.astype(np.float64)
    return np.array([[np.square(query - item).sum() for item in items] for query in queries])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "uint8"])
@pytest.mark.parametrize("shift", [0, 200])
def test_float_search_finds_the_nearest_rows_whatever_their_type(dtype, shift):
    X = (20 * np.random.default_rng(0).random((300, 12)) + shift).astype(dtype)
    expected = distances(X[:40], X)
    for among in (np.arange(300), np.arange(5, 300, 7)):
        found = ByVectors(X).nearest(X[:40], 10, among)
        assert np.isin(found, among).all()
        nearest = np.sort(expected[:, among], axis=1)[:, :10]
        assert np.array_equal(np.take_along_axis(expected, found, axis=1), nearest)


def test_far_rows_and_huge_numbers_do_not_confuse_float_search():
    X = np.random.default_rng(0).standard_normal((300, 12))
    X[7] *= 1e6
    for scale in (1.0, 1e100, 1e-100):
        expected = distances(X[:40], X)
        found = ByVectors(X * scale).nearest(X[:40] * scale, 10)
        assert np.array_equal(found, expected.argsort(axis=1, kind="stable")[:, :10])


def test_behind_a_classifier_items_of_the_predicted_class_come_first_and_the_nearest_of_them_first():
    X, y = untied_digits()
    items, queries = X[:400], X[400:450]
    classes = np.where(np.arange(400) % 3 == 0, -1, y[:400])
    search = ByClass(items, classes)
    of_item = np.where(classes < 0, search._predict(items), classes)
    expected = np.array(
        [
            np.lexsort((distances(query[None], items)[0], of_item != one))
            for query, one in zip(queries, search._predict(queries), strict=True)
        ]
    )
    # More than a class has items.
    assert np.array_equal(search.nearest(queries, 100), expected[:, :100])
    some = np.flatnonzero(classes >= 0)
    among = np.array([row[np.isin(row, some)] for row in expected])
    assert np.array_equal(search.nearest(queries, 100, some), among[:, :100])
    assert np.mean(search._predict(queries) == y[400:450]) > 0.8


def test_a_classifier_needs_two_classes():
    with pytest.raises(ValueError, match="two classes"):
        ByClass(np.eye(5), np.array([0, 0, -1, 0, -1]))
    result = compare(
        np.random.default_rng(0).random((40, 6)), [1] * 40, hasher=LSHash(8), rivals=["LogisticRegression"]
    )
    assert result.left_out == {"LogisticRegression": "A classifier needs labeled items of two classes or more."}
    unlabeled = compare(np.random.default_rng(0).random((40, 6)), hasher=LSHash(8), rivals=["LogisticRegression"])
    assert [one.name for one in unlabeled.methods] == ["float search", "LSHash"]


@pytest.mark.parametrize(("dtype", "n_bytes"), [("float16", 2), ("float32", 4), ("float64", 8)])
def test_every_figure_of_a_page_is_what_numpy_computes(tmp_path, dtype, n_bytes):
    X, y = untied_digits()
    X, y = X[:700].astype(dtype), y[:700]
    result = binarize(X, tmp_path / "items", y, hasher=ITQ(24, random_state=0), n_queries=80, random_state=4)
    order = np.random.RandomState(4).permutation(700)
    query, base = order[:80], order[80:]
    exact = distances(X[query], X[base])
    ranks = exact.argsort(axis=1, kind="stable")
    rows = {one.name: one for one in result.methods}

    floats = rows["float search"]
    assert floats.bytes_per_item == 64 * n_bytes
    assert floats.total_bytes == 620 * 64 * n_bytes
    assert floats.precision_at_10 == pytest.approx(np.mean(y[base][ranks[:, :10]] == y[query][:, None]))
    assert (floats.recall_10_at_10, floats.recall_10_at_100) == (1, 1)

    fitted = ITQ(24, random_state=0).fit(X[base], y[base])
    bits, asked = (fitted.encode(part).to_signs() > 0 for part in (X[base], X[query]))
    apart = (asked[:, None] != bits[None]).sum(axis=2)
    scores = fitted.decision_function(X[query])
    # Equal Hamming distances: what differs in bits of small scores comes first.
    doubt = np.array([[np.abs(s)[a != b].sum() for b in bits] for s, a in zip(scores, asked, strict=True)])
    found = np.lexsort((doubt, apart))
    own = rows["ITQ"]
    for k, figure in ((10, own.recall_10_at_10), (100, own.recall_10_at_100)):
        shares = [len({*ranks[i, :10]} & {*found[i, :k]}) / 10 for i in range(80)]
        assert figure == pytest.approx(np.mean(shares))
    same = y[base][None] == y[query][:, None]
    precision = []
    for row in range(80):
        tenth = np.sort(apart[row])[9]
        inside, tied = apart[row] < tenth, apart[row] == tenth
        n_left = 10 - inside.sum()
        precision.append((same[row][inside].sum() + n_left * same[row][tied].mean()) / 10)
    assert own.precision_at_10 == pytest.approx(np.mean(precision))
    assert own.n_different_codes == len(np.unique(bits, axis=0))
    fitted.save(tmp_path / "hasher.star")
    assert own.model_bytes == (tmp_path / "hasher.star").stat().st_size
    assert (own.bytes_per_item, own.total_bytes) == (3, 620 * 3 + own.model_bytes)

    class_first = rows["linear classifier, then float search within the class"]
    search = ByClass(X[base], y[base])
    predicted = search._predict(X[query])
    listed = np.array([np.lexsort((d, y[base] != one)) for d, one in zip(exact, predicted, strict=True)])
    assert class_first.precision_at_10 == pytest.approx(np.mean(y[base][listed[:, :10]] == y[query][:, None]))
    shares = [len({*ranks[i, :10]} & {*listed[i, :10]}) / 10 for i in range(80)]
    assert class_first.recall_10_at_10 == pytest.approx(np.mean(shares))
    assert class_first.bytes_per_item == 64 * n_bytes + 1
    assert all(one.one_query_milliseconds > 0 and one.batch_milliseconds > 0 for one in result.methods)
    assert f"A vector takes {64 * n_bytes} bytes as given, a code 3." in result.page()
    assert "Float search is enough for 700 items" in result.page()
