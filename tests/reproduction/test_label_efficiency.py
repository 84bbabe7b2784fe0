"""Label-efficiency curves: the same draws for all, and labels that stay hidden."""

import numpy as np
import pytest

from starshl.reproduction import measure_label_efficiency
from starshl.reproduction.label_efficiency import draw_labels


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 30)
    return rng.standard_normal((120, 2)) + 5 * y[:, None], y


def test_more_labels_of_a_draw_include_the_fewer_ones(rows):
    _, y = rows
    few, many = (draw_labels(y, n, np.random.default_rng(3)) for n in (2, 10))
    assert np.bincount(few + 1).tolist() == [112, 2, 2, 2, 2]
    assert np.array_equal(many[few >= 0], few[few >= 0])
    assert np.array_equal(many[many >= 0], y[many >= 0])


def test_learners_see_equal_labels_and_are_scored_on_hidden_rows_alone(rows):
    X, y = rows
    seen = {"first": [], "second": []}

    def learner(name):
        def learn(X, known, seed):
            seen[name].append(known.copy())
            return np.where(known >= 0, known, -5)  # right only where the label was given

        return learn

    curve = measure_label_efficiency(X, y, {name: learner(name) for name in seen}, title="rows", n_draws=2)
    assert all(np.array_equal(a, b) for a, b in zip(seen["first"], seen["second"], strict=True))
    assert curve.accuracies["first"] == ((0.0, 0.0),) * 3


def test_labels_that_leave_no_row_unlabeled_are_refused(rows):
    _, y = rows
    with pytest.raises(ValueError, match="Class 0 has 30 rows"):
        draw_labels(y, 30, np.random.default_rng(0))


@pytest.mark.parametrize("y", [[-1, 1] * 9, [0.5, 1.5] * 9, ["a", "b"] * 9])
def test_labels_that_are_not_class_numbers_are_refused(y):
    with pytest.raises(ValueError, match="whole numbers from 0"):
        draw_labels(np.array(y), 2, np.random.default_rng(0))
