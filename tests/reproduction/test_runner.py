"""Runs of real and of misbehaving methods, and the figures computed from their records."""

import getpass
import platform
import time
import warnings

import numpy as np
import pytest
from numba import njit
from scipy.linalg import hadamard
from sklearn.cluster import KMeans
from sklearn.dummy import DummyClassifier
from sklearn.metrics import accuracy_score, adjusted_rand_score, balanced_accuracy_score
from sklearn.neighbors import NearestNeighbors
from sklearn.svm import SVC

from starshl import BinaryCodes, StarSHL
from starshl._common.platform import machine
from starshl.data import datasets
from starshl.evaluation import codeword_accuracy, knn_accuracy, mean_average_precision, precision_at
from starshl.hashers.baselines import ITQ, LSHash
from starshl.reproduction import (
    Protocol,
    RecordFolder,
    Sampling,
    protocol,
    run,
    run_classifier,
    run_float_search,
    score,
    split_data,
)
from starshl.reproduction.runner import (
    Stopwatch,
    labels_used,
    parameters_of,
    planned_key,
    versions,
)
from starshl.reproduction.scores import cluster_agreement, histograms_of


def digits_data(name, n_train=300, n_query=120, run=0, **settings):
    digits = datasets.get("digits")
    small = protocol(name).reduced(n_train=n_train, n_query=n_query, n_runs=2)
    return split_data(digits, small.split(digits, run), **settings)


@pytest.fixture(scope="module")
def data():
    return digits_data("labels-digits-5")


def lsh(n_bits, seed):
    return LSHash(n_bits, random_state=seed)


def test_record_holds_codes_that_score_like_the_hasher_itself(data):
    record = run(lsh, data, "lsh", 12)
    assert record.ok, record.message
    hasher = lsh(12, record.key.seed).fit(data.X_train)
    query, database = hasher.encode(data.X_query), hasher.encode(data.X_database)
    assert record.codes("query") == query
    assert record.codes("database") == database
    found = score(record)
    case = (query, database, data.y_query, data.y_database)
    assert found["precision_at"][10] == pytest.approx(precision_at(*case, 10))
    assert found["mean_average_precision"] == pytest.approx(mean_average_precision(*case))
    assert found["curve"]["recall"][-1] == 1.0
    assert list(found["precision_at"]) == list(range(10, 55, 5))
    assert found["occupancy"]["n_codes"] == len(data.y_database)
    labeled = data.split.labeled
    expected = knn_accuracy(query, database[labeled], data.y_query, data.y_database[labeled], 5)
    assert found["accuracy_knn"][5] == expected
    assert "accuracy" not in found
    assert set(record.seconds) - {"compile"} == {"fit", "encode_database", "encode_query"}
    settings = {"scaling": "max", "dtype": "float32", "fit_on": "train"}
    assert record.key.settings == settings | parameters_of(hasher)


def test_same_run_gives_the_same_digests_and_another_seed_does_not(data):
    first, again = run(lsh, data, "lsh", 12), run(lsh, data, "lsh", 12)
    assert first.digests == again.digests
    planned = planned_key(data.split, data.scaling, "lsh", 12, parameters=parameters_of(lsh(12, 0)))
    assert first.key == again.key == planned
    other = run(lsh, data, "lsh", 12, seed=5)
    assert other.digests["query"] != first.digests["query"]
    assert other.key.file_name != first.key.file_name


def test_saved_record_scores_as_before(data, tmp_path):
    record = run(lsh, data, "lsh", 12)
    folder = RecordFolder(tmp_path / "runs")
    folder.save(record)
    assert score(folder.load(record.key)) == score(record)
    assert np.array_equal(histograms_of(folder.load(record.key)).count, histograms_of(record).count)


def test_method_that_fails_is_recorded_with_its_reason(data, tmp_path):
    class Broken(LSHash):
        def fit(self, X, y=None):
            raise ArithmeticError("the matrix is singular")

    record = run(lambda n_bits, seed: Broken(n_bits), data, "broken", 8)
    assert (record.status, record.message) == ("failed", "ArithmeticError: the matrix is singular")
    assert record.arrays == {}
    assert record.key.settings["center"] == "True"
    assert record.seconds["fit"] >= 0
    with pytest.raises(ValueError, match="nothing to score"):
        score(record)
    folder = RecordFolder(tmp_path / "runs")
    folder.save(record)
    assert folder.load(record.key).message == record.message


def test_wrong_number_of_bits_and_failing_constructors_are_failures_too(data):
    record = run(lambda n_bits, seed: LSHash(n_bits + 1, random_state=seed), data, "odd", 8)
    assert record.message.startswith("ValueError: The codes have 9 bits")
    assert not run(lambda n_bits, seed: 1 / 0, data, "odd", 8).ok


def test_interrupt_is_not_swallowed(data):
    def stop(n_bits, seed):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(stop, data, "stopped", 8)


def test_warnings_of_a_method_are_kept(data):
    class Worried(LSHash):
        def fit(self, X, y=None):
            warnings.warn("only just converged", RuntimeWarning, stacklevel=1)
            return super().fit(X)

    record = run(lambda n_bits, seed: Worried(n_bits, random_state=0), data, "worried", 8)
    assert record.warnings == ["RuntimeWarning: only just converged"]


class Listener(LSHash):
    """Remembers what it was fitted on."""

    def fit(self, X, y=None):
        super().fit(X)
        self.seen_ = (len(X), None if y is None else np.asarray(y))
        return self


@pytest.mark.parametrize(
    ("protocol_name", "fit_on", "n_rows", "n_labels"),
    [
        ("labels-digits-5", "train", 300, 50),
        ("labels-digits-5", "labeled", 50, 50),
        ("labels-digits-5", "train+query", 420, 50),
        ("unsupervised-digits", "train", 300, None),
    ],
)
def test_methods_see_only_the_labels_they_may(protocol_name, fit_on, n_rows, n_labels):
    data = digits_data(protocol_name)
    listeners = []

    def make(n_bits, seed):
        listeners.append(Listener(n_bits, random_state=seed))
        return listeners[0]

    assert run(make, data, "listener", 8, fit_on=fit_on).ok
    rows, y = listeners[0].seen_
    assert rows == n_rows
    assert (y is None) if n_labels is None else ((y >= 0).sum() == n_labels)
    if fit_on == "train+query":
        assert (y[300:] == -1).all()


def transductive_rows(data):
    X = np.concatenate([data.X_train, data.X_query])
    return X, np.concatenate([data.y_train, np.full(len(data.X_query), -1)])


def test_codeword_methods_are_scored_by_all_their_predictions():
    data = digits_data("labels-digits-20", n_train=400, n_query=60)
    record = run(lambda n_bits, seed: StarSHL(n_bits, random_state=seed), data, "starshl", 12, fit_on="train+query")
    assert record.ok, record.message
    found = score(record)
    assert found["accuracy"] == pytest.approx(np.mean(record.arrays["predicted_query"] == data.y_query))
    assert found["accuracy_transductive"] == pytest.approx(np.mean(record.arrays["transduced_query"] == data.y_query))
    fitted = StarSHL(12, random_state=record.key.seed).fit(*transductive_rows(data))
    expected = codeword_accuracy(fitted.encode(data.X_query), data.y_query, fitted.codewords_, fitted.classes_)
    assert found["accuracy_expected"] == pytest.approx(expected)
    # 20 labels per class of digits: far above the chance of 0.1.
    assert min(found["accuracy"], found["accuracy_hinge"], found["accuracy_transductive"]) > 0.7
    agreement = cluster_agreement(record)
    assigned = adjusted_rand_score(data.y_train_true, record.arrays["transduced_train"])
    assert agreement["assigned"] == pytest.approx(assigned)
    assert agreement["codes"] > 0.3


def test_clusters_of_separate_codewords_agree_with_the_classes():
    data = digits_data("unsupervised-digits")

    class Oracle(LSHash):
        """Gives every row the codeword of its class."""

        def encode(self, X):
            y = data.y_query if X is data.X_query else data.y_database
            return BinaryCodes.from_signs(hadamard(16)[y])

    record = run(lambda n_bits, seed: Oracle(n_bits), data, "oracle", 16)
    assert cluster_agreement(record) == {"codes": 1.0}
    assert score(record)["mean_average_precision"] == pytest.approx(1.0)


def test_clusters_of_a_method_without_codes_are_compared_too():
    data = digits_data("unsupervised-digits")
    record = run_classifier(lambda seed: KMeans(10, random_state=seed), data, "k-means", fit_on="train")
    agreement = cluster_agreement(record)
    assert set(agreement) == {"predicted"}
    # k-means on pixels of digits is known to reach about 0.6; a random clustering scores 0.
    assert agreement["predicted"] > 0.4


def test_classifier_is_scored_by_accuracy(data):
    record = run_classifier(lambda seed: SVC(), data, "svc")
    labeled = data.split.labeled
    predicted = SVC().fit(data.X_train[labeled], data.y_train[labeled]).predict(data.X_query)
    assert score(record) == {
        "accuracy": pytest.approx(accuracy_score(data.y_query, predicted)),
        "accuracy_balanced": pytest.approx(balanced_accuracy_score(data.y_query, predicted)),
    }
    assert record.key.n_bits is None
    assert not run_classifier(lambda seed: DummyClassifier(strategy="nonsense"), data, "dummy").ok


def test_float_search_finds_what_a_neighbor_search_finds(data):
    record = run_float_search(data, "float", n_neighbors=20)
    nearest = NearestNeighbors(n_neighbors=20, algorithm="brute").fit(data.X_database.astype(float))
    rows = nearest.kneighbors(data.X_query.astype(float), return_distance=False)
    expected = (data.y_database[rows[:, :10]] == data.y_query[:, None]).mean()
    found = score(record)["precision_at"]
    assert list(found) == [10, 15, 20]
    assert found[10] == pytest.approx(expected, abs=1e-3)


def test_bad_settings_are_refused_before_anything_runs(data):
    with pytest.raises(ValueError, match="fit_on is 'all'"):
        run(lsh, data, "LSH", 8, fit_on="all")
    with pytest.raises(ValueError, match="n_bits is 0"):
        run(lsh, data, "LSH", 0)
    with pytest.raises(ValueError, match="seed is -1"):
        run(lsh, data, "LSH", 8, seed=-1)


def test_machine_and_versions_name_no_host_and_no_user():
    text = repr(machine()) + repr(versions())
    assert platform.node() not in text
    assert getpass.getuser() not in text
    assert set(versions()) == {"python", "starshl", "numpy", "scipy", "scikit-learn", "numba"}


def test_labels_used_are_what_a_method_says_or_all_it_was_given(data):
    def record_of(make, **settings):
        return run(make, data, "any", 8, **settings)

    assert record_of(lsh).n_labeled == 0
    assert record_of(lambda n_bits, seed: StarSHL(n_bits, random_state=seed)).n_labeled == 50
    sampler = ITQ(8, variant="cca")
    sampler.n_labeled_ = 7
    assert labels_used(sampler, data.y_train) == 7
    assert run_classifier(lambda seed: SVC(), data, "svc").n_labeled == 50
    # The class ignores labels, its variant learns from them.
    assert labels_used(ITQ(8), data.y_train) == 0
    assert labels_used(ITQ(8, variant="cca"), data.y_train) == 50
    assert labels_used(ITQ(8, variant="cca"), None) == 0
    assert run_float_search(data, "float").n_labeled == 0


def test_the_database_gets_the_labels_that_were_known_in_training(data):
    given = []

    class Listening(LSHash):
        def encode_database(self, X, y=None):
            given.append(y)
            return self.encode(X)

    assert run(lambda n_bits, seed: Listening(n_bits), data, "listening", 8).ok
    np.testing.assert_array_equal(given[0], data.y_train)
    nothing = digits_data("unsupervised-digits")
    run(lambda n_bits, seed: Listening(n_bits), nothing, "listening", 8)
    assert given[1] is None


class LabelReader(LSHash):
    """Turns the codes of items that have a label around."""

    def encode_database(self, X, y=None):
        signs = self.transform(X)
        return BinaryCodes.from_signs(signs if y is None else np.where(y[:, None] >= 0, -signs, signs))


class Keeper(LabelReader):
    """Keeps codes of the rows of its fit: all of them equal."""

    def fit(self, X, y=None):
        super().fit(X, y)
        self.n_rows_ = len(X)
        return self

    @property
    def training_codes_(self):
        return BinaryCodes.from_signs(np.ones((self.n_rows_, self.n_bits)))


@pytest.mark.parametrize("hasher_class", [LabelReader, Keeper])
def test_a_database_is_coded_with_the_labels_it_was_trained_with(hasher_class, data):
    record = run(lambda n_bits, seed: hasher_class(n_bits, random_state=seed), data, "reader", 12, seed=3)
    assert record.ok, record.message
    fitted = hasher_class(12, random_state=3).fit(data.X_train)
    labeled = fitted.encode_database(data.X_database, data.y_train)
    assert record.codes("database") == fitted.encode_training(data.X_database, data.y_train)
    assert (record.codes("database") == labeled) is (hasher_class is LabelReader)
    found = precision_at(fitted.encode(data.X_query), record.codes("database"), data.y_query, data.y_database)
    assert score(record)["precision_at"][10] == pytest.approx(found)


def test_queries_that_took_part_in_the_fit_are_not_items(data):
    def keeper(n_bits, seed):
        return Keeper(n_bits, random_state=seed)

    record = run(keeper, data, "keeper", 12, fit_on="train+query")
    assert len(record.codes("database")) == len(data.X_train)


def test_rows_of_a_fit_on_labeled_rows_alone_are_coded_as_new_items(data):
    def keeper(n_bits, seed):
        return Keeper(n_bits, random_state=seed)

    record = run(keeper, data, "keeper", 12, seed=3, fit_on="labeled")
    fitted = keeper(12, 3).fit(data.X_train[data.y_train >= 0])
    assert record.codes("database") == fitted.encode_database(data.X_database, data.y_train)


def test_a_database_beyond_the_training_rows_hides_labels_that_were_not_seen():
    digits = datasets.get("digits")
    rows = Sampling(200, 100, per_class=True, database="rest")
    split = Protocol("rest", "digits", "retrieval", rows).split(digits, 0)
    data = split_data(digits, split)
    known = data.y_database_known >= 0
    assert known.sum() == 200
    np.testing.assert_array_equal(np.sort(split.database[known]), np.sort(split.train))


def test_compiling_is_not_counted_as_fitting():
    stopwatch = Stopwatch()

    @njit
    def cube(x):
        return x**3

    start = time.perf_counter()
    with stopwatch.stage("fit"):
        cube(2.0)
    elapsed, compiling = time.perf_counter() - start, stopwatch.seconds["compile"]
    assert set(stopwatch.seconds) == {"fit", "compile"}
    assert compiling > 0
    assert stopwatch.seconds["fit"] + compiling <= elapsed
    with stopwatch.stage("fit"):
        cube(3.0)
    assert stopwatch.seconds["compile"] == compiling
