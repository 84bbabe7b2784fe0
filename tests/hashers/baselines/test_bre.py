import numpy as np
import pytest
from sklearn.datasets import load_digits, make_blobs

from starshl.hashers.baselines import BRE
from starshl.hashers.baselines._bre_loops import best_weight, flip, flip_costs, objective, sweep
from starshl.hashers.baselines.bre import kernel_distances, pair_graph, random_partners

DIGITS, DIGIT_LABELS = (array[:300] for array in load_digits(return_X_y=True))


class Problem:
    """Twenty rows, four bits, random pairs and targets, with everything the loops need."""

    def __init__(self, seed, n_rows=20, n_bits=4, n_support=5):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n_rows, 3))
        self.K = X @ X.T
        self.n_bits = n_bits
        self.joined = random_partners(n_rows, 0.3, np.random.RandomState(seed))
        self.targets = rng.uniform(size=self.joined.shape[1])
        self.graph = pair_graph(self.joined, self.targets, n_rows)
        self.subsets = np.stack([rng.permutation(n_rows)[:n_support] for _ in range(n_bits)])
        self.weights = rng.standard_normal((n_bits, n_support))
        self.scores = np.stack([w @ self.K[s] for w, s in zip(self.weights, self.subsets, strict=True)])
        self.codes = np.where(self.scores >= 0, 1, -1).astype(np.int8)
        self.counts = self.count(self.codes)

    def count(self, codes):
        heads = np.repeat(np.arange(len(self.K)), np.diff(self.graph.starts))
        return (codes[:, heads] != codes[:, self.graph.partners]).sum(axis=0, dtype=np.int32)

    def brute_force(self, codes):
        first, second = self.joined
        distances = np.mean(codes[:, first] != codes[:, second], axis=0)
        return np.sum((self.targets - distances) ** 2)

    def costs(self, bit):
        starts, partners, _, targets = self.graph
        return flip_costs(self.codes[bit], starts, partners, targets, self.counts, self.n_bits)


def test_objective_agrees_with_brute_force():
    problem = Problem(0)
    found = objective(problem.graph.targets, problem.counts, problem.n_bits)
    assert np.isclose(found, problem.brute_force(problem.codes))


@pytest.mark.parametrize("seed", range(5))
def test_flips_change_the_objective_as_brute_force_says(seed):
    problem = Problem(seed)
    for bit in range(problem.n_bits):
        costs, codes = problem.costs(bit), problem.codes.copy()
        for row in np.random.default_rng(seed).integers(0, 20, 30):
            before = problem.brute_force(codes)
            change = flip(row, codes[bit], problem.graph.starts, problem.graph.partners, costs)
            assert np.isclose(problem.brute_force(codes) - before, change, atol=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_best_weight_is_no_worse_than_any_other_weight(seed):
    problem = Problem(seed)
    bit, j = seed % 4, seed % 5
    column, weight = problem.K[problem.subsets[bit, j]], problem.weights[bit, j]

    def value(candidate):
        codes = problem.codes.copy()
        codes[bit] = np.where(problem.scores[bit] + (candidate - weight) * column >= 0, 1, -1)
        return problem.brute_force(codes)

    starts, partners, _, _ = problem.graph
    found = best_weight(weight, column, problem.scores[bit], starts, partners, problem.costs(bit))
    thresholds = np.sort(weight - problem.scores[bit] / column)
    exhaustive = [thresholds[0] - 1, *(thresholds[1:] + thresholds[:-1]) / 2, thresholds[-1] + 1]
    assert np.isclose(value(found), min(map(value, exhaustive)), atol=1e-9)


def test_rows_at_one_threshold_flip_together():
    # Rows 0 and 1 are equal but shall differ: flipping just one would reach the target, and is impossible.
    graph = pair_graph(np.array([[0, 0], [1, 2]]), np.array([1.0, 0.0]), 3)
    column, scores = np.array([1.0, 1.0, 2.0]), np.array([0.5, 0.5, -1.0])
    codes = np.array([[1, 1, -1]], np.int8)
    counts = np.array([0, 1, 0, 1], np.int32)
    costs = flip_costs(codes[0], graph.starts, graph.partners, graph.targets, counts, 1)
    weight = best_weight(0.0, column, scores, graph.starts, graph.partners, costs)
    moved = scores + weight * column
    assert len({*(moved >= 0)}) == 1


def test_rows_without_kernel_value_never_flip():
    graph = pair_graph(np.array([[0], [1]]), np.array([1.0]), 2)
    costs = np.full(2, -1.0)
    assert best_weight(0.3, np.zeros(2), np.ones(2), graph.starts, graph.partners, costs) == 0.3
    weight = best_weight(0.3, np.array([1.0, 0.0]), np.ones(2), graph.starts, graph.partners, costs)
    assert 1 + (weight - 0.3) < 0


@pytest.mark.parametrize("seed", range(5))
def test_sweeps_keep_books_and_never_raise_the_objective(seed):
    problem = Problem(seed, n_rows=40)
    value = problem.brute_force(problem.codes)
    for round_ in range(6):
        chosen = np.random.default_rng(round_).integers(0, 5, problem.n_bits)
        history = sweep(
            problem.K,
            problem.subsets,
            problem.weights,
            chosen,
            problem.scores,
            problem.codes,
            *problem.graph,
            problem.counts,
        )
        assert (np.diff([value, *history]) <= 1e-12).all()
        value = history[-1]
        assert np.isclose(value, problem.brute_force(problem.codes), atol=1e-9)
        assert np.array_equal(problem.counts, problem.count(problem.codes))
        expected = [w @ problem.K[s] for w, s in zip(problem.weights, problem.subsets, strict=True)]
        assert np.allclose(problem.scores, expected)
        assert np.array_equal(problem.codes, np.where(problem.scores >= 0, 1, -1))


def test_mirrors_point_at_the_other_listing_of_each_pair():
    starts, partners, mirrors, targets = Problem(3).graph
    heads = np.repeat(np.arange(20), np.diff(starts))
    assert np.array_equal(mirrors[mirrors], np.arange(len(mirrors)))
    assert np.array_equal(heads[mirrors], partners)
    assert np.array_equal(targets[mirrors], targets)


def test_target_distances_are_half_squared_distances_up_to_one():
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    found = kernel_distances(rows @ rows.T, np.array([[0, 0, 1], [1, 2, 2]]))
    assert np.allclose(found, [0.5, 1.0, 0.5])


def test_random_partners_are_others_in_the_wanted_number():
    first, second = random_partners(30, 0.1, np.random.RandomState(0))
    assert np.bincount(first).tolist() == [3] * 30
    assert not (first == second).any()
    assert random_partners(2, 0.05, np.random.RandomState(0)).tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize("variant", ["unsupervised", "supervised"])
def test_history_never_rises_and_ends_below_its_start(variant):
    hasher = BRE(8, variant=variant, random_state=0).fit(DIGITS, DIGIT_LABELS)
    # Each sweep adds up the objective anew, so equal values may differ by rounding.
    assert (np.diff(hasher.objective_history_) <= 1e-12 * hasher.objective_history_[0]).all()
    assert hasher.objective_history_[-1] < 0.95 * hasher.objective_history_[0]
    assert len(hasher.objective_history_) == hasher.n_iter_ + 1


def test_codes_do_not_depend_on_the_scale_or_origin_of_the_rows():
    codes = BRE(8, random_state=0).fit_transform(DIGITS)
    assert np.array_equal(BRE(8, random_state=0).fit_transform(DIGITS * 4.0 + 8.0), codes)


def test_labels_pull_classes_apart():
    X, y = make_blobs(150, 6, centers=3, cluster_std=2.0, random_state=0)
    codes = BRE(12, variant="supervised", random_state=0).fit(X, y).transform(X).astype(int)
    distances, same = (12 - codes @ codes.T) / 2, y[:, None] == y
    # Three classes can at best differ in two thirds of the bits.
    assert distances[same].mean() < 2 < 4 < distances[~same].mean()


def test_pairs_stand_in_for_labels():
    first, second = np.triu_indices(60, 1)
    pairs = (first, second, np.where(DIGIT_LABELS[first] == DIGIT_LABELS[second], 1, -1))
    hasher = BRE(6, variant="supervised", random_state=0).fit(DIGITS, pairs=pairs)
    codes = hasher.transform(DIGITS[:60]).astype(int)
    distances, same = 6 - codes @ codes.T, DIGIT_LABELS[:60, None] == DIGIT_LABELS[:60]
    assert distances[same].mean() < distances[~same].mean()


def test_pairs_are_refused_where_they_would_be_ignored():
    with pytest.raises(ValueError, match="Set variant='supervised'"):
        BRE(4).fit(DIGITS, pairs=([0], [1], [1]))


def test_only_labeled_rows_teach():
    y = np.where(np.arange(300) < 150, DIGIT_LABELS, -1)
    poisoned = DIGITS.copy()
    poisoned[150:] = poisoned[150:][::-1]  # the mean stays, unlabeled rows trade places
    first, second = (BRE(4, variant="supervised", random_state=0).fit(X, y).components_ for X in (DIGITS, poisoned))
    assert np.allclose(first, second)


@pytest.mark.parametrize(
    ("y", "parameters", "message"),
    [
        (None, {"variant": "supervised"}, "BRE requires y"),
        (np.full(300, -1), {"variant": "supervised"}, "300 of 300 rows unlabeled"),
        (None, {"n_labeled": 1}, "n_labeled is 1"),
        (None, {"n_support": 0}, "n_support is 0"),
        (None, {"pair_fraction": 0.0}, "pair_fraction is 0.0"),
        (None, {"max_iter": 0}, "max_iter is 0"),
    ],
)
def test_bad_input_is_refused(y, parameters, message):
    with pytest.raises(ValueError, match=message):
        BRE(4, **parameters).fit(DIGITS, y)


def test_all_rows_are_learned_from_if_asked_for():
    y = DIGIT_LABELS.copy()
    y[:50] = -1
    assert BRE(2, variant="supervised", n_labeled=100, max_iter=1).fit(DIGITS, y).n_labeled_ == 100
    assert BRE(2, variant="supervised", n_labeled=None, max_iter=1).fit(DIGITS, y).n_labeled_ == len(y) - 50
    assert BRE(2, n_labeled=None, max_iter=1).fit(DIGITS).n_labeled_ == 0
