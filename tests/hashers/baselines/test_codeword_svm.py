import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.svm import SVC

from starshl import StarSHL
from starshl.hashers.baselines import CodewordSVM
from starshl.learning.kernels import Gaussian


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16.0, y


def test_every_bit_equals_an_svm_of_scikit_learn(digits):
    X, y = digits[0][:300], digits[1][:300]
    hasher = CodewordSVM(6, tol=1e-6, random_state=0).fit(X, y)
    scores = hasher.decision_function(digits[0][300:600])
    for bit in range(6):
        machine = SVC(C=10.0, gamma=1 / hasher.scale_, tol=1e-6).fit(X, hasher.codewords_[y, bit])
        np.testing.assert_allclose(scores[:, bit], machine.decision_function(digits[0][300:600]), atol=1e-4)


def test_codes_equal_those_of_star_shl_with_nothing_left_to_learn(digits):
    X, y = digits[0][:300], digits[1][:300]
    hasher = CodewordSVM(8, sigma=1.5, tol=1e-6, random_state=0).fit(X, y)
    frozen = StarSHL(
        8,
        kernels=[Gaussian(1.5)],
        C=10.0,
        codewords=hasher.codewords_,
        update_codewords=False,
        svm_tol=1e-6,
    ).fit(X, y)
    rows = digits[0][300:]
    np.testing.assert_allclose(hasher.decision_function(rows), frozen.decision_function(rows), atol=1e-4)
    assert np.array_equal(hasher.transform(rows), frozen.transform(rows))


def test_one_dimensional_example_by_hand():
    # Symmetric points with far neighbors: only the inner two matter and the boundary is at zero.
    X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), [0, 0, 1, 1]
    hasher = CodewordSVM(1, codewords=[[-1], [1]], sigma=1.0, tol=1e-9).fit(X, y)
    scores = hasher.decision_function([[0.0], [-1.5], [1.5]])[:, 0]
    assert scores[0] == pytest.approx(0, abs=1e-8)
    assert scores[1] == pytest.approx(-scores[2])
    assert scores[2] > 0


def test_complementary_bits_share_one_svm(digits):
    X, y = digits[0][:200], digits[1][:200] % 2
    hasher = CodewordSVM(3, codewords=[[1, -1, 1], [-1, 1, 1]]).fit(X, y)
    scores = hasher.decision_function(X)
    assert np.array_equal(scores[:, 0], -scores[:, 1])
    assert np.array_equal(scores[:, 2], np.ones(200))


def test_threads_do_not_change_the_model(digits):
    X, y = digits[0][:200], digits[1][:200]
    first, second = (CodewordSVM(8, n_jobs=n_jobs, random_state=0).fit(X, y) for n_jobs in (1, 2))
    assert np.array_equal(first.dual_coef_, second.dual_coef_)


@pytest.mark.parametrize("codewords", ["separated", "random"])
def test_held_out_digits_are_retrieved_and_classified(digits, codewords):
    X, y = digits
    hasher = CodewordSVM(16, codewords=codewords, random_state=0).fit(X[:1000], y[:1000])
    distances = hasher.encode(X[1000:]).distances(hasher.encode(X[:1000]))
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :10]
    # .95 on this split by writers; .99 on a shuffled one.
    assert np.mean(y[:1000][nearest] == y[1000:, None]) > 0.92
    assert np.mean(hasher.predict(X[1000:]) == y[1000:]) > 0.92


@pytest.mark.parametrize(("decoding", "expected"), [("hamming", 0), ("hinge", 1)])
def test_decoding_by_hinge_can_overrule_the_number_of_bits(decoding, expected):
    hasher = CodewordSVM(3, codewords=[[1, 1, 1], [-1, -1, -1]], decoding=decoding).fit(np.eye(2), [0, 1])
    hasher.decision_function = lambda X: np.array([[0.1, 0.1, -5.0]])
    assert hasher.predict(None).tolist() == [expected]


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"codewords": "best"}, "codewords is 'best'"),
        ({"codewords": [[1, -1]]}, r"codewords has shape \(1, 2\)"),
        ({"C": 0}, "C is 0"),
        ({"decoding": "loss"}, "decoding is 'loss'"),
    ],
)
def test_bad_parameters_are_named(digits, params, match):
    with pytest.raises(ValueError, match=match):
        CodewordSVM(4, **params).fit(digits[0][:100], digits[1][:100])
