"""Views: kernels per view, weights that say which view matters, and everything else as without views."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from starshl import NeighborGraph, StarRidge, StarSHL, load
from starshl._common.bundle import read_bundle, write_bundle
from starshl.exceptions import BundleFormatError
from starshl.learning.kernels import Gaussian, OnColumns, ScaledGaussian
from starshl.learning.kernels.choice import resolve_kernels

VIEWS = {"shape": slice(0, 4), "noise": [4, 5, 6, 7]}


def samples(n_rows, seed):
    """Return rows whose class is seen in the first four columns alone, which are small beside the other four."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n_rows)
    shape = 0.01 * (np.eye(3, 4)[y] + 0.3 * rng.standard_normal((n_rows, 4)))
    return np.hstack([shape, rng.standard_normal((n_rows, 4))]), y


@pytest.fixture(scope="module")
def data():
    return samples(200, 0)


@pytest.fixture(scope="module")
def queries():
    return samples(300, 1)


@pytest.fixture(scope="module", params=[StarRidge, StarSHL])
def hasher(request, data):
    return request.param(16, views=VIEWS, random_state=0).fit(*data)


def test_weights_say_which_view_matters(hasher, queries):
    assert list(hasher.view_weights_) == ["shape", "noise"]
    assert np.isclose(sum(hasher.view_weights_.values()), 1.0)
    assert hasher.view_weights_["shape"] > 0.6
    assert "views shape 0." in hasher.choice_
    assert hasher.score(*queries) > 0.9


def test_views_see_features_that_larger_ones_would_hide(hasher, data, queries):
    plain = type(hasher)(16, random_state=0).fit(*data)
    assert plain.view_weights_ == {}
    assert hasher.score(*queries) > plain.score(*queries) + 0.2


def test_every_view_gets_every_kernel_in_units_of_its_own(hasher):
    n_kernels = len(resolve_kernels(hasher.kernels))
    assert [kernel.view for kernel in hasher.kernels_] == ["shape"] * n_kernels + ["noise"] * n_kernels
    first, second = (next(k.kernel for k in hasher.kernels_ if k.view == view and isinstance(k.kernel, Gaussian))
                     for view in VIEWS)  # fmt: skip
    assert 30 < second.sigma / first.sigma < 300


def test_one_view_of_all_columns_is_no_view(data, queries):
    whole = StarRidge(8, views={"all": slice(None)}, random_state=0).fit(*data)
    plain = StarRidge(8, random_state=0).fit(*data)
    assert np.allclose(whole.class_scores(queries[0]), plain.class_scores(queries[0]), atol=1e-6)
    assert whole.view_weights_ == {"all": pytest.approx(1.0, abs=1e-12)}


def test_columns_by_name_number_or_mask_are_the_same(data, queries):
    table = pd.DataFrame(data[0], columns=list("abcdefgh"))
    by_name = StarRidge(8, views={"shape": list("abcd"), "noise": list("efgh")}, random_state=0).fit(table, data[1])
    mask = np.arange(8) < 4
    by_mask = StarRidge(8, views={"shape": mask, "noise": ~mask}, random_state=0).fit(*data)
    asked = pd.DataFrame(queries[0], columns=list("abcdefgh"))
    assert np.array_equal(by_name.class_scores(asked), by_mask.class_scores(queries[0]))


def test_views_may_overlap(data):
    hasher = StarRidge(8, views={"left": slice(0, 5), "right": slice(3, None)}, random_state=0).fit(*data)
    assert list(hasher.view_weights_) == ["left", "right"]


def test_model_file_holds_views(hasher, queries, tmp_path):
    hasher.save(tmp_path / "model.shl")
    loaded = load(tmp_path / "model.shl")
    assert np.array_equal(loaded.decision_function(queries[0]), hasher.decision_function(queries[0]))
    assert loaded.view_weights_ == hasher.view_weights_
    assert list(loaded.views) == list(VIEWS)
    assert loaded.views["shape"].tolist() == [0, 1, 2, 3]


def test_loaded_model_with_named_columns_is_fitted_again_as_before(data, tmp_path):
    table = pd.DataFrame(data[0], columns=list("abcdefgh"))
    hasher = StarRidge(8, views={"shape": list("abcd"), "noise": list("efgh")}, random_state=0).fit(table, data[1])
    hasher.save(tmp_path / "model.shl")
    again = load(tmp_path / "model.shl").fit(table, data[1])
    assert np.array_equal(again.dual_coef_, hasher.dual_coef_)


def test_listed_kernels_on_columns_are_saved_too(data, queries, tmp_path):
    kernels = [OnColumns(ScaledGaussian(0.5), np.arange(4), "shape"), ScaledGaussian()]
    hasher = StarRidge(8, kernels=kernels, random_state=0).fit(*data)
    assert list(hasher.view_weights_) == ["shape"]
    hasher.save(tmp_path / "model.shl")
    loaded = load(tmp_path / "model.shl")
    assert np.array_equal(loaded.decision_function(queries[0]), hasher.decision_function(queries[0]))
    assert loaded.kernels[0].columns.tolist() == [0, 1, 2, 3]


def resealed(path, change):
    """Change the header and arrays of a model file and give it a valid checksum again."""
    header, arrays = read_bundle(path)
    del header["format"]
    arrays = {name: array.copy() for name, array in arrays.items()}
    change(header, arrays)
    write_bundle(path, header, arrays)
    return path


@pytest.mark.parametrize(
    "damage",
    [
        lambda header, arrays: arrays["kernel.0.columns"].__setitem__(0, 8),
        lambda header, arrays: arrays["kernel.0.columns"].__setitem__(0, -1),
        lambda header, arrays: arrays["kernel.0.columns"].__setitem__(0, 1),
        lambda header, arrays: header["kernels"][0].update(kernel=header["kernels"][1]),
        lambda header, arrays: header["kernels"][0].pop("kernel"),
        lambda header, arrays: header["kernels"][0]["kernel"].update(name="SpectrumKernel"),
        lambda header, arrays: header.update(views=[1, 2]),
        lambda header, arrays: header.update(views=["a", "b", "c"]),
        lambda header, arrays: arrays.update({"fitted.view_shares_": np.zeros(3)}),
    ],
)
def test_damaged_views_are_refused(hasher, damage, tmp_path):
    hasher.save(tmp_path / "model.shl")
    with pytest.raises(BundleFormatError):
        load(resealed(tmp_path / "model.shl", damage))


def test_compressed_hasher_sees_views_as_much_as_they_weigh(data, queries):
    hasher = StarRidge(16, views=VIEWS, random_state=0).fit(*data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        small = hasher.compress(20)
    assert len(small.support_) == 20
    assert small.view_weights_ == hasher.view_weights_
    assert small.score(*queries) > 0.9


def test_landmarks_read_views(data, queries):
    X, y = (np.concatenate(parts) for parts in zip(data, queries, strict=True))
    exact = StarRidge(16, views=VIEWS, random_state=0).fit(X, y)
    landmarks = StarRidge(16, views=VIEWS, max_exact_rows=100, n_landmarks=250, random_state=0).fit(X, y)
    assert "approximated over 250 landmarks" in landmarks.choice_
    assert landmarks.view_weights_ == pytest.approx(exact.view_weights_, abs=1e-3)
    fresh = samples(300, 2)
    assert np.mean(landmarks.predict(fresh[0]) == exact.predict(fresh[0])) > 0.97


def test_sparse_rows_have_views(data, queries):
    dense = StarRidge(8, views=VIEWS, random_state=0).fit(*data)
    sparse = StarRidge(8, views=VIEWS, random_state=0).fit(csr_array(data[0]), data[1])
    assert sparse.sample_kind_ == "sparse_vectors"
    assert np.allclose(sparse.class_scores(csr_array(queries[0])), dense.class_scores(queries[0]), atol=1e-6)


@pytest.mark.parametrize("method", [StarRidge, StarSHL])
def test_unlabeled_rows_are_neighbors_in_all_views_alike(method, data):
    X, y = samples(300, 3)
    few = np.where(np.arange(300) < 60, y, -1)
    views = {"shape": slice(0, 4), "shape again": slice(0, 4), "noise": slice(4, None)}
    with_views = method(8, views=views, random_state=0).fit(X, few)
    plain = method(8, random_state=0).fit(X, few)
    right = [np.mean(each.transduction_[60:] == y[60:]) for each in (with_views, plain)]
    assert right[0] > right[1] + 0.2


def test_given_graph_is_used_with_views(data):
    X, y = data
    few = np.where(np.arange(200) < 60, y, -1)
    graph = NeighborGraph.of_rows(X[:, :4])
    hasher = StarRidge(8, views=VIEWS, random_state=0).fit(X, few, graph=graph)
    assert np.mean(hasher.transduction_[60:] == y[60:]) > 0.9


def test_parts_of_a_score_name_the_view(hasher, queries):
    parts = hasher.contributions(queries[0][:1])
    assert parts.kernels[0].startswith("shape: ")
    expansion = hasher.expansion
    everything = np.ones(len(parts.by_kernel))
    by_view = dict(parts.top_views(everything, 2))
    assert by_view.keys() == VIEWS.keys()
    assert np.isclose(sum(by_view.values()), parts.by_kernel.sum())
    total = parts.by_kernel.sum(axis=1) + expansion.intercept
    assert np.allclose(total, expansion.scores(hasher._read(queries[0][:1]))[0], atol=1e-6)


@pytest.mark.parametrize(
    ("views", "message"),
    [
        ({}, "a mapping from names"),
        ([slice(0, 4)], "a mapping from names"),
        ({"": slice(0, 4)}, "a name is a text"),
        ({"a": slice(4, 4)}, "'a' has no columns"),
        ({"a": slice(4, 12)}, r"12, None.*X has 8 columns"),
        ({"a": slice("b", "c")}, "bounds of a slice"),
        ({"a": []}, "'a' has no columns"),
        ({"a": [0, 8]}, r"has column 8.*0 to 7"),
        ({"a": [0, -1]}, "has column -1"),
        ({"a": [0, 0]}, "names a column twice"),
        ({"a": [0.5]}, "give a slice"),
        ({"a": 3}, "give a slice"),
        ({"a": ["pixel 1"]}, "X has no column names"),
        ({"a": [True, False]}, "mask of the view 'a'"),
    ],
)
@pytest.mark.parametrize("method", [StarRidge, StarSHL])
def test_wrong_views_are_refused(method, views, message, data):
    with pytest.raises(ValueError, match=message):
        method(8, views=views).fit(*data)


def test_unknown_names_are_refused_with_those_that_exist(data):
    table = pd.DataFrame(data[0], columns=list("abcdefgh"))
    with pytest.raises(ValueError, match=r"column 'x'.*'a', 'b'"):
        StarRidge(8, views={"shape": ["a", "x"]}).fit(table, data[1])
    with pytest.raises(ValueError, match="view 'shape' are 'a'"):
        StarRidge(8, views={"shape": "a"}).fit(table, data[1])


def test_views_of_kernel_values_or_of_strings_are_refused(data):
    with pytest.raises(ValueError, match="kernels='precomputed'"):
        StarRidge(8, kernels="precomputed", views=VIEWS).fit(np.eye(200), data[1])
    with pytest.raises(ValueError, match="compare samples that have none"):
        StarRidge(8, kernels=[lambda a, b: float(a == b)], views=VIEWS).fit(["a", "b", "a"], [0, 1, 0])
