"""MilvusIndex: codes in a Milvus collection, from the embedded database to a cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from .._extras import require
from .._validation import check_integer
from ..codes import BinaryCodes
from ..exceptions import AdapterError
from ..index import Neighbors, RadiusNeighbors
from ..index.base import check_ids, next_ids
from ._database import DatabaseIndex, check_filter_ids, check_known, check_metadata

pymilvus = require("pymilvus", extra="milvus")

__all__ = ["MilvusIndex"]

# Milvus returns at most so many results of one query, without a word if there are more.
_MOST_RESULTS = 16_384
# Ids that go into one request: below that limit.
_IDS_A_REQUEST = 10_000
# Fields of the collection itself, which metadata would overwrite.
_RESERVED = ("id", "code", "n_bits", "$meta")


class MilvusIndex(DatabaseIndex):
    """A Milvus collection with a BINARY_VECTOR field, searched exactly (BIN_FLAT, HAMMING).

    Milvus knows lengths that are multiples of 8: shorter codes are padded with zero bits, which never count.
    It orders equal distances as it likes, so more results are asked for until all ties of the last one are
    known; only beyond its limit of 16,384 results are ties left to Milvus, and balls refused. It has no
    transactions: a batch is added in one request, and removed in requests of 10,000 ids.

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
            else:
                self._create()

    def _create(self) -> None:
        kinds = pymilvus.DataType
        schema = pymilvus.MilvusClient.create_schema(auto_id=False, enable_dynamic_field=True)
        schema.add_field("id", kinds.INT64, is_primary=True)
        schema.add_field("code", kinds.BINARY_VECTOR, dim=8 * -(-self.n_bits // 8))
        # The dimension is padded to whole bytes: only this tells the length of the codes of an empty collection.
        schema.add_field("n_bits", kinds.INT64, description=str(self.n_bits))
        index = self._client.prepare_index_params()
        index.add_index("code", index_type="BIN_FLAT", metric_type="HAMMING")
        self._client.create_collection(self.name, schema=schema, index_params=index, consistency_level="Strong")

    def _check_length(self) -> None:
        fields = {field["name"]: field for field in self._client.describe_collection(self.name)["fields"]}
        padded = fields.get("code", {}).get("params", {}).get("dim")
        held = self._stored_length(fields)
        if padded != 8 * -(-self.n_bits // 8) or held not in (None, self.n_bits):
            raise ValueError(
                f"The Milvus collection {self.name!r} holds codes of {held or padded} bits, not {self.n_bits}. "
                "Use another name, or the hasher that filled it."
            )

    def _stored_length(self, fields: dict[str, dict[str, Any]]) -> int | None:
        if "n_bits" not in fields:
            return None
        described = fields["n_bits"].get("description", "")
        if described.isdecimal():
            return int(described)
        # Made by a version that did not describe the field: the first row tells, and without rows nothing does.
        rows = self._client.query(self.name, filter="", limit=1, output_fields=["n_bits"])
        return rows[0]["n_bits"] if rows else None

    @property
    def ids(self) -> np.ndarray:
        with self._explained():
            found = []
            iterator = self._client.query_iterator(self.name, batch_size=1000, output_fields=["id"])
            while page := iterator.next():
                found += [row["id"] for row in page]
            iterator.close()
        return np.sort(np.array(found, np.int64))

    def __len__(self) -> int:
        with self._explained():
            return int(self._client.query(self.name, filter="", output_fields=["count(*)"])[0]["count(*)"])

    def add(self, codes: BinaryCodes, ids=None, metadata: Sequence[Mapping[str, Any]] | None = None):
        """Add codes under new ids, with a dictionary of metadata each; return the ids.

        ``id``, ``code``, ``n_bits`` and ``$meta`` are fields of the collection and cannot name metadata.
        """
        self._check_codes(codes)
        if ids is None:
            held = self.ids
            ids = next_ids(len(codes), held[-1] if len(held) else None)
        ids = check_ids(ids, len(codes))
        metadata = check_metadata(metadata, len(codes))
        for number, entry in enumerate(metadata):
            for name in set(entry).intersection(_RESERVED):
                raise ValueError(
                    f"metadata[{number}] has the key {name!r}, which is a field of the Milvus collection. "
                    "Use another name."
                )
        taken = self._known(ids.tolist())
        if taken:
            raise ValueError(
                f"The id {min(taken)} is already in the index, and nothing was added. "
                "Remove it first, or give a new id."
            )
        rows = [
            {**extra, "id": item, "code": code.tobytes(), "n_bits": self.n_bits}
            for item, code, extra in zip(ids.tolist(), codes.packed, metadata, strict=True)
        ]
        if rows:
            with self._explained():
                self._client.insert(self.name, rows)
        return ids

    def remove(self, ids) -> None:
        ids = check_ids(ids).tolist()
        check_known(ids, self._known(ids))
        with self._explained():
            for some in _pieces(ids):
                self._client.delete(self.name, ids=some)

    def search(self, codes: BinaryCodes, k: int = 10, *, where=None) -> Neighbors:
        """Return the k nearest items of each code.

        ``where`` is an array of ids, or a dictionary of metadata values to equal, such as ``{"label": 3}``.
        """
        self._check_codes(codes)
        k = self._check_k(k)
        if k > _MOST_RESULTS:
            raise ValueError(f"k is {k}; Milvus returns at most {_MOST_RESULTS} results.")
        condition = self._condition(where)
        found = [self._ranked(code, k, condition, lambda pairs: pairs[k - 1][0])[:k] for code in codes.packed]
        width = min((len(pairs) for pairs in found), default=0)
        table = np.array(found, np.int64).reshape(len(codes), width, 2)
        return Neighbors(table[:, :, 1].copy(), table[:, :, 0].astype(np.int32))

    def search_radius(self, codes: BinaryCodes, radius: int, *, where=None) -> RadiusNeighbors:
        """Return all items within ``radius`` (inclusive) of each code; ``where`` is as in :meth:`search`."""
        self._check_codes(codes)
        radius = self._check_radius(radius)
        condition = self._condition(where)
        found = []
        for code in codes.packed:
            pairs = self._ranked(code, 64, condition, lambda pairs: radius)
            if len(pairs) == _MOST_RESULTS and pairs[-1][0] <= radius:
                raise AdapterError(f"A ball of radius {radius} has more items than Milvus returns; use less.")
            found.append([pair for pair in pairs if pair[0] <= radius])
        starts = np.concatenate([[0], np.cumsum([len(pairs) for pairs in found], dtype=np.int64)])
        table = np.array([pair for pairs in found for pair in pairs], np.int64).reshape(-1, 2)
        return RadiusNeighbors(starts, table[:, 1].copy(), table[:, 0].astype(np.int32))

    def reconstruct(self, ids) -> BinaryCodes:
        ids = check_ids(ids).tolist()
        codes = {row["id"]: b"".join(row["code"]) for row in self._get(ids, ["id", "code"])}
        check_known(ids, codes)
        packed = np.frombuffer(b"".join(codes[item] for item in ids), np.uint8)
        return BinaryCodes(packed.reshape(len(ids), -(-self.n_bits // 8)), self.n_bits)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _ranked(self, code: np.ndarray, limit: int, condition: str, last_distance) -> list[tuple[int, int]]:
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
            if len(pairs) < limit or limit == _MOST_RESULTS or pairs[-1][0] > last_distance(pairs):
                return pairs
            limit = min(4 * limit, _MOST_RESULTS)

    def _condition(self, where) -> str:
        """Return a filter as Milvus reads it; its embedded database takes no parameters, so values are quoted."""
        if where is None:
            return ""
        if isinstance(where, Mapping):
            return " and ".join(f"{_field(name)} == {_literal(name, value)}" for name, value in where.items())
        ids = check_filter_ids(where)
        check_known(ids, self._known(ids))
        # Milvus does not read an empty list; no item has two ids.
        return f"id in {ids}" if ids else "id == 0 and id == 1"

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
                f"Milvus did not finish the request ({error}). Look at the collection before trying again."
            ) from error


def _pieces(ids: list[int]) -> list[list[int]]:
    return [ids[start : start + _IDS_A_REQUEST] for start in range(0, len(ids), _IDS_A_REQUEST)]


def _field(name) -> str:
    if not isinstance(name, str) or not name.isidentifier() or not name.isascii() or name in _RESERVED:
        raise ValueError(
            f"{name!r} cannot name a metadata field in a filter; use letters, digits and underscores, and none of "
            f"{', '.join(_RESERVED)}. Filter by id with an array of ids."
        )
    return name


def _literal(name: str, value) -> str:
    value = value.item() if isinstance(value, np.generic) else value
    if not isinstance(value, (str, int, float)):
        raise ValueError(
            f"The filter compares {name!r} with a {type(value).__name__}; strings, numbers and booleans can "
            "be compared."
        )
    if isinstance(value, float) and not np.isfinite(value):
        raise ValueError(f"The filter compares {name!r} with {value}; only finite numbers can be compared.")
    if isinstance(value, str) and any(character < " " for character in value):
        # Milvus takes such a filter and finds nothing, however the characters are written.
        raise ValueError(f"The filter compares {name!r} with {value!r}; Milvus cannot compare control characters.")
    # Milvus reads escaped quotes and backslashes, but takes an escape such as \u00e9 for six characters.
    return json.dumps(value, ensure_ascii=False)
