"""spread_labels: what it promises on easy and on awkward data."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_digits, make_blobs, make_moons

from starshl import NeighborGraph, spread_labels
from starshl.learning.graphs.blend import edge_agreement
from starshl.learning.graphs.label_spreading import shift_to_shares


def draw(y, per_class, seed=0):
    """Labels of some rows of each class, -1 elsewhere."""
    rng = np.random.default_rng(seed)
    partial = np.full(len(y), -1)
    for label in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == label))[:per_class]
        partial[rows] = label
    return partial


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:600], y[:600]


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(150, 4, centers=3, cluster_std=1.0, random_state=3)


def test_three_labels_per_class_follow_two_moons():
    X, y = make_moons(300, noise=0.05, random_state=0)
    spread = spread_labels(X, draw(y, 3))
    assert np.mean(spread.labels == y) > 0.97
    assert spread.agreement > 0.95


def test_five_labels_per_digit_are_right_nine_times_in_ten(digits):
    X, y = digits
    partial = draw(y, 5)
    spread = spread_labels(X, partial)
    rest = partial < 0
    right = spread.labels[rest] == y[rest]
    assert right.mean() > 0.9  # ridge regression on the 50 labels alone: 0.86
    assert abs(spread.confidences[rest].mean() - right.mean()) < 0.1
    # Sure rows are right more often than unsure ones.
    order = np.argsort(spread.confidences[rest])
    assert right[order[-100:]].mean() > right[order[:100]].mean() + 0.1


def test_given_labels_stay_with_confidence_one(digits):
    X, y = digits
    partial = draw(y, 2)
    partial[np.flatnonzero(partial >= 0)[0]] = (partial[partial >= 0][0] + 1) % 10  # a wrong one stays, too
    spread = spread_labels(X, partial)
    given = partial >= 0
    assert np.array_equal(spread.labels[given], partial[given])
    assert np.all(spread.confidences[given] == 1)
    assert np.allclose(spread.probabilities.sum(axis=1), 1)


def test_labels_keep_their_type(blobs):
    X, y = blobs
    names = np.array(["ant", "bee", "cat"])[y]
    names[draw(y, 3) < 0] = ""
    spread = spread_labels(X, names)
    assert spread.classes.tolist() == ["ant", "bee", "cat"]
    assert set(spread.labels) == {"ant", "bee", "cat"}


def test_permuting_rows_permutes_labels_and_confidences(digits):
    X, y = digits
    partial = draw(y, 3)
    order = np.random.default_rng(1).permutation(len(X))
    spread, permuted = spread_labels(X, partial), spread_labels(X[order], partial[order])
    assert np.array_equal(spread.labels[order], permuted.labels)
    assert np.allclose(spread.confidences[order], permuted.confidences, atol=1e-4)


def test_the_number_of_threads_does_not_change_a_bit(digits):
    X, y = digits
    one, three = (spread_labels(X, draw(y, 3), n_jobs=n_jobs) for n_jobs in (1, 3))
    assert one.probabilities.tobytes() == three.probabilities.tobytes()


def test_a_second_call_on_the_graph_gives_what_a_first_would(digits):
    X, y = digits
    graph = spread_labels(X, draw(y, 2)).graph
    again, fresh = spread_labels(X, draw(y, 4), graph=graph), spread_labels(X, draw(y, 4))
    assert again.probabilities.tobytes() == fresh.probabilities.tobytes()


def test_a_saved_graph_serves_like_the_one_it_was(digits, tmp_path):
    X, y = digits
    graph = NeighborGraph.of_rows(X)
    graph.save(tmp_path / "graph")
    first = spread_labels(X, draw(y, 2), graph=graph)
    second = spread_labels(X, draw(y, 2), graph=NeighborGraph.load(tmp_path / "graph"))
    assert first.probabilities.tobytes() == second.probabilities.tobytes()


def test_a_part_of_the_graph_without_a_label_follows_the_plain_kernel():
    rng = np.random.default_rng(2)
    centers = np.array([[0.0, 0.0], [30.0, 0.0], [0.0, 12.0], [30.0, 12.0]])
    X = np.concatenate([center + rng.standard_normal((40, 2)) for center in centers])
    partial = np.full(160, -1)
    partial[:3], partial[40:43] = 0, 1  # the two upper groups have no label
    spread = spread_labels(X, partial)
    assert np.array_equal(spread.labels, np.repeat([0, 1, 0, 1], 40))
    assert "80 rows not connected to a label" in spread.note


def test_identical_rows_get_one_label(blobs):
    X, y = blobs
    X, y = np.concatenate([X, np.repeat(X[:1], 5, axis=0)]), np.concatenate([y, np.repeat(y[:1], 5)])
    spread = spread_labels(X, draw(y, 3, seed=4))
    assert np.mean(spread.labels == y) > 0.95
    assert len(set(spread.labels[-5:])) == 1


def test_a_far_outlier_disturbs_nobody(blobs):
    X, y = blobs
    partial = draw(y, 3)
    far = np.concatenate([X, [[1e6, 0, 0, 0]]])
    spread = spread_labels(far, np.append(partial, -1))
    assert np.isfinite(spread.probabilities).all()
    assert np.mean(spread.labels[:-1] == y) > 0.95


def test_known_shares_help_where_classes_are_unbalanced():
    gains = []
    for seed in range(3):
        X, y = make_blobs([300, 30], 2, centers=[[0, 0], [2.8, 0]], random_state=seed)
        partial = draw(y, 4, seed)
        rest = partial < 0
        plain = spread_labels(X, partial).labels
        shared = spread_labels(X, partial, class_shares={0: 10, 1: 1}).labels
        gains.append(np.mean(shared[rest] == y[rest]) - np.mean(plain[rest] == y[rest]))
    assert np.mean(gains) > 0.01


def test_shifted_scores_give_every_class_its_share():
    scores = np.random.default_rng(5).standard_normal((2000, 4)) + np.array([0.5, 0, 0, -0.5])
    shares = np.array([0.1, 0.2, 0.3, 0.4])
    won = np.bincount(shift_to_shares(scores, shares).argmax(axis=1), minlength=4) / 2000
    assert np.allclose(won, shares, atol=0.01)


def test_labels_without_structure_are_not_claimed_to_be_sure():
    rng = np.random.default_rng(7)
    X, y = rng.standard_normal((300, 8)), rng.integers(4, size=300)
    partial = np.full(300, -1)
    partial[:40] = y[:40]
    assert spread_labels(X, partial).confidences[40:].mean() < 0.45  # a quarter of them is right


def test_sparse_rows_get_the_labels_of_the_same_rows_made_dense(digits):
    X, y = digits
    dense, sparse = spread_labels(X, draw(y, 3)), spread_labels(csr_array(X), draw(y, 3))
    assert np.mean(dense.labels == sparse.labels) > 0.995


def test_strings_spread_over_their_kernel():
    words = ["abab" * n for n in range(2, 14)] + ["xyxy" * n for n in range(2, 14)]
    counts = np.array([[word.count(pair) / (len(word) - 1) for pair in ("ab", "ba", "xy", "yx")] for word in words])
    y = np.full(24, -1)
    y[0], y[12] = 0, 1
    assert np.array_equal(spread_labels(None, y, kernel=counts @ counts.T).labels, np.repeat([0, 1], 12))


def test_more_labels_than_are_left_out_in_turn_take_the_same_way(digits, monkeypatch):
    X, y = digits
    partial = draw(y, 5)
    exact = spread_labels(X, partial)
    monkeypatch.setattr("starshl.learning.graphs.experts.MOST_SEARCHED", 20)
    monkeypatch.setattr("starshl.learning.graphs.experts.MOST_LABELED", 30)
    monkeypatch.setattr("starshl.learning.graphs.diffusion.MOST_COLUMNS", 40)
    monkeypatch.setattr("starshl.learning.graphs.diffusion.UNIT_COLUMNS", 20)
    large = spread_labels(X, partial)
    assert np.mean(exact.labels == large.labels) > 0.95


def test_complete_labels_stay_as_they_are(blobs):
    X, y = blobs
    spread = spread_labels(X, y)
    assert np.array_equal(spread.labels, y)
    assert spread.note == "every row has a label"


def test_agreement_by_hand():
    graph = NeighborGraph.of_rows([[0.0], [1.0], [10.0], [11.0]], n_neighbors=1)
    assert edge_agreement(graph, np.array([0, 0, 1, 1])) == 1.0
    assert edge_agreement(graph, np.array([0, 1, 0, 1])) == -1.0
    assert edge_agreement(graph, np.zeros(4, dtype=int)) == 0.0


def test_a_graph_keeps_the_plain_kernel_of_its_own_rows_only(blobs):
    X, y = blobs
    graph, partial = NeighborGraph.of_rows(X), draw(y, 5)
    first = spread_labels(X, partial, graph=graph)
    assert np.array_equal(spread_labels(X, partial, graph=graph).probabilities, first.probabilities)
    other = spread_labels(2 * X + 1, partial, graph=graph)  # the same graph serves other rows with another bandwidth
    np.testing.assert_allclose(other.probabilities, first.probabilities, atol=1e-6)


def misleading_graph(n_rows=400):
    """Two classes that the rows tell apart, along a line on which they alternate."""
    rng = np.random.default_rng(0)
    y = np.arange(n_rows) % 2
    X = 4.0 * y[:, None] + rng.standard_normal((n_rows, 2))
    return X, y, NeighborGraph.of_rows(rng.standard_normal((n_rows, 1)))


def test_many_labels_overrule_a_misleading_graph():
    X, y, graph = misleading_graph()
    partial = draw(y, 20)
    spread = spread_labels(X, partial, graph=graph)
    rest = partial < 0
    assert spread.agreement > 0.78  # of neighbors with the labels that they have spread
    assert np.mean(spread.labels[rest] == y[rest]) > 0.98


def test_many_labels_leave_a_good_graph_its_weight():
    X, y = make_moons(400, noise=0.05, random_state=0)
    partial = draw(y, 60)
    spread = spread_labels(X, partial)
    assert np.mean(spread.labels[partial < 0] == y[partial < 0]) > 0.98


def test_one_wrong_label_in_ten_stays_where_it_is(digits):
    X, y = digits
    partial = draw(y, 10)
    given = np.flatnonzero(partial >= 0)
    wrong = np.random.default_rng(3).choice(given, 10, replace=False)
    partial[wrong] = (partial[wrong] + 1) % 10
    spread = spread_labels(X, partial)
    rest = partial < 0
    assert np.mean(spread.labels[rest] == y[rest]) > 0.9


def test_confidences_are_about_right_with_five_labels_per_class(digits):
    X, y = digits
    partial = draw(y, 5, seed=2)
    spread = spread_labels(X, partial)
    rest = partial < 0
    right, sure = spread.labels[rest] == y[rest], spread.confidences[rest] >= 0.9
    assert right[sure].mean() >= 0.93
    assert sure.mean() > 0.3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"y": [-1, -1, -1]}, "No row has a label"),
        ({"y": [0, 1]}, "y has shape"),
        ({"y": [-1, 7, -1]}, "All labels are 7.*another class"),
        ({"y": [0, 0, 1], "class_shares": {0: 1, 1: 9}}, "leaves 0.3 of 3 rows for the class 0, and 2 rows"),
        ({"y": [0, -1, 1], "X": [[0.0], [np.nan], [1.0]]}, "NaN"),
        ({"y": [0, -1, 1], "graph": NeighborGraph.of_rows([[0.0], [1.0]])}, r"2 rows.*X has 3"),
        ({"y": [0, -1, 1], "kernel": np.eye(3)}, "both X and a kernel"),
        ({"y": [0, -1, 1], "X": None}, "neither X nor a kernel"),
        ({"y": [0, -1, 1], "class_shares": [1.0]}, "must be \\(2,\\)"),
        ({"y": [0, -1, 1], "class_shares": [1.0, 0.0]}, "above 0"),
        ({"y": [0, -1, 1], "class_shares": {0: 1.0, 5: 1.0}}, "names the classes \\[0, 5\\]"),
    ],
)
def test_bad_input_is_refused_with_a_way_out(arguments, words):
    with pytest.raises(ValueError, match=words):
        spread_labels(**({"X": [[0.0], [1.0], [2.0]]} | arguments))


@pytest.mark.parametrize("n_small", [10, 20, 100])
def test_labels_do_not_cross_to_another_component_however_small_theirs_is(n_small):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0.0, 1.0, (200, 2)), rng.normal(50.0, 1.0, (n_small, 2))])
    y = np.repeat([0, 1], [200, n_small])
    known = np.full(len(y), -1)
    known[[0, 1, 200]] = y[[0, 1, 200]]
    spread = spread_labels(X, known)
    assert spread.graph.n_connected_components == 2
    np.testing.assert_array_equal(spread.labels, y)


def test_a_graph_that_is_no_neighbor_graph_is_refused():
    with pytest.raises(TypeError, match="graph is a ndarray"):
        spread_labels(np.arange(12.0)[:, None], [0, *[-1] * 10, 1], graph=np.eye(12))


@pytest.mark.parametrize("n_classes", [77, 150])
def test_many_classes_are_told_apart_by_two_labels_each(n_classes):
    rng = np.random.default_rng(0)
    centers = 10 * rng.standard_normal((n_classes, 20))
    y = np.repeat(np.arange(n_classes), 10)
    X = centers[y] + 1.5 * rng.standard_normal((len(y), 20))
    partial = draw(y, 2)
    spread = spread_labels(X, partial)
    rest = partial < 0
    assert np.mean(spread.labels[rest] == y[rest]) > 0.97
    assert spread.probabilities.shape == (len(y), n_classes)
    np.testing.assert_allclose(spread.probabilities.sum(axis=1), 1.0)
    assert spread.accuracy > 0.9


def test_more_than_a_thousand_labels_find_what_the_graph_hides():
    """The class is the side of a plane; most distances are noise, so that neighbors agree little."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2400, 30))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    partial = np.where(np.arange(2400) < 1200, y, -1)
    spread = spread_labels(X, partial)
    rest = partial < 0
    assert np.mean(_graph_alone(spread)[rest] == y[rest]) < 0.8
    assert np.mean(spread.labels[rest] == y[rest]) > 0.95
    assert abs(spread.accuracy - np.mean(spread.labels[rest] == y[rest])) < 0.03


def _graph_alone(spread):
    return spread.spread.on_graph.argmax(axis=1)


def test_a_class_with_a_single_label_is_found_beside_classes_with_many(blobs):
    X, y = blobs
    partial = draw(y, 8)
    of_first = np.flatnonzero(partial == 0)
    partial[of_first[1:]] = -1
    spread = spread_labels(X, partial)
    of_class = (y == 0) & (partial < 0)
    assert np.mean(spread.labels[of_class] == 0) > 0.95  # counting labels, one in a few dozen would be of this class


def test_equally_many_labels_of_unequal_classes_do_not_make_confidences_wrong():
    """Nine rows in ten are of a class that is easy to tell; left-out labels alone speak of five hard ones."""
    rng = np.random.default_rng(1)
    y = np.concatenate([np.zeros(900, int), rng.integers(1, 6, 100)])
    X = np.where(y[:, None] == 0, 6.0, 0.0) + rng.standard_normal((1000, 6)) + 0.6 * np.eye(6)[y]
    partial = draw(y, 8)
    spread = spread_labels(X, partial)
    rest = partial < 0
    right = np.mean(spread.labels[rest] == y[rest])
    assert right > 0.9
    assert spread.accuracy < 0.6
    assert abs(spread.confidences[rest].mean() - right) < 0.1
