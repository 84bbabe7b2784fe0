"""Figures of one fitted method: precision with ties in expectation, calibration, accuracy."""

import numpy as np
from sklearn.metrics import balanced_accuracy_score

from starshl import BinaryCodes
from starshl.evaluation import HammingHistograms, expected_precision, hamming_histograms, precision_at

N_BINS = 15
N_SIMULATIONS = 50


def precision(queries: BinaryCodes, database: BinaryCodes, y_query: np.ndarray, y_database: np.ndarray) -> float:
    return round(precision_at(queries, database, y_query, y_database, 10), 5)


def precision_of_equal_classes(
    queries: BinaryCodes, database: BinaryCodes, y_query: np.ndarray, y_database: np.ndarray
) -> float:
    """Return P@10 as the mean over classes: every class counts the same, however few queries it has."""
    precisions = expected_precision(hamming_histograms(queries, database, y_query, y_database), 10)
    return round(float(np.mean([precisions[y_query == own].mean() for own in np.unique(y_query)])), 5)


def without_learning(y_query: np.ndarray, y_database: np.ndarray) -> dict[str, float]:
    """Return what the sizes of the classes alone give: the largest class as the only answer, and a random order."""
    counts = np.bincount(y_database, minlength=1 + y_query.max())
    return {
        "largest_class": accuracy(np.full(len(y_query), counts.argmax()), y_query),
        "random_order": round(float(np.mean(counts[y_query] / len(y_database))), 5),
    }


def precision_by_scores(scores: np.ndarray, database: BinaryCodes, y_query: np.ndarray, y_database: np.ndarray):
    """Return P@10 if the database is ranked by the inner product of its codes with real query scores.

    Equal codes are equally near, and the order among them is random, as in the Hamming case.
    """
    words, owner = np.unique(database.to_signs(), axis=0, return_inverse=True)
    classes = np.arange(1 + max(y_query.max(), y_database.max()))
    members = np.array([np.bincount(y_database[owner.ravel() == w], minlength=len(classes)) for w in range(len(words))])
    order = np.argsort(-(scores @ words.T.astype(np.float64)), axis=1, kind="stable")
    count, relevant = members.sum(axis=1)[order], members[order, y_query[:, None]]
    return round(float(expected_precision(HammingHistograms(count, relevant), 10).mean()), 5)


def precision_of_classes(predicted: np.ndarray, assigned: np.ndarray, y_query: np.ndarray, y_database: np.ndarray):
    """Return P@10 if a query finds exactly the items that were assigned to its predicted class, in random order.

    This is what any classifier gives as a hasher: the codeword of the prediction on both sides.
    """
    n_classes = 1 + max(y_query.max(), y_database.max())
    share = np.zeros((n_classes, n_classes))
    np.add.at(share, (assigned, y_database), 1)
    share /= np.maximum(share.sum(axis=1, keepdims=True), 1)
    return round(float(share[predicted, y_query].mean()), 5)


def calibration_error(probabilities: np.ndarray, classes: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return the expected calibration error of the top class over 15 bins of equal mass, and what chance alone makes.

    Even perfect probabilities have an error above zero, because a bin holds a finite number of rows. The second value
    is the error if each row were right with exactly its stated probability.
    """
    confidence, right = probabilities.max(axis=1), classes[probabilities.argmax(axis=1)] == y
    bins = np.array_split(np.argsort(confidence, kind="stable"), N_BINS)
    rng = np.random.default_rng(0)
    by_chance = [binned_gap(confidence, rng.random(len(y)) < confidence, bins) for _ in range(N_SIMULATIONS)]
    return round(binned_gap(confidence, right, bins), 5), round(float(np.mean(by_chance)), 5)


def binned_gap(confidence: np.ndarray, right: np.ndarray, bins: list[np.ndarray]) -> float:
    gaps = [len(rows) * abs(confidence[rows].mean() - right[rows].mean()) for rows in bins if len(rows)]
    return float(sum(gaps) / len(confidence))


def accuracy(predicted: np.ndarray, y: np.ndarray) -> float:
    return round(float(np.mean(predicted == y)), 5)


def balanced_accuracy(predicted: np.ndarray, y: np.ndarray) -> float:
    return round(float(balanced_accuracy_score(y, predicted)), 5)
