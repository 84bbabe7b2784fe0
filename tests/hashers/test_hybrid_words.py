"""Hybrid codes for systems that count bits alone: a word near codewords, and the neighbor bits."""

import numpy as np
import pytest

from starshl import HybridHasher, StarRidge, make_index
from starshl.codes import HammingWords
from starshl.exceptions import SpaceMismatchError
from starshl.hashers.baselines import ITQ


@pytest.fixture(scope="module")
def hasher(digits):
    return HybridHasher(24, class_hasher=StarRidge(kernels="scaled"), random_state=0).fit(
        digits[0][:500], digits[1][:500]
    )


def test_code_is_a_word_of_the_stored_posterior_and_the_neighbor_bits(hasher, digits):
    X, y = digits
    items = hasher.encode_database(X[500:700], np.where(np.arange(200) % 2, y[500:700], -1))
    plain = hasher.hamming_codes(items)
    length = plain.n_bits - 18
    words = HammingWords(hasher.hamming_codewords_, hasher.hamming_sharpness_)
    assert words.n_bits == length
    signs = plain.to_signs()
    np.testing.assert_array_equal(signs[:, length:], items.to_signs()[:, 6:])
    np.testing.assert_array_equal(signs[1::2, :length], hasher.hamming_codewords_[y[500:700][1::2]])
    np.testing.assert_array_equal(signs[::2, :length], words.encode(hasher.words.posteriors_of(items))[::2])
    assert plain.metric == "hamming"


def test_query_is_nearest_to_its_likeliest_class(hasher, digits):
    X = digits[0]
    queries = hasher.encode_queries(X[500:700])
    plain = hasher.hamming_codes(queries)
    length = len(hasher.hamming_codewords_.T)
    distances = (length - plain.to_signs()[:, :length].astype(int) @ hasher.hamming_codewords_.T) / 2
    np.testing.assert_array_equal(hasher.classes_[distances.argmin(axis=1)], hasher.predict(X[500:700]))
    np.testing.assert_array_equal(plain.to_signs()[:, length:], queries.codes.to_signs()[:, 6:])


def test_plain_search_comes_near_the_order_of_the_hasher(hasher, digits):
    X, y = digits
    items, queries = hasher.encode_database(X[500:1200]), hasher.encode_queries(X[1200:])
    own = make_index(items, hasher=hasher).search(queries, 30).ids
    plain = make_index(hasher.hamming_codes(items)).search(hasher.hamming_codes(queries), 30).ids
    by_neighbors = ITQ(24, random_state=0).fit(X[:500])
    without = make_index(by_neighbors.encode(X[500:1200])).search(by_neighbors.encode(X[1200:]), 30).ids
    right = y[1200:, None]
    own, plain, without = (np.mean(y[500 + ids] == right) for ids in (own, plain, without))
    assert plain > own - 0.02
    assert plain > without + 0.02


def test_both_forms_are_of_different_spaces(hasher, digits):
    items = hasher.encode(digits[0][:5])
    plain = hasher.hamming_codes(items)
    assert plain.space_id == hasher.hamming_codes(items).space_id
    assert plain.space_id not in (None, hasher.space_id_)
    with pytest.raises((SpaceMismatchError, ValueError)):
        make_index(plain).search(hasher.encode_queries(digits[0][:5]), 1)


def test_codes_of_another_length_are_refused(hasher, digits):
    with pytest.raises(ValueError, match=r"have 16 bits.*has made"):
        hasher.hamming_codes(hasher.with_bits(16).encode(digits[0][:5]))


def test_other_hashers_make_plain_codes_anyway(digits):
    ridge = StarRidge(8, kernels="scaled").fit(digits[0][:200], digits[1][:200])
    codes = ridge.encode_database(digits[0][:20], digits[1][:20])
    assert ridge.hamming_codes(codes) is codes
    queries = ridge.encode_queries(digits[0][:20])
    assert ridge.hamming_codes(queries) == ridge.encode(digits[0][:20])


def test_clusters_have_plain_codes(digits):
    fitted = HybridHasher(20, random_state=0).fit(digits[0][:300])
    items, queries = fitted.encode(digits[0][300:600]), fitted.encode_queries(digits[0][:50])
    found = make_index(fitted.hamming_codes(items)).search(fitted.hamming_codes(queries), 10).ids
    assert np.mean(digits[1][300:600][found] == digits[1][:50, None]) > 0.8
