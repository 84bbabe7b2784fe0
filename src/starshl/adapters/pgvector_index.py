"""PgvectorIndex: codes in a PostgreSQL table, searched by the database through pgvector."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from .._extras import require
from .._validation import check_integer
from ..codes import BinaryCodes
from ..exceptions import AdapterError
from ..index import HammingIndex, Neighbors, RadiusNeighbors
from ..index.base import check_ids, next_ids

psycopg = require("psycopg", extra="pgvector")

__all__ = ["PgvectorIndex"]


class PgvectorIndex(HammingIndex):
    """A table ``(id bigint, code bit(n), metadata jsonb)`` searched by Hamming distance ``<~>``.

    Each addition or removal is one transaction. If the connection is lost, the change that was under way is
    undone by the server, the call raises :class:`~starshl.exceptions.AdapterError`, and the next call
    connects again.

    Parameters
    ----------
    uri : str
        For example ``postgresql://user@host/database``; the database needs the extension pgvector.
    n_bits : int
    table : str, default="starshl_codes"
        Created if it does not exist.
    approximate : bool, default=False
        Let ``search`` use the HNSW index made by :meth:`create_hnsw`: faster on millions of different codes,
        but neighbors may be missed; poor on learned codes, of which many are equal.
    """

    def __init__(self, uri: str, n_bits: int, *, table: str = "starshl_codes", approximate: bool = False):
        self.n_bits = check_integer(n_bits, "n_bits", low=1)
        if not isinstance(table, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,50}", table):
            raise ValueError(f"The table name is {table!r}; use letters, digits and underscores.")
        self.uri, self.table, self.approximate = uri, table, approximate
        self._connection = None
        with self._transaction() as cursor:
            cursor.execute("CREATE EXTENSION IF NOT EXISTS vector")
            cursor.execute(
                f"CREATE TABLE IF NOT EXISTS {table} (id bigint PRIMARY KEY, "
                f"code bit({self.n_bits}) NOT NULL, metadata jsonb NOT NULL DEFAULT '{{}}')"
            )
            self._check_table(cursor)

    @property
    def ids(self) -> np.ndarray:
        with self._transaction() as cursor:
            cursor.execute(f"SELECT id FROM {self.table} ORDER BY id")
            return np.array([row[0] for row in cursor], np.int64)

    def __len__(self) -> int:
        with self._transaction() as cursor:
            return cursor.execute(f"SELECT count(*) FROM {self.table}").fetchone()[0]

    def add(self, codes: BinaryCodes, ids=None, metadata: Sequence[Mapping[str, Any]] | None = None):
        """Add codes under new ids, with a dictionary of metadata each; return the ids."""
        self._check_codes(codes)
        metadata = [{}] * len(codes) if metadata is None else list(metadata)
        if len(metadata) != len(codes):
            raise ValueError(f"There are {len(metadata)} dictionaries of metadata for {len(codes)} codes.")
        with self._transaction() as cursor:
            if ids is None:
                # Two processes that both take the next ids must not take the same ones.
                cursor.execute(f"LOCK TABLE {self.table} IN EXCLUSIVE MODE")
                last = cursor.execute(f"SELECT max(id) FROM {self.table}").fetchone()[0]
                ids = next_ids(len(codes), last)
            else:
                ids = check_ids(ids, len(codes))
            try:
                with cursor.copy(f"COPY {self.table} (id, code, metadata) FROM STDIN") as copy:
                    for row in zip(ids.tolist(), _bit_texts(codes), map(json.dumps, metadata), strict=True):
                        copy.write_row(row)
            except psycopg.errors.UniqueViolation as error:
                taken = re.search(r"\(id\)=\((-?\d+)\)", str(error))
                raise ValueError(
                    f"The id {taken[1] if taken else ''} is already in the index, and nothing was added. "
                    "Remove it first, or give a new id."
                ) from error
        return ids

    def remove(self, ids) -> None:
        ids = check_ids(ids).tolist()
        with self._transaction() as cursor:
            cursor.execute(f"DELETE FROM {self.table} WHERE id = ANY(%s) RETURNING id", [ids])
            self._check_known(ids, {row[0] for row in cursor})

    def search(self, codes: BinaryCodes, k: int = 10, *, where=None) -> Neighbors:
        """Return the k nearest items of each code.

        ``where`` is an array of ids, or a dictionary that metadata must contain, such as ``{"label": 3}``.
        """
        self._check_codes(codes)
        k = self._check_k(k)
        condition, parameters = _condition(where)
        nearest = f"SELECT id, code <~> %s::bit({self.n_bits}) AS distance FROM {self.table} WHERE {condition}"
        if self.approximate:
            order = f"ORDER BY code <~> %s::bit({self.n_bits}) LIMIT %s"
            command = f"SELECT * FROM ({nearest} {order}) AS found ORDER BY distance, id"
        else:
            command = f"{nearest} ORDER BY distance, id LIMIT %s"
        found = []
        with self._transaction() as cursor:
            for text in _bit_texts(codes):
                limit = [text, k] if self.approximate else [k]
                found.append(cursor.execute(command, [text, *parameters, *limit]).fetchall())
        width = min((len(rows) for rows in found), default=0)
        table = np.array([rows[:width] for rows in found], np.int64).reshape(len(codes), width, 2)
        return Neighbors(table[:, :, 0].copy(), table[:, :, 1].astype(np.int32))

    def search_radius(self, codes: BinaryCodes, radius: int, *, where=None) -> RadiusNeighbors:
        """Return all items within ``radius`` (inclusive) of each code; ``where`` is as in :meth:`search`."""
        self._check_codes(codes)
        radius = self._check_radius(radius)
        condition, parameters = _condition(where)
        command = (
            f"SELECT id, code <~> %s::bit({self.n_bits}) AS distance FROM {self.table} "
            f"WHERE {condition} AND code <~> %s::bit({self.n_bits}) <= %s ORDER BY distance, id"
        )
        found = []
        with self._transaction() as cursor:
            for text in _bit_texts(codes):
                found.append(cursor.execute(command, [text, *parameters, text, radius]).fetchall())
        starts = np.concatenate([[0], np.cumsum([len(rows) for rows in found], dtype=np.int64)])
        table = np.array([row for rows in found for row in rows], np.int64).reshape(-1, 2)
        return RadiusNeighbors(starts, table[:, 0].copy(), table[:, 1].astype(np.int32))

    def reconstruct(self, ids) -> BinaryCodes:
        ids = check_ids(ids).tolist()
        with self._transaction() as cursor:
            cursor.execute(f"SELECT id, code::text FROM {self.table} WHERE id = ANY(%s)", [ids])
            texts = dict(cursor.fetchall())
        self._check_known(ids, texts)
        bits = np.array([[bit == "1" for bit in texts[item]] for item in ids], bool)
        return BinaryCodes.from_signs(bits.reshape(len(ids), self.n_bits))

    def create_hnsw(self, *, m: int = 16, ef_construction: int = 64) -> None:
        """Build pgvector's HNSW index, which ``approximate=True`` uses."""
        m, built = check_integer(m, "m", low=2), check_integer(ef_construction, "ef_construction", low=4)
        with self._transaction() as cursor:
            cursor.execute(
                f"CREATE INDEX IF NOT EXISTS {self.table}_hnsw ON {self.table} "
                f"USING hnsw (code bit_hamming_ops) WITH (m = {m}, ef_construction = {built})"
            )

    def close(self) -> None:
        """Close the connection; the next call opens it again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @contextmanager
    def _transaction(self) -> Iterator:
        try:
            if self._connection is None or self._connection.closed:
                self._connection = psycopg.connect(self.uri, autocommit=True)
            with self._connection.transaction(), self._connection.cursor() as cursor:
                if not self.approximate:
                    cursor.execute("SET LOCAL enable_indexscan = off")
                yield cursor
        except psycopg.Error as error:
            if isinstance(error, psycopg.OperationalError):
                self.close()
            raise AdapterError(
                f"PostgreSQL did not finish the request ({str(error).strip()}). Nothing of it was stored; "
                "try again when the server answers."
            ) from error

    def _check_table(self, cursor) -> None:
        held = cursor.execute(
            "SELECT format_type(atttypid, atttypmod) FROM pg_attribute "
            "WHERE attrelid = %s::regclass AND attname = 'code'",
            [self.table],
        ).fetchone()
        if held != (f"bit({self.n_bits})",):
            raise ValueError(
                f"The table {self.table!r} holds {held[0] if held else 'no codes'}, not bit({self.n_bits}). "
                "Use another table, or the hasher that filled it."
            )

    def _check_known(self, ids: list[int], known) -> None:
        missing = [item for item in ids if item not in known]
        if missing:
            raise KeyError(f"The id {missing[0]} is not in the index.")


def _bit_texts(codes: BinaryCodes) -> list[str]:
    """Return codes as PostgreSQL reads them: bit 0 comes first."""
    return ["".join("1" if sign > 0 else "0" for sign in signs) for signs in codes.to_signs()]


def _condition(where) -> tuple[str, list]:
    if where is None:
        return "true", []
    if isinstance(where, Mapping):
        return "metadata @> %s::jsonb", [json.dumps(dict(where))]
    if callable(where):
        raise ValueError("A function cannot filter in the database; give ids or a dictionary of metadata.")
    return "id = ANY(%s)", [check_ids(np.unique(where)).tolist()]
