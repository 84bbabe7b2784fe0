"""A collection keeps what it was given, finds it again, and refuses what is wrong without half-doing it."""

import json
import threading

import numpy as np
import pytest

from starshl import Collection, StarSHL
from starshl.hashers.baselines import LSHash

from .states import state_of


def test_upsert_replaces_and_adds(folder, rows):
    with Collection(folder) as collection:
        collection.upsert(rows[[1, 2]], ids=[0, 100], metadata=[{"label": 7}, {"label": 8}])
        assert len(collection) == 61
        assert [item.metadata for item in collection.get([100, 0])] == [{"label": 8}, {"label": 7}]
        assert collection.codes([0, 100]) == collection.codes([1, 2])
    with Collection(folder) as collection:
        assert collection.search(rows[1:2], k=2)[0][0].id == 0


class CallableHashers:
    """A hasher that learned with a function, which no file can hold."""

    @staticmethod
    def kernel(a, b):
        return np.asarray(a) @ np.asarray(b).T

    @classmethod
    def fitted(cls, rows):
        return StarSHL(24, kernels=[cls.kernel], random_state=0).fit(rows, np.arange(len(rows)) % 3)


def test_a_hasher_that_cannot_be_loaded_again_gets_no_collection(tmp_path, rows):
    hasher = CallableHashers.fitted(rows)
    with pytest.raises(ValueError, match="kernels given as functions"):
        Collection.create(tmp_path / "items", hasher)
    assert list(tmp_path.iterdir()) == []
    with Collection.create(tmp_path / "items", hasher, kernels=[CallableHashers.kernel]) as collection:
        collection.add(rows)
        assert collection.codes([7]) == hasher.encode(rows[7:8])
    with Collection(tmp_path / "items", kernels=[CallableHashers.kernel]) as collection:
        assert collection.verify() == 60


def test_a_hasher_that_cannot_be_loaded_again_replaces_none(folder, rows):
    other = CallableHashers.fitted(rows)
    with Collection(folder) as collection:
        before, files = state_of(collection), sorted(folder.iterdir())
        with pytest.raises(ValueError, match="kernels given as functions"):
            collection.replace_hasher(other, np.arange(60), rows)
        assert state_of(collection) == before
        assert sorted(folder.iterdir()) == files
        collection.replace_hasher(other, np.arange(60), rows, kernels=[CallableHashers.kernel])
        assert collection.codes(np.arange(60)) == other.encode(rows)
        assert collection.search(rows[:1], k=3) == collection.search(items=[0], k=3)


def test_items_get_database_codes_and_queries_get_query_codes(tmp_path, rows, monkeypatch):
    hasher = LSHash(24, random_state=0).fit(rows)
    monkeypatch.setattr(LSHash, "encode_database", lambda self, X, y=None: self.encode(-X))
    with Collection.create(tmp_path / "items", hasher) as collection:
        collection.add(rows, labels=np.arange(60) % 3)
        assert collection.codes(np.arange(60)) == hasher.encode(-rows)
        assert collection.search(-rows[:5], k=1) == collection.search(items=np.arange(5), k=1)


def test_metadata_change_without_encoding_again(folder, rows):
    with Collection(folder) as collection:
        before = collection.codes([4, 5])
        collection.update([5, 4], [{"label": "new"}, {"label": "class"}])
        assert collection.codes([4, 5]) == before
        hits = collection.search(rows[:1], k=60, where={"label": {"in": ["new", "class"]}})[0]
        assert sorted((hit.id, hit.reference) for hit in hits) == [(4, "images/4.png"), (5, "images/5.png")]


def test_a_new_hasher_takes_all_items_along(folder, rows):
    other = LSHash(40, random_state=1).fit(rows)
    with Collection(folder) as collection:
        with pytest.raises(ValueError, match=r"every item exactly once"):
            collection.replace_hasher(other, np.arange(59), rows[:59])
        assert collection.n_bits == 24
        collection.replace_hasher(other, np.arange(60), rows)
        assert collection.n_bits == 40
    with Collection(folder) as collection:
        assert collection.codes(np.arange(60)) == other.encode(rows)
        assert collection.get([7])[0].metadata["price"] == 7
    assert len(list(folder.glob("hasher-*.star"))) == 1


def test_a_hasher_is_not_replaced_between_encoding_and_storing(folder, rows, monkeypatch):
    other = LSHash(24, random_state=1).fit(rows)
    with Collection(folder) as collection:
        replacing = threading.Thread(target=collection.replace_hasher, args=(other, np.arange(60), rows))
        real_encode = LSHash.encode_database

        def encode_slowly(hasher, *arguments):
            codes = real_encode(hasher, *arguments)
            if hasher is not other and not replacing.ident:
                # Encoding holds no lock: the other thread gets its turn in the middle of it.
                replacing.start()
                replacing.join(60)
            return codes

        monkeypatch.setattr(LSHash, "encode_database", encode_slowly)
        collection.upsert(rows[:1], ids=[7])
        assert collection.codes([7, 8]) == other.encode(rows[[0, 8]])


def test_removed_items_are_gone_and_compact_shrinks_the_file(folder, hasher, rows):
    with Collection(folder) as collection:
        ids = collection.add(np.repeat(rows, 40, axis=0), metadata=[{"text": "x" * 500}] * 2400)
        collection.compact()
        size = (folder / "items.sqlite").stat().st_size
        collection.remove(ids)
        collection.compact()
        assert (folder / "items.sqlite").stat().st_size < size / 5
        assert collection.ids.tolist() == list(range(60))
        assert collection.verify() == 60


def test_json_lines_hold_every_item(folder, hasher, rows, tmp_path):
    with Collection(folder) as collection:
        assert collection.export(tmp_path / "items.jsonl") == 60
    lines = [json.loads(line) for line in (tmp_path / "items.jsonl").read_text().splitlines()]
    assert lines[5]["metadata"] == {"label": 2, "price": 5, "name": "no 5"}
    assert [line["code"] for line in lines] == [code.tobytes().hex() for code in hasher.encode(rows).packed]
