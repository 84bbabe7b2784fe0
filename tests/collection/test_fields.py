"""Declared metadata fields: filters that read columns answer like those that read every row."""

import operator
import shutil
import sqlite3
import warnings

import numpy as np
import pytest

from starshl import Collection
from starshl.collection.chunks import Column
from starshl.exceptions import CollectionFormatError
from starshl.index import BucketIndex

FIELDS = {"year": int, "price": float, "topic": str, "sold": bool}
COMPARISONS = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def some_metadata(rng, n_items):
    """Return dictionaries in which some fields are missing, some None, and some numbers large."""
    values = {
        "year": [1999, 2000, 2001, -5, 2**53 + 1, -(2**63), None],
        "price": [0.5, 2, -1.25, 1e300, None],
        "topic": ["a", "b", "ä", "", "no\nend", None],
        "sold": [True, False, None],
        "other": [1, "1", 2.5, True],
    }
    return [
        {name: known[rng.integers(len(known))] for name, known in values.items() if rng.random() < 0.8}
        for _ in range(n_items)
    ]


def passes(metadata, field, word, value):
    """Say whether an item meets a condition, in plain Python."""
    found = metadata.get(field)
    if found is None:
        return False
    if word == "in":
        return found in value
    return COMPARISONS[word](found, value)


@pytest.fixture(scope="module")
def template(tmp_path_factory, hasher, rows):
    """A collection of several small chunks whose metadata was added, replaced and removed."""
    folder = tmp_path_factory.mktemp("template") / "declared"
    rng = np.random.default_rng(3)
    with pytest.MonkeyPatch.context() as patch, Collection.create(folder, hasher, fields=FIELDS) as collection:
        patch.setattr("starshl.collection.chunks.ITEMS_PER_CHUNK", 16)
        collection.add(rows[:50], ids=1000 - 3 * np.arange(50), metadata=some_metadata(rng, 50))
        collection.add(rows, labels=["x", "y", ""] * 20, metadata=some_metadata(rng, 60))
        collection.upsert(rows[:20], ids=np.arange(950, 970), metadata=some_metadata(rng, 20))
        collection.update([1010, 1020], some_metadata(rng, 2))
        collection.remove([1000, 1030, *range(1040, 1050)])
    return folder


@pytest.fixture
def declared(template, tmp_path):
    return shutil.copytree(template, tmp_path / "declared")


@pytest.mark.parametrize("seed", range(4))
def test_filters_on_declared_fields_agree_with_plain_python(declared, rows, seed):
    rng = np.random.default_rng(seed)
    values = {
        "year": [1999, 2000.0, 2000.5, -(2**63), 2**53 + 1, float(2**53), 1e30, float("inf"), True],
        "price": [0.5, 2, -1.25, -1, 1e300],
        "topic": ["a", "ä", "", "zz"],
        "sold": [True, False],
    }
    with Collection(declared, read_only=True) as collection:
        items = collection.get(collection.ids)
        for _ in range(40):
            field = list(values)[rng.integers(4)]
            word = [*COMPARISONS, "in"][rng.integers(7)]
            choice = values[field]
            value = choice[rng.integers(len(choice))]
            value = [value, choice[0]] if word == "in" else value
            found = collection.search(rows[:1], k=1000, where={field: {word: value}})[0]
            expected = [item.id for item in items if passes(item.metadata, field, word, value)]
            assert sorted(hit.id for hit in found) == expected, (field, word, value)


def test_declared_undeclared_and_label_filters_combine(declared, rows):
    filters = {"where": {"year": {">": 0}, "topic": {"in": ["a", "b"]}, "other": {"!=": "1"}}, "labels": ["x"]}
    with Collection(declared, read_only=True) as collection:
        among = collection.ids[5:]
        items = collection.get(among)
        with pytest.warns(UserWarning, match=r"all 112 items.*'other'.*slow: declare"):
            found = collection.search(rows[:1], k=1000, among=among, **filters)[0]
    expected = [
        item.id
        for item in items
        if item.label == "x"
        and passes(item.metadata, "year", ">", 0)
        and passes(item.metadata, "topic", "in", ["a", "b"])
        and passes(item.metadata, "other", "!=", "1")
    ]
    assert sorted(hit.id for hit in found) == expected
    assert expected


def test_filters_work_in_the_order_of_buckets(tmp_path, hasher, rows):
    for ids in (np.arange(120), 7 * np.arange(120)):
        folder = tmp_path / f"items-{ids[1]}"
        with Collection.create(folder, hasher, fields={"number": int}) as collection:
            metadata = [{"number": number} for number in range(120)]
            collection.add(np.repeat(rows[:4], 30, axis=0)[::-1], ids=ids[::-1], metadata=metadata)
            assert isinstance(collection._session._state.index, BucketIndex)
            hits = collection.search(rows[:1], k=120, where={"number": {"<": 10}})[0]
            assert sorted(hit.metadata["number"] for hit in hits) == list(range(10))


def test_fields_are_declared_later_and_stay(folder, rows):
    with Collection(folder) as collection, Collection(folder, read_only=True) as reader:
        assert collection.fields == reader.fields == {}
        collection.declare_fields({"price": "int", "name": str})
        assert reader.fields == {"name": "str", "price": "int"}
        collection.declare_fields({"price": int})
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for one in (collection, reader):
                hits = one.search(rows[:1], k=60, where={"price": {"<": 7}, "name": {"!=": "no 3"}})[0]
                assert sorted(hit.id for hit in hits) == [0, 1, 2, 4, 5, 6]
            collection.update([3], [{"price": 100}])
            hits = reader.search(rows[:1], k=60, where={"price": 100})[0]
            assert [hit.id for hit in hits] == [3]
        assert collection.verify() == reader.verify() == 60


def test_a_declared_field_that_no_item_has_finds_nothing(folder, rows):
    with Collection(folder) as collection:
        collection.declare_fields({"year": int})
        assert [*map(len, collection.search(rows[:1], where={"year": 3}))] == [0]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"price": str}, r"item 0.*'price'.*of type str"),
        ({"name": int}, "'no 0' as 'name'"),
        ({"price": float, "label": bool}, "0 as 'label'"),
        ({"price": list}, "types are int, float"),
        ({"price": "number"}, "types are int, float"),
        ({"": int}, "cannot name a metadata field"),
        ({3: int}, "cannot name a metadata field"),
        (["price"], "give a dictionary such as"),
    ],
)
def test_fields_that_do_not_fit_are_refused_and_nothing_changes(folder, fields, message):
    with Collection(folder) as collection:
        with pytest.raises(ValueError, match=message):
            collection.declare_fields(fields)
        assert collection.fields == {}
        assert collection.verify() == 60


def test_a_declared_field_keeps_its_type(folder):
    with Collection(folder) as collection:
        collection.declare_fields({"price": int})
        with pytest.raises(ValueError, match="it cannot become float"):
            collection.declare_fields({"price": float})


@pytest.mark.parametrize("value", ["2000", 2000.0, True, [2000], 2**63])
def test_metadata_of_another_type_than_declared_change_nothing(tmp_path, hasher, rows, value):
    with Collection.create(tmp_path / "items", hasher, vectors="int8", fields={"year": int}) as collection:
        collection.add(rows[:3], metadata=[{"year": 1}, {"year": None}, {}])
        before = collection.rows()
        for change in (
            lambda: collection.add(rows[:2], metadata=[{}, {"year": value}]),
            lambda: collection.upsert(rows[:1], ids=[1], metadata=[{"year": value}]),
            lambda: collection.update([1], [{"year": value}]),
        ):
            with pytest.raises(ValueError, match="whole numbers of type int"):
                change()
        assert collection.rows() == before
        assert collection.verify() == 3


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"year": "2000"}, "'year' with '2000'"),
        ({"topic": {"in": ["a", 3]}}, "'topic' with 3"),
        ({"price": {"<": 2**53 + 1}}, "as floats"),
        ({"yaer": 3}, "Did you mean 'year'"),
    ],
)
def test_filters_that_no_declared_field_can_meet_are_refused(declared, rows, where, message):
    with Collection(declared, read_only=True) as collection, pytest.raises(ValueError, match=message):
        collection.search(rows[:1], where=where)


def test_a_filter_by_labels_of_another_type_is_refused(declared, rows):
    with Collection(declared, read_only=True) as collection, pytest.raises(ValueError, match="labels are numbers"):
        collection.search(rows[:1], labels=[3])


def test_a_column_comes_back():
    for values in ([], [None], [1, None, 300], [True, False], [0.5, None], ["a", "", None, "a"], [-(2**63), 2**63 - 1]):
        assert Column.from_bytes(Column.of(values).to_bytes()).to_list() == values
    assert Column.of([1, 300]).values.dtype == np.int16


@pytest.mark.parametrize(
    "spoil",
    [
        "UPDATE chunks SET content = zeroblob(length(content)) WHERE n_items > 0",
        "UPDATE chunks SET n_items = n_items / 2",
        "UPDATE chunks SET generation = generation + 1",
        "UPDATE chunks SET first = first + 1 WHERE first > 0",
        "UPDATE chunks SET checksum = checksum + 1",
        "DELETE FROM chunks WHERE first > 0",
        "DELETE FROM chunks",
        "UPDATE meta SET value = '{}' WHERE name = 'fields'",
        "UPDATE meta SET value = 0 WHERE name = 'sum of codes'",
    ],
)
def test_damaged_chunks_of_codes_are_refused_at_opening(declared, spoil):
    run(declared, spoil)
    with pytest.raises(CollectionFormatError, match="damaged"):
        Collection(declared)


@pytest.mark.parametrize(
    "spoil",
    [
        "UPDATE column_chunks SET content = CAST(substr(content, 1, length(content) - 1) || x'07' AS BLOB)",
        "UPDATE column_chunks SET content = 'x'",
        "UPDATE column_chunks SET generation = generation + 1 WHERE first > 0",
        "UPDATE column_chunks SET first = first + 1 WHERE first > 0",
        "DELETE FROM column_chunks WHERE first > 0",
        "DELETE FROM column_chunks",
    ],
)
def test_damaged_columns_are_refused_by_filters_changes_and_verify(declared, rows, spoil):
    run(declared, spoil)
    with Collection(declared) as collection:
        assert len(collection.search(rows[:1], k=3)[0]) == 3
        for use in (
            lambda: collection.search(rows[:1], where={"year": 2000}),
            lambda: collection.search(rows[:1], labels=["x"]),
            lambda: collection.remove(collection.ids),
            lambda: collection.verify(),
        ):
            with pytest.raises(CollectionFormatError, match="damaged"):
                use()
        assert len(collection) == 112


def test_metadata_that_a_slow_filter_would_read_are_compared_with_their_checksums(folder, rows):
    run(folder, "UPDATE items SET metadata = replace(metadata, '\"price\": 7}', '\"price\": 8}') WHERE id = 7")
    with Collection(folder, read_only=True) as collection:
        assert len(collection.search(rows[:1], k=5)[0]) == 5
        with pytest.raises(CollectionFormatError, match=r"damaged: its item 7 "):
            collection.search(rows[:1], where={"price": 7})


def test_a_slow_filter_checks_again_only_what_has_changed(folder, rows, monkeypatch):
    where = {"price": {"<": 3}}
    with Collection(folder) as writer, Collection(folder, read_only=True) as reader:
        with pytest.warns(UserWarning, match="not declared"):
            assert len(reader.search(rows[:1], where=where)[0]) == 3
        monkeypatch.setattr("starshl.collection.store.Store.all_rows", lambda store: 1 / 0)
        writer.update([9], [{"price": 1}])
        with pytest.warns(UserWarning, match="not declared"):
            assert len(reader.search(rows[:1], where=where)[0]) == 4
        run(folder, "UPDATE items SET reference = 'x' WHERE id = 9")
        writer.update([10], [{"price": 1}])
        with pytest.warns(UserWarning, match="not declared"):
            assert len(reader.search(rows[:1], where={"price": 50})[0]) == 1


def test_chunks_are_cut_joined_and_written_again_by_compact(tmp_path, hasher, rows, monkeypatch):
    monkeypatch.setattr("starshl.collection.chunks.ITEMS_PER_CHUNK", 8)
    with Collection.create(tmp_path / "items", hasher, fields={"n": int}) as collection:
        collection.add(rows, metadata=[{"n": n} for n in range(60)])
        assert chunk_sizes(collection) == [8] * 7 + [4]
        collection.remove([number for number in range(60) if number % 8])
        assert chunk_sizes(collection) == [1] * 8
        collection.compact()
        assert chunk_sizes(collection) == [8]
        collection.add(rows[:10], ids=[1, 2, 3, 4, 5, 6, 7, 9, 10, 100])
        assert sum(chunk_sizes(collection)) == 18
        assert max(chunk_sizes(collection)) <= 9
        assert collection.verify() == 18
        collection.remove(collection.ids)
        assert chunk_sizes(collection) == [0]
        collection.add(rows[:3], ids=[-(2**63), 0, 2**63 - 1])
        assert collection.ids.tolist() == [-(2**63), 0, 2**63 - 1]
        assert collection.verify() == 3


def chunk_sizes(collection):
    with collection.reading() as (_, store):
        return store.chunks.sizes()


def run(folder, statement):
    connection = sqlite3.connect(folder / "items.sqlite")
    with connection:
        connection.execute(statement)
    connection.close()
