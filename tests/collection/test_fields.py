"""Declared metadata fields: filters that read columns answer like those that read every row."""

import operator
import shutil
import sqlite3
import warnings

import numpy as np
import pytest

from starshl import Collection
from starshl.collection.columns import Column
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
    """A collection of several small blocks whose metadata was added, replaced and removed."""
    folder = tmp_path_factory.mktemp("template") / "declared"
    rng = np.random.default_rng(3)
    with pytest.MonkeyPatch.context() as patch, Collection.create(folder, hasher, fields=FIELDS) as collection:
        patch.setattr("starshl.collection.blocks.ITEMS_PER_BLOCK", 16)
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


@pytest.mark.parametrize("name", ["ids", "codes"])
@pytest.mark.parametrize(
    "spoil",
    [
        "UPDATE blocks SET content = zeroblob(length(content)) WHERE name = 'NAME'",
        "UPDATE blocks SET content = 'x' WHERE name = 'NAME'",
        "UPDATE blocks SET generation = generation + 1 WHERE name = 'NAME'",
        "UPDATE blocks SET first = first + 1 WHERE first > 0 AND name = 'NAME'",
        "UPDATE blocks SET checksum = checksum + 1 WHERE name = 'NAME'",
        "DELETE FROM blocks WHERE first > 0 AND name = 'NAME'",
        "DELETE FROM blocks WHERE name = 'NAME'",
        "UPDATE meta SET value = '{}' WHERE name = 'fields'",
        "UPDATE meta SET value = 0 WHERE name = 'sum of NAME'",
    ],
)
def test_damaged_ids_and_codes_are_refused_at_opening(declared, spoil, name):
    run(declared, spoil.replace("NAME", name))
    with pytest.raises(CollectionFormatError, match="damaged"):
        Collection(declared)


@pytest.mark.parametrize(
    "spoil",
    [
        "UPDATE blocks SET content = CAST(substr(content, 1, length(content) - 1) || x'07' AS BLOB) WHERE OTHERS",
        "UPDATE blocks SET content = 'x' WHERE OTHERS",
        "UPDATE blocks SET generation = generation + 1 WHERE first > 0 AND OTHERS",
        "UPDATE blocks SET first = first + 1 WHERE first > 0 AND OTHERS",
        "DELETE FROM blocks WHERE first > 0 AND OTHERS",
        "DELETE FROM blocks WHERE OTHERS",
    ],
)
def test_damaged_columns_are_refused_by_filters_changes_and_verify(declared, rows, spoil):
    run(declared, spoil.replace("OTHERS", "(name = 'classes' OR name LIKE 'field%')"))
    with Collection(declared) as collection:
        assert len(collection.codes(collection.ids)) == 112
        for use in (
            lambda: collection.search(rows[:1], k=112),
            lambda: collection.search(rows[:1], where={"year": 2000}),
            lambda: collection.search(rows[:1], labels=["x"]),
            lambda: collection.remove(collection.ids),
            lambda: collection.verify(),
        ):
            with pytest.raises(CollectionFormatError, match="damaged"):
                use()
        assert len(collection) == 112


def test_metadata_that_a_slow_filter_would_read_are_compared_with_their_checksums(folder, rows):
    run(folder, "UPDATE texts SET metadata = replace(metadata, '\"price\": 7}', '\"price\": 8}') WHERE id = 7")
    with Collection(folder, read_only=True) as collection:
        assert len(collection.search(rows[:1], k=5)[0]) == 5
        with pytest.raises(CollectionFormatError, match=r"damaged: its item 7 "):
            collection.search(rows[:1], where={"price": 7})


def test_a_slow_filter_checks_again_only_what_has_changed(folder, rows):
    where = {"price": {"<": 3}}
    with Collection(folder) as writer, Collection(folder, read_only=True) as reader:
        with pytest.warns(UserWarning, match="not declared"):
            assert len(reader.search(rows[:1], where=where)[0]) == 3
        run(folder, "UPDATE texts SET reference = 'x' WHERE id = 30")
        writer.update([9], [{"price": 1}])
        with pytest.warns(UserWarning, match="not declared"):
            assert len(reader.search(rows[:1], where=where)[0]) == 4
        run(folder, "UPDATE texts SET reference = 'x' WHERE id = 9")
        with Collection(folder, read_only=True) as newcomer, pytest.raises(CollectionFormatError, match="its item "):
            newcomer.search(rows[:1], where=where)


def test_blocks_are_cut_joined_and_written_again_by_compact(tmp_path, hasher, rows, monkeypatch):
    monkeypatch.setattr("starshl.collection.blocks.ITEMS_PER_BLOCK", 8)
    with Collection.create(tmp_path / "items", hasher, fields={"n": int}) as collection:
        collection.add(rows, metadata=[{"n": n} for n in range(60)])
        assert block_sizes(collection) == [8] * 7 + [4]
        collection.remove([number for number in range(60) if number % 8])
        assert block_sizes(collection) == [1] * 8
        collection.compact()
        assert block_sizes(collection) == [8]
        collection.add(rows[:10], ids=[1, 2, 3, 4, 5, 6, 7, 9, 10, 100])
        assert sum(block_sizes(collection)) == 18
        assert max(block_sizes(collection)) <= 9
        assert collection.verify() == 18
        collection.remove(collection.ids)
        assert block_sizes(collection) == [0]
        collection.add(rows[:3], ids=[-(2**63), 0, 2**63 - 1])
        assert collection.ids.tolist() == [-(2**63), 0, 2**63 - 1]
        assert collection.verify() == 3


def test_metadata_come_back_as_they_were_given(tmp_path, hasher, rows):
    given = some_metadata(np.random.default_rng(5), 60)
    with Collection.create(tmp_path / "items", hasher, fields=FIELDS) as collection:
        ids = collection.add(rows, metadata=given, references=[None, "a.png"] * 30)
        assert [item.metadata for item in collection.get(ids)] == given
        collection.update(ids[:10], given[10:20])
        found = collection.get(ids[:10])
        assert [item.metadata for item in found] == given[10:20]
        assert [item.reference for item in found] == [None, "a.png"] * 5


def test_numbers_of_numpy_and_wide_integers_are_stored_in_declared_fields(tmp_path, hasher, rows):
    wide = [2**31, 2**32 - 1, 2**32, -(2**31) - 1, 2**63 - 1, -(2**63)]
    metadata = [{"year": np.int64(number), "sold": np.bool_(True), "price": np.float32(0.5)} for number in wide]
    with Collection.create(tmp_path / "items", hasher, fields=FIELDS) as collection:
        ids = collection.add(rows[:6], metadata=metadata)
        assert [item.metadata["year"] for item in collection.get(ids)] == wide
        assert collection.find({"year": {">": 2**31}, "sold": True, "price": 0.5}).tolist() == [1, 2, 4]
        with pytest.raises(ValueError, match="whole numbers of type int"):
            collection.add(rows[:1], metadata=[{"year": np.uint64(2**63)}])


@pytest.mark.parametrize("value", ["a\0b", "half \ud800"])
def test_texts_that_no_database_holds_are_refused_in_declared_fields(tmp_path, hasher, rows, value):
    with Collection.create(tmp_path / "items", hasher, fields={"topic": str}) as collection:
        with pytest.raises(ValueError, match=r"metadata\[1\] contains"):
            collection.add(rows[:2], metadata=[{"topic": "a"}, {"topic": value}])
        assert len(collection) == 0


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_that_json_lacks_are_refused_in_declared_fields(tmp_path, hasher, rows, value):
    with Collection.create(tmp_path / "items", hasher, fields={"price": float}) as collection:
        with pytest.raises(ValueError, match="cannot be stored"):
            collection.add(rows[:2], metadata=[{"price": 1.0}, {"price": value}])
        assert len(collection) == 0


def test_long_texts_make_small_blocks(tmp_path, hasher, rows):
    texts = [f"{number:3d}" + 400_000 * "x" for number in range(30)]
    with Collection.create(tmp_path / "items", hasher, fields={"topic": str}) as collection:
        ids = collection.add(rows[:30], metadata=[{"topic": text} for text in texts])
        assert max(block_sizes(collection)) < 11
        assert [item.metadata["topic"] for item in collection.get(ids)] == texts
        with pytest.raises(ValueError, match="as JSON"):
            collection.add(rows[:1], metadata=[{"topic": 1_000_000 * "x"}])


@pytest.mark.parametrize("seed", range(3))
def test_any_changes_leave_what_a_dictionary_would_hold(tmp_path, hasher, rows, monkeypatch, seed):
    monkeypatch.setattr("starshl.collection.blocks.ITEMS_PER_BLOCK", 8)
    rng, expected = np.random.default_rng(seed), {}
    with (
        Collection.create(tmp_path / "items", hasher, vectors="float16", fields={"year": int}) as collection,
        Collection(tmp_path / "items", read_only=True) as reader,
    ):
        for number in range(30):
            ids = rng.permutation(100)[: rng.integers(1, 20)]
            metadata, known = some_metadata(rng, len(ids)), [item for item in ids.tolist() if item in expected]
            step = rng.integers(6)
            if step <= 1:
                names = [f"{item}.png" if item % 2 else None for item in ids.tolist()]
                collection.upsert(rows[ids % 60], ids=ids, metadata=metadata, references=names)
                for item, about, name in zip(ids.tolist(), metadata, names, strict=True):
                    expected[item] = [rows[item % 60], about, None, name]
            elif step == 2 and known:
                collection.remove(known)
                for item in known:
                    del expected[item]
            elif step == 3 and known:
                collection.update(known, metadata[: len(known)])
                for item, about in zip(known, metadata, strict=False):
                    expected[item][1] = about
            elif step == 4 and known:
                collection.set_labels(known, [f"class {number % 3}"] * len(known))
                for item in known:
                    expected[item][2] = f"class {number % 3}"
            elif step == 5:
                collection.compact()
            if number == 20:
                collection.declare_fields({"price": float, "topic": str, "sold": bool})
            assert_holds(reader, hasher, expected)
        assert collection.verify() == len(expected)
    with Collection(tmp_path / "items") as again:
        assert_holds(again, hasher, expected)


def assert_holds(collection, hasher, expected):
    ids = sorted(expected)
    assert collection.ids.tolist() == ids
    items = collection.get(ids, vectors=True)
    assert [[item.metadata, item.label, item.reference] for item in items] == [expected[item][1:] for item in ids]
    if ids:
        X = np.array([expected[item][0] for item in ids])
        assert collection.codes(ids) == hasher.encode(X)
        assert np.allclose([item.vector for item in items], X, rtol=1e-3, atol=1e-6)
        labels = sorted({expected[item][2] for item in ids} - {None})
        for label in labels:
            assert collection.find(labels=[label]).tolist() == [item for item in ids if expected[item][2] == label]


def block_sizes(collection):
    with collection.reading() as (_, store):
        return store.blocks.sizes()


def run(folder, statement):
    connection = sqlite3.connect(folder / "items.sqlite")
    with connection:
        connection.execute(statement)
    connection.close()
