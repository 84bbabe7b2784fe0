"""What hashers say of rows, labels and settings that they cannot use: what arrived, what is allowed, what to do."""

import numpy as np
import pytest

from starshl import Codebook, HybridHasher, StarRidge, StarSHL
from starshl.hashers import get_class
from starshl.hashers.baselines import ITQ, BoostSSC, LSHash, ParamSensitiveHash
from starshl.hashers.supervision import require_labels

X = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0], [0.0, 1.0]])
Y = [0, 0, 1, 1]
CODEBOOK = Codebook.make([0, 1], n_bits=16, random_state=0)


def hasher_of_one_class():
    with pytest.warns(UserWarning, match="one class"):
        return StarSHL(4, random_state=0).fit(np.eye(5), np.zeros(5, dtype=int))


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda: BoostSSC(3).fit(X, Y), r"n_bits is 3; .* Use at most 2 bits"),
        (lambda: ParamSensitiveHash(3).fit(X, Y), r"n_bits is 3; .* Use at most 2 bits"),
        (lambda: hasher_of_one_class().compress(), r"0 support row.*Use it as it is"),
        (
            lambda: StarRidge(16, codewords=CODEBOOK, n_codewords=5).fit(X),
            r"codewords is a Codebook.*y has no labels",
        ),
        (lambda: StarSHL(16, codewords=CODEBOOK, n_codewords=5).fit(X), r"codewords is a Codebook.*y has no labels"),
        (
            lambda: StarSHL(4, kernels=[lambda a, b: float(a @ b)], max_memory=1e-7).fit(X, Y),
            r"stores 1 kernel matrices of .* max_memory leaves",
        ),
        (lambda: get_class("hybridhasher"), r"There is no method 'hybridhasher'; .* Did you mean HybridHasher"),
        (
            lambda: HybridHasher(class_hasher=ITQ()).fit(X, Y),
            "class_hasher is ITQ, which works without probabilities of classes",
        ),
        (
            lambda: require_labels(LSHash(), [-1, -1, -1], 3, partial=True),
            r"3 of 3 rows unlabeled.*some labeled rows",
        ),
    ],
)
def test_what_cannot_be_learned_is_told_with_what_can(ask, sentence):
    with pytest.raises((ValueError, MemoryError), match=sentence):
        ask()


def test_labels_of_plus_and_minus_one_are_told_that_minus_one_is_unlabeled():
    with pytest.raises(ValueError, match=r"All labels are 1,.*another class\..*2 rows of y.*another name"):
        StarSHL(6, random_state=0).fit(X, [-1, 1, -1, 1])
    with pytest.warns(UserWarning, match=r"only one class.*2 rows of y.*another name"):
        StarSHL(6, unlabeled="nearest", random_state=0).fit(X, [-1, 1, -1, 1])
