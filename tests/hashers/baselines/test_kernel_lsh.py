import numpy as np
import pytest

from starshl.hashers.baselines import KernelLSH
from starshl.hashers.baselines.kernel_lsh import centered_kernel, inverse_root

X = np.random.default_rng(0).standard_normal((200, 6)) + 2


def test_inverse_root_undoes_a_kernel_of_full_rank():
    K = X @ X.T
    root = inverse_root(K)
    np.testing.assert_allclose(root @ K @ root @ K, K, atol=1e-8)


def test_centered_kernel_is_that_of_centered_rows():
    Xc = X - X.mean(axis=0)
    np.testing.assert_allclose(centered_kernel(X @ X.T), Xc @ Xc.T, atol=1e-10)


def test_scores_equal_those_with_every_kernel_row_centered():
    hasher = KernelLSH(12, n_anchors=40, random_state=0).fit(X)
    rows, anchors = X[:15] * 1.5, hasher.anchors_
    K, k = (np.exp(-np.sum((a[:, None] - anchors) ** 2, axis=2) / hasher.scale_) for a in (anchors, rows))
    centered = k - k.mean(axis=1, keepdims=True) - K.mean(axis=1) + K.mean()
    np.testing.assert_allclose(hasher.decision_function(rows), centered @ hasher.coefficients_.T, atol=1e-8)


def test_constant_added_to_the_kernel_changes_nothing():
    plain, shifted = (
        KernelLSH(8, n_anchors=50, kernel=lambda a, b, c=c: a @ b.T + c, random_state=0).fit(X) for c in (0, 7)
    )
    np.testing.assert_allclose(plain.decision_function(X), shifted.decision_function(X), atol=1e-7)


def test_linear_kernel_on_all_rows_follows_the_law_of_lsh():
    # Scores of the anchors are K^(1/2) times nearly Gaussian numbers, so their covariance is K, as in LSH.
    codes = KernelLSH(4000, n_anchors=200, n_subset=50, kernel="linear", random_state=0).fit_transform(X)
    Xc = X - X.mean(axis=0)
    unit = Xc / np.linalg.norm(Xc, axis=1, keepdims=True)
    agreement = (1 + codes[:20].astype(float) @ codes[20:40].T.astype(float) / 4000) / 2
    expected = 1 - np.arccos(np.clip(unit[:20] @ unit[20:40].T, -1, 1)) / np.pi
    assert np.abs(agreement - expected).max() < 0.06


def test_poisoned_labels_change_nothing():
    first, second = (KernelLSH(8, random_state=0).fit(X, y).coefficients_ for y in (None, np.arange(200) % 3))
    assert np.array_equal(first, second)


def test_callable_kernel_cannot_be_saved_and_says_so(tmp_path):
    hasher = KernelLSH(4, kernel=lambda a, b: a @ b.T, random_state=0).fit(X)
    with pytest.raises(TypeError, match="kernel is of type function"):
        hasher.save(tmp_path / "model.star")


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"kernel": "cosine"}, "kernel is 'cosine'"),
        ({"n_subset": 0}, "n_subset is 0"),
        ({"sigma": 0}, "sigma is 0"),
    ],
)
def test_bad_parameters_are_named(params, match):
    with pytest.raises(ValueError, match=match):
        KernelLSH(4, **params).fit(X)
