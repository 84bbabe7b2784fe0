"""Frozen splits: published digests, and what each family of protocols promises."""

import hashlib
import os
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from starshl.data import datasets
from starshl.data.datasets import Dataset
from starshl.exceptions import ChecksumError
from starshl.reproduction import PROTOCOLS, Protocol, Sampling, protocol, split_data

RARE = Dataset("made", np.zeros((60, 2)), np.repeat([0, 1], [57, 3]), None, ("often", "rare"))


def made(n=200, n_classes=4, seed=0, split=None):
    rng = np.random.default_rng(seed)
    names = tuple(f"class {k}" for k in range(n_classes))
    return Dataset("made", rng.random((n, 3)) * 8 - 2, rng.permutation(np.arange(n) % n_classes), split, names)


def of_made(rows, **settings):
    return Protocol("test", "made", settings.pop("task", "retrieval"), rows, **settings)


@pytest.mark.parametrize("name", list(PROTOCOLS))
def test_every_protocol_publishes_one_digest_per_run(name):
    digests = PROTOCOLS[name].digests
    assert len(digests) == len(set(digests)) == PROTOCOLS[name].n_runs
    assert all(len(digest) == 64 for digest in digests)
    assert PROTOCOLS[name].dataset in datasets.names()


@cache
def stored(name):
    """Return a data set; many protocols share it."""
    return datasets.get(name, download=False)


@pytest.mark.parametrize("name", list(PROTOCOLS))
def test_splits_are_the_published_ones_and_keep_queries_apart(name):
    chosen = PROTOCOLS[name]
    if chosen.dataset != "digits" and "STARSHL_DATA" not in os.environ:
        pytest.skip("STARSHL_DATA names no folder of data sets")
    dataset = stored(chosen.dataset)
    for run in (0, chosen.n_runs - 1):
        split = chosen.split(dataset, run)
        assert not np.intersect1d(split.query, split.database).size
        assert np.isin(split.train, split.database).all() == (chosen.rows.database != "unseen")
        assert len(np.unique(split.train)) == len(split.train)


def test_paper_sizes_are_those_of_the_paper():
    sizes = {p.dataset: (p.rows.n_train, p.n_runs) for name, p in PROTOCOLS.items() if name.startswith("paper-")}
    assert sizes == {
        "pendigits": (3000, 5),
        "usps": (3000, 5),
        "mnist": (10000, 5),
        "cifar10": (10000, 5),
        "pascal07": (3000, 5),
    }
    vowel, letter = (p for p in PROTOCOLS.values() if p.task == "transductive")
    assert (vowel.rows.n_train, vowel.rows.n_query, vowel.n_runs) == (330, 220, 20)
    assert (letter.rows.n_train, letter.rows.n_query, letter.n_runs) == (300, 200, 20)


def test_unseen_items_are_neither_training_rows_nor_queries():
    split = of_made(Sampling(80, 40, database="unseen", n_items=50)).split(made(), 0)
    parts = np.concatenate([split.train, split.query, split.database])
    assert (len(split.train), len(split.query), len(split.database)) == (80, 40, 50)
    assert len(np.unique(parts)) == len(parts)


def test_parts_of_the_official_split_stay_apart():
    dataset = made(split=np.arange(200, dtype=np.uint8) % 2)
    split = of_made(Sampling(60, 40, database="unseen", by_part=True)).split(dataset, 0)
    assert set(dataset.split[split.train]) == {0}
    assert set(dataset.split[split.query]) == set(dataset.split[split.database]) == {1}
    assert len(split.database) == 60


def test_fewer_labels_are_a_subset_of_more_on_the_same_rows():
    dataset = datasets.get("digits")
    splits = [protocol(f"labels-digits-{n}").split(dataset, 2) for n in (1, 5, 20, 100)]
    for few, more in pairwise(splits):
        assert np.array_equal(few.train, more.train)
        assert np.array_equal(few.query, more.query)
        assert not (few.labeled & ~more.labeled).any()
    assert [int(split.labeled.sum()) for split in splits] == [10, 50, 200, 1000]
    unsupervised = protocol("unsupervised-digits").split(dataset, 2)
    assert np.array_equal(unsupervised.train, splits[0].train)
    assert not unsupervised.labeled.any()


def test_runs_differ_and_repeat_exactly():
    chosen = of_made(Sampling(50, 20))
    first, again, second = chosen.split(made(), 0), chosen.split(made(), 0), chosen.split(made(), 1)
    assert first.digest == again.digest != second.digest
    assert first.seed("a") == again.seed("a") != first.seed("b") != second.seed("b")


def test_split_by_hand_is_that_of_sorted_raw_words():
    stream = int.from_bytes(hashlib.sha256(b"test").digest()[:8], "little")
    words = np.random.PCG64(np.random.SeedSequence([stream, 3, 0])).random_raw(200)
    order = sorted(range(200), key=lambda row: words[row])
    split = of_made(Sampling(50, 20)).split(made(), 3)
    assert split.train.tolist() == order[:50]
    assert split.query.tolist() == order[50:70]


def test_rows_that_do_not_train_are_queries_unless_told_otherwise():
    split = of_made(Sampling(60)).split(made(), 0)
    assert np.array_equal(np.sort(np.concatenate([split.train, split.query])), np.arange(200))
    assert split.database is split.train


def test_rows_a_class_leave_the_rest_as_the_database():
    dataset = made()
    split = of_made(Sampling(80, 40, per_class=True, database="rest")).split(dataset, 0)
    assert np.bincount(dataset.y[split.query]).tolist() == [10] * 4
    assert np.bincount(dataset.y[split.train]).tolist() == [20] * 4
    assert np.array_equal(np.sort(np.concatenate([split.database, split.query])), np.arange(200))


def test_same_stream_gives_the_same_queries():
    few, many = (of_made(Sampling(n, 40, per_class=True, stream="s")).split(made(), 1) for n in (40, 160))
    assert np.array_equal(few.query, many.query)
    assert np.isin(few.train, many.train).all()


def test_every_class_trains_where_that_is_promised():
    drawn = [of_made(Sampling(10, every_class=True), n_runs=20).split(RARE, run) for run in range(20)]
    assert all(len(np.unique(RARE.y[split.train])) == 2 for split in drawn)
    plain = [of_made(Sampling(10), n_runs=20).split(RARE, run) for run in range(20)]
    assert any(len(np.unique(RARE.y[split.train])) == 1 for split in plain)


def test_official_split_is_the_published_one():
    split = of_made(Sampling(official=True)).split(made(split=np.arange(200) % 2), 0)
    assert split.train.tolist() == list(range(0, 200, 2))
    with pytest.raises(ValueError, match="no official split"):
        of_made(Sampling(official=True)).split(made(), 0)


def test_parts_carry_the_right_labels_and_hide_the_others():
    dataset = made()
    split = of_made(Sampling(80, 40, n_labels=3), task="labels").split(dataset, 0)
    data = split_data(dataset, split, scaling="raw", dtype=np.float64)
    assert np.array_equal(data.X_query, dataset.X[split.query])
    assert np.array_equal(data.y_query, dataset.y[split.query])
    assert (data.y_train >= 0).sum() == 12
    assert np.array_equal(data.y_train[split.labeled], dataset.y[split.train][split.labeled])
    assert np.array_equal(data.y_train_true, dataset.y[split.train])
    assert data.X_database is data.X_train


def test_scalings_do_what_they_say_by_the_training_rows_alone():
    dataset = made()
    dataset.X[:, 1] = 5.0
    split = of_made(Sampling(80, 40)).split(dataset, 0)
    as_range, standard, as_max, unit = (
        split_data(dataset, split, scaling=scaling, dtype=np.float64)
        for scaling in ("range", "standard", "max", "unit")
    )
    assert np.allclose(as_range.X_train[:, [0, 2]].min(axis=0), 0)
    assert np.allclose(as_range.X_train[:, [0, 2]].max(axis=0), 1)
    assert np.all(as_range.X_train[:, 1] == 0)
    assert np.allclose(standard.X_train.mean(axis=0), 0)
    assert np.allclose(standard.X_train[:, [0, 2]].std(axis=0), 1)
    assert not np.allclose(standard.X_query.mean(axis=0), 0)
    assert np.allclose(as_max.X_query * np.abs(dataset.X).max(), dataset.X[split.query])
    assert np.allclose(np.linalg.norm(unit.X_query, axis=1), 1)
    assert split_data(dataset, split).X_train.dtype == np.float32


def test_altered_data_is_caught_by_the_digest_of_the_split():
    digits = datasets.get("digits")
    other = Dataset("digits", digits.X, digits.y[::-1].copy(), None, digits.names)
    with pytest.raises(ChecksumError, match="not the published"):
        protocol("labels-digits-5").split(other, 0)


def test_reduced_protocol_has_its_own_name_and_no_published_digest():
    small = protocol("labels-digits-5").reduced(n_train=200, n_query=50, n_runs=2)
    assert (small.name, small.digests, small.n_runs) == ("labels-digits-5-200-50", (), 2)
    assert len(small.split(datasets.get("digits"), 1).query) == 50
    official = of_made(Sampling(official=True)).reduced(n_train=30, n_query=20, n_runs=1)
    assert len(official.split(made(), 0).train) == 30


BAD_CALLS = {
    "needs 190 training rows and 20 or more queries; 'made' has 200 rows": lambda: of_made(Sampling(190, 20)).split(
        made(), 0
    ),
    "Ask for multiples of 4": lambda: of_made(Sampling(50, 40, per_class=True)).split(made(), 0),
    "rows of the smallest class": lambda: of_made(Sampling(20, 4, per_class=True)).split(RARE, 0),
    "needs 30 labels per class": lambda: of_made(Sampling(80, n_labels=30)).split(made(), 0),
    "never contained all 4 classes": lambda: of_made(Sampling(3, every_class=True)).split(made(), 0),
    "run is 5; it must be an integer from 0 to 4": lambda: of_made(Sampling(50)).split(made(), 5),
    "is about 'usps'; the data set given is 'made'": lambda: PROTOCOLS["paper-usps"].split(made(), 0),
    "The closest are 'paper-mnist'": lambda: protocol("paper-mnst"),
    "task is 'guess'": lambda: Protocol("any", "made", "guess", Sampling(5)),
    "scaling is 'log'": lambda: split_data(made(), of_made(Sampling(50)).split(made(), 0), scaling="log"),
    "n_train is None": lambda: Sampling(),
    "cannot be named 'a/b'": lambda: Protocol("a/b", "made", "retrieval", Sampling(5)),
}


@pytest.mark.parametrize("message", BAD_CALLS)
def test_bad_input_is_refused_with_a_reason(message):
    with pytest.raises(ValueError, match=message):
        BAD_CALLS[message]()
