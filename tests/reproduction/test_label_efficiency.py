"""Label-efficiency curves: the same draws for all, labels that stay hidden, files that anyone may have written."""

import numpy as np
import pytest

from starshl.reproduction import measure_label_efficiency
from starshl.reproduction.label_efficiency import EMPHASIZED, draw_labels, read_curves, shipped_curves, write_curves


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


def test_a_curve_is_read_back_as_it_was_written(rows, tmp_path):
    X, y = rows
    curve = measure_label_efficiency(
        X, y, {"mean": lambda X, y, seed: np.round(X.mean(axis=1) / 5)}, title="rows", origin="here"
    )
    write_curves(tmp_path / "curves.json", [curve, curve])
    assert read_curves(tmp_path / "curves.json") == [curve, curve]


TWO_LISTS_FOR_ONE_COUNT = (
    '[{"title": "a", "origin": "", "n_rows": 3, "labels_per_class": [1], "accuracies": {"b": [[1], [2]]}}]'
)


@pytest.mark.parametrize("text", ["", "{}3", '[{"title": "a"}]', TWO_LISTS_FOR_ONE_COUNT])
def test_a_file_that_holds_no_curves_is_refused_with_its_name(text, tmp_path):
    (tmp_path / "curves.json").write_text(text)
    with pytest.raises(ValueError, match=r"curves\.json' does not hold"):
        read_curves(tmp_path / "curves.json")


def test_the_curves_of_reports_emphasize_one_of_their_lines():
    curves = shipped_curves()
    assert curves
    assert all(EMPHASIZED in curve.accuracies for curve in curves)
