"""A collection holds codes of one space, and every item remembers the model that encoded it."""

import json
from dataclasses import replace

import numpy as np
import pytest

from starshl import BinaryCodes, Codebook, Collection, StarRidge
from starshl.collection.store import Store
from starshl.exceptions import CollectionFormatError, SpaceMismatchError, UnknownSpaceWarning
from starshl.hashers.baselines import LSHash

OTHER = "0123456789abcdef"


@pytest.fixture
def of_one_space(rows):
    """Two hashers that make different codes of one space, because they were fitted to one codebook."""
    codebook = Codebook.make(["a", "b", "c"], n_bits=24, random_state=0)
    first, second = (
        StarRidge(24, codewords=codebook, random_state=0).fit(rows, codebook.classes[columns.argmax(axis=1)])
        for columns in (rows[:, :3], rows[:, 3:6])
    )
    assert first.space_id_ == second.space_id_ == codebook.space_id
    assert first.encode_database(rows) != second.encode_database(rows)
    return first, second


def model_digests(collection):
    return [item.model_digest for item in collection.get(collection.ids)]


def test_codes_of_another_space_are_refused_and_nothing_changes(folder, hasher, rows):
    codes = hasher.encode(rows[:3])
    with Collection(folder) as collection:
        assert collection.space_id == hasher.space_id_ == codes.space_id
        assert collection.codes([0, 1, 2]).space_id == collection.space_id
        for change in (
            lambda codes: collection.add(codes=codes),
            lambda codes: collection.upsert(codes=codes, ids=[1, 2, 3]),
        ):
            with pytest.raises(SpaceMismatchError, match=OTHER):
                change(replace(codes, space_id=OTHER))
        assert len(collection) == 60
        with pytest.warns(UnknownSpaceWarning, match="say so: BinaryCodes"):
            collection.add(codes=BinaryCodes(codes.packed, codes.n_bits))
        collection.add(codes=codes)
        assert collection.verify() == 66


def test_items_remember_the_model_that_encoded_them(folder, hasher, rows, tmp_path):
    with Collection(folder) as collection:
        name = next(folder.glob("hasher-*.star")).name
        assert name == f"hasher-{collection.model_digest}.star"
        assert model_digests(collection) == [collection.model_digest] * 60
        codes = hasher.encode(rows[:3])
        collection.add(codes=codes[:1])
        collection.add(codes=codes[1:], model_digest=OTHER)
        collection.set_labels([61], ["a"])
        collection.update([61], [{"label": 1}])
        assert model_digests(collection)[60:] == [None, OTHER, OTHER]
        collection.export(tmp_path / "items.jsonl")
        last = json.loads((tmp_path / "items.jsonl").read_text().splitlines()[-1])
        assert (last["model_digest"], last["space_id"]) == (OTHER, collection.space_id)


@pytest.mark.parametrize("model_digest", ["x", "0123456789ABCDEF", 3, ""])
def test_bad_model_digests_are_refused(folder, hasher, rows, model_digest):
    with Collection(folder) as collection:
        with pytest.raises(ValueError, match="16 hexadecimal digits"):
            collection.add(codes=hasher.encode(rows[:1]), model_digest=model_digest)
        with pytest.raises(ValueError, match="but there are no codes"):
            collection.add(rows[:1], model_digest=OTHER)
        assert len(collection) == 60


def test_a_new_hasher_brings_its_space_and_becomes_the_model_of_all_items(folder, rows):
    other = LSHash(40, random_state=1).fit(rows)
    with Collection(folder) as collection, Collection(folder, read_only=True) as reader:
        before = collection.model_digest
        with pytest.raises(ValueError, match="needs every item"):
            collection.replace_hasher(other)
        assert collection.model_digest == before
        collection.replace_hasher(other, np.arange(60), rows)
        for one in (collection, reader):
            assert one.space_id == other.space_id_
            assert one.model_digest != before
            assert model_digests(one) == [one.model_digest] * 60


def test_a_hasher_of_the_same_space_leaves_codes_and_model_digests_as_they_are(tmp_path, rows, of_one_space):
    first, second = of_one_space
    with Collection.create(tmp_path / "items", first) as collection:
        collection.add(rows[:20])
        old = collection.model_digest
        collection.replace_hasher(second)
        assert collection.model_digest != old
        collection.add(rows[20:30])
        assert model_digests(collection) == [old] * 20 + [collection.model_digest] * 10
        assert collection.codes(np.arange(20)) == first.encode_database(rows[:20])
        assert collection.codes(np.arange(20, 30)) == second.encode_database(rows[20:30])
        assert collection.verify() == 30
    with Collection(tmp_path / "items") as collection:
        assert collection.space_id == first.space_id_
        assert (collection.hasher.encode(rows).packed == second.encode(rows).packed).all()


def test_a_class_that_gets_a_reserved_word_gives_its_items_that_word(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = rng.standard_normal((90, 6)) + 4.0 * np.eye(6)[y]
    codebook = Codebook.make(["a", "b"], n_bits=16, n_reserved=2, random_state=0)
    names = np.array(["a", "b", "c"])[y]
    old = StarRidge(16, codewords=codebook, random_state=0).fit(X[y < 2], names[y < 2])
    new = StarRidge(16, codewords=codebook.assign("c"), random_state=0).fit(X, names)
    with Collection.create(tmp_path / "items", old) as collection:
        with pytest.warns(UserWarning, match="the label of 30 items"):
            collection.add(X, labels=names)
        model_digest = collection.model_digest
        collection.replace_hasher(new)
        assert collection.space_id == codebook.space_id
        assert model_digests(collection) == [model_digest] * 90
        assert collection.codes(np.arange(90)) == codebook.assign("c").codes_of(names)
        collection.set_labels([2], None)
        assert collection.codes([2]) == old.encode_database(X[2:3])
        assert collection.verify() == 90


def test_kept_vectors_are_encoded_again_even_in_the_same_space(tmp_path, rows, of_one_space):
    first, second = of_one_space
    with Collection.create(tmp_path / "items", first, vectors="float16") as collection:
        collection.add(rows)
        collection.replace_hasher(second)
        assert model_digests(collection) == [collection.model_digest] * 60
        assert collection.codes(np.arange(60)) == second.encode_database(collection.vectors(np.arange(60)))


def test_a_model_of_another_space_than_the_codes_is_refused(folder, hasher):
    store = Store(folder / "items.sqlite", writable=True)
    with store.writing():
        store.set_meta("space", OTHER)
    store.close()
    with pytest.raises(CollectionFormatError) as refused:
        Collection(folder)
    assert all(space_id in refused.value.fields["finding"] for space_id in (OTHER, hasher.space_id_))
