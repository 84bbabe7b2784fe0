"""The requests that clients send, apart from how they are sent: each method of a client is one of these."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike as AnyPath
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar
from urllib.parse import quote

import numpy as np
from numpy.typing import ArrayLike

from .._common.validation import Label
from .answers import CollectionInfo, Found, Hit, Item, ItemPage, Job, Prediction, Snapshot, Written

Result = TypeVar("Result")
PathLike: TypeAlias = str | AnyPath[str]
_ROOT = "/api/v1/collections"
_MEDIA_TYPES = {
    b"\x89PNG": "image/png",
    b"GIF8": "image/gif",
    b"BM": "image/bmp",
    b"II*\0": "image/tiff",
    b"MM\0*": "image/tiff",
}


@dataclass(frozen=True, slots=True)
class Call(Generic[Result]):
    """A request, whether sending it twice does harm, and how to read the answer.

    A write carries a key, made here once, so that all attempts have the same one. A request has a body, a file, or
    ``content``, which is not JSON. With ``as_json`` False, the answer is not JSON, and ``read`` gets all of it.
    """

    method: str
    path: str
    read: Callable[[Any], Result]
    body: Mapping[str, Any] | None = None
    file: Path | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    harmless: bool = True
    content: bytes | None = None
    as_json: bool = True

    def sent(self, file: Any = None) -> dict[str, Any]:
        """Return what to pass to httpx besides the method and the path; ``file`` is the opened file, if any."""
        content = self.content if file is None else file
        body: dict[str, Any] = {"json": self.body} if content is None else {"content": content}
        return body | {"params": dict(self.params), "headers": dict(self.headers)}


def list_collections() -> Call[list[CollectionInfo]]:
    return Call("GET", _ROOT, lambda answer: [CollectionInfo.of(info) for info in answer["collections"]])


@dataclass(frozen=True, slots=True)
class CollectionCalls:
    """The requests about one collection."""

    name: str

    def info(self) -> Call[CollectionInfo]:
        return Call("GET", self._path(), CollectionInfo.of)

    def search(
        self,
        vectors: ArrayLike | None,
        items: Sequence[int] | None,
        texts: Sequence[str] | None,
        options: dict[str, Any],
    ) -> Call[list[Found]]:
        body = _search_body(vectors, items, options)
        return Call("POST", self._path("search"), _read_found, body if texts is None else body | {"texts": list(texts)})

    def search_picture(self, picture: bytes | PathLike, options: dict[str, Any]) -> Call[list[Hit]]:
        return self._with_picture("search", lambda answer: _read_found(answer)[0].hits, picture, options)

    def encode_picture(self, picture: bytes | PathLike) -> Call[str]:
        return self._with_picture("encode", lambda answer: str(answer["codes"][0]), picture, {})

    def predict_picture(self, picture: bytes | PathLike, probabilities: bool) -> Call[Prediction]:
        return self._with_picture("predict", Prediction.of, picture, {"probabilities": probabilities})

    def add_picture(self, picture: bytes | PathLike, options: dict[str, Any]) -> Call[Written]:
        return self._with_picture("items", Written.of, picture, options, {"Idempotency-Key": uuid.uuid4().hex})

    def preview(self, item: int) -> Call[bytes]:
        return Call(
            "GET", self._path(f"items/{int(item)}/preview"), lambda answer: bytes(answer.content), as_json=False
        )

    def search_together(self, searches: Sequence[Mapping[str, Any]]) -> Call[list[list[Found]]]:
        bodies = [_search_body(each.get("vectors"), each.get("items"), each) for each in searches]
        return Call(
            "POST",
            self._path("search/batch"),
            lambda answer: [_read_found(each) for each in answer["answers"]],
            {"searches": bodies},
        )

    def recommend(self, like: Sequence[int], unlike: Sequence[int], options: dict[str, Any]) -> Call[list[Hit]]:
        body = _given(options) | {"like": _ids(like), "unlike": _ids(unlike)}
        return Call("POST", self._path("recommend"), lambda answer: _read_found(answer)[0].hits, body)

    def encode(
        self, vectors: ArrayLike | None, texts: Sequence[str] | None, rows: Sequence[Any] | None
    ) -> Call[list[str]]:
        body = _queries(vectors, texts, rows)
        return Call("POST", self._path("encode"), lambda answer: list(answer["codes"]), body)

    def predict(
        self,
        vectors: ArrayLike | None,
        texts: Sequence[str] | None,
        rows: Sequence[Any] | None,
        probabilities: bool,
    ) -> Call[Prediction]:
        body = _queries(vectors, texts, rows) | {"probabilities": probabilities}
        return Call("POST", self._path("predict"), Prediction.of, body)

    def add(
        self,
        vectors: ArrayLike | None,
        texts: Sequence[str] | None,
        rows: Sequence[Any] | None,
        ids: Sequence[int] | None,
        labels: Sequence[Label | None] | None,
        metadata: Sequence[Mapping[str, Any]] | None,
        references: Sequence[str | None] | None,
        *,
        replace: bool,
    ) -> Call[Written]:
        if sum(each is not None for each in (vectors, texts, rows)) != 1:
            raise ValueError("Give either vectors, texts or rows.")
        columns: dict[str, list[Any] | None] = {
            "vector": None if vectors is None else _rows(vectors),
            "text": None if texts is None else list(texts),
            "row": None if rows is None else list(rows),
            "id": None if ids is None else _ids(ids),
            "label": None if labels is None else _plain(labels),
            "metadata": None if metadata is None else [dict(entry) for entry in metadata],
            "reference": None if references is None else list(references),
        }
        given = {name: column for name, column in columns.items() if column is not None}
        return self._write("PUT" if replace else "POST", "items", _items_body(given))

    def update(self, ids: Sequence[int], metadata: Sequence[Mapping[str, Any]]) -> Call[Written]:
        columns: dict[str, list[Any]] = {"id": _ids(ids), "metadata": [dict(entry) for entry in metadata]}
        return self._write("PATCH", "items", _items_body(columns))

    def set_labels(self, ids: Sequence[int], labels: Sequence[Label | None]) -> Call[Written]:
        return self._write("PUT", "labels", _items_body({"id": _ids(ids), "label": _plain(labels)}))

    def declare_fields(self, fields: Mapping[str, str]) -> Call[CollectionInfo]:
        return Call("PUT", self._path("fields"), CollectionInfo.of, {"fields": dict(fields)})

    def remove(self, ids: Sequence[int]) -> Call[Written]:
        return self._write("POST", "items/remove", {"ids": _ids(ids)})

    def remove_matching(self, filters: dict[str, Any]) -> Call[Written]:
        return self._write("POST", "items/remove", _given(filters))

    def count(self, filters: dict[str, Any]) -> Call[int]:
        return Call("POST", self._path("items/count"), lambda answer: int(answer["count"]), _given(filters))

    def get(self, ids: Sequence[int], vectors: bool) -> Call[list[Item]]:
        return Call(
            "POST",
            self._path("items/get"),
            lambda answer: [Item.of(item) for item in answer["items"]],
            {"ids": _ids(ids)},
            params={"vectors": vectors},
        )

    def list_items(self, after: int | None, limit: int, filters: dict[str, Any]) -> Call[ItemPage]:
        return Call("POST", self._path("items/list"), ItemPage.of, _given(filters | {"after": after, "limit": limit}))

    def list_snapshots(self) -> Call[list[Snapshot]]:
        return Call("GET", self._path("snapshots"), lambda answer: [Snapshot.of(each) for each in answer["snapshots"]])

    def make_snapshot(self, name: str | None) -> Call[Snapshot]:
        return Call("POST", self._path("snapshots"), Snapshot.of, {"name": name}, harmless=False)

    def restore(self, snapshot: str) -> Call[int]:
        path = f"{self.snapshot_path(snapshot)}/restore"
        return Call("POST", path, lambda answer: int(answer["n_items"]), harmless=False)

    def delete_snapshot(self, snapshot: str) -> Call[None]:
        return Call("DELETE", self.snapshot_path(snapshot), lambda answer: None, harmless=False)

    def upload_snapshot(self, path: PathLike, name: str | None) -> Call[Snapshot]:
        chosen = Path(path).stem if name is None else name
        return Call("PUT", self.snapshot_path(chosen), Snapshot.of, file=Path(path), harmless=False)

    def import_file(self, path: PathLike, key: str | None) -> Call[Job]:
        headers = {"Idempotency-Key": uuid.uuid4().hex if key is None else key}
        return Call("POST", self._path("import"), Job.of, file=Path(path), headers=headers)

    def replace_model(self, path: PathLike) -> Call[Job]:
        return Call("PUT", self._path("model"), Job.of, file=Path(path), harmless=False)

    def snapshot_path(self, snapshot: str) -> str:
        return self._path(f"snapshots/{quote(snapshot, safe='')}")

    def model_path(self) -> str:
        return self._path("model")

    def fit(self, method: str, n_bits: int, seed: int, settings: Mapping[str, Any]) -> Call[Job]:
        body = {"method": method, "n_bits": n_bits, "seed": seed, "settings": dict(settings)}
        return Call("POST", self._path("fit"), Job.of, body, harmless=False)

    def jobs(self) -> Call[list[Job]]:
        return Call("GET", self._path("jobs"), lambda answer: [Job.of(job) for job in answer["jobs"]])

    def job(self, job: str) -> Call[Job]:
        return Call("GET", self._path(f"jobs/{quote(job, safe='')}"), Job.of)

    def cancel(self, job: str) -> Call[Job]:
        return Call("POST", self._path(f"jobs/{quote(job, safe='')}/cancel"), Job.of, harmless=False)

    def _write(self, method: str, what: str, body: Mapping[str, Any]) -> Call[Written]:
        return Call(method, self._path(what), Written.of, body, headers={"Idempotency-Key": uuid.uuid4().hex})

    def _with_picture(
        self,
        what: str,
        read: Callable[[Any], Result],
        picture: bytes | PathLike,
        options: dict[str, Any],
        headers: Mapping[str, str] | None = None,
    ) -> Call[Result]:
        """Return a request whose body is a picture, so that its options are parameters of the address."""
        content = picture if isinstance(picture, bytes) else Path(picture).read_bytes()
        return Call(
            "POST",
            self._path(f"{what}/picture"),
            read,
            params={name: _parameter(value) for name, value in _given(options).items()},
            headers={"Content-Type": _media_type(content)} | dict(headers or {}),
            content=content,
        )

    def _path(self, what: str = "") -> str:
        return f"{_ROOT}/{quote(self.name, safe='')}" + (f"/{what}" if what else "")


def _items_body(columns: Mapping[str, list[Any]]) -> dict[str, Any]:
    """Return one object per item, given what the items have in each column; the first says how many there are."""
    first, rows = next(iter(columns.items()))
    for name, column in columns.items():
        if len(column) != len(rows):
            raise ValueError(
                f"There are {len(column)} values of {name} for {len(rows)} {first}s; give one per {first}."
            )
    return {"items": [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]}


def _search_body(vectors: ArrayLike | None, items: Sequence[int] | None, options: Mapping[str, Any]) -> dict[str, Any]:
    body = _given(options)
    if vectors is not None:
        body["vectors"] = _rows(vectors)
    if items is not None:
        body["items"] = _ids(items)
    return body


def _queries(
    vectors: ArrayLike | None, texts: Sequence[str] | None, rows: Sequence[Any] | None = None
) -> dict[str, Any]:
    """Return what is given; the service says what to do if that is nothing, or more than one."""
    return _given(
        {
            "vectors": None if vectors is None else _rows(vectors),
            "texts": None if texts is None else list(texts),
            "rows": None if rows is None else list(rows),
        }
    )


def _parameter(value: Any) -> Any:
    """Return a value as a parameter of an address holds it."""
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value) if isinstance(value, Mapping) else value


def _media_type(content: bytes) -> str:
    """Return the media type of a picture by its first bytes; the service looks closer."""
    if content[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _MEDIA_TYPES.items() if content.startswith(start)), "image/jpeg")


def _read_found(answer: Any) -> list[Found]:
    return [Found.of(found) for found in answer["results"]]


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was given, without types of NumPy, which JSON cannot hold."""
    given = {name: value for name, value in options.items() if value is not None}
    lists = {"labels": _plain, "among": _ids}
    return {name: lists[name](value) if name in lists else value for name, value in given.items()}


def _rows(vectors: ArrayLike) -> list[list[float]]:
    try:
        rows = np.asarray(vectors, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"vectors does not hold numbers only ({error}). Give texts as texts=[...], and rows of a table as "
            "rows=[{column: value}]."
        ) from error
    if rows.ndim != 2 or not len(rows):
        raise ValueError(
            f"vectors has shape {rows.shape}; it must be (n_vectors, n_columns), with at least one vector."
        )
    if not np.isfinite(rows).all():
        raise ValueError("vectors holds NaN or infinity; only finite numbers can be sent. Impute or drop those rows.")
    return rows.tolist()


def _ids(ids: Sequence[int]) -> list[int]:
    return [int(item) for item in ids]


def _plain(labels: Sequence[Any]) -> list[Any]:
    """Return labels without types of NumPy, which JSON cannot hold."""
    return [label.item() if isinstance(label, np.generic) else label for label in labels]
