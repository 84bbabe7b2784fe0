"""What BaseHasher does for its subclasses: a fit that is complete or did not happen, and facts of a setting."""

import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from starshl.hashers import Facts, LinearHasher, all_or_nothing
from starshl.hashers.baselines import LSHash, SphericalHash
from starshl.testing.expectations import Interruption, interrupted_after

ROWS = np.random.default_rng(0).standard_normal((60, 5))


class Scaled(LSHash):
    """A subclass that learns something before and after the fit of its parent."""

    facts = Facts(paper="Nobody: Nothing", year=2020, labels="ignored", cost="nothing")

    @all_or_nothing
    def fit(self, X, y=None):
        self.largest_ = float(np.abs(X).max())
        super().fit(X / self.largest_, y)
        self.n_bits_after_parent_ = self.n_bits_
        if y is not None:
            raise RuntimeError("after everything was learned")
        return self

    def __getstate__(self):
        return {name: value for name, value in super().__getstate__().items() if name != "helper"}


def test_what_a_subclass_learns_before_its_parent_stays():
    hasher = Scaled(4, random_state=0)
    hasher.helper = 7
    assert hasher.fit(ROWS) is hasher
    assert hasher.largest_ == np.abs(ROWS).max()
    assert hasher.n_bits_after_parent_ == 4
    assert hasher.helper == 7  # though no pickle holds it
    assert not [name for name in vars(hasher) if name.startswith("_is")]


def test_a_subclass_that_fails_after_its_parent_changes_nothing():
    hasher = Scaled(4, random_state=0).fit(ROWS)
    before = pickle.dumps(hasher)
    with pytest.raises(RuntimeError):
        hasher.fit(2 * ROWS, np.ones(60))
    assert pickle.dumps(hasher) == before
    fresh = Scaled(4, random_state=0)
    with pytest.raises(RuntimeError):
        fresh.fit(ROWS, np.ones(60))
    assert not hasattr(fresh, "components_")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_fit_interrupted_at_any_call_leaves_the_hasher_as_it_was():
    present, other = np.random.default_rng(0).standard_normal((2, 20, 4))
    hasher = LSHash(4, random_state=0).fit(present)
    n_interrupted = n_completed = 0
    for n_calls in range(1, 2000):
        assert hasher.space_id_  # which is cached, until the next fit
        before = pickle.dumps(hasher)
        try:
            with interrupted_after(n_calls):
                hasher.fit(other)
        except (Interruption, Exception):
            n_interrupted += 1
            assert pickle.dumps(hasher) == before, n_calls
        else:
            # The fit has fewer calls, or the interruption was lost in a finalizer, where Python ignores it.
            n_completed += 1
            assert pickle.dumps(hasher) != before
            present, other = other, present
        if n_completed == 20:
            break
    assert n_interrupted > 100
    assert n_completed == 20


def test_a_refit_forgets_what_it_does_not_learn_again():
    hasher = LSHash(4, variant="bit_sampling", random_state=0).fit(ROWS)
    hasher.set_params(variant="gaussian").fit(ROWS)
    assert not hasattr(hasher, "features_")


def test_settings_of_scikit_learn_survive_a_fit():
    pytest.importorskip("pandas")
    hasher = LSHash(4, random_state=0).set_output(transform="pandas")
    assert list(hasher.fit(ROWS).transform(ROWS).columns) == hasher.get_feature_names_out().tolist()


def test_warnings_of_a_fit_point_to_its_caller():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        SphericalHash(8, max_iter=1, tol_mean=0.0, random_state=0).fit(ROWS)
    assert [Path(warning.filename).name for warning in caught if warning.category is ConvergenceWarning] == [
        Path(__file__).name
    ]


def test_a_generator_passed_by_the_caller_moves_on():
    rng = np.random.RandomState(0)
    first, second = (LSHash(4, random_state=rng).fit(ROWS).components_ for _ in range(2))
    assert not np.array_equal(first, second)


def test_a_hyperplane_hasher_needs_only_a_fit():
    class Axes(LinearHasher):
        facts = Facts(paper="Nobody: Axes", year=2020, labels="ignored", cost="nothing")

        def __init__(self, n_bits=2, *, n_jobs=None):
            self.n_bits, self.n_jobs = n_bits, n_jobs

        @all_or_nothing
        def fit(self, X, y=None):
            self.n_features_in_ = X.shape[1]
            self.components_, self.intercept_ = np.eye(X.shape[1])[: self.n_bits], np.zeros(self.n_bits)
            return self

    assert np.array_equal(Axes().fit(ROWS).transform(ROWS) > 0, ROWS[:, :2] >= 0)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_scores_that_are_not_numbers_are_refused_instead_of_becoming_bits():
    hasher = LSHash(4, random_state=0).fit(ROWS)
    hasher.components_ = np.array([[1e308, -1e308, 1e308, -1e308, 1e308]] * 4)
    for method in (hasher.decision_function, hasher.encode, hasher.transform, hasher.encode_database):
        with pytest.raises(ValueError, match="LSHash are not finite"):
            method(100 * ROWS)
