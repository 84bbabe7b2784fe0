"""PgvectorIndex: codes in a PostgreSQL table, searched by the database through pgvector."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._common.extras import require
from ..._common.validation import check_integer
from ...codes.binary import BinaryCodes
from ...codes.queries import EncodedQueries
from ...exceptions import AdapterError
from ..base import Neighbors, RadiusNeighbors, Wanted, existing_id, next_ids
from ..metadata import check_metadata, json_text
from .database import DatabaseIndex, check_known, to_neighbors, to_radius_neighbors

if TYPE_CHECKING:
    from psycopg import Connection, Cursor
    from psycopg.sql import Composable, Composed

psycopg = require("psycopg", extra="pgvector")
sql = require("psycopg.sql", extra="pgvector")
# A search through HNSW returns at most hnsw.ef_search items: 40 by default, at most 1,000.
_DEFAULT_EF_SEARCH, _MAX_EF_SEARCH = 40, 1000
_SPACE = "codes of the starshl space "
# JSON writes NUL like this, after any number of escaped backslashes.
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


class PgvectorIndex(DatabaseIndex):
    """A table ``(id bigint, code bit(n), metadata jsonb)`` searched by Hamming distance ``<~>``.

    Each addition or removal is one transaction, and each search reads one state of the table. If the connection is
    lost, the call raises :class:`~starshl.exceptions.AdapterError` and the next call connects again. The server rolls
    back the unfinished change. If the connection was lost during the commit, the change may or may not be stored, and
    the error says so. The comment of the table holds the space of the codes, unless you gave it another comment.

    Parameters
    ----------
    uri : str
        For example ``postgresql://user@host/database``; the database needs the extension pgvector.
    n_bits : int
    table : str, default="starshl_codes"
        Created if it does not exist.
    approximate : bool, default=False
        Let ``search`` use the HNSW index made by :meth:`create_hnsw`: faster on millions of different codes,
        but neighbors may be missed; poor on learned codes, of which many are equal. ``k`` is then at most 1,000.
    """

    supports = DatabaseIndex.supports | {"threads"}

    def __init__(self, uri: str, n_bits: int, *, table: str = "starshl_codes", approximate: bool = False) -> None:
        self.n_bits = check_integer(n_bits, "n_bits", low=1)
        if not isinstance(table, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,50}", table):
            raise ValueError(f"The table name is {table!r}; use letters, digits and underscores.")
        self.uri, self.table, self.approximate = uri, table, approximate
        self._connection: Connection[Any] | None = None
        # A connection runs one transaction at a time; threads take turns.
        self._lock = RLock()
        with self._transaction() as cursor:
            cursor.execute("CREATE EXTENSION IF NOT EXISTS vector")
            cursor.execute(
                self._sql(
                    "CREATE TABLE IF NOT EXISTS {table} (id bigint PRIMARY KEY, "
                    "code bit({n_bits}) NOT NULL, metadata jsonb NOT NULL DEFAULT '{{}}')"
                )
            )
            self._check_table(cursor)
            self.space_id = self._stored_space(cursor)
            self._scans_on = _has_iterative_scan(cursor)

    @property
    def ids(self) -> np.ndarray:
        with self._transaction() as cursor:
            cursor.execute(self._sql("SELECT id FROM {table} ORDER BY id"))
            return np.array([row[0] for row in cursor], np.int64)

    def __len__(self) -> int:
        with self._transaction() as cursor:
            return cursor.execute(self._sql("SELECT count(*) FROM {table}")).fetchall()[0][0]

    def _add(
        self, codes: BinaryCodes, ids: np.ndarray | None, metadata: Sequence[Mapping[str, Any]] | None
    ) -> np.ndarray:
        texts = [
            _jsonb_text(entry, f"metadata[{number}]")
            for number, entry in enumerate(check_metadata(metadata, len(codes)))
        ]
        with self._transaction(changes=True) as cursor:
            if ids is None:
                # Two processes that both take the next ids must not take the same ones.
                cursor.execute(self._sql("LOCK TABLE {table} IN EXCLUSIVE MODE"))
                last = cursor.execute(self._sql("SELECT max(id) FROM {table}")).fetchall()[0][0]
                ids = next_ids(len(codes), last)
            try:
                with cursor.copy(self._sql("COPY {table} (id, code, metadata) FROM STDIN")) as copy:
                    for row in zip(ids.tolist(), _bit_texts(codes), texts, strict=True):
                        copy.write_row(row)
            except psycopg.errors.UniqueViolation as error:
                # "Key (id)=(3) already exists.", in the language of the server.
                found = re.search(r"\(id\)=\((-?\d+)\)", error.diag.message_detail or "")
                if found is None:
                    raise
                raise existing_id(int(found[1])) from error
        return ids

    def _remove(self, ids: np.ndarray) -> None:
        gone = ids.tolist()
        with self._transaction(changes=True) as cursor:
            cursor.execute(self._sql("DELETE FROM {table} WHERE id = ANY(%s) RETURNING id"), [gone])
            check_known(gone, {row[0] for row in cursor})

    def _search(self, queries: EncodedQueries, k: int, wanted: Wanted) -> Neighbors:
        if self.approximate and k > _MAX_EF_SEARCH:
            raise ValueError(
                f"k is {k}; an approximate search returns at most {_MAX_EF_SEARCH} items. Ask for fewer, or open the "
                "index with approximate=False."
            )
        condition, parameters = _condition(wanted.among, wanted.where)
        nearest = "SELECT code <~> %s::bit({n_bits}) AS distance, id FROM {table} WHERE " + condition
        exact = self._sql(nearest + " ORDER BY distance, id LIMIT %s")
        by_graph = self._sql(
            f"SELECT * FROM ({nearest} ORDER BY code <~> %s::bit({{n_bits}}) LIMIT %s) AS near ORDER BY distance, id"
        )
        rankings = []
        with self._reading() as cursor:
            for text in _bit_texts(queries.codes):
                rows = []
                if self.approximate:
                    self._scan_graph(cursor, k)
                    rows = cursor.execute(by_graph, [text, *parameters, text, k]).fetchall()
                    self._scan_everything(cursor)
                # A rare filter ends the walk through the graph before k items have passed: then scan all of them.
                rankings.append(rows if len(rows) == k else cursor.execute(exact, [text, *parameters, k]).fetchall())
        return to_neighbors(rankings)

    def _search_radius(self, queries: EncodedQueries, radius: float, wanted: Wanted) -> RadiusNeighbors:
        condition, parameters = _condition(wanted.among, wanted.where)
        command = self._sql(
            "SELECT code <~> %s::bit({n_bits}) AS distance, id FROM {table} "
            "WHERE " + condition + " AND code <~> %s::bit({n_bits}) <= %s ORDER BY distance, id"
        )
        texts = _bit_texts(queries.codes)
        with self._reading() as cursor:
            return to_radius_neighbors(
                [cursor.execute(command, [text, *parameters, text, int(radius)]).fetchall() for text in texts]
            )

    def _reconstruct(self, ids: np.ndarray) -> BinaryCodes:
        wanted = ids.tolist()
        with self._transaction() as cursor:
            cursor.execute(self._sql("SELECT id, code::text FROM {table} WHERE id = ANY(%s)"), [wanted])
            texts = dict(cursor.fetchall())
        check_known(wanted, texts)
        bits = np.array([[bit == "1" for bit in texts[item]] for item in wanted], bool)
        return BinaryCodes.from_signs(bits.reshape(len(wanted), self.n_bits))

    def _set_space(self, space_id: str | None) -> None:
        self.space_id = space_id
        text = sql.Literal(None if space_id is None else _SPACE + space_id)
        # Only the owner of a table may comment on it; others know the space as long as they have the index open.
        with suppress(AdapterError), self._transaction() as cursor:
            if (self._comment(cursor) or _SPACE).startswith(_SPACE):
                cursor.execute(self._sql("COMMENT ON TABLE {table} IS {text}", text=text))

    def _current_space(self) -> str | None:
        with self._transaction() as cursor:
            self.space_id = self._stored_space(cursor) or self.space_id
        return self.space_id

    def _stored_space(self, cursor: Cursor[Any]) -> str | None:
        found = re.fullmatch(re.escape(_SPACE) + "([0-9a-f]{16})", self._comment(cursor) or "")
        return found[1] if found else None

    def _comment(self, cursor: Cursor[Any]) -> str | None:
        command = "SELECT obj_description(quote_ident(%s)::regclass, 'pg_class')"
        return cursor.execute(command, [self.table]).fetchall()[0][0]

    def create_hnsw(self, *, m: int = 16, ef_construction: int = 64) -> None:
        """Build pgvector's HNSW index, which ``approximate=True`` uses."""
        m = check_integer(m, "m", low=2, high=100)
        ef_construction = check_integer(ef_construction, "ef_construction", low=2 * m, high=1000)
        with self._transaction(changes=True) as cursor:
            cursor.execute(
                self._sql(
                    "CREATE INDEX IF NOT EXISTS {name} ON {table} "
                    "USING hnsw (code bit_hamming_ops) WITH (m = {m}, ef_construction = {ef_construction})",
                    name=sql.Identifier(f"{self.table}_hnsw"),
                    m=sql.Literal(m),
                    ef_construction=sql.Literal(ef_construction),
                )
            )

    def close(self) -> None:
        """Close the connection; the next call opens it again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _sql(self, command: str, **parts: Composable) -> Composed:
        """Return a command with the table's name quoted, so that a table may be called user."""
        table, n_bits = sql.Identifier(self.table), sql.Literal(self.n_bits)
        return sql.SQL(command).format(table=table, n_bits=n_bits, **parts)

    def _scan_everything(self, cursor: Cursor[Any]) -> None:
        cursor.execute("SET LOCAL enable_indexscan = off")

    def _scan_graph(self, cursor: Cursor[Any], k: int) -> None:
        cursor.execute("SET LOCAL enable_indexscan = on")
        cursor.execute("SELECT set_config('hnsw.ef_search', %s, true)", [str(max(k, _DEFAULT_EF_SEARCH))])
        if self._scans_on:
            # Continue until k items have passed the filter; their order is restored afterward.
            cursor.execute("SET LOCAL hnsw.iterative_scan = relaxed_order")

    def _connect(self) -> Connection[Any]:
        if self._connection is not None and not self._connection.closed:
            return self._connection
        try:
            connection: Connection[Any] = psycopg.connect(self.uri, autocommit=True)
        except psycopg.OperationalError as error:
            raise AdapterError(
                f"There is no connection to PostgreSQL ({str(error).strip()}), and nothing was changed. Check the "
                "address, the user and the name of the database, or try again when the server answers."
            ) from error
        self._connection = connection
        return connection

    @contextmanager
    def _transaction(self, *, changes: bool = False) -> Iterator[Cursor[Any]]:
        committing = False
        try:
            with self._lock:
                connection = self._connect()
                with connection.transaction(), connection.cursor() as cursor:
                    yield cursor
                    committing = True
        except psycopg.Error as error:
            lost = self._connection is not None and self._connection.closed
            reason = str(error).strip()
            if not lost:
                kind = type(error).__name__
                raise AdapterError(
                    f"PostgreSQL refused the request ({kind}: {reason}). Nothing was changed."
                ) from error
            if committing and changes:
                raise AdapterError(
                    f"The connection to PostgreSQL was lost while the change was being committed ({reason}). It may or "
                    "may not be stored: check, for example with index.ids, before you try again."
                ) from error
            raise AdapterError(
                f"PostgreSQL did not finish the request ({reason}). Nothing of it was stored; try again when the "
                "server answers."
            ) from error

    @contextmanager
    def _reading(self) -> Iterator[Cursor[Any]]:
        """Read one state of the table in all commands, without the HNSW index."""
        with self._transaction() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            self._scan_everything(cursor)
            yield cursor

    def _check_table(self, cursor: Cursor[Any]) -> None:
        held = cursor.execute(
            "SELECT format_type(atttypid, atttypmod) FROM pg_attribute "
            "WHERE attrelid = quote_ident(%s)::regclass AND attname = 'code'",
            [self.table],
        ).fetchone()
        if held != (f"bit({self.n_bits})",):
            raise ValueError(
                f"The table {self.table!r} holds {held[0] if held else 'no codes'}, not bit({self.n_bits}). "
                "Use another table, or the hasher that filled it."
            )


def _bit_texts(codes: BinaryCodes) -> list[str]:
    """Return codes as PostgreSQL reads them: bit 0 first."""
    return ["".join("1" if sign > 0 else "0" for sign in signs) for signs in codes.to_signs()]


def _condition(among: np.ndarray | None, where: Mapping[str, Any] | None) -> tuple[str, list[Any]]:
    """Return a condition and its parameters."""
    parts = ["true"]
    parameters: list[Any] = []
    if where is not None:
        parts.append("metadata @> %s::jsonb")
        parameters.append(_jsonb_text(where, "The filter"))
    if among is not None:
        parts.append("id = ANY(%s)")
        parameters.append(among.tolist())
    return " AND ".join(parts), parameters


def _jsonb_text(entry: Mapping[str, Any], role: str) -> str:
    text = json_text(entry, role)
    if _NUL.search(text):
        raise ValueError(f"{role} contains the NUL character, which PostgreSQL cannot store in text. Leave it out.")
    return text


def _has_iterative_scan(cursor: Cursor[Any]) -> bool:
    """Return whether HNSW can continue after a filter left too few items: pgvector 0.8 or later."""
    version = cursor.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'").fetchall()[0][0]
    return tuple(int(part) for part in version.split(".")[:2]) >= (0, 8)
