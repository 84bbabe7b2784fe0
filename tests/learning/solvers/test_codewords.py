"""The codeword step against brute force over all feasible columns, and by hand."""

from itertools import product

import numpy as np
import pytest

from starshl.learning.solvers.objective import hinge_sums, update_column


def is_constant(column, occupied):
    signs = column[occupied]
    return len(signs) > 1 and len(set(signs.tolist())) == 1


def are_distinct(codewords):
    return len(np.unique(codewords, axis=0)) == len(codewords)


def cost_of(column, plus, minus):
    return float(np.where(np.asarray(column) > 0, plus, minus).sum())


def with_column(codewords, bit, column):
    changed = codewords.copy()
    changed[:, bit] = column
    return changed


def best_cost(codewords, bit, plus, minus, constraint, occupied):
    """The smallest loss of any column that keeps what the present codewords keep."""
    keep_distinct = constraint == "distinct" and are_distinct(codewords)
    keep_varied = constraint != "none" and not is_constant(codewords[:, bit], occupied)
    columns = (np.array(signs) for signs in product((-1, 1), repeat=len(codewords)))
    return min(
        cost_of(column, plus, minus)
        for column in columns
        if not (keep_varied and is_constant(column, occupied))
        and not (keep_distinct and not are_distinct(with_column(codewords, bit, column)))
    )


@pytest.mark.parametrize("constraint", ["none", "nonconstant", "distinct"])
@pytest.mark.parametrize("n_bits", [1, 2, 3, 5])
@pytest.mark.parametrize("n_codewords", [1, 2, 3, 6])
def test_column_is_the_best_feasible_one(constraint, n_codewords, n_bits):
    rng = np.random.default_rng(n_codewords * 10 + n_bits)
    for trial in range(60):
        codewords = rng.choice([-1, 1], (n_codewords, n_bits)).astype(np.int8)
        if trial % 3 == 0:
            codewords[:, 0] = codewords[0, 0]  # a column that violates the constraint already
        occupied = rng.random(n_codewords) < (1.0 if trial % 2 else 0.7)
        # Integer losses make ties frequent; a one-sided shift makes the free minimizer constant.
        plus = rng.integers(0, 4, n_codewords).astype(float)
        minus = rng.integers(0, 4, n_codewords) + 3.0 * (trial % 5 == 0)
        column, dropped = update_column(codewords, 0, plus, minus, constraint, occupied)
        assert column.dtype == np.int8
        assert cost_of(column, plus, minus) == best_cost(codewords, 0, plus, minus, constraint, occupied)
        assert cost_of(column, plus, minus) <= cost_of(codewords[:, 0], plus, minus)
        if constraint == "distinct" and are_distinct(codewords):
            assert are_distinct(with_column(codewords, 0, column))
        if constraint != "none" and not is_constant(codewords[:, 0], occupied):
            assert not is_constant(column, occupied)
        violated = is_constant(codewords[:, 0], occupied) or (constraint == "distinct" and not are_distinct(codewords))
        assert dropped == (constraint != "none" and violated)


@pytest.mark.parametrize("constraint", ["none", "nonconstant", "distinct"])
def test_column_that_gains_nothing_stays(constraint):
    rng = np.random.default_rng(0)
    for _ in range(300):
        codewords = rng.choice([-1, 1], (4, 3)).astype(np.int8)
        occupied = rng.random(4) < 0.8
        plus, minus = rng.integers(0, 3, 4).astype(float), rng.integers(0, 3, 4).astype(float)
        column, _ = update_column(codewords, 0, plus, minus, constraint, occupied)
        if cost_of(column, plus, minus) == cost_of(codewords[:, 0], plus, minus):
            assert np.array_equal(column, codewords[:, 0])


def test_hinge_sums_and_step_match_a_hand_computation():
    plus, minus = hinge_sums(np.array([0.5, -0.2, 3.0]), np.zeros(3, int), np.ones(3), 1)
    assert plus == pytest.approx([1.7])
    assert minus == pytest.approx([6.3])
    assert update_column(np.array([[-1]]), 0, plus, minus, "none", np.array([True]))[0].tolist() == [1]


def test_hinge_decides_where_a_vote_of_signs_would_not():
    plus, minus = hinge_sums(np.array([0.1, 0.1, -5.0]), np.zeros(3, int), np.ones(3), 1)
    assert plus == pytest.approx([7.8])
    assert minus == pytest.approx([2.2])
    assert update_column(np.array([[1]]), 0, plus, minus, "none", np.array([True]))[0].tolist() == [-1]


@pytest.mark.parametrize("sign", [-1, 1])
def test_equal_losses_and_empty_classes_keep_the_sign(sign):
    plus, minus = hinge_sums(np.zeros(2), np.zeros(2, int), np.ones(2), 2)
    column, _ = update_column(np.array([[sign], [-sign]]), 0, plus, minus, "none", np.ones(2, bool))
    assert column.tolist() == [sign, -sign]


def test_weighted_rows_count_as_repeated_ones():
    scores, classes, cost = np.array([0.3, -2.0, 0.7]), np.array([0, 1, 1]), np.array([2.0, 1.0, 3.0])
    weighted = hinge_sums(scores, classes, cost, 3)
    repeats = cost.astype(int)
    repeated = hinge_sums(np.repeat(scores, repeats), np.repeat(classes, repeats), np.ones(6), 3)
    assert np.allclose(weighted, repeated)


def test_codewords_that_differ_in_one_bit_take_opposite_signs():
    codewords = np.array([[1, 1], [-1, 1], [1, -1]], dtype=np.int8)
    plus, minus = np.array([1.0, 2.0, 5.0]), np.array([4.0, 3.0, 0.0])
    column, dropped = update_column(codewords, 0, plus, minus, "distinct", np.ones(3, bool))
    assert column.tolist() == [1, -1, -1]
    assert not dropped
