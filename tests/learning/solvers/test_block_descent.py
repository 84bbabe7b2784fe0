"""Block descent: it asks for its parts before it runs, and leaves its start alone."""

import numpy as np
import pytest

from starshl.learning.kernels.banks import GramBank
from starshl.learning.solvers.block_descent import BlockDescent
from starshl.learning.solvers.objective import hinge_distances, penalty, squared_function_norms, surrogate
from starshl.learning.solvers.problem import Problem, Start
from starshl.learning.solvers.svm import PairwiseAscent


def problem(**others):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 3))
    settings = {
        "bank": GramBank((X @ X.T)[None]),
        "svm": PairwiseAscent(1e-4),
        "cost": np.ones(20),
        "free": np.zeros(20, dtype=bool),
        "late": False,
        "C": 1.0,
        "kernel_norm": 2.0,
        "constraint": "none",
        "update_codewords": True,
        "keep_clusters": True,
        "max_iter": 5,
        "tol": 1e-3,
    }
    return Problem(**settings | others)


def start():
    return Start(np.array([[1, 1], [-1, 1]], dtype=np.int8), np.arange(20) % 2, np.ones((2, 1)))


@pytest.mark.parametrize(("role", "missing"), [("bank", "n_rows, n_kernels"), ("svm", "tol, solve")])
def test_a_part_that_lacks_a_method_is_refused_before_the_run(role, missing):
    with pytest.raises(TypeError, match=f"{role} is a object.*{missing}"):
        BlockDescent(problem(**{role: object()}))


def test_a_run_returns_a_frozen_solution_and_leaves_its_start_alone():
    first = start()
    solution = BlockDescent(problem()).run(first)
    assert np.array_equal(first.codewords, start().codewords)
    with pytest.raises(AttributeError):
        solution.n_iter = 7
    again = BlockDescent(problem()).run(first)
    assert np.array_equal(again.coefficients, solution.coefficients)


def test_the_objective_is_made_of_its_terms():
    given = problem(C=3.0)
    solution = BlockDescent(given).run(start())
    own = solution.codewords[solution.assignments]
    assert surrogate(solution.scores, own, given.cost) == pytest.approx(solution.surrogate[-1])
    distances = hinge_distances(solution.scores, solution.codewords)
    assert distances[np.arange(20), solution.assignments].sum() == pytest.approx(solution.surrogate[-1])
    forms = np.array([given.bank.quadratic_forms(each) for each in solution.coefficients])
    parts = [penalty(squared_function_norms(form, w), w) for form, w in zip(forms, solution.weights, strict=True)]
    assert solution.objective[-1] == pytest.approx(3.0 * solution.surrogate[-1] + sum(parts))
