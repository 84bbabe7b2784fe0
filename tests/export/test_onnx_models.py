"""ONNX models give the bytes of ``encode``, for every method, kernel and step that they can express."""

import numpy as np
import onnxruntime
import pytest
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import PowerTransformer
from typer.testing import CliRunner

from starshl import HybridHasher, StarRidge, StarSHL
from starshl.cli.main import app
from starshl.data.features import Impute, OneHot, PictureFeatures, Reduce, Scale, TableFeatures, Text, UnitLength
from starshl.exceptions import MissingCapabilityError, NotExpressibleError
from starshl.export import to_onnx, words_of
from starshl.export.onnx_model import open_session, single_row_latency
from starshl.hashers import BaseHasher, ClassifierHasher, Facts, PreparedHasher, picture_hasher
from starshl.hashers.baselines import KernelLSH, LSHash
from starshl.learning.kernels import (
    Cauchy,
    Gaussian,
    GraphGaussian,
    NormalizedLinear,
    NormalizedPolynomial,
    ShiftedCosine,
    SpectrumKernel,
)

from ..testing.cases import CASES, make

# Shares of the largest score of a bit within which the order of a sum may decide its sign.
ROUNDING = {"float64": 1e-10, "float32": 1e-3}
KERNELS = {
    "one of each": [NormalizedLinear(), NormalizedPolynomial(3), ShiftedCosine(5), Gaussian(2.0), Cauchy(3.0)],
    "without bias": [NormalizedPolynomial(2, bias=0.0)],
    "bent by a graph": [GraphGaussian(), Gaussian(1.0)],
}


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:260] / 16.0, y[:260]


def run(hasher, rows, **settings):
    """Return the outputs of the model by their names."""
    session = open_session(to_onnx(hasher, **settings))
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": rows}), strict=True))


def assert_same_codes(hasher, X, precision):
    rows = X.astype(precision)
    given = run(hasher, rows, outputs=["codes", "scores"], precision=precision)
    scores = hasher.decision_function(rows)
    size = np.abs(scores).max(axis=0) + np.finfo(np.float64).tiny
    differ = np.unpackbits(given["codes"] ^ hasher.encode(rows).packed, axis=1, bitorder="little", count=hasher.n_bits_)
    assert given["codes"].dtype == np.uint8
    assert np.all((np.abs(scores) / size)[differ > 0] <= ROUNDING[precision])
    assert differ.mean() < 0.01
    return given["scores"], scores, size


@pytest.mark.parametrize("name", [*CASES, "StarSHL"])
def test_codes_of_a_model_are_those_of_encode(name, digits):
    X, y = digits
    hasher = StarSHL(10, random_state=0) if name == "StarSHL" else make(name, 10)
    hasher.fit(X[:120], y[:120])
    scores, expected, size = assert_same_codes(hasher, X, "float64")
    np.testing.assert_allclose(scores / size, expected / size, atol=ROUNDING["float64"])
    assert_same_codes(hasher, X[120:], "float32")


@pytest.mark.parametrize("kernels", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("method", [StarSHL, StarRidge])
def test_every_kernel_on_vectors_can_be_exported(method, kernels, digits):
    X, y = digits
    X = np.vstack([X[:150], np.zeros(64)])  # a row of zeros has no direction
    hasher = method(9, kernels=kernels, random_state=0).fit(X[:100], y[:100])
    assert_same_codes(hasher, X, "float64")


def test_views_and_sparse_rows_can_be_exported(digits):
    from scipy.sparse import csr_array

    X, y = digits
    views = {"left": slice(0, 32), "rest": list(range(32, 64))}
    assert_same_codes(StarRidge(8, views=views, random_state=0).fit(X[:100], y[:100]), X, "float64")
    assert_same_codes(StarRidge(8, random_state=0).fit(csr_array(X[:100]), y[:100]), X, "float64")


@pytest.mark.parametrize("n_bits", [6, 20])
def test_a_hybrid_model_writes_words_of_probabilities_into_its_codes(n_bits, digits):
    X, y = digits
    hasher = HybridHasher(n_bits, random_state=0).fit(X[:120], y[:120])
    given = run(hasher, X, outputs=["codes", "label"])
    np.testing.assert_array_equal(given["codes"], hasher.encode(X).packed)
    np.testing.assert_array_equal(given["label"], hasher.predict(X))


@pytest.mark.parametrize("labels", [np.int64, str, float])
def test_labels_and_probabilities_are_those_of_the_hasher(labels, digits):
    X, y = digits
    hasher = StarRidge(8, random_state=0).fit(X[:120], y[:120].astype(labels))
    given = run(hasher, X, outputs=["label", "probabilities"])
    np.testing.assert_array_equal(given["label"], hasher.predict(X))
    np.testing.assert_allclose(given["probabilities"], hasher.predict_proba(X), atol=1e-12)


def test_classes_that_share_a_codeword_are_answered_by_the_most_frequent_one(digits):
    X, y = digits
    words = np.where(np.arange(10)[:, None] >> np.arange(3) & 1, 1, -1)
    hasher = StarSHL(3, codewords=words, update_codewords=False, codeword_constraint="none", random_state=0)
    with pytest.warns(UserWarning, match="3 bits"):
        hasher.fit(X[:120], y[:120])
    np.testing.assert_array_equal(run(hasher, X, outputs=["label"])["label"], hasher.predict(X))


@pytest.mark.parametrize("channels", [1, 3])
def test_features_of_pictures_are_part_of_the_model(channels, digits):
    X, y = digits
    pictures = np.clip(X[:, :, None] * np.array([1.0, 0.7, 0.3])[:channels] + 0.01 * np.arange(channels), 0, 1)
    pictures = np.round(255 * pictures.reshape(len(X), -1))
    shape, parts = (8, 8, channels)[: 3 if channels == 3 else 2], ["pixels", "hog", "color"]
    hasher = picture_hasher(shape, StarRidge(12, random_state=0), parts=parts).fit(pictures[:120], y[:120])
    assert_same_codes(hasher, pictures, "float32")
    step = PreparedHasher([PictureFeatures(shape, parts=parts)], LSHash(8, random_state=0)).fit(pictures[:120])
    step.hasher_.components_ = np.eye(step.steps_[0].n_features_out_)
    step.hasher_.intercept_ = np.zeros(step.steps_[0].n_features_out_)
    step.hasher_.n_bits_ = step.n_bits_ = step.steps_[0].n_features_out_
    features = run(step, pictures, outputs=["scores"])["scores"]
    np.testing.assert_allclose(features, step.steps_[0].transform(pictures), atol=2e-7)


def test_steps_of_tables_are_part_of_the_model(digits):
    X, y = digits
    X = X.copy()
    X[::7, 3] = np.nan
    steps = [Impute(), Scale()]
    hasher = PreparedHasher(steps, StarRidge(8, random_state=0)).fit(X[:120], y[:120])
    assert_same_codes(hasher, X, "float64")
    assert_same_codes(hasher, X, "float32")
    table = PreparedHasher([TableFeatures(drop=[0])], LSHash(8, random_state=0)).fit(X[:120])
    assert_same_codes(table, X, "float64")
    numbers = np.round(4 * X[:, 20:24])
    assert_same_codes(PreparedHasher([OneHot()], LSHash(8, random_state=0)).fit(numbers[:120]), numbers, "float64")


def test_directions_and_lengths_are_part_of_the_model(digits):
    X, y = digits
    steps = [Reduce(20, view_sizes=[40, 24]), UnitLength()]
    hasher = PreparedHasher(steps, StarRidge(8, random_state=0)).fit(X[:120], y[:120])
    reduce = hasher.steps_[0]
    X = np.vstack([X, -reduce.intercept_ @ np.linalg.pinv(reduce.components_).T])  # almost no length is left of it
    assert_same_codes(hasher, X, "float64")
    assert_same_codes(hasher, X, "float32")


TEXTS = [
    "A red car, a RED car",
    "blue cars",
    "",
    "fresh bread!",
    "Straße in İzmir",
    "ΟΔΥΣΣΕΥΣ ΣΑΣ",
    "cafe\u0301 日本語 x_1",
]


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_texts_are_split_into_words_and_the_rest_is_part_of_the_model(precision):
    rng = np.random.default_rng(0)
    texts = [*TEXTS, *(" ".join(rng.choice(TEXTS, 3)) for _ in range(40))]
    hasher = PreparedHasher([Text(5), UnitLength()], LSHash(12, random_state=0)).fit(texts[:30])
    session = open_session(to_onnx(hasher, outputs=["codes", "scores"], precision=precision))
    codes, scores = session.run(None, {"words": words_of(texts)})
    np.testing.assert_array_equal(codes, hasher.encode(texts).packed)
    tolerance = {"float64": 1e-14, "float32": 1e-6}[precision]
    np.testing.assert_allclose(scores, hasher.decision_function(texts), atol=tolerance)
    assert single_row_latency(to_onnx(hasher), hasher).onnx > 0


def test_a_model_of_texts_says_how_they_are_split():
    hasher = PreparedHasher([Text(2)], LSHash(2, random_state=0)).fit(TEXTS)
    model = to_onnx(hasher)
    about = {each.key: each.value for each in model.metadata_props}
    assert r"[\p{L}\p{N}_]{2,} in lowercase" in about["starshl.splitting"]
    assert words_of(["", "a"]).tolist() == [[""], [""]]


def test_a_model_file_is_complete_or_absent(digits, tmp_path):
    X, _ = digits
    hasher = LSHash(12, random_state=0).fit(X)
    model = to_onnx(hasher, tmp_path / "lsh.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "lsh.onnx")
    (codes,) = session.run(None, {"X": X})
    assert codes.shape == (len(X), 2)
    about = {each.key: each.value for each in model.metadata_props}
    assert about["starshl.n_bits"] == "12"
    assert about["starshl.space_id"] == hasher.space_id_
    with pytest.raises(FileNotFoundError):
        to_onnx(hasher, tmp_path / "absent" / "lsh.onnx")
    with pytest.raises(NotExpressibleError):
        to_onnx(KernelLSH(4, kernel=np.inner, random_state=0).fit(X), tmp_path / "half.onnx")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lsh.onnx"]


def test_a_full_disk_is_named_and_leaves_the_old_file(digits, tmp_path, full_disk):
    X, _ = digits
    path = tmp_path / "lsh.onnx"
    for before in ({}, {"lsh.onnx": b"the old one"}):
        for name, content in before.items():
            (tmp_path / name).write_bytes(content)
        with full_disk(after=500), pytest.raises(OSError, match=r"lsh\.onnx"):
            to_onnx(LSHash(12, random_state=0).fit(X), path)
        assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == before
    LSHash(12, random_state=0).fit(X).save(tmp_path / "lsh.star")
    with full_disk(after=500):
        told = CliRunner().invoke(app, ["export", str(tmp_path / "lsh.star"), "--onnx", str(path)])
    assert told.exit_code == 2
    assert "lsh.onnx'. Free some space" in told.stderr


def test_the_same_hasher_makes_the_same_file(digits):
    X, y = digits
    models = [to_onnx(StarRidge(8, random_state=0).fit(X[:80], y[:80])).SerializeToString() for _ in range(2)]
    assert models[0] == models[1]


def test_what_cannot_be_expressed_is_named_with_a_way_out(digits):
    X, y = digits

    def closeness(A, B):
        return A @ B.T

    cases = {
        "closeness": StarSHL(4, kernels=[closeness, Gaussian()], random_state=0).fit(X[:60], y[:60]),
        "precomputed": StarRidge(4, kernels="precomputed", random_state=0).fit(X[:60] @ X[:60].T, y[:60]),
        "SpectrumKernel": StarRidge(4, kernels=[SpectrumKernel()], random_state=0).fit(
            [f"{'ab' if label % 2 else 'xy'}{row}" for row, label in enumerate(y[:60])], y[:60] % 2
        ),
        "PowerTransformer": PreparedHasher([PowerTransformer()], LSHash(4, random_state=0)).fit(X[:60, 20:24]),
        "categories": PreparedHasher([TableFeatures()], LSHash(2, random_state=0)).fit(
            np.array([["a", 1.0], ["b", 2.0], ["c", 3.0]], dtype=object)
        ),
    }
    for name, hasher in cases.items():
        with pytest.raises(NotExpressibleError, match=name):
            to_onnx(hasher)


def test_settings_that_do_not_exist_are_refused(digits):
    X, _ = digits
    hasher = LSHash(4, random_state=0).fit(X)
    with pytest.raises(ValueError, match="choose one or more"):
        to_onnx(hasher, outputs=["bits"])
    for output in ("label", "probabilities"):
        with pytest.raises(MissingCapabilityError) as refused:
            to_onnx(hasher, outputs=[output])
        assert (refused.value.fields["method"], refused.value.fields["capability"]) == ("LSHash", "predict")
    with pytest.raises(ValueError, match="precision"):
        to_onnx(hasher, precision="float16")


def test_a_hasher_without_a_formula_is_refused(digits):
    X, _ = digits

    class Mine(BaseHasher):
        facts = Facts(paper="Nobody: Nothing", year=2020, labels="ignored", cost="nothing")

        def __init__(self, n_jobs=None):
            self.n_jobs = n_jobs

        def fit(self, X, y=None):
            self.n_bits_, self.n_features_in_ = 1, X.shape[1]
            return self

        def _scores(self, X):
            return X[:, :1]

    with pytest.raises(NotExpressibleError, match="Mine"):
        to_onnx(Mine().fit(X))


def test_the_time_of_one_row_is_measured(digits):
    X, _ = digits
    hasher = LSHash(4, random_state=0).fit(X)
    latency = single_row_latency(to_onnx(hasher, precision="float32"), hasher, X[0])
    assert latency.onnx > 0
    assert latency.encode > 0


CLASSIFIERS = {
    "scaled logistic regression": None,
    "logistic regression": LogisticRegression(max_iter=200),
    "two classes": LogisticRegression(max_iter=200),
    "network": MLPClassifier(20, max_iter=50, random_state=0),
    "naive Bayes": GaussianNB(var_smoothing=1e-2),
    "forest": RandomForestClassifier(10, random_state=0),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_codes_of_a_classifier_are_those_of_encode(name, digits):
    X, y = digits
    hasher = ClassifierHasher(CLASSIFIERS[name], 20, random_state=0)
    hasher.fit(X[:200], y[:200] % 2 if name == "two classes" else y[:200])
    given = run(hasher, X, outputs=["codes", "scores", "label", "probabilities"])
    differ = (given["codes"] != hasher.encode(X).packed).any(axis=1)
    # Words that stand for a posterior nearly as well may change places with its last digits.
    assert differ.mean() <= (0.01 if name in ("network", "naive Bayes", "forest") else 0)
    np.testing.assert_array_equal(given["label"], hasher.predict(X))
    np.testing.assert_allclose(given["probabilities"], hasher.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(given["scores"], hasher.decision_function(X), atol=1e-5)
    codes = run(hasher, X.astype(np.float32), precision="float32")["codes"]
    assert np.mean((codes != hasher.encode(X.astype(np.float32)).packed).any(axis=1)) < 0.02


def test_a_hybrid_takes_its_classes_from_a_classifier(digits):
    X, y = digits
    hasher = HybridHasher(20, class_hasher=ClassifierHasher(random_state=0), random_state=0).fit(X[:200], y[:200])
    np.testing.assert_array_equal(run(hasher, X)["codes"], hasher.encode(X).packed)


def test_a_classifier_that_cannot_be_converted_is_named(digits):
    class Own(GaussianNB):
        pass

    X, y = digits
    with pytest.raises(NotExpressibleError, match=r"an? Own: .*LogisticRegression"):
        to_onnx(ClassifierHasher(Own(var_smoothing=1e-2), 8, random_state=0).fit(X[:120], y[:120]))
