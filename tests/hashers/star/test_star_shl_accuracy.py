"""How good the codes are, on the authors' demo data and on digits with few labels or none."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from starshl import StarSHL
from starshl.evaluation import precision_at
from starshl.learning.kernels import GraphGaussian

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def mean_precision(make, data, seeds):
    X_train, y_train, X_test, y_test = data
    found = []
    for seed in range(seeds):
        hasher = make(seed).fit(X_train, y_train)
        found.append(precision_at(hasher.encode(X_test), hasher.encode(X_train), y_test, y_train, 10))
    return float(np.mean(found))


def test_paper_settings_reach_what_the_published_program_reaches(small_mnist):
    precision = mean_precision(lambda seed: StarSHL.paper(25, random_state=seed, n_jobs=2), small_mnist, 3)
    assert 0.74 <= precision <= 0.82


def test_defaults_do_better_than_the_paper_settings(small_mnist):
    precision = mean_precision(lambda seed: StarSHL(25, random_state=seed, n_jobs=2), small_mnist, 3)
    assert precision >= 0.85


def few_label_accuracies(digits, few_labels, seed, rows, n_bits):
    """Accuracy on unlabeled rows: labeled rows alone, defaults, the paper's mode, and that with the graph kernel."""
    X, y = digits
    hidden = few_labels(seed, 5)
    keep = np.union1d(np.flatnonzero(hidden >= 0), np.arange(rows))
    X, y, hidden = X[keep], y[keep], hidden[keep]
    free = hidden < 0
    settings = {"random_state": seed, "n_jobs": 2}
    supervised = StarSHL(n_bits, **settings).fit(X[~free], y[~free]).predict(X[free])
    default = StarSHL(n_bits, **settings).fit(X, hidden).transduction_[free]
    settings["unlabeled"] = "nearest"
    nearest = StarSHL(n_bits, **settings).fit(X, hidden).transduction_[free]
    bent = StarSHL(n_bits, kernels=[GraphGaussian()], **settings).fit(X, hidden).transduction_[free]
    return [np.mean(found == y[free]) for found in (supervised, default, nearest, bent)]


def check_few_labels(digits, few_labels, seeds, rows, n_bits=32):
    accuracies = [few_label_accuracies(digits, few_labels, seed, rows, n_bits) for seed in range(seeds)]
    supervised, default, nearest, bent = np.mean(accuracies, axis=0)
    assert default >= supervised + 0.05
    assert nearest >= supervised - 0.01
    assert bent >= supervised + 0.05


def test_unlabeled_digits_help_by_default_and_through_the_graph_kernel(digits, few_labels):
    check_few_labels(digits, few_labels, seeds=1, rows=600, n_bits=16)


@pytest.mark.slow
def test_unlabeled_digits_help_by_default_and_through_the_graph_kernel_in_full(digits, few_labels):
    check_few_labels(digits, few_labels, seeds=10, rows=1797)


@pytest.mark.slow
def test_clusters_of_digits_are_nearly_their_classes(digits):
    X, y = digits
    found = [StarSHL(16, n_codewords=10, random_state=seed).fit(X).transduction_ for seed in range(3)]
    assert np.mean([adjusted_rand_score(y, each) for each in found]) > 0.88


def check_unsupervised(digits, rows, seeds):
    X, y = digits[0][:rows], digits[1][:rows]
    for seed in range(seeds):
        start = KMeans(10, n_init=10, random_state=seed).fit(X).labels_
        hasher = StarSHL(32, n_codewords=10, random_state=seed, n_jobs=2).fit(X, initial_assignments=start)
        assert len(np.unique(hasher.transduction_)) == 10
        assert adjusted_rand_score(y, hasher.transduction_) >= adjusted_rand_score(y, start) - 0.02


def test_unsupervised_digits_keep_all_codewords_and_the_quality_of_their_start(digits):
    check_unsupervised(digits, rows=500, seeds=1)


@pytest.mark.slow
def test_unsupervised_digits_keep_all_codewords_and_the_quality_of_their_start_in_full(digits):
    check_unsupervised(digits, rows=1797, seeds=10)
