"""What a collection knows of its hasher without loading it is what the hasher says, and searches need no more."""

import subprocess
import sys
from contextlib import closing
from dataclasses import astuple

import numpy as np
import pytest

from starshl import Collection, HybridHasher, StarRidge, StarSHL
from starshl.collection.code_space import CodeSpace
from starshl.collection.store import Store
from starshl.data.features import Scale
from starshl.exceptions import CollectionFormatError
from starshl.hashers import PreparedHasher
from starshl.hashers.baselines import ITQ, LSHash
from starshl.index import BucketIndex, FlatIndex

LABELS = np.repeat([0, 1, 2], 20)
HASHERS = {
    "plain": lambda rows: ITQ(8, random_state=0).fit(rows),
    "words of classes": lambda rows: StarRidge(16, random_state=0).fit(rows, LABELS),
    "words of clusters": lambda rows: StarRidge(16, n_codewords=3, random_state=0).fit(rows),
    "codewords": lambda rows: StarSHL(16, random_state=0).fit(rows, LABELS),
    "hybrid": lambda rows: HybridHasher(16, random_state=0).fit(rows, LABELS),
    "residual": lambda rows: HybridHasher(16, form="residual", random_state=0).fit(rows, LABELS),
    "behind steps": lambda rows: PreparedHasher([Scale()], HybridHasher(16, random_state=0)).fit(rows, LABELS),
}


@pytest.fixture(scope="module")
def groups():
    """Three groups in 40 dimensions, so that 16 neighbor bits have something to say."""
    rng = np.random.default_rng(0)
    return 3 * rng.standard_normal((3, 40))[LABELS] + rng.standard_normal((60, 40))


@pytest.fixture(scope="module", params=HASHERS)
def any_hasher(request, groups):
    return HASHERS[request.param](groups)


def test_a_file_says_what_the_hasher_says(any_hasher, tmp_path):
    made = CodeSpace.of(any_hasher)
    made.save(tmp_path / "space", "model")
    held = CodeSpace.read(tmp_path / "space", "model")
    assert (held.n_bits, held.space_id) == (any_hasher.n_bits_, any_hasher.space_id_)
    assert (held.supports, held.method) == (any_hasher.supports, any_hasher.method_name)
    assert held.n_classes == (0 if any_hasher.holds_clusters else len(any_hasher.class_labels))
    for metric in ("euclidean", "cosine"):
        rule = any_hasher.vector_rule(metric)
        assert held.rules[metric] == rule
        assert rule is None or astuple(held.rules[metric]) == astuple(rule)


def test_its_index_answers_as_that_of_the_hasher(any_hasher, groups, tmp_path):
    CodeSpace.of(any_hasher).save(tmp_path / "space", "model")
    codes = any_hasher.encode_database(groups, LABELS)
    ids = np.arange(len(codes))[::-1] + 5
    index = CodeSpace.read(tmp_path / "space", "model").make_index(codes, ids, None)
    expected = any_hasher.make_index(codes, ids)
    assert type(index) is type(expected)
    queries = any_hasher.encode_queries(groups[:20])
    for answer, other in zip(index.search(queries, k=60), expected.search(queries, k=60), strict=True):
        assert np.array_equal(answer, other)


def test_the_kind_of_index_is_chosen_by_the_codes(rows):
    hasher = ITQ(8, random_state=0).fit(rows)
    space, codes = CodeSpace.of(hasher), hasher.encode(rows)
    n_different = len(np.unique(codes.packed, axis=0))
    few = codes[np.arange(2 * n_different) % len(codes)]
    assert isinstance(space.make_index(codes[:2], np.arange(2), None), FlatIndex | BucketIndex)
    assert isinstance(space.make_index(few[np.zeros(8, int)], np.arange(8), None), BucketIndex)


@pytest.mark.parametrize("vectors", [None, "float16"])
def test_a_search_by_stored_items_loads_no_hasher(tmp_path, groups, vectors):
    hasher = HASHERS["hybrid"](groups)
    with Collection.create(tmp_path / "items", hasher, vectors=vectors) as collection:
        collection.add(groups, labels=LABELS)
        expected = [hit.id for hit in collection.search(items=[3], k=5)[0]]
    code = (
        "import sys\nfrom starshl import Collection\n"
        f"with Collection({str(tmp_path / 'items')!r}) as collection:\n"
        "    print([hit.id for hit in collection.search(items=[3], k=5)[0]], 'sklearn' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"{expected} False"


def test_kernels_are_needed_only_to_encode(tmp_path, groups):
    def kernel(a, b):
        return np.asarray(a) @ np.asarray(b).T

    hasher = StarSHL(24, kernels=[kernel], random_state=0).fit(groups, LABELS)
    with Collection.create(tmp_path / "items", hasher, kernels=[kernel]) as collection:
        collection.add(groups)
        expected = collection.search(items=[3], k=5)
    with Collection(tmp_path / "items") as collection:
        assert collection.search(items=[3], k=5) == expected
        with pytest.raises(ValueError, match="kernels given as functions"):
            collection.search(groups[:1], k=5)
        with pytest.raises(ValueError, match="kernels given as functions"):
            collection.verify()


@pytest.mark.parametrize("damage", ["missing", "changed", "of another model"])
def test_a_file_that_is_not_that_of_the_model_is_refused(folder, damage):
    path = next(folder.glob("space-*.star"))
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
    elif damage == "changed":
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    else:
        CodeSpace.read(path, next(folder.glob("hasher-*.star")).name).save(path, "hasher-0123456789abcdef.star")
    with pytest.raises(
        CollectionFormatError, match="missing" if damage == "missing" else "does not describe its model"
    ):
        Collection(folder)


def test_a_model_of_other_codes_is_refused_when_it_is_loaded(folder, rows):
    other = LSHash(24, random_state=1).fit(rows)
    path = next(folder.glob("space-*.star"))
    CodeSpace.of(other).save(path, next(folder.glob("hasher-*.star")).name)
    with pytest.raises(CollectionFormatError, match="codes are of space"):
        Collection(folder)
    with closing(Store(folder / "items.sqlite", writable=True)) as store, store.writing():
        store.set_meta("space", other.space_id_)
    with Collection(folder) as collection:
        assert len(collection.search(items=[3], k=5)[0]) == 5
        with pytest.raises(CollectionFormatError, match="its model makes codes"):
            collection.search(rows[:1], k=5)
