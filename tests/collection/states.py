"""What a collection holds, what a reader of it finds, and how a change is interrupted or its file damaged."""

import sqlite3
from contextlib import closing

from starshl import Collection
from starshl.collection.columns import Column


def die(*arguments):
    raise KeyboardInterrupt


def state_of(collection):
    return collection.rows(), sorted(collection.ids.tolist())


def assert_reads_like_a_new_reader(folder, reader, rows):
    with Collection(folder, read_only=True) as fresh:
        assert reader.ids.tolist() == fresh.ids.tolist()
        assert reader.codes(reader.ids) == fresh.codes(fresh.ids)
        assert reader.search(rows[:5], k=7) == fresh.search(rows[:5], k=7)


def spoil(folder, statement):
    with closing(sqlite3.connect(folder / "items.sqlite")) as database, database:
        database.execute(statement)


def spoil_column(folder, name, item, value):
    """Give an item another value in a column of one block, and leave the checksum as it is."""
    with closing(sqlite3.connect(folder / "items.sqlite")) as database, database:
        ((content,),) = database.execute("SELECT content FROM blocks WHERE name = ?", [name])
        values = Column.from_bytes(content).to_list()
        values[item] = value
        database.execute("UPDATE blocks SET content = ? WHERE name = ?", [Column.of(values).to_bytes(), name])
