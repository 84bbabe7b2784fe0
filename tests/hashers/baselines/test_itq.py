import numpy as np
import pytest
from scipy.linalg import eigh
from sklearn.datasets import load_digits

from starshl.codes import signs_of
from starshl.hashers.baselines import ITQ, LSHash
from starshl.hashers.baselines.itq import canonical_directions, learn_rotation
from starshl.learning.linalg import random_rotation


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16.0, y


def precision_at_10(hasher, X, y):
    train, query = slice(0, 1000), slice(1000, None)
    hasher.fit(X[train], y[train])
    distances = hasher.encode(X[query]).distances(hasher.encode(X[train]))
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :10]
    return np.mean(y[train][nearest] == y[query][:, None])


@pytest.mark.parametrize("embedding", ["pca", "cca"])
def test_loss_never_rises_at_a_half_step(digits, embedding):
    history = ITQ(16, variant=embedding, random_state=0).fit(*digits).objective_history_
    assert len(history) > 10
    assert np.all(np.diff(history) <= 1e-9 * history[0])


def test_recorded_loss_is_the_quantization_loss():
    V = np.random.default_rng(0).standard_normal((60, 4))
    start = random_rotation(4, np.random.RandomState(0))
    rotation, history = learn_rotation(V, start, 1)
    codes = signs_of(V @ start)
    np.testing.assert_allclose(history, [np.sum((codes - V @ R) ** 2) for R in (start, rotation)])


def test_rotation_step_beats_every_other_rotation_tried():
    rng = np.random.RandomState(0)
    V, start = rng.standard_normal((60, 3)), random_rotation(3, rng)
    codes = signs_of(V @ start)
    rotation, _ = learn_rotation(V, start, 1)
    best = np.sum((codes - V @ rotation) ** 2)
    assert all(np.sum((codes - V @ random_rotation(3, rng)) ** 2) > best for _ in range(2000))


@pytest.mark.parametrize(("embedding", "n_directions"), [("pca", 12), ("cca", 9)])
def test_rotation_has_orthonormal_rows(digits, embedding, n_directions):
    rotation = ITQ(12, variant=embedding, random_state=0).fit(*digits).rotation_
    assert rotation.shape == (n_directions, 12)
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(n_directions), atol=1e-10)


def test_rotated_corners_of_the_square_are_quantized_without_loss():
    # Stationary saddles lie at offsets of exactly 45 degrees, hence several starts.
    angle = np.pi / 6
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    V = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]]) @ turn
    finals = [learn_rotation(V, random_rotation(2, np.random.RandomState(s)), 50)[1][-1] for s in range(5)]
    np.testing.assert_allclose(finals, 0, atol=1e-10)


def test_canonical_directions_solve_the_generalized_eigenproblem_of_one_hot_classes():
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=150)
    X = rng.standard_normal((150, 6)) + 2 * rng.standard_normal((4, 6))[y]
    Xc, Y = X - X.mean(axis=0), np.eye(4)[y] - np.eye(4)[y].mean(axis=0)
    Cxx, Cxy = Xc.T @ Xc / 150, Xc.T @ Y / 150
    ridged = Cxx + 0.1 * np.trace(Cxx) / 6 * np.eye(6)
    values, vectors = eigh(Cxy @ np.linalg.pinv(Y.T @ Y / 150, rcond=1e-10) @ Cxy.T, ridged)
    expected = (vectors * np.sqrt(np.maximum(values, 0)))[:, ::-1][:, :3].T
    found = canonical_directions(X, y, 0.1)
    assert found.shape == (3, 6)
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-9)


@pytest.mark.parametrize("embedding", ["pca", "cca"])
def test_codes_do_not_depend_on_the_unit_of_the_features(digits, embedding):
    X, y = digits
    codes = [ITQ(8, variant=embedding, random_state=0).fit(c * X, y).transform(c * X) for c in (1, 256)]
    assert np.array_equal(*codes)


def test_labels_are_not_read_by_the_unsupervised_embedding(digits):
    X, y = digits
    with_labels, without = (ITQ(8, random_state=0).fit(X, labels).components_ for labels in (y, None))
    assert np.array_equal(with_labels, without)


def test_retrieval_improves_from_lsh_to_itq_to_cca(digits):
    hashers = LSHash(16, random_state=0), ITQ(16, random_state=0), ITQ(16, variant="cca", random_state=0)
    lsh, pca, cca = (precision_at_10(hasher, *digits) for hasher in hashers)
    # Measured .50, .81, .87 on this split; the bounds leave .05.
    assert lsh + 0.2 < pca < cca
    assert pca > 0.76
    assert cca > 0.82


def test_more_bits_than_the_rank_are_refused_with_the_largest_allowed(digits):
    with pytest.raises(ValueError, match=r"n_bits is 64; .* at most 61"):
        ITQ(64).fit(digits[0])


def test_one_class_has_no_canonical_direction():
    with pytest.raises(ValueError, match=r"y holds 1 class"):
        ITQ(2, variant="cca").fit(np.eye(4), [1, 1, 1, 1])


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"variant": "lda"}, "variant is 'lda'"),
        ({"max_iter": 0}, "max_iter is 0"),
        ({"regularization": 0}, "regularization"),
    ],
)
def test_bad_parameters_are_named(params, match):
    with pytest.raises(ValueError, match=match):
        ITQ(2, **params).fit(np.eye(4))
