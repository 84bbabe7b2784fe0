"""MilvusIndex: codes in a Milvus collection, from the embedded database to a cluster."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..._common.extras import require
from ..._common.validation import check_integer
from ...codes.binary import BinaryCodes, check_space_id, n_bytes
from ...codes.queries import EncodedQueries
from ...exceptions import AdapterError
from ..base import Neighbors, RadiusNeighbors, Wanted, existing_id, next_ids
from ..metadata import check_metadata
from .database import DatabaseIndex, Ranking, check_known, to_neighbors, to_radius_neighbors

pymilvus = require("pymilvus", extra="milvus")
# Milvus returns at most this many results per query, and does not say if there are more.
_MAX_RESULTS = 16_384
# Below that limit.
_IDS_PER_REQUEST = 10_000
# Fields of the collection itself, which metadata would overwrite.
_RESERVED = ("id", "code", "n_bits", "space_id", "$meta")


class MilvusIndex(DatabaseIndex):
    """A Milvus collection with a BINARY_VECTOR field, searched exactly (BIN_FLAT, HAMMING).

    Milvus takes code lengths that are multiples of 8: other codes are padded with zero bits, which never count.
    It leaves the order of equal distances open, so more results are requested until all ties of the last one are
    known. Beyond its limit of 16,384 results, ties come in the order of Milvus, and larger balls are refused. It has no
    transactions: a batch is added in one request and removed in requests of 10,000 ids. Each
    row has the length and, where it is known, the space of its code.

    Parameters
    ----------
    uri : str
        A server's address, or a file name for the embedded database (``milvus-lite<3``).
    n_bits : int
    name : str, default="starshl_codes"
        The Milvus collection; created if it does not exist.
    token : str, default=""
        Credentials of the server.
    """

    def __init__(self, uri: str, n_bits: int, *, name: str = "starshl_codes", token: str = "") -> None:
        self.n_bits = check_integer(n_bits, "n_bits", low=1)
        self.uri, self.name = uri, name
        with self._explained():
            self._client = pymilvus.MilvusClient(uri, token=token)
            if self._client.has_collection(name):
                self._check_length()
                self._current_space()
            else:
                self._create()

    def _create(self) -> None:
        kinds = pymilvus.DataType
        schema = pymilvus.MilvusClient.create_schema(auto_id=False, enable_dynamic_field=True)
        schema.add_field("id", kinds.INT64, is_primary=True)
        schema.add_field("code", kinds.BINARY_VECTOR, dim=8 * n_bytes(self.n_bits))
        # The dimension is padded to whole bytes: only the description keeps the code length of an empty collection.
        schema.add_field("n_bits", kinds.INT64, description=str(self.n_bits))
        index = self._client.prepare_index_params()
        index.add_index("code", index_type="BIN_FLAT", metric_type="HAMMING")
        self._client.create_collection(self.name, schema=schema, index_params=index, consistency_level="Strong")

    def _check_length(self) -> None:
        fields = {field["name"]: field for field in self._client.describe_collection(self.name)["fields"]}
        padded = fields.get("code", {}).get("params", {}).get("dim")
        described = fields.get("n_bits", {}).get("description", "")
        held = int(described) if described.isdecimal() else None
        if padded != 8 * n_bytes(self.n_bits) or held not in (None, self.n_bits):
            raise ValueError(
                f"The Milvus collection {self.name!r} holds codes of {held or padded} bits, not {self.n_bits}. "
                "Use another name, or the hasher that filled it."
            )

    def _current_space(self) -> str | None:
        with self._explained():
            rows = self._client.query(self.name, filter="", limit=1, output_fields=["space_id"])
        self.space_id = check_space_id(rows[0].get("space_id")) if rows else None
        return self.space_id

    @property
    def ids(self) -> np.ndarray:
        with self._explained():
            ids = []
            iterator = self._client.query_iterator(self.name, batch_size=1000, output_fields=["id"])
            while page := iterator.next():
                ids += [row["id"] for row in page]
            iterator.close()
        return np.sort(np.array(ids, np.int64))

    def __len__(self) -> int:
        with self._explained():
            return int(self._client.query(self.name, filter="", output_fields=["count(*)"])[0]["count(*)"])

    def _add(
        self, codes: BinaryCodes, ids: np.ndarray | None, metadata: Sequence[Mapping[str, Any]] | None
    ) -> np.ndarray:
        if ids is None:
            held = self.ids
            ids = next_ids(len(codes), held[-1] if len(held) else None)
        metadata = check_metadata(metadata, len(codes))
        for number, entry in enumerate(metadata):
            for name in set(entry).intersection(_RESERVED):
                raise ValueError(
                    f"metadata[{number}] has the key {name!r}, which is a field of the Milvus collection. "
                    "Use another name."
                )
        present = self._known(ids.tolist())
        if present:
            raise existing_id(min(present))
        space = {} if codes.space_id is None else {"space_id": codes.space_id}
        rows = [
            {**extra, "id": item, "code": code.tobytes(), "n_bits": self.n_bits, **space}
            for item, code, extra in zip(ids.tolist(), codes.packed, metadata, strict=True)
        ]
        if rows:
            with self._explained():
                self._client.insert(self.name, rows)
        return ids

    def _remove(self, ids: np.ndarray) -> None:
        gone = ids.tolist()
        check_known(gone, self._known(gone))
        with self._explained():
            for some in _pieces(gone):
                self._client.delete(self.name, ids=some)

    def _search(self, queries: EncodedQueries, k: int, wanted: Wanted) -> Neighbors:
        # Milvus refuses more, and an index of fewer items does not need it.
        limit = min(k, _MAX_RESULTS)
        if k > limit and len(self) > limit:
            raise ValueError(f"k is {k}; Milvus returns at most {_MAX_RESULTS} results. Ask for fewer.")
        condition = _condition(wanted.among, wanted.where)
        codes = queries.codes.packed
        return to_neighbors(
            [self._ranked(code, limit, condition, lambda pairs: pairs[limit - 1][0])[:limit] for code in codes]
        )

    def _search_radius(self, queries: EncodedQueries, radius: float, wanted: Wanted) -> RadiusNeighbors:
        condition = _condition(wanted.among, wanted.where)
        rankings = []
        for code in queries.codes.packed:
            pairs = self._ranked(code, 64, condition, lambda pairs: int(radius))
            if len(pairs) == _MAX_RESULTS and pairs[-1][0] <= radius:
                raise AdapterError(
                    f"More items lie within radius {radius} than the {_MAX_RESULTS} that Milvus returns. "
                    "Use a smaller radius or a filter."
                )
            rankings.append([pair for pair in pairs if pair[0] <= radius])
        return to_radius_neighbors(rankings)

    def _reconstruct(self, ids: np.ndarray) -> BinaryCodes:
        wanted = ids.tolist()
        codes = {row["id"]: b"".join(row["code"]) for row in self._get(wanted, ["id", "code"])}
        check_known(wanted, codes)
        packed = np.frombuffer(b"".join(codes[item] for item in wanted), np.uint8)
        return BinaryCodes(packed.reshape(len(wanted), n_bytes(self.n_bits)), self.n_bits)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _ranked(self, code: np.ndarray, limit: int, condition: str, last_distance: Callable[[Ranking], int]) -> Ranking:
        """Return (distance, id) in order, complete up to ``last_distance(pairs)``, asking again as needed."""
        while True:
            with self._explained():
                rows = self._client.search(
                    self.name,
                    [code.tobytes()],
                    limit=limit,
                    anns_field="code",
                    filter=condition,
                    search_params={"metric_type": "HAMMING"},
                )[0]
            pairs = sorted((int(row["distance"]), row["id"]) for row in rows)
            if len(pairs) < limit or limit == _MAX_RESULTS or pairs[-1][0] > last_distance(pairs):
                return pairs
            limit = min(4 * limit, _MAX_RESULTS)

    def _known(self, ids: list[int]) -> set[int]:
        return {row["id"] for row in self._get(ids, ["id"])}

    def _get(self, ids: list[int], fields: list[str]) -> list[dict[str, Any]]:
        with self._explained():
            return [row for some in _pieces(ids) for row in self._client.get(self.name, ids=some, output_fields=fields)]

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except pymilvus.MilvusException as error:
            raise AdapterError(
                f"Milvus did not finish the request ({error}). Check the collection before you try again."
            ) from error


def _pieces(ids: list[int]) -> list[list[int]]:
    return [ids[start : start + _IDS_PER_REQUEST] for start in range(0, len(ids), _IDS_PER_REQUEST)]


def _condition(among: np.ndarray | None, where: Mapping[str, Any] | None) -> str:
    """Return filters as Milvus reads them; its embedded database takes no parameters, so values are quoted."""
    parts = [f"{_field(name)} == {_literal(name, value)}" for name, value in (where or {}).items()]
    if among is not None:
        # Milvus does not read an empty list; no item has two ids.
        parts.append(f"id in {among.tolist()}" if len(among) else "id == 0 and id == 1")
    return " and ".join(parts)


def _field(name: object) -> str:
    if not isinstance(name, str) or not name.isidentifier() or not name.isascii() or name in _RESERVED:
        raise ValueError(
            f"{name!r} cannot name a metadata field in a filter; use letters, digits and underscores, and none of "
            f"{', '.join(_RESERVED)}. Filter by id with among=."
        )
    return name


def _literal(name: str, value: object) -> str:
    value = value.item() if isinstance(value, np.generic) else value
    if not isinstance(value, (str, int, float)):
        raise ValueError(
            f"The filter compares {name!r} with a {type(value).__name__}; strings, numbers and booleans can "
            "be compared."
        )
    if isinstance(value, float) and not np.isfinite(value):
        raise ValueError(f"The filter compares {name!r} with {value}; only finite numbers can be compared.")
    if isinstance(value, str) and any(character < " " for character in value):
        # Milvus accepts such a filter and matches nothing, however the characters are written.
        raise ValueError(f"The filter compares {name!r} with {value!r}; Milvus cannot compare control characters.")
    # Milvus reads escaped quotes and backslashes, but takes an escape such as \u00e9 for six characters.
    return json.dumps(value, ensure_ascii=False)
