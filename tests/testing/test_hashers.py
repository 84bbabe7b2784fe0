"""What every hasher of the catalog promises, in its default setting and in each variant."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

import starshl
from starshl import Collection, HybridHasher, StarRidge
from starshl.data.features import Scale
from starshl.exceptions import MissingCapabilityError
from starshl.hashers import CAPABILITIES, ClassifierHasher, Facts, LinearHasher, PreparedHasher, all_or_nothing
from starshl.hashers.baselines import LSHash
from starshl.testing import check_hasher, hasher_checks

from .cases import CASES, QUICK, make

UNSUPERVISED = [name for name, method in CASES.items() if method.facts.labels == "ignored"]
# Some of scikit-learn's checks have rows of three features, and one has a single feature.
BITS_FOR_CHECKS = {"LDAHash": 1, "DIF": 1}
# Expected to fail, with the reason.
CHECKS_THAT_FAIL = {
    "StarRidge": {
        "check_sample_weight_equivalence_on_dense_data": "of two equal rows, each is scored with the other one in",
        "check_sample_weight_equivalence_on_sparse_data": "of two equal rows, each is scored with the other one in",
        "check_decision_proba_consistency": "the codewords decide whether a score rises or falls with a probability",
        "check_classifiers_train": "decision_function returns one score per bit, not per class",
        "check_classifiers_classes": "decision_function returns one score per bit, not per class",
    }
}
# Three classes differ along two directions; these methods spend every further bit on noise.
BITS_ON_BLOBS = {"LDAHash": 2, "DIF": 2, "PCAHash": 4, "SSH orthogonal": 4, "SSH nonorthogonal": 4}
# A few passes over the rows are enough for a contract, but not to learn something.
PASSES_ON_BLOBS = {"SemanticHashing": {"pretrain_max_iter": "auto", "max_iter": "auto"}}


every_hasher = pytest.mark.parametrize("name", CASES)
NAMED_CHECKS = [
    pytest.param(check, id=f"{name}-{check_name}") for name in CASES for check_name, check in hasher_checks(make(name))
]


@pytest.fixture(scope="module")
def few_digits():
    X, y = load_digits(return_X_y=True)
    return X[:300] / 16.0, y[:300]


@pytest.fixture(scope="module")
def blobs():
    """Three classes in 20 features whose centers lie about nine standard deviations apart."""
    rng = np.random.default_rng(0)
    centers = 2 * rng.standard_normal((3, 20))
    y = rng.integers(0, 3, 500)
    return centers[y] + rng.standard_normal((500, 20)), y


def expected_failures(estimator):
    return CHECKS_THAT_FAIL.get(type(estimator).__name__, {})


@parametrize_with_checks(
    [make(name, BITS_FOR_CHECKS.get(name, 2)) for name in CASES], expected_failed_checks=expected_failures
)
def test_hasher_obeys_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("check", NAMED_CHECKS)
def test_hasher_obeys_the_contract(check):
    check()


@every_hasher
def test_neighbors_in_code_share_the_class_on_separated_blobs(name, blobs):
    X, y = blobs
    hasher = make(name, BITS_ON_BLOBS.get(name, 16), **PASSES_ON_BLOBS.get(name, {})).fit(X[:400], y[:400])
    products = hasher.transform(X[400:]).astype(int) @ hasher.transform(X[:400]).astype(int).T
    nearest = np.argsort(-products, axis=1, kind="stable")[:, :10]
    precision = np.mean(y[:400][nearest] == y[400:, None])
    # Chance is 1/3. Unsupervised bits may also cut through classes; supervised ones have no reason to.
    assert precision >= (0.8 if name in UNSUPERVISED else 0.9)


@every_hasher
def test_default_setting_is_saved_and_backs_a_collection(name, few_digits, tmp_path):
    X, y = few_digits
    method = CASES[name]
    hasher = method.hasher_class(**QUICK.get(method.method, {}), **method.params).fit(X, y)
    hasher.save(tmp_path / "model.star")
    assert starshl.load(tmp_path / "model.star").n_bits_ == hasher.n_bits_
    with Collection.create(tmp_path / "items", hasher) as items:
        ids = items.add(X)
        assert items.codes(ids) == hasher.encode_database(X)


class Broken(LinearHasher):
    """A hasher that draws new planes in every fit, whatever its seed."""

    facts = Facts(paper="Nobody: Nothing", year=2020, labels="ignored", cost="nothing")

    def __init__(self, n_bits=4, *, n_jobs=None, random_state=None):
        self.n_bits = n_bits
        self.n_jobs = n_jobs
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        self.components_ = np.random.default_rng().standard_normal((self.n_bits, X.shape[1]))
        self.intercept_ = np.zeros(self.n_bits)
        return self


@pytest.mark.parametrize("broken", [Broken(random_state=0), Broken])
def test_a_hasher_that_breaks_the_contract_is_told_all_checks_that_failed_and_how_to_pass_each(broken):
    with pytest.raises(AssertionError) as caught:
        check_hasher(broken)
    told = str(caught.value)
    for name, advice in {
        "same_seed_gives_the_same_scores": "check_random_state",
        "bytes_do_not_depend_on_threads": "threadpool_limits",
        "impossible_numbers_of_bits_are_refused": "check_integer",
        "bad_rows_are_named": "check_rows",
    }.items():
        (part,) = (each for each in told.split("\n\n") if name in each)
        assert "To pass" in part
        assert advice in part
    results = {}
    for name, check in hasher_checks(broken):
        try:
            check()
        except AssertionError as error:
            results[name] = str(error)
        except Exception as error:
            results[name] = repr(error)
    assert "same_seed_gives_the_same_scores" in results
    assert "codes_are_signs_of_scores" not in results


class Failing(Broken):
    """A hasher whose fit always fails."""

    def fit(self, X, y=None):
        raise RuntimeError("no planes today")


def test_checks_that_stop_at_the_same_error_are_told_once():
    with pytest.raises(AssertionError) as caught:
        check_hasher(Failing)
    assert str(caught.value).count("no planes today\n") == 1


class Declaring(Broken):
    """A hasher that says it predicts, and has another method that it does not mention."""

    supports = frozenset({"predict"})

    def novelty(self, X):
        return np.zeros(len(X))


def test_a_hasher_is_told_what_it_declares_and_lacks_and_what_it_has_and_hides():
    check = dict(hasher_checks(Declaring))["declared_capabilities_are_there_and_no_others"]
    with pytest.raises(AssertionError, match="supports names 'predict'"):
        check()
    Declaring.predict = lambda self, X: np.zeros(len(X))
    with pytest.raises(AssertionError, match="a method novelty"):
        check()


@pytest.mark.parametrize(
    "make_hasher",
    [
        lambda: HybridHasher(12, random_state=0),
        lambda: HybridHasher(12, class_hasher=ClassifierHasher(LogisticRegression(), 8), random_state=0),
        lambda: PreparedHasher([Scale()], LSHash(8, random_state=0)),
        lambda: PreparedHasher([Scale()], StarRidge(8, random_state=0)),
        lambda: PreparedHasher([Scale()], HybridHasher(12, random_state=0)),
    ],
)
def test_hashers_that_hold_others_support_what_these_do(make_hasher, few_digits):
    X, y = few_digits
    hasher = make_hasher()
    for each in (hasher, clone(hasher).fit(X, y)):
        # All but "probability" are names of methods.
        assert {name for name in CAPABILITIES if hasattr(each, name)} == each.supports - {"probability"}


def test_a_hasher_without_labels_cannot_be_relabeled_and_a_compressed_one_cannot_tell_novelty(few_digits):
    X, y = few_digits
    assert "relabel" in HybridHasher(12, random_state=0).fit(X, y).supports
    assert "relabel" not in HybridHasher(12, random_state=0).fit(X).supports
    small = PreparedHasher([Scale()], StarRidge(8, random_state=0)).fit(X, y).compress(60)
    with pytest.raises(MissingCapabilityError, match="was compressed") as refused:
        small.require("predict", "novelty")
    assert (refused.value.fields["method"], refused.value.fields["capability"]) == ("StarRidge", "novelty")
