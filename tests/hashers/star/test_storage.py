"""StarSHL in a model file: every kind of kernel, sample and label comes back."""

import numpy as np
import pytest

import starshl
from starshl import StarSHL
from starshl._common.bundle import read_bundle
from starshl.exceptions import BundleFormatError
from starshl.learning.kernels import Gaussian, GraphGaussian, Kernel, SpectrumKernel

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = (X[:, 0] > 0).astype(int)
WORDS = ["".join(RNG.choice(list("ab" if label else "cd"), 5)) for label in Y]


def laplace(x, z):
    return float(np.exp(-np.abs(x - z).sum()))


def laplace_of_blocks(A, B):
    return np.exp(-np.abs(A[:, None] - B[None]).sum(axis=2))


def shared_letters(x, z):
    return float(len(set(x) & set(z)))


def reopened(hasher, path, **kwargs):
    hasher.save(path)
    return starshl.load(path, **kwargs)


def assert_same(left, right, samples):
    assert np.array_equal(left.decision_function(samples), right.decision_function(samples))
    assert np.array_equal(left.predict(samples), right.predict(samples))
    for name, value in vars(left).items():
        if isinstance(value, np.ndarray):
            assert np.array_equal(value, getattr(right, name))
            assert value.dtype == getattr(right, name).dtype


LABELS = {
    "integers": Y,
    "big-endian": Y.astype(">i4"),
    "strings": np.array(["no", "yes"])[Y],
    "bytes": np.array([b"no", b"yes"])[Y],
    "booleans": Y.astype(bool),
    "floats with gaps": np.where(np.arange(40) < 30, Y, np.nan),
    "objects with gaps": np.array(
        [["no", "yes"][label] if n < 30 else None for n, label in enumerate(Y)], dtype=object
    ),
    "integers with gaps": np.where(np.arange(40) < 30, Y, -1),
    "none": None,
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_of_every_kind_come_back(name, tmp_path):
    y = LABELS[name]
    hasher = StarSHL(4, n_codewords=3 if y is None else None, random_state=0).fit(X, y)
    assert_same(hasher, reopened(hasher, tmp_path / "m.star"), X)


SETTINGS = {
    "paper": {"kernels": "paper"},
    "rich": {"kernels": "rich"},
    "graph": {"kernels": [GraphGaussian(), Gaussian(1.0)]},
    "arrays": {"codewords": [[1, 1, -1, 1], [-1, 1, 1, -1]], "kernel_weights": np.full((4, 6), 0.3)},
    "infinite norm": {"kernel_norm": float("inf")},
    "generator": {"random_state": np.random.RandomState(3)},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_come_back(name, tmp_path):
    hasher = StarSHL(4, **({"random_state": 0} | SETTINGS[name])).fit(X, Y)
    loaded = reopened(hasher, tmp_path / "m.star")
    assert_same(hasher, loaded, X)
    assert loaded.get_params().keys() == hasher.get_params().keys()
    assert loaded.kernel_norm == hasher.kernel_norm
    assert np.array_equal(loaded.codewords, hasher.codewords)


def test_float32_models_stay_float32(tmp_path):
    small = X.astype(np.float32)
    hasher = StarSHL(4, random_state=0).fit(small, Y)
    loaded = reopened(hasher, tmp_path / "m.star")
    assert loaded.decision_function(small).dtype == np.float32
    assert_same(hasher, loaded, small)


@pytest.mark.parametrize("shape", [(40, 40), (2, 40, 40)])
def test_precomputed_kernels_need_no_samples(shape, tmp_path):
    K = np.broadcast_to(np.exp(-((X[:, None] - X[None]) ** 2).sum(2)), shape).copy()
    hasher = StarSHL(4, kernels="precomputed", random_state=0).fit(K, Y)
    assert_same(hasher, reopened(hasher, tmp_path / "m.star"), K)


def test_rows_without_coefficients_are_not_stored(tmp_path):
    hasher = StarSHL(2, C=100.0, kernels=[Gaussian(2.0)], random_state=0).fit(X + 4 * Y[:, None], Y)
    assert len(hasher.support_) < 40
    hasher.save(tmp_path / "m.star")
    _, arrays = read_bundle(tmp_path / "m.star")
    stored = [array.shape for array in arrays.values()]
    assert (len(hasher.support_), 3) in stored
    assert (40, 3) not in stored
    assert np.array_equal(starshl.load(tmp_path / "m.star").dual_coef_, hasher.dual_coef_)


@pytest.mark.parametrize("kernels", [[SpectrumKernel(2)], [SpectrumKernel(1), SpectrumKernel(3)]])
def test_string_samples_are_stored(kernels, tmp_path):
    words = [*WORDS[:-1], "ünï🙂"]
    hasher = StarSHL(3, kernels=kernels, random_state=0).fit(words, Y)
    assert_same(hasher, reopened(hasher, tmp_path / "m.star"), ["ab", "", "🙂", "xyz"])


@pytest.mark.parametrize("function", [laplace, laplace_of_blocks])
def test_functions_are_given_again(function, tmp_path):
    hasher = StarSHL(3, kernels=[function, Gaussian(1.0)], random_state=0).fit(X, Y)
    loaded = reopened(hasher, tmp_path / "m.star", kernels=[function, Gaussian(1.0)])
    assert_same(hasher, loaded, X)
    assert loaded.kernels == [function, Gaussian(1.0)]


def test_a_function_on_strings_is_given_again(tmp_path):
    hasher = StarSHL(3, kernels=shared_letters, random_state=0).fit(WORDS, Y)
    assert_same(hasher, reopened(hasher, tmp_path / "m.star", kernels=shared_letters), ["ab", "cd"])
    assert_same(hasher, starshl.load(tmp_path / "m.star", kernels=[shared_letters]), ["ab", "cd"])


class MedianLaplace(Kernel):
    """A kernel of a user that learns a bandwidth."""

    def __init__(self, width=None):
        self.width = width

    def fit(self, samples, sample_weight=None):
        return MedianLaplace(float(np.median(np.abs(samples))))

    def __call__(self, A, B):
        return np.exp(-np.abs(A[:, None] - B[None]).sum(axis=2) / self.width)


def test_a_kernel_that_learned_is_given_again_as_it_was_fitted(tmp_path):
    hasher = StarSHL(3, kernels=[MedianLaplace()], random_state=0).fit(X, Y)
    assert_same(hasher, reopened(hasher, tmp_path / "m.star", kernels=hasher.kernels_), X)
    with pytest.raises(ValueError, match="fitted"):
        starshl.load(tmp_path / "m.star", kernels=[MedianLaplace()])


@pytest.mark.parametrize(
    ("kernels", "message"),
    [
        (None, r"load\(path, kernels"),
        ([laplace], "1 entries"),
        ([laplace_of_blocks, laplace, laplace], "3 entries"),
        ([lambda x, z: 2 * laplace(x, z), Gaussian(1.0)], "another function"),
        ([shared_letters, Gaussian(1.0)], "another function|fails"),
        ([3, Gaussian(1.0)], "neither a kernel"),
    ],
)
def test_wrong_functions_are_refused(kernels, message, tmp_path):
    StarSHL(3, kernels=[laplace, Gaussian(1.0)], random_state=0).fit(X, Y).save(tmp_path / "m.star")
    with pytest.raises(ValueError, match=message):
        starshl.load(tmp_path / "m.star", kernels=kernels)


def test_functions_for_a_model_without_any_are_refused(tmp_path):
    StarSHL(3, random_state=0).fit(X, Y).save(tmp_path / "m.star")
    with pytest.raises(ValueError, match="without kernels"):
        starshl.load(tmp_path / "m.star", kernels=[laplace] * 6)


def test_samples_that_are_neither_numbers_nor_strings_are_refused(tmp_path):
    trees = [("node", word) for word in WORDS]
    hasher = StarSHL(3, kernels=[lambda x, z: shared_letters(x[1], z[1])], random_state=0).fit(trees, Y)
    with pytest.raises(TypeError, match="samples of type tuple"):
        hasher.save(tmp_path / "m.star")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [("support_", 400), ("support_", -1), ("assignments_", 7), ("assignments_", -2)],
)
def test_a_file_whose_indices_leave_their_range_is_refused(name, value):
    hasher = StarSHL(4, random_state=0).fit(X, Y)
    indices = getattr(hasher, name).copy()
    header, arrays = hasher.pack()
    (key,) = [key for key in arrays if key.endswith(name)]
    indices[-1] = value
    with pytest.raises(BundleFormatError, match=f"its {name} does not match"):
        StarSHL.unpack(header, arrays | {key: indices})
