import numpy as np
import pytest

from starshl import BinaryCodes
from starshl.codes import HammingWords
from starshl.index import BucketIndex, FlatIndex, MultiIndex, PosteriorIndex

CODES = BinaryCodes.from_signs(np.ones((3, 12)))


@pytest.mark.parametrize("index_class", [FlatIndex, BucketIndex, MultiIndex])
def test_an_index_shows_its_class_its_items_and_their_length(index_class):
    index = index_class.from_codes(CODES)
    assert repr(index) == f"{index_class.__name__}(3 items of 12 bits)"
    index.remove([0, 1])
    assert repr(index) == f"{index_class.__name__}(1 item of 12 bits)"


def test_an_empty_index_of_words_shows_itself_too():
    assert repr(PosteriorIndex(1, HammingWords(np.array([[1], [-1]]), 1.0))) == "PosteriorIndex(0 items of 1 bit)"
