"""What codebooks say of labels that they do not know."""

import pytest

from starshl import Codebook


def test_an_unknown_label_is_told_how_to_get_a_word():
    animals = Codebook.make(["cat", "dog"], n_bits=16, n_reserved=5, random_state=0)
    with pytest.raises(ValueError, match=r"The label 'cow' has no word\..*codebook\.assign\('cow'\)"):
        animals.word_of(["cat", "cow"])
