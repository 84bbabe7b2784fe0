import copy
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits

from starshl import BinaryCodes, HybridHasher, make_index
from starshl.codes import ScoreRule, WordDictionary
from starshl.exceptions import IndexFormatError, SpaceMismatchError, UnknownSpaceWarning
from starshl.hashers.baselines import ITQ
from starshl.index import BucketIndex, FlatIndex, HybridIndex, load_index
from starshl.index.files import write_index_file

OURS, THEIRS = "0" * 16, "f" * 16


@pytest.fixture
def codes():
    return BinaryCodes.from_signs(np.random.default_rng(0).choice([-1, 1], (20, 12)), OURS)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:300] / 16.0, y[:300]


@pytest.fixture(scope="module")
def hybrid(digits):
    return HybridHasher(16, random_state=0).fit(*digits)


def test_index_of_a_hasher_searched_with_its_codes_never_warns(digits, hybrid, tmp_path):
    X, y = digits
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for hasher in (ITQ(8, random_state=0).fit(X), hybrid):
            index = make_index(hasher.encode_database(X, y), hasher=hasher)
            index.save(tmp_path / "codes.index")
            for each in (index, copy.copy(index), load_index(tmp_path / "codes.index")):
                assert each.space_id == hasher.space_id_
                each.search(hasher.encode(X[:3]))
                each.search(each.reconstruct([0, 5]))


def test_plain_codes_on_both_sides_never_warn(codes):
    plain = replace(codes, space_id=None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        index = FlatIndex.from_codes(plain)
        index.search(plain)
        index.add(plain)


def test_known_codes_in_an_index_of_unknown_space_warn_once_at_the_line_of_the_caller(codes):
    index = FlatIndex.from_codes(replace(codes, space_id=None))
    with pytest.warns(UnknownSpaceWarning, match="of an unknown space") as caught:
        index.search(codes)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        index.add(codes)
        index.search(codes)
    assert index.space_id is None


def test_unknown_codes_added_to_an_index_leave_its_space(codes):
    index = BucketIndex.from_codes(codes)
    with pytest.warns(UnknownSpaceWarning, match="is unknown") as caught:
        index.add(replace(codes, space_id=None))
    assert caught[0].filename == __file__
    assert index.space_id == OURS


def test_emptied_index_takes_another_space(codes):
    index = FlatIndex.from_codes(codes)
    index.remove(index.ids)
    index.add(replace(codes, space_id=THEIRS))
    assert index.space_id == THEIRS


def test_refused_addition_leaves_an_empty_index_without_space(codes):
    index = FlatIndex(12)
    with pytest.raises(ValueError, match="more than once"):
        index.add(codes[:2], [1, 1])
    assert index.space_id is None
    index.add(replace(codes, space_id=THEIRS))


def test_hasher_given_to_make_index_says_which_space_plain_codes_are_of(digits):
    X = digits[0]
    hasher = ITQ(8, random_state=0).fit(X)
    plain = BinaryCodes(hasher.encode(X).packed, 8)
    assert make_index(plain, hasher=hasher).space_id == hasher.space_id_
    with pytest.raises(SpaceMismatchError):
        make_index(replace(plain, space_id=OURS), hasher=hasher)


@pytest.mark.parametrize("make", [FlatIndex.from_codes, BucketIndex.from_codes, make_index])
def test_hybrid_codes_are_refused_by_plain_indexes(digits, hybrid, make):
    with pytest.raises(ValueError, match=r"hybrid codes.*hasher\.make_index\(codes\)"):
        make(hybrid.encode(digits[0]))


def test_hybrid_index_takes_plain_codes_and_returns_hybrid_ones(codes):
    words = WordDictionary(np.eye(2), 2)
    index = HybridIndex.from_codes(codes, words=words, rule=ScoreRule(1, 1, 3))
    assert index.reconstruct([4]).metric == "hybrid"
    assert index.reconstruct([4]).space_id == OURS


def test_damaged_space_in_a_file_is_refused(codes, stored, tmp_path):
    arrays = stored(FlatIndex.from_codes(codes))
    write_index_file(tmp_path / "codes.index", {"kind": "flat", "n_bits": 12, "space_id": "nonsense"}, arrays)
    with pytest.raises(IndexFormatError, match="16 hexadecimal digits"):
        load_index(tmp_path / "codes.index")
