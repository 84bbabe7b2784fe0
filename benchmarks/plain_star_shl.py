"""*SHL written as plainly as possible: float64, every Gram matrix stored, scikit-learn's SVC for each bit.

It shares no code with the package, so that agreement in tests/oracles and ratios in speed.py mean something. It has no
warm starts and no checks.
"""

import numpy as np
from sklearn.svm import SVC


def paper_grams(A, B):
    """The eleven kernels of the paper between two sets of rows, shape (11, len(A), len(B))."""
    inner = A @ B.T
    a2, b2 = (A**2).sum(1)[:, None], (B**2).sum(1)[None, :]
    d2 = np.maximum(0, a2 + b2 - 2 * inner)
    if A is B:
        np.fill_diagonal(d2, 0)
    linear = inner / np.sqrt(a2 * b2)
    polynomial = (inner + 1) ** 2 / ((a2 + 1) * (b2 + 1))
    sigmas = [2.0**k for k in (-7, -5, -3, -1, 0, 1, 3, 5, 7)]
    return np.array([linear, polynomial, *(np.exp(-d2 / (2 * s * s)) for s in sigmas)])


class PlainStarSHL:
    def __init__(
        self, grams, assignments, labeled, codewords, weights, *, C, p=2.0, max_iter=200, tol=1e-6, svm_tol=1e-8
    ):
        self.grams, self.a, self.labeled = grams, assignments.copy(), labeled
        self.codewords, self.theta = codewords.astype(float).copy(), weights.copy()
        self.C, self.p, self.max_iter, self.tol, self.svm_tol = C, p, max_iter, tol, svm_tol
        n_bits, n = codewords.shape[1], len(assignments)
        self.eta, self.beta, self.F = np.zeros((n_bits, n)), np.zeros(n_bits), np.zeros((n, n_bits))
        self.used = weights.copy()

    def hinge_to_codewords(self, F):
        return np.maximum(0, 1 - F[:, None, :] * self.codewords[None, :, :]).sum(2)

    def refresh_assignments(self):
        free = np.flatnonzero(~self.labeled)
        distances = self.hinge_to_codewords(self.F[free])
        here = distances[np.arange(len(free)), self.a[free]]
        moves = distances.min(1) < here - 1e-12
        self.a[free[moves]] = distances.argmin(1)[moves]
        return int(moves.sum())

    def solve_bit(self, b, rows, update_weights=True):
        y = self.codewords[self.a[rows], b]
        if np.all(y == y[0]):
            self.eta[b], self.beta[b], self.F[:, b], self.used[b] = 0, y[0], y[0], self.theta[b]
            return
        K = np.tensordot(self.theta[b], self.grams, 1)
        if len(rows) < len(K):
            K_rows = K[np.ix_(rows, rows)]
        else:
            K_rows = K
        svc = SVC(kernel="precomputed", C=self.C, tol=self.svm_tol, cache_size=1000).fit(K_rows, y)
        self.eta[b] = 0
        self.eta[b, rows[svc.support_]] = svc.dual_coef_[0]
        self.beta[b] = svc.intercept_[0]
        self.F[:, b] = K @ self.eta[b] + self.beta[b]
        self.used[b] = self.theta[b]
        # Coefficients sum to zero, so centering K eta only removes rounding errors.
        products = [G @ self.eta[b] for G in self.grams]
        q = np.array([max(0.0, self.eta[b] @ (product - product.mean())) for product in products])
        norms = self.theta[b] ** 2 * q
        if update_weights and norms.sum() > 0:
            self.theta[b] = norms ** (1 / (self.p + 1)) / (norms ** (self.p / (self.p + 1))).sum() ** (1 / self.p)

    def update_codewords(self, b, rows):
        n_changed = 0
        for g in range(len(self.codewords)):
            f = self.F[rows[self.a[rows] == g], b]
            plus, minus = np.maximum(0, 1 - f).sum(), np.maximum(0, 1 + f).sum()
            new = 1 if plus < minus else -1 if minus < plus else self.codewords[g, b]
            n_changed += int(new != self.codewords[g, b])
            self.codewords[g, b] = new
        return n_changed

    def fit(self, late):
        n_bits = self.codewords.shape[1]
        everyone = np.arange(len(self.a))
        rows = np.flatnonzero(self.labeled) if late else everyone
        for b in range(n_bits):
            self.solve_bit(b, rows)
            self.update_codewords(b, rows)
        if late:
            self.refresh_assignments()
        self.n_iter = 0
        for _ in range(self.max_iter):
            self.n_iter += 1
            before, n_changes = self.theta.copy(), 0
            for b in range(n_bits):
                n_changes += self.refresh_assignments()
                self.solve_bit(b, everyone)
                n_changes += self.update_codewords(b, everyone)
            if n_changes == 0 and np.abs(self.theta - before).max() <= self.tol:
                break
        for b in range(n_bits):
            self.solve_bit(b, everyone, update_weights=False)
        return self

    def decision_function(self, grams):
        return (
            np.stack([np.tensordot(t, grams, 1) @ e for t, e in zip(self.theta, self.eta, strict=True)], 1) + self.beta
        )

    def objective(self):
        own = self.codewords[self.a]
        norms = [e @ np.tensordot(t, self.grams, 1) @ e for t, e in zip(self.theta, self.eta, strict=True)]
        return self.C * np.maximum(0, 1 - own * self.F).sum() + 0.5 * sum(norms)
