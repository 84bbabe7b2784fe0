import numpy as np
import pytest

from starshl import NeighborGraph, spread_labels
from starshl._common.threads import using_threads
from starshl.labeling.active_learning import choose_informative, predict_labels
from starshl.labeling.events import Answer, agreement_curve
from starshl.labeling.items import balanced_views
from starshl.learning.graphs.diffusion import graph_scores
from starshl.learning.graphs.neighbor_graph import principal_coordinates
from starshl.learning.graphs.spectrum import leading_eigenpairs, smooth_basis


@pytest.fixture(scope="module")
def coordinates(points):
    return principal_coordinates(points[0], 50)


@pytest.fixture
def graph(coordinates):
    return NeighborGraph.of_rows(coordinates)


def given_classes(groups, n):
    given = np.full(len(groups), -1)
    given[:n] = groups[:n]
    return given


def test_one_more_label_on_kept_columns_gives_the_scores_of_a_full_solve(graph, coordinates, points):
    predict_labels(graph, coordinates, given_classes(points[1], 9), 3)
    kept = predict_labels(graph, coordinates, given_classes(points[1], 10), 3)
    fresh = predict_labels(NeighborGraph.of_rows(coordinates), coordinates, given_classes(points[1], 10), 3)
    np.testing.assert_array_equal(kept.probabilities, fresh.probabilities)


def test_scores_are_those_of_a_dense_solve(points):
    graph = NeighborGraph.of_rows(np.random.default_rng(0).standard_normal((120, 3)))
    assert graph.n_connected_components == 1
    labeled = np.arange(12)
    targets = np.eye(3)[points[1][:12]] - 1 / 3
    phi = np.sqrt(graph.degrees / graph.degrees.sum())
    kernel = np.linalg.inv(np.eye(120) - 0.99 * graph.normalized.toarray()) - np.outer(phi, phi) / (1 - 0.99)
    columns = kernel[:, labeled] / np.diag(kernel)[labeled].mean()
    expected = columns @ np.linalg.solve(columns[labeled] + 0.1 * np.eye(12), targets)
    np.testing.assert_allclose(graph_scores(graph, labeled, targets), expected, atol=2e-3)


def test_where_neighbors_do_not_agree_nobody_is_sure():
    rng = np.random.default_rng(0)
    rows, labels = rng.standard_normal((200, 20)), rng.integers(2, size=200)
    given = np.where(np.arange(200) < 180, labels, -1)
    estimate = predict_labels(NeighborGraph.of_rows(rows), rows, given, 2)
    assert estimate.confidences[180:].mean() < 0.7  # half of them are right


def test_the_graph_chooses_items_as_long_as_classes_are_found_and_all_experts_later(graph, coordinates, points):
    finding = predict_labels(graph, coordinates, given_classes(points[1], 3), 3)
    known = predict_labels(graph, coordinates, given_classes(points[1], 30), 3)
    assert not np.array_equal(finding.beliefs, finding.probabilities)
    assert known.beliefs is known.probabilities


@pytest.fixture(scope="module")
def many_classes():
    """Rows of 40 classes of unequal size, of which some have no label, some one, and some several."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(40), np.linspace(6, 30, 40).astype(int))
    rows = 2.0 * rng.standard_normal((40, 12))[y] + rng.standard_normal((len(y), 12))
    given = np.full(len(y), -1)
    for label, n_labels in enumerate([1] * 6 + [4] * 30):  # four classes have none
        given[np.flatnonzero(y == label)[:n_labels]] = label
    return rows, y, given, NeighborGraph.of_rows(rows)


def test_confidences_allow_for_classes_without_a_name(many_classes):
    rows, y, given, graph = many_classes
    estimate, rest = predict_labels(graph, rows, given, 36), given < 0
    right = np.mean(estimate.predicted[rest] == y[rest])
    every_class_has_a_label = spread_labels(rows, given, graph=graph).confidences[rest].mean()
    assert every_class_has_a_label > right + 0.1
    assert abs(estimate.confidences[rest].mean() - right) < abs(every_class_has_a_label - right)
    without_name = 1 - estimate.probabilities.sum(axis=1)
    assert without_name[rest & (y >= 36)].mean() > 2 * without_name[rest & (y < 36)].mean()


def test_classes_without_a_name_change_no_guess_and_no_given_label(many_classes):
    rows, _, given, graph = many_classes
    estimate, spread = predict_labels(graph, rows, given, 36), spread_labels(rows, given, graph=graph)
    np.testing.assert_array_equal(estimate.predicted, spread.labels)
    named = estimate.probabilities.sum(axis=1)
    assert np.all(named[given >= 0] == 1)
    np.testing.assert_allclose(estimate.probabilities, spread.probabilities * named[:, None], atol=1e-12)
    assert np.mean(1 - named[given < 0]) == pytest.approx(6 / 126 / 2)  # half of the share of single labels
    # The less an item is like any labeled one, the likelier its class has no name.
    nearest = np.linalg.norm(rows[:, None] - rows[given >= 0], axis=2).min(axis=1)
    assert named[nearest.argmax()] == named.min()


def test_nobody_knows_how_sure_guesses_are_while_classes_are_still_being_found(many_classes):
    rows, _, given, graph = many_classes
    assert predict_labels(graph, rows, given, 36).knows_confidence
    fewer = given.copy()
    for label in range(6, 24):
        fewer[np.flatnonzero(given == label)[1:]] = -1
    estimate = predict_labels(graph, rows, fewer, 36)
    assert estimate.single == 24 / 72
    assert estimate.spread.knows_confidence  # of items whose class has a name
    assert not estimate.knows_confidence


def test_two_labels_of_every_class_leave_no_room_for_others(graph, coordinates, points):
    estimate = predict_labels(graph, coordinates, given_classes(points[1], 30), 3)
    assert estimate.single == 0
    np.testing.assert_allclose(estimate.probabilities.sum(axis=1), 1)


def test_a_smooth_basis_begins_with_eigenvectors_and_is_orthonormal():
    rows = np.random.default_rng(0).standard_normal((600, 3))
    graph = NeighborGraph.of_rows(rows)
    sizes, vectors = smooth_basis(graph, 40)
    values, expected = leading_eigenpairs(graph, 4)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(40), atol=1e-4)
    np.testing.assert_allclose(sizes[:3], 1 / (1 - 0.99 * values[1:4]), rtol=0.02)
    assert np.abs(vectors[:, 0] @ expected[:, 1]) > 0.98


@pytest.mark.parametrize("n_rows", [90, 400, 3000])
def test_a_smooth_basis_is_nearly_as_smooth_as_eigenvectors_for_any_number_of_threads(n_rows):
    rows = np.random.default_rng(1).standard_normal((n_rows, 4))
    rows[: n_rows // 3] += 20.0  # an island: an eigenvalue of 1 twice
    graph, again = NeighborGraph.of_rows(rows), NeighborGraph.of_rows(rows)
    sizes, vectors = smooth_basis(graph, 64)
    exact = 1 / (1 - 0.99 * np.minimum(leading_eigenpairs(graph, 65)[0][1:], 1.0))
    assert sizes[0] > 0.9 * exact[0]
    assert exact.sum() >= sizes.sum() - 1e-3 > 0.75 * exact.sum()
    with using_threads(2):
        assert smooth_basis(again, 64)[1].tobytes() == vectors.tobytes()


def test_a_batch_holds_no_copies(coordinates):
    copies = np.repeat(coordinates[:12], 10, axis=0)
    graph = NeighborGraph.of_rows(copies + 1e-9 * np.arange(120)[:, None])
    given = np.full(120, -1)
    chosen = choose_informative(graph, given, predict_labels(graph, copies, given, 0), np.zeros(120, dtype=bool), 6)
    assert len({choice.position // 10 for choice in chosen}) == 6


def test_every_kind_of_features_counts_by_its_weight():
    rows = np.random.default_rng(0).standard_normal((50, 7)).astype(np.float32) * [1, 1, 1, 1, 9, 9, 9] + 3
    balanced = balanced_views(rows.astype(np.float32), {"pixels": slice(0, 4), "hog_2": slice(4, 7)})
    np.testing.assert_allclose(balanced.mean(axis=0), 0, atol=1e-5)
    sizes = [np.sqrt(np.mean(np.sum(balanced[:, part] ** 2, axis=1))) for part in (slice(0, 4), slice(4, 7))]
    np.testing.assert_allclose(sizes, [0.3, 1.0], rtol=1e-4)


def answer(label, predicted, ways="unsure", before=None):
    return Answer([1], label, [before], [predicted], [0.5], [ways], 3, 1)


def test_the_curve_of_agreement_by_hand():
    answers = [
        answer("a", None),
        answer("b", "a"),
        answer("b", "b", ways="random"),
        answer("a", "b", before="b"),
        answer("a", "a"),
    ]
    curve = agreement_curve(answers, window=2)
    assert [point.agreement for point in curve] == [None, 0.0, 0.5, 0.5, 1.0]
    assert [point.n_given for point in curve] == [1, 2, 3, 3, 4]
    assert [point.n_compared for point in curve] == [0, 1, 2, 2, 2]
    # Wilson's interval of 1 in 2: (.5 + 1.92 / 2) / 2.92 ± ...
    assert (round(curve[2].low, 3), round(curve[2].high, 3)) == (0.095, 0.905)
    assert [point.agreement for point in agreement_curve(answers, only_random=True)] == [None, None, 1.0, 1.0, 1.0]
