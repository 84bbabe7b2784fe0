"""K-means hashing (He, Wen and Sun 2013): near clusters get numbers that differ in few bits."""

from __future__ import annotations

import numpy as np
from numba import njit

from ..._common.labels import LabelsLike
from ..._common.validation import SamplesLike, check_integer, check_number, check_rows
from ...codes.codewords import binary_words
from ...exceptions import BundleFormatError
from ...learning.linalg import fill_by_tiles, gram, project, required_directions, squared_distances
from ..base import BaseHasher, all_or_nothing
from ..facts import Facts

_MAX_BITS_PER_SUBSPACE = 8  # 256 centers; each further bit doubles time and memory
_MAX_SWEEPS = 50  # if centers never rest; not tuned
# Centers rest when none moves by more than this share of half an edge.
_MOVE_TOL = 1e-4


class KMeansHash(BaseHasher):
    r"""Quantize product subspaces by k-means whose centers keep the distances of hypercube corners.

    Each subspace has :math:`2^b` centers, numbered by b-bit words, and minimizes

    .. math:: \frac{1}{n} \sum_x \|x - c_{i(x)}\|^2 + \lambda \sum_{i, j} \frac{n_i n_j}{n^2}
              \left(\|c_i - c_j\| - s \sqrt{h(i, j)}\right)^2

    with h the Hamming distance of the numbers and :math:`n_i` the rows nearest to center i (He, Wen and Sun
    2013). Rows go to their nearest center; then centers move one after another. The paper minimizes
    over one center by a quasi-Newton method; here each move minimizes a majorizer in closed form, which
    never raises the objective either. Centers start at the corners :math:`\pm s/2` of a hypercube along the
    leading principal directions of the subspace, s twice the mean magnitude of the projections.

    Principal directions are dealt out to the subspaces so that the products of their variances are similar.

    Parameters
    ----------
    n_bits : int, default=32
        At most the rank of the centered rows.
    bits_per_subspace : int, default=4
        b, from 1 to 8; the last subspace takes what is left.
    affinity_weight : float, default=10.0
        :math:`\lambda`; zero is k-means.
    max_iter : int, default=50
        Most rounds of assigning and moving; they end earlier when no row changes its center.
    n_jobs : int, default=None
        Number of threads; None means one, -1 means all. Codes do not depend on it.

    Attributes
    ----------
    components_ : array of shape (n_directions, n_features)
        Directions, subspace after subspace.
    intercept_ : array of shape (n_directions,)
    bits_, sizes_ : arrays of shape (n_subspaces,)
        Bits and directions of each subspace.
    centers_ : array of shape (total of 2**bits_, largest size)
        Centers of all subspaces, those of smaller ones filled up with zeros.
    n_iter_ : int
        Rounds of the subspace that took the most.
    objective_history_ : array of shape (2 * n_iter_,)
        The objective, summed over subspaces, before and after the centers moved, round after round. Moving
        never raises it; assigning rows may, because it changes the weights :math:`n_i n_j`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from starshl.hashers.baselines import KMeansHash
    >>> from starshl.evaluation import precision_at
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = KMeansHash(8).fit(X[:1000])
    >>> items, queries = hasher.encode_database(X[:1000]), hasher.encode(X[1000:])
    >>> precision_at(queries, items, y[1000:], y[:1000]) > 0.7  # right digits among the ten nearest
    True
    """

    facts = Facts(
        paper="He, Wen, Sun: K-Means Hashing, an Affinity-Preserving Quantization Method",
        year=2013,
        labels="ignored",
        cost="n x features^2 + max_iter x n x features x 2^bits_per_subspace",
        max_bits="rank",
    )

    def __init__(
        self,
        n_bits: int = 32,
        *,
        bits_per_subspace: int = 4,
        affinity_weight: float = 10.0,
        max_iter: int = 50,
        n_jobs: int | None = None,
    ) -> None:
        self.n_bits = n_bits
        self.bits_per_subspace = bits_per_subspace
        self.affinity_weight = affinity_weight
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    @all_or_nothing
    def fit(self, X: SamplesLike, y: LabelsLike = None) -> KMeansHash:
        """Learn subspaces and centers; y is ignored."""
        n_bits = check_integer(self.n_bits, "n_bits", low=1)
        block = check_integer(self.bits_per_subspace, "bits_per_subspace", low=1, high=_MAX_BITS_PER_SUBSPACE)
        weight = check_number(self.affinity_weight, "affinity_weight", low=0)
        max_iter = check_integer(self.max_iter, "max_iter", low=1)
        X = check_rows(self, X, fitting=True)
        directions, variances = required_directions(X, n_bits, "n_bits", at_most=min(X.shape))
        self.bits_ = np.array([min(block, n_bits - start) for start in range(0, n_bits, block)])
        self.sizes_ = self.bits_ + (len(directions) - n_bits) // len(self.bits_)
        components = directions[np.concatenate(deal_out(variances, self.sizes_))]
        mean = X.mean(axis=0, dtype=np.float64)
        self.components_ = components.astype(X.dtype)
        self.intercept_ = -project(components, mean[None])[:, 0].astype(X.dtype)
        rows = project(X, self.components_, self.intercept_).astype(np.float64)
        centers, histories = [], []
        for bits, part in zip(self.bits_, self._split(rows), strict=True):
            corners, history = learn_centers(part, int(bits), weight, max_iter)
            centers.append(np.pad(corners, ((0, 0), (0, self.sizes_.max() - corners.shape[1]))))
            histories.append(history)
        self.centers_ = np.vstack(centers).astype(X.dtype)
        self.objective_history_ = _add_histories(histories).ravel()
        self.n_iter_ = max(map(len, histories))
        return self

    def _check_restored(self) -> None:
        bits, sizes = self.bits_, self.sizes_
        fits = (
            np.shape(bits) == np.shape(sizes)
            and {bits.dtype.kind, sizes.dtype.kind} <= set("iu")
            and bits.min() >= 1
            and bits.max() <= _MAX_BITS_PER_SUBSPACE
            and (2**bits).sum() == len(self.centers_)
            and sizes.min() >= 1
            and sizes.sum() == len(self.components_)
        )
        if not fits:
            raise BundleFormatError.damaged("its subspaces do not fit its centers")
        super()._check_restored()

    def _scores(self, X: SamplesLike) -> np.ndarray:
        """Return, for each bit, the squared distance to the nearest center without it minus with it.

        All signs of a subspace together are the number of the nearest center; shape (n_samples, n_bits).
        """
        X = check_rows(self, X, fitting=False)
        rows = project(X, self.components_, self.intercept_)
        return fill_by_tiles(len(X), int(self.bits_.sum()), X.dtype, lambda tile: self._distance_gaps(rows[tile]))

    def _distance_gaps(self, rows: np.ndarray) -> np.ndarray:
        scores, start = [], 0
        for bits, part in zip(self.bits_, self._split(rows), strict=True):
            stop = start + 2 ** int(bits)
            distances = squared_distances(part, self.centers_[start:stop, : part.shape[1]])
            start = stop
            for is_set in (all_words(int(bits)) > 0).T:
                scores.append(distances[:, ~is_set].min(axis=1) - distances[:, is_set].min(axis=1))
        return np.stack(scores, axis=1)

    def _split(self, rows: np.ndarray) -> list[np.ndarray]:
        """Return the coordinates of each subspace."""
        parts = np.split(rows, np.cumsum(self.sizes_)[:-1], axis=1)
        return [np.ascontiguousarray(part) for part in parts]


def all_words(n_bits: int) -> np.ndarray:
    """Return all words of n_bits signs, shape (2**n_bits, n_bits); bit j of the row number is column j."""
    return binary_words(np.arange(2**n_bits), n_bits).astype(np.float64)


def deal_out(variances: np.ndarray, sizes: np.ndarray) -> list[np.ndarray]:
    """Deal directions to subspaces of given sizes, each to the one whose product of variances is smallest.

    Returns indices into ``variances``, which descend; the smallest are left over if they are too many.

    Examples
    --------
    >>> [order.tolist() for order in deal_out(np.array([16.0, 8.0, 4.0, 2.0, 1.0]), np.array([2, 2]))]
    [[0, 3], [1, 2]]
    """
    # Logarithms of at least zero, or a further direction would make a product smaller.
    logs = np.log(variances / variances[-1])
    totals = np.zeros(len(sizes))
    order: list[list[int]] = [[] for _ in sizes]
    for index in range(sizes.sum()):
        unfilled = [s for s, size in enumerate(sizes) if len(order[s]) < size]
        chosen = min(unfilled, key=lambda s: (len(order[s]) > 0, totals[s]))
        order[chosen].append(index)
        totals[chosen] += logs[index]
    return [np.array(indices) for indices in order]


def learn_centers(rows: np.ndarray, bits: int, weight: float, max_iter: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the centers of one subspace and the objective before and after each round of moves.

    Parameters
    ----------
    rows : array of shape (n_samples, n_dimensions), centered, leading principal directions first
    """
    corners = all_words(bits)
    half_edge = float(np.abs(rows[:, :bits]).mean())
    centers = np.zeros((2**bits, rows.shape[1]))
    centers[:, :bits] = half_edge * corners
    targets = 2 * half_edge * np.sqrt((bits - corners @ corners.T) / 2)
    history: list[tuple[float, float]] = []
    owners: np.ndarray | None = None
    for _ in range(max_iter):
        distances = squared_distances(rows, centers)
        previous, owners = owners, distances.argmin(axis=1)
        if previous is not None and np.array_equal(owners, previous):
            break
        shares, means = _shares_and_means(rows, owners, centers)
        before = objective(rows, owners, centers, targets, weight)
        for _ in range(_MAX_SWEEPS):
            if move_centers(centers, means, shares, targets, weight) <= _MOVE_TOL * half_edge:
                break
        history.append((before, objective(rows, owners, centers, targets, weight)))
    return centers, np.array(history)


@njit(cache=True, nogil=True)
def move_centers(
    centers: np.ndarray, means: np.ndarray, shares: np.ndarray, targets: np.ndarray, weight: float
) -> float:
    """Move each center, in place, to the minimizer of a majorizer of the objective; return the largest move.

    (|c - c_i| - t)^2 lies below |c - c_i - t u_i|^2, with u_i the unit vector from c_i to the present c, and
    touches it there. So the minimizer is a weighted mean of the rows' mean and the points c_i + t u_i. Where
    two centers coincide u_i = 0 majorizes, too.
    """
    n_centers, n_dimensions = centers.shape
    goal = np.empty(n_dimensions)
    largest = 0.0
    for j in range(n_centers):
        if shares[j] == 0.0:
            continue
        total = 1.0
        goal[:] = means[j]
        for i in range(n_centers):
            if i == j or shares[i] == 0.0:
                continue
            squared = 0.0
            for d in range(n_dimensions):
                squared += (centers[j, d] - centers[i, d]) ** 2
            stretch = targets[j, i] / np.sqrt(squared) if squared > 0.0 else 0.0
            pull = 2.0 * weight * shares[i]
            total += pull
            for d in range(n_dimensions):
                goal[d] += pull * (centers[i, d] + stretch * (centers[j, d] - centers[i, d]))
        for d in range(n_dimensions):
            moved = goal[d] / total
            largest = max(largest, abs(moved - centers[j, d]))
            centers[j, d] = moved
    return largest


def objective(rows: np.ndarray, owners: np.ndarray, centers: np.ndarray, targets: np.ndarray, weight: float) -> float:
    """Return quantization error plus weighted affinity error."""
    shares = np.bincount(owners, minlength=len(centers)) / len(rows)
    between = np.sqrt(squared_distances(centers, centers))
    np.fill_diagonal(between, 0.0)
    affinity = shares @ ((between - targets) ** 2) @ shares
    return float(np.sum((rows - centers[owners]) ** 2) / len(rows) + weight * affinity)


def _shares_and_means(rows: np.ndarray, owners: np.ndarray, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    counts = np.bincount(owners, minlength=len(centers))
    sums = gram(np.eye(len(centers))[owners], rows)
    return counts / len(rows), sums / np.maximum(counts, 1)[:, None]


def _add_histories(histories: list[np.ndarray]) -> np.ndarray:
    """Sum over subspaces; one that ended early stays at its last value."""
    longest = max(len(history) for history in histories)
    filled = [np.vstack([h, np.repeat(h[-1:, 1:], 2, axis=1).repeat(longest - len(h), axis=0)]) for h in histories]
    return np.sum(filled, axis=0)
