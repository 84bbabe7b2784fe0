"""Experts against refits without a label, and the blend against a search over a grid."""

import numpy as np
import pytest
from scipy.special import logsumexp, softmax
from sklearn.datasets import load_digits, make_moons

from starshl import NeighborGraph
from starshl.learning.graphs.blend import blend, temperature_of_confidence
from starshl.learning.graphs.diffusion import ridge_scores
from starshl.learning.graphs.experts import Expert, Labels, read_labels
from starshl.learning.graphs.plain_kernel import GivenKernel, RowsKernel

GRAPH, JUDGED, LINEAR, KERNEL = range(4)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(n_class=4, return_X_y=True)
    X, y = X[:200] + 0.01 * np.random.default_rng(0).standard_normal((200, 64)), y[:200]
    index = np.where(np.arange(200) % 8 == 0, y, -1)
    return RowsKernel(X), NeighborGraph.of_rows(X), index


def judged_from_scratch(plain, graph, index, n_classes):
    """Every row again by all others, in which the graph's classes are those without some labels."""
    labels = Labels.of(index, n_classes)
    pseudo = ridge_scores(graph, labels.rows, labels.targets).argmax(axis=1)
    pseudo[labels.rows] = labels.index
    targets = np.eye(n_classes)[pseudo] - 1 / n_classes
    inverse = np.linalg.inv(plain.gram() + np.diag(np.where(index >= 0, 0.1, 1.0)))
    return targets - inverse @ targets / inverse.diagonal()[:, None]


def test_a_label_that_is_left_out_changes_what_the_graph_tells_the_judges(digits):
    plain, graph, index = digits
    labels = Labels.of(index, 4)
    experts, out = read_labels(plain, graph, labels, 1000)
    assert np.array_equal(out, np.arange(len(labels.rows)))
    for position in out[:8]:
        row = labels.rows[position]
        without = index.copy()
        without[row] = -1
        # Its mean diagonal is that of the labels that are left; the refit takes that of all.
        own = judged_from_scratch(plain, graph, without, 4)[row]
        assert np.allclose(experts[JUDGED].left_out[position], own, atol=2e-3)


def test_judges_that_are_all_rows_judge_as_a_refit_from_scratch(digits):
    plain, graph, index = digits
    experts, _ = read_labels(plain, graph, Labels.of(index, 4), 1000)
    assert np.allclose(experts[JUDGED].scores, judged_from_scratch(plain, graph, index, 4), atol=1e-6)


def test_a_sample_of_judges_says_nearly_what_all_rows_say(digits):
    plain, graph, index = digits
    labels = Labels.of(index, 4)
    everybody, _ = read_labels(plain, graph, labels, 1000)
    some, _ = read_labels(plain, graph, labels, 120)
    agree = everybody[JUDGED].scores.argmax(axis=1) == some[JUDGED].scores.argmax(axis=1)
    assert agree.mean() > 0.97
    known = some[JUDGED].left_out.argmax(axis=1) == labels.index
    assert known.mean() > 0.9


@pytest.mark.parametrize("expert", [LINEAR, KERNEL])
def test_functions_of_labeled_rows_agree_with_refits_without_the_row(digits, expert):
    plain, graph, _ = digits
    index = np.full(200, -1)
    index[:24] = load_digits(n_class=4, return_X_y=True)[1][:24]  # too few for discriminants
    labels = Labels.of(index, 4)
    experts, _ = read_labels(plain, graph, labels, 1000)
    kernels = [plain.linear] if expert == LINEAR else plain.kernels
    ridges = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0) if expert == LINEAR else (1e-3, 1e-2, 1e-1)
    fits = []
    for kernel in kernels:
        gram = kernel(labels.rows, labels.rows)
        for ridge in ridges:
            left_out = np.empty((len(gram), 4))
            for row in range(len(gram)):
                rest = np.delete(np.arange(len(gram)), row)
                dual = np.linalg.solve(gram[np.ix_(rest, rest)] + ridge * np.eye(len(rest)), labels.targets[rest])
                left_out[row] = gram[row, rest] @ dual
            losses = [
                np.sum(logsumexp(t * left_out, axis=1) - t * left_out[np.arange(len(gram)), labels.index])
                for t in (2, 4, 8, 16, 32)
            ]
            fits.append((min(losses), left_out))
    best = min(fits, key=lambda fit: fit[0])[1]
    assert np.allclose(experts[expert].left_out, best, atol=1e-6)


def test_a_given_kernel_leaves_out_the_linear_expert(digits):
    plain, graph, index = digits
    given = GivenKernel(plain.gram())
    experts, out = read_labels(given, graph, Labels.of(index, 4), 1000)
    assert len(experts) == 3
    blended = blend(experts, graph, Labels.of(index, 4), out)
    assert blended.weights.shape == (3,)


def test_the_only_label_of_a_class_tells_nothing():
    labels = Labels.of(np.array([0, -1, 1, 1, 2]), 3)
    assert labels.telling.tolist() == [False, True, True, False]


def two_experts_of_use_and_one_of_none():
    """The first two follow the graph and know nothing; the third one knows the class, more or less."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=400)
    index = np.where(np.arange(400) < 150, y, -1)
    noise = [0.5 * rng.standard_normal((400, 3)) for _ in range(3)]
    right = noise[2] + np.eye(3)[y]
    experts = [Expert(scores, scores[:150]) for scores in (noise[0], noise[1], right)]
    return experts, Labels.of(index, 3), y, NeighborGraph.of_rows(rng.standard_normal((400, 2)))


def test_left_out_labels_move_the_weights_to_the_expert_that_knows():
    experts, labels, y, graph = two_experts_of_use_and_one_of_none()
    blended = blend(experts, graph, labels, np.arange(150))
    assert blended.weights[2] > 0.8
    assert np.mean(blended.probabilities[150:].argmax(axis=1) == y[150:]) > 0.85


def test_without_a_telling_label_the_weights_are_those_of_the_prior():
    experts, labels, _, graph = two_experts_of_use_and_one_of_none()
    single = labels.take(np.array([np.flatnonzero(labels.index == g)[0] for g in range(3)]))
    few = [Expert(each.scores, each.left_out[:3]) for each in experts]
    blended = blend(few, graph, single, np.arange(3))
    on_graph = 0.1  # the least, because neighbors agree no more than by chance
    assert blended.weights == pytest.approx([0.3 * on_graph, 0.7 * on_graph, 1 - on_graph])


def test_no_weights_on_a_grid_have_a_smaller_penalized_loss():
    experts, labels, _, graph = two_experts_of_use_and_one_of_none()
    out = np.arange(150)
    blended = blend(experts, graph, labels, out)
    own = labels.index

    def loss(scores):
        return np.sum(logsumexp(scores, axis=1) - scores[out, own])

    temperatures = []
    for each in experts:
        grid = np.exp(np.linspace(-2, 6, 2001))
        values = [loss(t * each.left_out) + (np.log(t) - np.log(6.0)) ** 2 for t in grid]
        temperatures.append(grid[int(np.argmin(values))])
    readings = np.stack([t * each.left_out for t, each in zip(temperatures, experts, strict=True)])
    prior = np.array([0.03, 0.07, 0.9])

    def penalized(weights):
        return loss(np.tensordot(weights, readings, 1)) + 10.0 * np.sum((weights - prior) ** 2)

    sum_of_weights = np.log(blended.left_out[:, 0] / blended.left_out[:, 1])
    assert np.isfinite(sum_of_weights).all()
    grid = [
        np.array([a, b, c])
        for a in np.arange(0, 0.4, 0.1)
        for b in np.arange(0, 0.4, 0.1)
        for c in np.arange(0.5, 1.5, 0.1)
    ]
    least = min(penalized(weights) for weights in grid)
    loss_of_blend = -np.sum(np.log(blended.left_out[out, own]))
    assert loss_of_blend <= least + 0.5


def test_many_labels_leave_a_graph_that_misleads_little_weight():
    X, y = make_moons(300, noise=0.05, random_state=0)
    plain, graph = RowsKernel(X), NeighborGraph.of_rows(np.random.default_rng(1).standard_normal((300, 1)))
    labels = Labels.of(np.where(np.arange(300) < 100, y, -1), 2)
    experts, out = read_labels(plain, graph, labels, 1000)
    assert blend(experts, graph, labels, out).weights[GRAPH] < 0.15


def test_a_temperature_gives_the_expected_confidence():
    scores = np.random.default_rng(2).standard_normal((50, 4))
    temperature = temperature_of_confidence(scores, 0.7)
    assert softmax(temperature * scores, axis=1).max(axis=1).mean() == pytest.approx(0.7, abs=1e-3)
