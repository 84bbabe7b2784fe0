"""A flip in any stored value is noticed by verify, or changes no answer."""

import shutil
import sqlite3
from contextlib import closing

import numpy as np
import pytest

from starshl import Collection
from starshl.exceptions import CollectionError, CollectionFormatError
from starshl.hashers.baselines import LSHash

ROWS = np.random.default_rng(0).standard_normal((12, 4))
PNG = b"\x89PNG\r\n\x1a\n and so on"


@pytest.fixture(scope="module")
def intact(tmp_path_factory):
    """A closed collection with something in every table."""
    folder = tmp_path_factory.mktemp("flips") / "intact"
    hasher = LSHash(16, random_state=0).fit(ROWS)
    with Collection.create(folder, hasher, vectors="float16", fields={"page": int}, title="page") as collection:
        with collection.idempotent("first", "12 items"), collection.journaling("lesson", "began"):
            metadata = [{"page": number, "note": "é"} for number in range(12)]
            collection.add(ROWS, metadata=metadata, references=["a.png"] * 12, previews=[PNG, None] * 6)
        with collection.idempotent("second", "a label"), collection.journaling("lesson", "went on"):
            collection.set_labels([1, 2], ["cat", "dog"])
        collection.remove([5])
    return folder


def answers(collection):
    """Everything that a user can ask for."""
    found = [collection.search(ROWS[:2], k=11, **filters) for filters in ({}, {"labels": ["cat"]})]
    found += [collection.search(ROWS[:2], k=11, where={"page": {"<": 6}})]
    texts = [collection.receipt(key) for key in ("first", "second")], collection.journal("lesson")
    pictures = [collection.preview(item) for item in collection.ids.tolist()]
    facts = collection.fields, collection.kind, collection.title, collection.label_kind, collection.value_counts("page")
    items = collection.get(collection.ids, vectors=True)
    return collection.rows(), found, texts, pictures, facts, items, collection.labels(), collection.version


def noticed_or_harmless(folder, expected):
    """Tell whether opening, asking or verifying refuses the collection, or all answers are as before."""
    try:
        with Collection(folder, read_only=True) as collection:
            collection.verify()
            return answers(collection) == expected
    except (CollectionError, CollectionFormatError):
        return True


def flipped(value):
    """Yield the value with one change each: in every third character, and as another type."""
    if isinstance(value, int):
        yield from (value ^ 1, value ^ (1 << 20), str(value) + "x", float(value) + 0.5)
    elif isinstance(value, str):
        yield from (
            value[:place] + chr(ord(value[place]) ^ 1) + value[place + 1 :] for place in range(0, len(value), 3)
        )
        yield value + " "
    elif isinstance(value, bytes):
        for place in range(0, len(value), max(1, len(value) // 8)):
            yield value[:place] + bytes([value[place] ^ 1]) + value[place + 1 :]
    else:
        yield from (7, "text")


def stored_values(folder):
    """Yield table, condition that names one row, its parameters, column and value, for every stored value."""
    with closing(sqlite3.connect(folder / "items.sqlite")) as database:
        tables = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            described = database.execute(f"PRAGMA table_info({table})").fetchall()
            names, keys = [row[1] for row in described], [row[1] for row in described if row[5]]
            keys = keys or names
            for record in database.execute(f"SELECT * FROM {table}").fetchall():
                values = dict(zip(names, record, strict=True))
                condition = " AND ".join(f"{key} IS ?" for key in keys)
                for name, value in values.items():
                    yield table, condition, [values[key] for key in keys], name, value


def test_a_flip_in_a_value_of_the_database_is_noticed_or_harmless(intact, tmp_path):
    with Collection(intact, read_only=True) as collection:
        expected = answers(collection)
    rng = np.random.default_rng(0)
    flips = [(*place, other) for place in stored_values(intact) for other in flipped(place[-1])]
    tables = {flip[0] for flip in flips}
    described = {"meta", "blocks", "texts", "vocabulary", "changes"}
    assert tables == described | {"previews", "receipts", "entries"}
    chosen = rng.permutation(len(flips))[:250]
    for number in chosen:
        table, condition, parameters, name, _, other = flips[number]
        folder = shutil.copytree(intact, tmp_path / str(number))
        try:
            with closing(sqlite3.connect(folder / "items.sqlite")) as database, database:
                database.execute(f"UPDATE {table} SET {name} = ? WHERE {condition}", [other, *parameters])
        except sqlite3.IntegrityError:
            continue  # SQLite has no such row: its key is taken, or of another type
        assert noticed_or_harmless(folder, expected), f"{table}.{name} of {parameters} became {other!r}"
        shutil.rmtree(folder)


def test_a_flip_in_a_file_is_noticed_or_harmless(intact, tmp_path):
    with Collection(intact, read_only=True) as collection:
        expected = answers(collection)
    rng = np.random.default_rng(1)
    for path in sorted(intact.iterdir()):
        content = path.read_bytes()
        for place in rng.permutation(len(content))[:40].tolist():
            folder = shutil.copytree(intact, tmp_path / "flipped")
            changed = content[:place] + bytes([content[place] ^ (1 << int(rng.integers(8)))]) + content[place + 1 :]
            (folder / path.name).write_bytes(changed)
            assert noticed_or_harmless(folder, expected), f"byte {place} of {path.name}"
            shutil.rmtree(folder)
