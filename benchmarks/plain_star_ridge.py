"""StarRidge for complete labels, written as plainly as possible: float64, every Gram matrix stored, no checks.

It shares no code with the package, so that agreement in tests/oracles means something. Given the same kernel weights,
ridge and constant, its leave-one-out scores are those of the package.
"""

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize, minimize_scalar
from scipy.spatial.distance import pdist

GAUSSIANS = (2**-1.5, 2**-1, 2**-0.5, 1.0)  # in median distances
POWERS = (4, 8, 16)


def rich_grams(A, B, median):
    """The eight kernels between two sets of rows, shape (8, len(A), len(B)); the cosine is that of the raw rows."""
    inner = A @ B.T
    d2 = np.maximum(0, (A**2).sum(1)[:, None] + (B**2).sum(1) - 2 * inner) / median**2
    if A is B:
        np.fill_diagonal(d2, 0)
    lengths = np.linalg.norm(A, axis=1)[:, None] * np.linalg.norm(B, axis=1)
    cosine = np.divide(inner, lengths, out=np.zeros_like(d2), where=lengths > 0)
    shifted = (1 + np.clip(cosine, -1, 1)) / 2
    gaussians = [np.exp(-d2 / (2 * factor**2)) for factor in GAUSSIANS]
    return np.array([*gaussians, 1 / (1 + d2 / 0.25), *(shifted**power for power in POWERS)])


def leave_one_out(M, ridge, Y):
    """Return dual coefficients and the scores of each row from a fit to all others; M includes the constant."""
    factor = cho_factor(M + np.diag(np.broadcast_to(ridge, len(M))))
    A = cho_solve(factor, np.eye(len(M)))
    coefficients = A @ Y
    return A, coefficients, Y - coefficients / np.diag(A)[:, None]


def softmax(scores):
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def log_loss(scores, Y):
    return -np.mean(np.log(np.maximum((softmax(scores) * Y).sum(axis=1), 1e-300)))


def search_loss(logs, grams, Y, penalty=1e-5):
    """Return the leave-one-out log loss and its gradient by log weights, log ridge and log temperature."""
    theta, ridge, temperature = np.exp(logs[:-2]), np.exp(logs[-2]), np.exp(logs[-1])
    A, alpha, h = leave_one_out(np.tensordot(theta, grams, 1) + 1, ridge, Y)
    a, residual = np.diag(A), (softmax(temperature * h) - Y) / len(Y)
    g = temperature * residual
    r = (g * alpha).sum(axis=1) / a**2
    slope = -((A @ (-g / a[:, None])) @ alpha.T + (A * r) @ A)
    by_theta = np.array([np.vdot(slope, K) for K in grams])
    gradient = np.concatenate([by_theta * theta, [np.trace(slope) * ridge, (residual * h).sum() * temperature]])
    gradient[:-2] += 2 * penalty * logs[:-2]
    return log_loss(temperature * h, Y) + penalty * (logs[:-2] ** 2).sum(), gradient


class PlainStarRidge:
    def __init__(self, *, n_search=700, max_steps=15, seed=0):
        self.n_search, self.max_steps, self.rng = n_search, max_steps, np.random.default_rng(seed)

    def fit(self, X, y):
        self.X, self.y = np.asarray(X, dtype=np.float64), y
        self.Y = np.eye(y.max() + 1)[y]
        some = self.rng.permutation(len(X))[: self.n_search]
        self.median = np.median(pdist(self.X[some]))
        start = np.log([*[1 / 8] * 8, 0.1, 5.0])
        grams = rich_grams(self.X[some], self.X[some], self.median)
        found = minimize(
            search_loss, start, (grams, self.Y[some]), jac=True, method="L-BFGS-B", options={"maxiter": self.max_steps}
        )
        theta = np.exp(found.x[:-2])
        return self.solve(np.where(theta < 0.005 * theta.sum(), 0, theta), np.exp(found.x[-2]))

    def solve(self, theta, ridge, constant=1.0):
        """Fit all rows with kernel weights, ridge and constant, all of which are divided by the sum of the weights."""
        total = theta.sum()
        self.theta, self.ridge, self.constant = theta / total, ridge / total, constant / total
        _, self.alpha, self.loo_scores = leave_one_out(self.mixture(self.X), self.ridge, self.Y)
        fitted = minimize_scalar(lambda t: log_loss(np.exp(t) * self.loo_scores, self.Y), (np.log(5), np.log(10)))
        self.temperature = np.exp(fitted.x)
        return self

    def mixture(self, A):
        return np.tensordot(self.theta, rich_grams(A, self.X, self.median), 1) + self.constant

    def class_scores(self, A):
        return self.mixture(np.asarray(A, dtype=np.float64)) @ self.alpha

    def posterior(self, class_scores, share_of_temperature=1.0):
        """Class probabilities; times the codewords, they are the expected codeword: the bit scores of the head."""
        return softmax(share_of_temperature * self.temperature * class_scores)
