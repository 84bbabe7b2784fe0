"""A request of a client, apart from how it is sent, and what its body is made of."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike as AnyPath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ..collection.answers import Preview

if TYPE_CHECKING:
    import httpx

Result = TypeVar("Result")
PathLike: TypeAlias = str | AnyPath[str]
_MEDIA_TYPES = {
    b"\x89PNG": "image/png",
    b"GIF8": "image/gif",
    b"BM": "image/bmp",
    b"II*\0": "image/tiff",
    b"MM\0*": "image/tiff",
}


@dataclass(frozen=True, slots=True)
class Call(Generic[Result]):
    """A request, whether it may be sent twice, and how to read the answer.

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
    idempotent: bool = True
    content: bytes | None = None
    as_json: bool = True

    @classmethod
    def of_picture(
        cls,
        path: str,
        read: Callable[[Any], Result],
        picture: bytes | PathLike,
        options: Mapping[str, Any],
        headers: Mapping[str, str] | None = None,
    ) -> Call[Result]:
        """Return a request whose body is a picture, so that its options are parameters of the address."""
        content = picture if isinstance(picture, bytes) else Path(picture).read_bytes()
        return Call(
            "POST",
            path,
            read,
            params={name: _parameter(value) for name, value in given(options).items()},
            headers={"Content-Type": _media_type(content)} | dict(headers or {}),
            content=content,
        )

    def arguments(self, file: Any = None) -> dict[str, Any]:
        """Return the arguments of httpx besides the method and the path; ``file`` yields the pieces of a file."""
        content = self.content if file is None else file
        body: dict[str, Any] = {"json": self.body} if content is None else {"content": content}
        size = {} if self.file is None else {"Content-Length": str(self.file.stat().st_size)}
        return body | {"params": dict(self.params), "headers": {**self.headers, **size}}


def new_key() -> dict[str, str]:
    """Return the header by which the service recognizes a write that is sent again."""
    return {"Idempotency-Key": uuid.uuid4().hex}


def new_items(
    X: ArrayLike | None,
    texts: Sequence[str] | None,
    rows: Sequence[Any] | None,
    ids: Sequence[int] | None,
    labels: Sequence[Any] | None,
    metadata: Sequence[Mapping[str, Any]] | None,
    references: Sequence[str | None] | None,
) -> dict[str, Any]:
    """Return one object per item to store, which is a vector, a text or a row of a table."""
    if sum(each is not None for each in (X, texts, rows)) != 1:
        raise ValueError("Give either X, texts or rows.")
    columns: dict[str, list[Any] | None] = {
        "vector": None if X is None else _rows(X),
        "text": None if texts is None else list(texts),
        "row": None if rows is None else list(rows),
        "id": None if ids is None else plain_ids(ids),
        "label": None if labels is None else plain_labels(labels),
        "metadata": None if metadata is None else [dict(entry) for entry in metadata],
        "reference": None if references is None else list(references),
    }
    return items_body({name: column for name, column in columns.items() if column is not None})


def items_body(columns: Mapping[str, list[Any]]) -> dict[str, Any]:
    """Return one object per item, given what the items have in each column; the first says how many there are."""
    first, rows = next(iter(columns.items()))
    for name, column in columns.items():
        if len(column) != len(rows):
            raise ValueError(
                f"There are {len(column)} values of {name} for {len(rows)} {first}s; give one per {first}."
            )
    return {"items": [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]}


def search_body(
    X: ArrayLike | None = None,
    k: int = 10,
    *,
    items: Sequence[int] | None = None,
    texts: Sequence[str] | None = None,
    rows: Sequence[Any] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Return a search, of which the service knows the options."""
    stored = {} if items is None else {"items": plain_ids(items)}
    return queries(X, texts, rows) | stored | given({"k": k, **options})


def queries(X: ArrayLike | None, texts: Sequence[str] | None, rows: Sequence[Any] | None) -> dict[str, Any]:
    """Return what is given; the service says what to do if that is nothing, or more than one."""
    body: dict[str, list[Any] | None] = {
        "vectors": None if X is None else _rows(X),
        "texts": None if texts is None else list(texts),
        "rows": None if rows is None else list(rows),
    }
    return {name: value for name, value in body.items() if value is not None}


def preview_in(answer: httpx.Response) -> Preview:
    """Return the small picture that an answer holds."""
    return Preview(answer.content, answer.headers.get("content-type", ""))


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


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was given, without types of NumPy, which JSON cannot hold."""
    return {name: _plain(value) for name, value in options.items() if value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    return [*map(_plain, value)] if isinstance(value, Iterable) and not isinstance(value, str) else value


def _rows(X: ArrayLike) -> list[list[float]]:
    try:
        rows = np.asarray(X, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"X does not hold numbers only ({error}). Give texts as texts=[...], and rows of a table as "
            "rows=[{column: value}]."
        ) from error
    if rows.ndim != 2 or not len(rows):
        raise ValueError(f"X has shape {rows.shape}; it must be (n_vectors, n_columns), with at least one vector.")
    if not np.isfinite(rows).all():
        raise ValueError("X holds NaN or infinity; only finite numbers can be sent. Impute or drop those rows.")
    return rows.tolist()


def plain_ids(ids: Sequence[int]) -> list[int]:
    return [int(item) for item in ids]


def plain_labels(labels: Sequence[Any]) -> list[Any]:
    """Return labels without types of NumPy, which JSON cannot hold."""
    return [label.item() if isinstance(label, np.generic) else label for label in labels]
