"""Shards whose hits have probabilities answer as one collection does."""

from functools import cache

import numpy as np
import pytest

pytest.importorskip("distributed", reason="the extra dask is not installed")

from starshl import Codebook, Collection, HybridHasher, StarRidge
from starshl.distributed import ShardedCollection, sharded_collection
from starshl.exceptions import MissingCapabilityError, UnknownIdError
from starshl.hashers.baselines import LSHash

from .inline_engine import InlineEngine

N_ITEMS = 600
RADII = {"ridge": (0, 0.5, 5, 40), "hamming": (0, 3, 6, 40), "residual": (0.0, 200.0, 900.0, 1e5)}


def by_class(y):
    """All items of a class are in one part."""
    return y % 3


def by_turns(y):
    return np.arange(len(y)) % 3


def made(folder, digits, hasher, part_of, *, vectors=None, parts="abc"):
    """All items in one collection, and the same items in parts, of which one is empty."""
    X, y = (each[:N_ITEMS] for each in digits)
    part = part_of(y)
    for name in ("all", *parts, "empty"):
        chosen = np.flatnonzero((part == parts.find(name)) | (name == "all"))
        with Collection.create(folder / name, hasher, vectors=vectors, fields={"page": int}) as collection:
            if len(chosen):
                metadata = [{"page": number // 100} for number in chosen.tolist()]
                labels = [
                    label if number % 4 else None for number, label in zip(chosen, y[chosen].tolist(), strict=True)
                ]
                collection.add(X[chosen], ids=chosen, metadata=metadata, labels=labels)
    return folder


def answering(folder, client, parts="abc"):
    return ShardedCollection([folder / name for name in (*parts, "empty")], client)


@pytest.fixture
def inline(monkeypatch):
    """Tasks run in this process: the same questions and answers, without a cluster."""
    monkeypatch.setattr(sharded_collection, "DaskEngine", lambda client: InlineEngine())


@pytest.fixture(scope="module", params=["ridge", "hamming", "residual"])
def form(request):
    return request.param


@pytest.fixture(scope="module")
def hasher(form, digits):
    X, y = (each[:N_ITEMS] for each in digits)
    if form == "ridge":
        return StarRidge(12, random_state=0).fit(X[::2], y[::2])
    return HybridHasher(12, form=form, random_state=0).fit(X[::2], y[::2])


@pytest.fixture(scope="module")
def shared(hasher, digits, tmp_path_factory):
    """A function that makes the items of a hasher once for each way to part and to keep them."""
    folder = tmp_path_factory.mktemp
    return cache(lambda part_of, vectors: made(folder("items"), digits, hasher, part_of, vectors=vectors))


@pytest.mark.parametrize("part_of", [by_class, by_turns])
def test_the_nearest_are_those_of_one_collection(inline, shared, digits, part_of):
    folder, X = shared(part_of, None), digits[0][N_ITEMS : N_ITEMS + 8]
    sharded = answering(folder, None)
    with Collection(folder / "all", read_only=True) as whole:
        for k in (1, 10, 90, 1000):  # a class has about 60 items
            assert sharded.search(X, k) == whole.search(X, k)
        for filters in ({"where": {"page": {"<": 2}}}, {"labels": [3, 5]}, {"among": [1, 255, 300, 599]}):
            assert sharded.search(X, 70, **filters) == whole.search(X, 70, **filters)


@pytest.mark.parametrize("part_of", [by_class, by_turns])
def test_what_is_within_a_radius_is_what_one_collection_finds(inline, shared, digits, form, part_of):
    folder, X = shared(part_of, None), digits[0][N_ITEMS : N_ITEMS + 8]
    sharded = answering(folder, None)
    with Collection(folder / "all", read_only=True) as whole:
        for radius in RADII[form]:
            for filters in ({}, {"where": {"page": {"<": 2}}}):
                assert sharded.search_radius(X, radius, **filters) == whole.search_radius(X, radius, **filters)


def test_vectors_that_are_kept_decide_as_in_one_collection(inline, shared, digits):
    folder = shared(by_class, "int8")
    sharded, X = answering(folder, None), digits[0][N_ITEMS : N_ITEMS + 8]
    choices = ({}, {"rescore": False}, {"oversample": 1}, {"metric": "cosine"}, {"min_probability": 0.5})
    with Collection(folder / "all", read_only=True) as whole:
        for options in choices:
            assert sharded.search(X, 10, **options) == whole.search(X, 10, **options)
        assert sharded.search(X, 90, oversample=3) == whole.search(X, 90, oversample=3)


def test_what_is_likely_enough_is_what_one_collection_finds(inline, shared, digits, form):
    folder, X = shared(by_class, None), digits[0][N_ITEMS : N_ITEMS + 8]
    sharded = answering(folder, None)
    with Collection(folder / "all", read_only=True) as whole:
        for least in (0.0, 0.2, 0.99, 1.0):
            for k in (1, 60, 700):
                assert sharded.search(X, k, min_probability=least) == whole.search(X, k, min_probability=least)
            for radius in (None, RADII[form][2]):
                expected = whole.search_radius(X, radius, min_probability=least)
                assert sharded.search_radius(X, radius, min_probability=least) == expected
    with pytest.raises(ValueError, match="min_probability is 3"):
        sharded.search(X, min_probability=3)


def test_collections_of_two_fits_are_refused(inline, tmp_path, digits):
    X, y = digits
    codebook = Codebook.make(range(10), n_bits=12, random_state=0)
    for name, rows in (("a", slice(0, 200)), ("b", slice(200, 400))):
        hasher = StarRidge(12, codewords=codebook, random_state=0).fit(X[rows], y[rows])
        Collection.create(tmp_path / name, hasher).close()
    with pytest.raises(ValueError, match=r"hashers of several fits.*Give collections of one hasher"):
        ShardedCollection([tmp_path / "a", tmp_path / "b"], None)
    plain = answering(made(tmp_path / "plain", digits, LSHash(12, random_state=0).fit(X), by_turns), None)
    with pytest.raises(MissingCapabilityError):
        plain.search(X[:1], min_probability=0.5)


@pytest.mark.parametrize("vectors", [None, "float16"])
def test_stored_items_are_searched_for_as_in_one_collection(inline, shared, digits, form, vectors):
    folder = shared(by_class, vectors)
    sharded, items = answering(folder, None), [599, 3, 4, 250]
    with Collection(folder / "all", read_only=True) as whole:
        for filters in ({}, {"labels": [3, 5]}):
            assert sharded.search(items=items, k=15, **filters) == whole.search(items=items, k=15, **filters)
        radius = RADII[form][1]
        assert sharded.search_radius(items=items, radius=radius) == whole.search_radius(items=items, radius=radius)
    assert sharded.search(items=[]) == []


def test_queries_unlike_the_training_rows_are_rejected_as_in_one_collection(inline, shared, digits):
    folder = shared(by_turns, None)
    X = np.vstack([digits[0][N_ITEMS : N_ITEMS + 8], 16.0 * np.random.RandomState(0).rand(4, 64)])
    sharded = answering(folder, None)
    with Collection(folder / "all", read_only=True) as whole:
        found = sharded.search(X, 5, reject=0.05)
        assert found == whole.search(X, 5, reject=0.05)
    assert [*map(len, found[-4:])] == [0] * 4
    assert sum(map(bool, found)) >= 6


def test_vectors_of_other_hashers_decide_as_in_one_collection(client, tmp_path, digits):
    hasher = LSHash(12, random_state=0).fit(digits[0])
    folder = made(tmp_path, digits, hasher, by_turns, vectors="float16")
    sharded, X = answering(folder, client), digits[0][N_ITEMS : N_ITEMS + 5]
    with Collection(folder / "all", read_only=True) as whole:
        for options in ({}, {"metric": "cosine"}, {"oversample": 2}):
            assert sharded.search(X, 10, **options) == whole.search(X, 10, **options)


def test_a_cluster_gives_the_answers_of_one_collection(client, tmp_path, digits):
    hasher = HybridHasher(12, form="residual", random_state=0).fit(digits[0][:200], digits[1][:200])
    folder, X = made(tmp_path, digits, hasher, by_class), digits[0][N_ITEMS : N_ITEMS + 5]
    sharded = answering(folder, client)
    with Collection(folder / "all", read_only=True) as whole:
        assert sharded.search(X, 70) == whole.search(X, 70)
        assert sharded.search_radius(X, 900.0) == whole.search_radius(X, 900.0)


def test_classes_are_merged_in_all_parts_or_in_none(inline, tmp_path, digits):
    hasher, X = StarRidge(12, random_state=0).fit(digits[0][:200], digits[1][:200]), digits[0][N_ITEMS : N_ITEMS + 5]
    folder = made(tmp_path, digits, hasher, by_turns)
    sharded = answering(folder, None)
    names = ("all", "a", "b", "c", "empty")
    for name in names[:-2]:
        with Collection(folder / name) as part:
            part.merge_classes(7, 1)
            part.remove_class(3)
    for query in ({"X": X}, {"items": [0, 1, 2]}):
        with pytest.raises(ValueError, match=r"merged or removed in some .*c differs\. Make the same changes"):
            sharded.search(**query)
    for name in names[-2:]:
        with Collection(folder / name) as part:
            part.merge_classes(7, 1)
            part.remove_class(3)
    with Collection(folder / "all", read_only=True) as whole:
        for query in ({"X": X}, {"items": [0, 1, 2]}):
            assert sharded.search(**query) == whole.search(**query)


def test_what_cannot_be_merged_is_refused(inline, tmp_path, digits):
    hasher, X = LSHash(12, random_state=0).fit(digits[0]), digits[0][:2]
    for name, vectors in {"a": None, "b": "float16"}.items():
        Collection.create(tmp_path / name, hasher, vectors=vectors).close()
    sharded = ShardedCollection([tmp_path / "a", tmp_path / "b"], None)
    with pytest.raises(ValueError, match=r"in different ways.*None, float16"):
        sharded.search(X)
    assert [*map(len, sharded.search(X, rescore=False))] == [0, 0]
    bare = ShardedCollection([tmp_path / "a"], None)
    assert repr(bare) == f"ShardedCollection([{str(tmp_path / 'a')!r}])"
    with pytest.raises(ValueError, match="this collection keeps no vectors"):
        bare.search(X, metric="cosine")
    with pytest.raises(TypeError, match="searched with 'by_scores'"):
        bare.search(X, by_scores=True)
    with pytest.raises(ValueError, match="Give either X or items"):
        bare.search(X, items=[1])
    with pytest.raises(ValueError, match="Give either X or items"):
        bare.search()
    with pytest.raises(UnknownIdError, match="in any") as unknown:
        bare.search(items=[1])
    assert unknown.value.id == 1
    with pytest.raises(ValueError, match="reject needs X"):
        bare.search(items=[1], reject=0.1)
    with pytest.raises(ValueError, match="radius"):
        bare.search_radius(X, -1)
