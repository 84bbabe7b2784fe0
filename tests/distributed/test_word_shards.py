"""Shards of an index in which the class counts answer like one index with all codes."""

import numpy as np
import pytest

pytest.importorskip("distributed", reason="the extra dask is not installed")

from starshl.codes import BinaryCodes, EncodedQueries, HammingWords, ScoreRule, WordDictionary
from starshl.codes.codewords import binary_words
from starshl.distributed import ShardedIndex, sharded_index
from starshl.exceptions import SpaceMismatchError, UnknownIdError
from starshl.index import FlatIndex, HybridIndex, PosteriorIndex

from .inline_engine import InlineEngine


@pytest.fixture(autouse=True)
def inline(monkeypatch):
    """Tasks run in this process: the same questions and answers, without a cluster."""
    monkeypatch.setattr(sharded_index, "DaskEngine", lambda client: InlineEngine())


@pytest.fixture(params=["posterior", "hybrid"])
def make(request):
    """A function that makes an empty index."""
    rng = np.random.default_rng(0)
    if request.param == "posterior":
        words = HammingWords(binary_words(np.array([0, 500, 1023]), 10), 0.7)
        return lambda: PosteriorIndex(10, words)
    words = WordDictionary(rng.dirichlet(np.ones(3), size=8), 3)
    return lambda: HybridIndex(10, words, ScoreRule(1, 1.5, 3))


def items_of(rng, n_items, space_id="a" * 16):
    classes = rng.integers(-1, 3, size=n_items)
    return BinaryCodes(rng.integers(0, 4, (n_items, 2), dtype=np.uint8), 10, space_id, classes=classes)


def test_shards_give_the_answers_of_one_index(make):
    rng = np.random.default_rng(1)
    codes, ids = items_of(rng, 500), rng.permutation(900)[:500]
    sharded, whole = ShardedIndex(10, None, like=make()), make()
    for start in range(0, 500, 100):
        sharded.add(codes[slice(start, start + 100)], ids[start : start + 100])
    whole.add(codes, ids)
    queries = EncodedQueries(codes[:7], rng.dirichlet(np.ones(3), size=7))
    for options in ({}, {"min_probability": 0.6}, {"among": ids[::3]}, {"among": sharded.ids % 2 == 0}):
        alike = dict(options)
        if options.get("among", ids).dtype == bool:
            alike["among"] = sharded.ids[options["among"]]
        for found, expected in (
            (sharded.search(queries, 40, **options), whole.search(queries, 40, **alike)),
            (sharded.search_radius(queries, 2.5, **options), whole.search_radius(queries, 2.5, **alike)),
        ):
            assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
    found = sharded.search(queries, 40, min_probability=0.6).ids
    assert np.array_equal(sharded.probabilities(queries, found), whole.probabilities(queries, found))
    sharded.remove(ids[:150])
    whole.remove(ids[:150])
    assert np.array_equal(sharded.search(queries, 40).ids, whole.search(queries, 40).ids)
    kept = sharded.reconstruct(ids[200:240])
    assert kept == codes[200:240]
    assert np.array_equal(kept.classes, codes[200:240].classes)


def test_codes_of_another_model_and_unknown_hits_are_refused(make):
    rng = np.random.default_rng(2)
    sharded = ShardedIndex(10, None, like=make())
    sharded.add(items_of(rng, 20))
    with pytest.raises(SpaceMismatchError):
        sharded.add(items_of(rng, 20, "b" * 16))
    with pytest.raises(SpaceMismatchError):
        sharded.search(items_of(rng, 2, "b" * 16))
    with pytest.raises(UnknownIdError, match="77"):
        sharded.probabilities(items_of(rng, 1), [[3, 77]])


def test_shards_are_like_an_empty_index_of_the_same_length(make):
    filled = make()
    filled.add(items_of(np.random.default_rng(3), 4))
    for like in (filled, FlatIndex(9)):
        with pytest.raises(ValueError, match="it must be empty, for codes of 10 bits"):
            ShardedIndex(10, None, like=like)
