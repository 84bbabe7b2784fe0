"""Compiled boosting of one forgiving bit, and the votes of its stumps."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def relabel_groups(scores, groups, labels):
    """Give +1 to the upper half of the groups by mean score, -1 to the others; return if any changed.

    With an odd number of groups the lower part is the larger one. A group without rows has score 0.
    """
    n_groups = labels.shape[0]
    totals, counts = np.zeros(n_groups), np.zeros(n_groups)
    for n in range(scores.shape[0]):
        totals[groups[n]] += scores[n]
        counts[groups[n]] += 1.0
    order = np.argsort(-totals / np.maximum(counts, 1.0), kind="mergesort")
    changed = False
    for place in range(n_groups):
        label = 1.0 if place < n_groups // 2 else -1.0
        changed |= labels[order[place]] != label
        labels[order[place]] = label
    return changed


@njit(cache=True, nogil=True)
def _best_stump(ranks, n_values, weighted_targets):
    """Return feature, cut and edge Σ D t h of the stump h = [rank > cut] of largest absolute edge."""
    total = weighted_targets.sum()
    best_feature, best_cut, best_edge = 0, 0, 0.0
    for f in range(ranks.shape[0]):
        below = np.zeros(n_values[f])
        for n in range(ranks.shape[1]):
            below[ranks[f, n]] += weighted_targets[n]
        running = 0.0
        for k in range(n_values[f] - 1):
            running += below[k]
            edge = total - 2.0 * running
            if abs(edge) > abs(best_edge):
                best_feature, best_cut, best_edge = f, k, edge
    return best_feature, best_cut, best_edge


@njit(cache=True, nogil=True)
def boost_bit(ranks, n_values, groups, labels, max_iter, relabel_every, features, cuts, votes, losses):
    """Boost stumps toward the labels of the groups, which move to where the classifier puts them.

    Fills ``features``, ``cuts`` and ``votes`` (signed weights α of the stumps) and the mean exponential
    loss after each round, all of shape (max_iter,); ``labels`` of shape (n_groups,) changes in place, in
    the first half of the rounds only.
    """
    n_rows = ranks.shape[1]
    scores = np.zeros(n_rows)
    weights = np.full(n_rows, 1.0 / n_rows)
    targets = labels[groups]
    for r in range(max_iter):
        feature, cut, edge = _best_stump(ranks, n_values, weights * targets)
        edge = min(max(edge, -1.0), 1.0)
        # A stump without error would get an infinite weight.
        alpha = 5.0 if abs(edge) > 0.9999 else 0.5 * np.log((1.0 + abs(edge)) / (1.0 - abs(edge)))
        features[r], cuts[r], votes[r] = feature, cut, np.sign(edge) * alpha
        for n in range(n_rows):
            scores[n] += votes[r] if ranks[feature, n] > cut else -votes[r]
        if (r + 1) % relabel_every == 0 and 2 * (r + 1) <= max_iter and relabel_groups(scores, groups, labels):
            targets = labels[groups]
        weights = np.exp(-targets * scores)
        losses[r] = weights.mean()
        weights /= weights.sum()


@njit(cache=True, nogil=True)
def vote(X, features, thresholds, votes, scores):
    """Fill scores[n, b] with Σ_r votes[b, r] · (+1 if X[n, feature] >= threshold else -1)."""
    for n in range(X.shape[0]):
        for b in range(features.shape[0]):
            total = 0.0
            for r in range(features.shape[1]):
                if X[n, features[b, r]] >= thresholds[b, r]:
                    total += votes[b, r]
                else:
                    total -= votes[b, r]
            scores[n, b] = total
