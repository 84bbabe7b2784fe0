"""The figures behind docs/defaults.md are what they say: examples by hand and peers on easy rows."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_blobs

from starshl import BinaryCodes
from starshl.evaluation import precision_at

FOLDER = Path(__file__).parents[2] / "benchmarks" / "defaults"


def module(name):
    """Load a file of the benchmark, which imports its neighbors by their bare names."""
    spec = spec_from_file_location(f"defaults_{name}", FOLDER / f"{name}.py")
    loaded = module_from_spec(spec)
    sys.modules[spec.name] = loaded
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        spec.loader.exec_module(loaded)
    return loaded


measures, neighbor_learners, peers, store = map(module, ("measures", "neighbor_learners", "peers", "store"))


def test_real_scores_find_the_codeword_that_rounding_would_miss():
    items = BinaryCodes.from_signs(np.array([[1, 1, 1]] * 10 + [[-1, -1, 1]] * 10))
    y_items = np.repeat([0, 1], 10)
    scores = np.array([[0.9, -0.1, -0.1]])  # nearer to the first codeword, but one bit away from both
    assert measures.precision_by_scores(scores, items, np.array([0]), y_items) == 1.0
    assert precision_at(BinaryCodes.from_scores(scores), items, [0], y_items, 10) < 1.0


def test_classes_as_codes_give_the_share_of_right_items_of_the_predicted_class():
    assigned, y_items = np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1])
    found = measures.precision_of_classes(np.array([0, 1]), assigned, np.array([0, 0]), y_items)
    assert found == pytest.approx((2 / 3 + 0) / 2, abs=1e-5)


def test_every_class_counts_the_same_in_the_mean_of_classes():
    items = BinaryCodes.from_signs(np.repeat([[1, 1], [-1, -1]], 10, axis=0))
    queries = BinaryCodes.from_signs(np.array([[1, 1]] * 4))  # all find class 0, which three of the four have
    y_query, y_items = np.array([0, 0, 0, 1]), np.repeat([0, 1], 10)
    assert measures.precision(queries, items, y_query, y_items) == 0.75
    assert measures.precision_of_equal_classes(queries, items, y_query, y_items) == 0.5
    assert measures.balanced_accuracy(np.zeros(4, dtype=int), y_query) == 0.5


def test_sizes_of_classes_alone_give_the_largest_class_and_a_random_order():
    found = measures.without_learning(np.array([0, 0, 1, 2]), np.array([0] * 6 + [1] * 4))
    assert found == {"largest_class": 0.5, "random_order": pytest.approx((0.6 + 0.6 + 0.4 + 0) / 4)}


def test_calibration_error_of_certain_and_wrong_answers_is_one():
    certain = np.tile([1.0, 0.0], (30, 1))
    assert measures.calibration_error(certain, np.array([0, 1]), np.ones(30, dtype=int)) == (1.0, 0.0)


def test_calibration_error_of_true_probabilities_is_that_of_chance():
    rng = np.random.default_rng(1)
    first = rng.random(20_000)
    y = (rng.random(20_000) > first).astype(int)
    error, by_chance = measures.calibration_error(np.column_stack([first, 1 - first]), np.array([0, 1]), y)
    assert error == pytest.approx(by_chance, abs=0.006)


@pytest.mark.parametrize("peer", [peers.poisson_learning, peers.label_spreading, peers.svc])
def test_peers_keep_given_labels_and_learn_blobs_from_two_labels_each(peer):
    X, y = make_blobs(150, centers=3, cluster_std=0.5, random_state=0)
    found = peer(X, np.where(np.arange(150) < 30, y, -1))
    np.testing.assert_array_equal(found[:30], y[:30])
    assert (found == y).mean() > 0.97


def test_poisson_learning_beats_an_svc_with_one_label_per_digit():
    X, y = load_digits(return_X_y=True)
    X, y = X[:800], y[:800]
    known = np.full(800, -1)
    known[[np.flatnonzero(y == digit)[0] for digit in range(10)]] = np.arange(10)
    by_graph, by_svc = (peer(X, known) for peer in (peers.poisson_learning, peers.svc))
    assert (by_graph == y).mean() > (by_svc == y).mean() + 0.1


@pytest.fixture(scope="module")
def some_digits():
    X, y = load_digits(return_X_y=True)
    known = np.full(400, -1)
    known[[np.flatnonzero(y[:400] == digit)[0] for digit in range(10)]] = np.arange(10)
    return X[:400], y[:400], known


def test_poisson_learning_agrees_with_a_dense_solve_of_the_poisson_equation(some_digits):
    X, _, known = some_digits
    learner = neighbor_learners.PoissonLearning().fit(X, known)
    one_way = neighbor_learners._weights(len(X), *learner.finder_.kneighbors()).toarray()
    W = (one_way + one_way.T) / 2
    sources = np.zeros((len(X), 10))
    sources[known >= 0] = np.eye(10)[known[known >= 0]] - 0.1
    exact = np.linalg.pinv(np.diag(W.sum(axis=1)) - W) @ sources
    exact -= np.average(exact, axis=0, weights=W.sum(axis=1))
    # The steps stop when a random walk has mixed to 1 / n, not when the equation is solved to rounding.
    assert (learner.potential_.argmax(axis=1) == exact.argmax(axis=1)).mean() > 0.95


@pytest.mark.parametrize("make", [neighbor_learners.PoissonLearning, neighbor_learners.spreading_on_neighbors])
def test_neighbor_learners_keep_labels_and_find_most_others(make, some_digits):
    X, y, known = some_digits
    learner = make().fit(X, known)
    assert np.array_equal(learner.transduction_[known >= 0], known[known >= 0])
    assert (learner.transduction_ == y).mean() > 0.6
    assert (learner.predict(X[:50]) == learner.transduction_[:50]).mean() > 0.9


def test_poisson_learning_without_a_label_is_refused():
    with pytest.raises(ValueError, match="label of every class"):
        neighbor_learners.PoissonLearning().fit(np.eye(20), np.full(20, -1))


def test_a_store_repeats_nothing_and_survives_a_line_that_was_cut_off(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "FOLDER", tmp_path)
    done = []
    for _ in range(2):
        store.Store("some").measure({"set": "a", "split": 0}, "work", lambda: done.append(1) or [{"p10": 0.5}])
        with (tmp_path / "some.jsonl").open("a") as file:
            file.write('{"set": "a", "spl')
    assert len(done) == 1
    assert store.Store("some").lines[0]["rows"] == [{"p10": 0.5}]


def test_measuring_again_forgets_only_the_data_sets_that_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "FOLDER", tmp_path)
    for name in ("letter", "vowel", "usps"):
        store.Store("some").measure({"set": name}, "fit", lambda: [{"p10": 0.5}])
    assert [line["set"] for line in store.Store("some", ["fit"], ["usps"]).lines] == ["letter", "vowel"]
    assert [line["set"] for line in store.Store("some", ["fit"], ["vowel"]).lines] == ["letter"]
    assert [line["set"] for line in store.Store("some", ["another"]).lines] == ["letter"]
    assert store.Store("some", ["fit"]).lines == []
