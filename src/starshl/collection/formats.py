"""The formats of the database file: which tables each one has, how its rows are read, and the way to the newest."""

from __future__ import annotations

from .rows import COLUMNS

__all__ = [
    "FACTS_TABLE",
    "FORMAT",
    "HAS_LISTED_ID",
    "NEW_FACTS",
    "OPTIONAL_TABLES",
    "PREVIEWS_TABLE",
    "SOURCES",
    "SUM_MODULUS",
    "TABLES",
    "UPGRADE",
]

FORMAT = 2
#: Sums of checksums are kept modulo this, so that they and the next checksum fit in SQLite's 64 bits.
SUM_MODULUS = 1 << 62
#: The condition that a row has one of the ids of a parameter, a JSON list: it may be of any length.
HAS_LISTED_ID = "id IN (SELECT value FROM json_each(?))"

FACTS_TABLE = "CREATE TABLE facts (name TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID"
# Which ids a transaction has changed, for readers that hold the state before it.
_CHANGES = "CREATE TABLE changes (generation INTEGER NOT NULL, id INTEGER NOT NULL)"
_ITEMS_1 = """CREATE TABLE items (
  id INTEGER PRIMARY KEY,
  code BLOB NOT NULL,
  reference TEXT,
  metadata TEXT NOT NULL,
  checksum INTEGER NOT NULL
)"""
# The long texts come last, so that the other columns of a row are read without them.
_ITEMS_2 = """CREATE TABLE items (
  id INTEGER PRIMARY KEY,
  code BLOB NOT NULL,
  own_code BLOB,
  label TEXT,
  encoder TEXT,
  slot INTEGER,
  vector_sum INTEGER,
  reference TEXT,
  metadata TEXT NOT NULL,
  checksum INTEGER NOT NULL
)"""
# Codes of many items in one value, by ascending id; a block ends where the next one begins.
_BLOCKS = """CREATE TABLE blocks (
  first INTEGER PRIMARY KEY,
  n_items INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  checksum INTEGER NOT NULL,
  content BLOB NOT NULL
)"""
# Labels and declared fields of the items of each block.
_COLUMN_BLOCKS = """CREATE TABLE column_blocks (
  name TEXT NOT NULL,
  first INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  checksum INTEGER NOT NULL,
  content BLOB NOT NULL,
  PRIMARY KEY (name, first)
) WITHOUT ROWID"""

#: Small pictures of items; made with the first of them.
PREVIEWS_TABLE = """CREATE TABLE previews (
  id INTEGER PRIMARY KEY,
  checksum INTEGER NOT NULL,
  content BLOB NOT NULL
)"""

#: The statements that made the tables of each format, exactly as SQLite stores them.
TABLES = {
    1: {"facts": FACTS_TABLE, "items": _ITEMS_1, "changes": _CHANGES},
    2: {
        "facts": FACTS_TABLE,
        "items": _ITEMS_2,
        "changes": _CHANGES,
        "blocks": _BLOCKS,
        "column_blocks": _COLUMN_BLOCKS,
    },
}

#: Tables that a file of a format may have besides.
OPTIONAL_TABLES = {1: {}, 2: {"previews": PREVIEWS_TABLE}}

_ADDED = ("own_code", "label", "encoder", "slot", "vector_sum")
_AS_NOW = ", ".join(f"NULL AS {name}" if name in _ADDED else name for name in COLUMNS)

#: What to select :data:`~starshl.collection.rows.COLUMNS` from in each format.
SOURCES = {1: f"(SELECT {_AS_NOW} FROM items)", 2: "items"}

#: Facts that format 1 lacks, as they are in a collection without labels, declared fields and vectors.
NEW_FACTS: dict[str, str | int] = {
    "space": "",
    "fields": "{}",
    "label_kind": "",
    "vector_kind": "",
    "vector_file": "",
    "n_columns": 0,
    "n_slots": 0,
}

#: The way from format 1 to 2, up to the blocks, which are written afterwards. Checksums stay: that of a row without
#: new fields is the same in both formats.
UPGRADE = (
    "ALTER TABLE items RENAME TO items_of_format_1",
    _ITEMS_2,
    f"INSERT INTO items ({', '.join(COLUMNS)}) SELECT {_AS_NOW} FROM items_of_format_1 ORDER BY id",
    "DROP TABLE items_of_format_1",
    _BLOCKS,
    _COLUMN_BLOCKS,
)
