"""The figures of StarRidge that the README and the page about the paper give."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from starshl import StarRidge
from starshl.evaluation import precision_at


@pytest.mark.slow
def test_unlabeled_digits_help_as_much_as_the_readme_says():
    X, y = load_digits(return_X_y=True)
    accuracies = {"graph": [], "ignore": []}
    for draw in range(10):
        rng = np.random.default_rng(draw)
        rows = rng.permutation(len(X))[:1297]
        few = np.full(1297, -1)
        for digit in range(10):
            few[rng.choice(np.flatnonzero(y[rows] == digit), 5, replace=False)] = digit
        for unlabeled, found in accuracies.items():
            hasher = StarRidge(32, unlabeled=unlabeled, random_state=0).fit(X[rows], few)
            found.append(np.mean(hasher.transduction_[few < 0] == y[rows][few < 0]))
    # Measured .957 and .871.
    assert np.mean(accuracies["graph"]) == pytest.approx(0.957, abs=0.01)
    assert np.mean(accuracies["ignore"]) == pytest.approx(0.871, abs=0.01)


@pytest.mark.slow
def test_the_authors_demo_data_give_the_precision_that_the_page_about_the_paper_says(small_mnist):
    X, y, X_query, y_query = small_mnist
    precisions = []
    for seed in range(5):
        hasher = StarRidge(25, random_state=seed).fit(X, y)
        precisions.append(precision_at(hasher.encode(X_query), hasher.training_codes_, y_query, y))
    assert np.mean(precisions) == pytest.approx(0.89, abs=0.01)
