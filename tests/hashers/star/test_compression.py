"""A compressed StarSHL is a StarSHL with fewer support rows, near to the one it came from."""

import pickle

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

import starshl
from starshl import StarSHL
from starshl.evaluation import precision_at
from starshl.hashers.star import compression
from starshl.hashers.star.compression import batch_gradients, choose_columns
from starshl.learning.kernels import Gaussian, GraphGaussian, SpectrumKernel

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 3, 60)
WORDS = ["".join(RNG.choice(list(("abcx", "cdex", "efax")[label]), 7)) for label in LABELS]


class FittedAndCompressed(StarSHL):
    """A hasher that compresses itself as soon as it is fitted, for checks that only know ``fit``."""

    def fit(self, X, y=None, sample_weight=None):
        super().fit(X, y, sample_weight)
        if len(self.support_) > 1:
            vars(self).update(vars(self.compress(len(self.support_) // 2)))
        return self

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags


def expected_failures(estimator):
    reason = "a row given twice makes two support rows, a row of weight 2 one"
    per_bit = "decision_function returns one score per bit, not per class"
    return {
        "check_sample_weight_equivalence_on_dense_data": reason,
        # scikit-learn 1.6 does not ask the tags before it takes sparse rows, which cannot be compressed.
        "check_sample_weight_equivalence_on_sparse_data": reason,
        "check_classifiers_train": per_bit,
        "check_classifiers_classes": per_bit,
    }


@parametrize_with_checks([FittedAndCompressed(4, random_state=0)], expected_failed_checks=expected_failures)
def test_a_compressed_hasher_obeys_scikit_learn(estimator, check, monkeypatch):
    monkeypatch.setattr(compression, "MIN_EPOCHS", 2)
    monkeypatch.setattr(compression, "MIN_STEPS", 5)  # the checks fit a hundred times and ask for no precision
    check(estimator)


@pytest.fixture
def few_steps(monkeypatch):
    """Let the descent take few steps, for tests that do not ask how near it comes."""
    monkeypatch.setattr(compression, "MIN_STEPS", 40)
    monkeypatch.setattr(compression, "MIN_EPOCHS", 1)


@pytest.fixture(scope="module")
def rows(digits):
    X, y = digits
    return X[:600], y[:600], X[900:], y[900:]


@pytest.fixture(scope="module")
def full(rows):
    return StarSHL(16, random_state=0).fit(*rows[:2])


@pytest.fixture(scope="module")
def small(full):
    return full.compress(80)


def shared_letters(x, z):
    return float(len(set(x) & set(z)))


def laplace(A, B):
    return np.exp(-np.abs(A[:, None] - B[None]).sum(axis=2) / 8)


def precision(hasher, rows):
    X, y, X_new, y_new = rows
    return precision_at(hasher.encode(X_new), hasher.encode(X), y_new, y)


def test_a_tenth_of_the_support_loses_hardly_any_precision(full, rows):
    tenth = full.compress()
    assert len(tenth.support_) == len(full.support_) // 10
    assert precision(full, rows) - precision(tenth, rows) < 0.02
    assert full.score(*rows[2:]) - tenth.score(*rows[2:]) < 0.02


def test_a_quarter_of_the_support_loses_less(full, rows):
    quarter = full.compress(len(full.support_) // 4)
    assert precision(full, rows) - precision(quarter, rows) < 0.01


def test_rows_that_move_do_better_than_the_best_rows_that_cannot(rows):
    moved = StarSHL(8, kernels=[Gaussian(1.0)], random_state=0).fit(*rows[:2])
    fixed = StarSHL(8, kernels=[lambda A, B: Gaussian(1.0)(A, B)], random_state=0).fit(*rows[:2])
    assert len(moved.support_) == len(fixed.support_)
    wrong = [np.mean(h.compress(40).transform(rows[2]) != h.transform(rows[2])) for h in (moved, fixed)]
    assert wrong[0] < 0.8 * wrong[1]


@pytest.mark.filterwarnings("ignore:With .* support rows:UserWarning")
@pytest.mark.usefixtures("few_steps")
@pytest.mark.parametrize("n_support", [1, 7])
def test_there_are_as_many_support_rows_as_asked_for(full, rows, n_support):
    found = full.compress(n_support)
    assert found.support_samples_.shape == (n_support, 64)
    assert found.dual_coef_.shape == (16, n_support)
    assert np.isfinite(found.decision_function(rows[2])).all()


def test_everything_learned_fits_together(full, small, rows):
    X, _, X_new, y_new = rows
    assert type(small) is StarSHL
    lost = {name for name in vars(full) if name.startswith("novelty_")}  # needs the training rows
    assert vars(small).keys() == vars(full).keys() - lost | {"agreement_"}
    assert small.get_params() == full.get_params()
    assert clone(small).get_params() == full.get_params()
    for name in ("classes_", "codewords_", "codeword_counts_", "objective_history_"):
        assert np.array_equal(getattr(small, name), getattr(full, name))
    assert small.kernel_weights_.shape == (16, len(small.kernels_))
    assert small.support_.tolist() == list(range(80))
    assert np.array_equal(small.transduction_, small.predict(small.support_samples_))
    distances = small.codeword_distances(small.support_samples_, "hinge")
    assert np.array_equal(small.assignments_, distances.argmin(axis=1))
    scores = small.decision_function(X_new)
    assert np.array_equal(small.transform(X_new), np.where(scores >= 0, 1, -1))
    assert np.array_equal(small.encode(X_new).to_signs(), small.transform(X_new))
    assert small.score(X_new, y_new) == np.mean(small.predict(X_new) == y_new)
    assert small.get_feature_names_out().tolist() == full.get_feature_names_out().tolist()
    K = small.kernels_[0](small.support_samples_, small.support_samples_)
    assert small.norms_**2 == pytest.approx(np.diag(small.dual_coef_ @ K @ small.dual_coef_.T))
    assert np.isfinite(small.generalization_bound(X, rows[1])["paper"])


def test_the_share_of_equal_code_bits_is_told_and_a_low_one_is_warned_of(full, small, rows, tmp_path):
    assert 0.95 < small.agreement_ <= 1.0
    small.save(tmp_path / "small.starshl")
    assert starshl.load(tmp_path / "small.starshl").agreement_ == small.agreement_
    X, y, X_new, _ = rows
    few = StarSHL(16, random_state=0).fit(X[:60], y[:60])
    with pytest.warns(UserWarning, match="code bits stay"):
        tiny = few.compress(5)
    assert tiny.agreement_ < 0.95
    assert np.mean(tiny.transform(X_new) == few.transform(X_new)) < 0.9


def test_the_share_of_equal_code_bits_of_a_small_model_is_near_that_of_new_rows(rows):
    X, y, X_new, _ = rows
    hasher = StarSHL(16, random_state=0).fit(X[:100], y[:100])
    small = hasher.compress(9)
    # Measured around rows that the compression has seen, it would be .996, and new rows agree in .940.
    assert abs(small.agreement_ - np.mean(small.transform(X_new) == hasher.transform(X_new))) < 0.03


@pytest.mark.filterwarnings("ignore:With 1 of 2 support rows:UserWarning")
@pytest.mark.usefixtures("few_steps")
@pytest.mark.parametrize("kernels", ["scaled", shared_letters])
def test_two_support_rows_become_one(kernels):
    samples = ["a", "b"] if kernels is shared_letters else np.array([[0.0], [1.0]])
    small = StarSHL(2, kernels=kernels, random_state=0).fit(samples, [0, 1]).compress(1)
    assert len(small.support_) == 1
    assert 0.0 <= small.agreement_ <= 1.0


@pytest.mark.filterwarnings("ignore:With .* support rows:UserWarning")
@pytest.mark.usefixtures("few_steps")
def test_the_hasher_it_came_from_stays_as_it_was(rows, tmp_path):
    hasher = StarSHL(4, random_state=np.random.RandomState(3)).fit(rows[0][:100], rows[1][:100])
    before = pickle.dumps(hasher)
    found = hasher.compress(9)
    for value in vars(found).values():
        if isinstance(value, np.ndarray):
            value[...] = value[::-1].copy()
    assert pickle.dumps(hasher) == before


@pytest.mark.filterwarnings("ignore:With .* support rows:UserWarning")
@pytest.mark.usefixtures("few_steps")
def test_the_same_seed_gives_the_same_bytes_whatever_the_threads(full, rows):
    one, other = (full.compress(80, random_state=seed) for seed in (0, 1))
    with parallel_config("threading", n_jobs=4), threadpool_limits(4):
        again = full.compress(80, random_state=0)
    assert again.decision_function(rows[2]).tobytes() == one.decision_function(rows[2]).tobytes()
    assert again.support_samples_.tobytes() == one.support_samples_.tobytes()
    assert not np.array_equal(other.support_samples_, one.support_samples_)


@pytest.mark.parametrize("shift_and_scale", [(0.0, 1e-3), (1e4, 1.0)])
def test_units_and_origin_of_the_features_do_not_matter(shift_and_scale, rows):
    shift, scale = shift_and_scale
    X, y, X_new, y_new = rows
    X, y = X[:400], y[:400]
    hasher = StarSHL(8, kernels=[Gaussian(scale)], random_state=0).fit(shift + scale * X, y)
    small = hasher.compress(60)
    assert small.score(shift + scale * X_new, y_new) > hasher.score(shift + scale * X_new, y_new) - 0.03


@pytest.mark.filterwarnings("ignore:With .* support rows:UserWarning")
@pytest.mark.usefixtures("few_steps")
def test_float32_rows_stay_float32(rows, tmp_path):
    X, y, X_new, _ = rows
    hasher = StarSHL(6, random_state=0).fit(X[:200].astype(np.float32), y[:200])
    small = hasher.compress(20, X=X[200:300])  # float64
    assert small.support_samples_.dtype == np.float32
    assert small.decision_function(X_new.astype(np.float32)).dtype == np.float32


def test_a_saved_compressed_hasher_comes_back_the_same(full, small, rows, tmp_path):
    small.save(tmp_path / "small.star")
    full.save(tmp_path / "full.star")
    loaded = starshl.load(tmp_path / "small.star")
    assert loaded.get_params() == small.get_params()
    assert np.array_equal(loaded.decision_function(rows[2]), small.decision_function(rows[2]))
    assert np.array_equal(pickle.loads(pickle.dumps(small)).transform(rows[2]), small.transform(rows[2]))
    assert (tmp_path / "small.star").stat().st_size < 0.3 * (tmp_path / "full.star").stat().st_size


def test_a_compressed_hasher_can_be_compressed_again(small, rows):
    smaller = small.compress(50)
    assert len(smaller.support_) == 50
    assert np.mean(smaller.transform(rows[2]) == small.transform(rows[2])) > 0.9


def test_further_rows_stand_in_for_a_support_that_is_too_small(digits, rows, few_labels):
    X, X_new, y_new = digits[0][:900], *rows[2:]
    few = few_labels(0, 5)[: len(X)]
    hasher = StarSHL(16, kernels=[GraphGaussian()], unlabeled_weight=0.0, random_state=0).fit(X, few)
    n_support = len(hasher.support_) - 1
    assert n_support < 50
    with_rows, without = hasher.compress(n_support, X=X), hasher.compress(n_support)
    assert with_rows.score(X_new, y_new) > hasher.score(X_new, y_new) - 0.1
    assert with_rows.score(X_new, y_new) > without.score(X_new, y_new) + 0.1


@pytest.mark.parametrize("kernels", [[SpectrumKernel(2)], [SpectrumKernel(1), SpectrumKernel(3)], shared_letters])
def test_strings_keep_some_of_their_own(kernels, tmp_path):
    hasher = StarSHL(8, kernels=kernels, random_state=0).fit(WORDS, LABELS)
    small = hasher.compress(8, X=WORDS)
    assert set(small.support_samples_) <= set(hasher.support_samples_)
    assert len(small.support_) <= 8 < len(hasher.support_)
    assert small.score(WORDS, LABELS) > hasher.score(WORDS, LABELS) - 0.1
    small.save(tmp_path / "small.star")
    loaded = starshl.load(tmp_path / "small.star", kernels=kernels if callable(kernels) else None)
    assert np.array_equal(loaded.decision_function(WORDS), small.decision_function(WORDS))


def test_functions_on_rows_keep_rows_of_the_support(rows, tmp_path):
    X, y, X_new, y_new = rows
    hasher = StarSHL(8, kernels=[laplace, Gaussian(1.0)], random_state=0).fit(X[:300], y[:300])
    small = hasher.compress(60)
    assert all(row in hasher.support_samples_.tolist() for row in small.support_samples_.tolist())
    assert small.score(X_new, y_new) > hasher.score(X_new, y_new) - 0.05
    small.save(tmp_path / "small.star")
    loaded = starshl.load(tmp_path / "small.star", kernels=[laplace, Gaussian(1.0)])
    assert np.array_equal(loaded.decision_function(X_new), small.decision_function(X_new))


def test_equal_samples_are_chosen_once():
    hasher = StarSHL(4, kernels=shared_letters, random_state=0).fit(
        ["ab", "ab", "cd", "cd", "be", "ed"], [0, 0, 1, 1, 0, 1]
    )
    small = hasher.compress(len(hasher.support_) - 1)
    assert len(set(small.support_samples_)) == len(small.support_samples_)
    assert np.array_equal(small.predict(["ab", "cd"]), [0, 1])


def test_columns_are_chosen_as_a_plain_greedy_regression_chooses_them():
    rng = np.random.default_rng(1)
    values, targets = rng.standard_normal((40, 9)), rng.standard_normal((40, 3))
    values[:, 4] = values[:, 2]

    def error(columns):
        design = np.column_stack([values[:, columns], np.ones(40)])
        return np.sum((targets - design @ np.linalg.lstsq(design, targets)[0]) ** 2)

    plain = []
    for _ in range(5):
        plain.append(min((c for c in range(9) if c not in plain), key=lambda c: error([*plain, c])))
    assert choose_columns(values, targets, 5).tolist() == sorted(plain)
    assert len(choose_columns(values, targets, 9)) == 8


def test_gradients_are_those_of_finite_differences():
    rng = np.random.default_rng(2)
    points, targets = rng.standard_normal((7, 3)), rng.standard_normal((7, 2))
    found = [rng.standard_normal((4, 3)), rng.standard_normal((4, 2)), rng.standard_normal(2), np.array(-0.5)]

    def loss(centers, coefficients, intercept, log_rate):
        squared = ((points[:, None] - centers[None]) ** 2).sum(axis=2)
        return np.sum((np.exp(-np.exp(log_rate) * squared) @ coefficients + intercept - targets) ** 2) / 14

    for position, gradient in enumerate(batch_gradients(points, targets, *found)):
        for place in np.ndindex(np.shape(gradient)):
            sides = [[values.copy() for values in found] for _ in range(2)]
            for side, step in zip(sides, (1e-6, -1e-6), strict=True):
                side[position][place] += step
            assert np.asarray(gradient)[place] == pytest.approx((loss(*sides[0]) - loss(*sides[1])) / 2e-6, abs=1e-7)


def test_an_unfitted_hasher_is_refused():
    with pytest.raises(NotFittedError):
        StarSHL(4).compress(10)


@pytest.mark.parametrize("n_support", [0, -3, 2.5, "ten", True])
def test_impossible_numbers_of_support_rows_are_refused(full, n_support):
    with pytest.raises(ValueError, match=rf"n_support is {n_support!r}"):
        full.compress(n_support)


def test_more_support_rows_than_there_are_name_their_number(full, small):
    with pytest.raises(ValueError, match=f"has {len(full.support_)} support rows"):
        full.compress(len(full.support_))
    with pytest.raises(ValueError, match=r"900.*has 80 support rows"):
        small.compress(900)


def test_a_hasher_without_support_is_refused():
    with pytest.warns(UserWarning, match="one class"):
        hasher = StarSHL(4, random_state=0).fit(np.eye(5), np.zeros(5, dtype=int))
    with pytest.raises(ValueError, match="0 support row"):
        hasher.compress()


def test_precomputed_kernels_are_refused_with_advice(rows):
    X, y = rows[0][:60], rows[1][:60]
    hasher = StarSHL(4, kernels="precomputed", random_state=0).fit(X @ X.T, y)
    with pytest.raises(ValueError, match=r"holds no samples.*kernels=\[function\]"):
        hasher.compress(10)


def test_bad_further_rows_are_named(full, rows):
    with pytest.raises(ValueError, match="63 features"):
        full.compress(10, X=rows[0][:, :63])
