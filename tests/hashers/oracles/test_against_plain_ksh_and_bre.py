"""KSH and BRE beside plain transcriptions of their papers: dense matrices, double precision, brute force.

The transcriptions share no code with the package; random draws are made in the order the papers describe.
"""

import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.special import expit
from sklearn.datasets import load_digits

from starshl.hashers.baselines import BRE, KSH

X, Y = load_digits(return_X_y=True)


def plain_ksh(X, y, anchors, n_bits, max_iter, tol):
    """Liu et al. 2012: greedy bits, each a relaxed eigenvector refined by Nesterov's method; returns codes (n, B)."""
    distances = ((X[:, None] - anchors) ** 2).sum(axis=2)
    kernel = np.exp(-distances / (2 * distances.mean()))
    K = kernel - kernel.mean(axis=0)
    n_rows, n_anchors = K.shape
    R = n_bits * np.where(y[:, None] == y, 1.0, -1.0)
    scatter = K.T @ K
    scatter += 1e-6 * np.trace(scatter) / n_anchors * np.eye(n_anchors)
    codes = []
    for _ in range(n_bits):
        start = eigh(K.T @ R @ K, scatter)[1][:, -1] * np.sqrt(n_rows)
        candidates = [np.where(K @ a >= 0, 1.0, -1.0) for a in (start, nesterov(K, R, start, max_iter, tol))]
        code = max(candidates, key=lambda h: h @ R @ h)
        R = R - np.outer(code, code)
        codes.append(code)
    return np.array(codes).T


def nesterov(K, R, start, max_iter, tol):
    """Descend on g(a) = -phi' R phi, phi = 2 expit(Ka) - 1; the step only ever shrinks, as published."""

    def phi(a):
        return 2 * expit(K @ a) - 1

    def g(a):
        return -phi(a) @ R @ phi(a)

    before, now, delta_before, delta, inverse_step = start, start, 0.0, 1.0, 1.0
    for _ in range(max_iter):
        ahead = now + (delta_before - 1) / delta * (now - before)
        slope = -K.T @ ((R @ phi(ahead)) * (1 - phi(ahead) ** 2))
        while g(ahead - slope / inverse_step) > g(ahead) - slope @ slope / (2 * inverse_step):
            inverse_step *= 2
        before, now = now, ahead - slope / inverse_step
        if abs(g(now) - g(before)) <= tol * len(K):
            break
        delta_before, delta = delta, (1 + np.sqrt(1 + 4 * delta**2)) / 2
    return now


@pytest.mark.parametrize("seed", range(3))
def test_ksh_fits_the_similarities_as_well_as_its_paper(seed):
    rows = np.random.default_rng(seed).permutation(len(X))[:200]
    rows, y = X[rows], Y[rows]
    plain = plain_ksh(rows, y, rows[:40], 8, 500, 1e-3)
    hasher = KSH(8, anchors=rows[:40], n_labeled=None, tol=1e-3).fit(rows, y)
    codes = hasher.transform(rows).astype(float)
    S = np.where(y[:, None] == y, 1.0, -1.0)
    expected, found = (np.mean((h @ h.T / 8 - S) ** 2) for h in (plain, codes))
    # Both climb to the same place or nearly so: longer steps may end a bit in another local optimum.
    agreement = np.abs((plain * codes).mean(axis=0))
    assert agreement[0] > 0.98
    assert agreement.mean() > 0.9
    assert found < 1.03 * expected
    assert np.isclose(hasher.objective_history_[-1], found)


def plain_bre(K, first, second, n_bits, n_support, n_sweeps, rng):
    """Kulis and Darrell 2009: move one weight at a time to the best of all intervals; returns codes and objectives."""
    targets = (K[first, first] + K[second, second]) / 2 - K[first, second]
    targets = targets / targets.max()
    subsets = [rng.permutation(len(K))[:n_support] for _ in range(n_bits)]
    weights = 0.001 * rng.standard_normal((n_bits, n_support))
    codes = np.array([w @ K[s] >= 0 for w, s in zip(weights, subsets, strict=True)])

    def objective(codes):
        return np.sum((targets - np.mean(codes[:, first] != codes[:, second], axis=0)) ** 2)

    def with_bit(b, w):
        changed = codes.copy()
        changed[b] = w @ K[subsets[b]] >= 0
        return changed

    objectives = [objective(codes)]
    for _ in range(n_sweeps):
        for b, j in enumerate(rng.randint(0, n_support, n_bits)):
            column = K[subsets[b][j]]
            cuts = np.sort(weights[b, j] - weights[b] @ K[subsets[b]] / column)
            trials = []
            for value in (cuts[0] - 1, *(cuts[1:] + cuts[:-1]) / 2, cuts[-1] + 1):
                w = weights[b].copy()
                w[j] = value
                trials.append((objective(with_bit(b, w)), w))
            best, w = min(trials, key=lambda trial: trial[0])
            if best < objective(codes) - 1e-12:
                weights[b], codes = w, with_bit(b, w)
        objectives.append(objective(codes))
    return codes.T, np.array(objectives)


@pytest.mark.parametrize("seed", range(3))
def test_bre_takes_the_steps_of_its_paper(seed):
    rows = X[100 * seed : 100 * seed + 40]
    centered = rows - rows.mean(axis=0)
    unit = centered / np.linalg.norm(centered, axis=1, keepdims=True)
    rng = np.random.RandomState(seed)
    rng.choice(np.arange(40), 40, replace=False)  # all rows train, whatever their order
    first = np.repeat(np.arange(40), 6)
    second = rng.randint(0, 39, len(first))
    second = second + (second >= first)
    codes, objectives = plain_bre(unit @ unit.T, first, second, 4, 10, 8, rng)
    hasher = BRE(4, n_labeled=40, n_support=10, pair_fraction=0.15, max_iter=8, tol=0.0, random_state=seed).fit(rows)
    assert np.allclose(hasher.objective_history_, objectives)
    assert np.array_equal(hasher.transform(rows) > 0, codes)
