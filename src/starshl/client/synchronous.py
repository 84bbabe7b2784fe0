"""Client: asks a service and waits for the answer."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx
from numpy.typing import ArrayLike

from .._common.validation import Label
from .answers import CollectionInfo, Found, Hit, Item, ItemPage, Job, Prediction, Snapshot, Written
from .calls import Call, CollectionCalls, PathLike, list_collections
from .transport import Retries, checked_address, read_answer, save_answer, unreachable

Result = TypeVar("Result")


class Client:
    """A connection to a service.

    Every write carries a key, so an attempt that is repeated after a lost connection is stored once.

    Parameters
    ----------
    address : str, such as "http://127.0.0.1:8000"
    token : str, default=None
        For a service with tokens.
    timeout : float, default=60
        Seconds to wait for an answer.
    retries : Retries, default=None
        How often to try again; five attempts by default.
    transport : httpx transport, default=None
        Another way to the service, such as to an app in the same process.

    Attributes
    ----------
    http : httpx client
        Sends requests that have no method here, with the token and without retries.
    """

    def __init__(
        self,
        address: str,
        *,
        token: str | None = None,
        timeout: float = 60.0,
        retries: Retries | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._retries = Retries() if retries is None else retries
        self.http = httpx.Client(
            base_url=checked_address(address), headers=headers, timeout=timeout, transport=transport
        )

    def collections(self) -> list[CollectionInfo]:
        """Return what the service holds."""
        return self.send(list_collections())

    def collection(self, name: str) -> RemoteCollection:
        """Return a collection to use; the first request shows whether it exists."""
        return RemoteCollection(self, name)

    def send(self, call: Call[Result]) -> Result:
        """Send a request, again if need be, and return the answer."""
        attempt = 0
        while True:
            attempt += 1
            outcome = self._try(call)
            wait = self._retries.wait_after(attempt, outcome, harmless=call.harmless)
            if wait is None:
                break
            time.sleep(wait)
        if isinstance(outcome, httpx.TransportError):
            raise unreachable(self.http.base_url, outcome) from outcome
        return call.read(read_answer(outcome, as_json=call.as_json))

    def save(self, address: str, path: PathLike) -> None:
        """Write what is at an address to a file, piece by piece."""
        try:
            with self.http.stream("GET", address) as response:
                save_answer(response, Path(path))
        except httpx.TransportError as error:
            raise unreachable(self.http.base_url, error) from error

    def close(self) -> None:
        """Close the connections."""
        self.http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _try(self, call: Call[Any]) -> httpx.Response | httpx.TransportError:
        with nullcontext() if call.file is None else call.file.open("rb") as file:
            try:
                return self.http.request(call.method, call.path, **call.sent(file))
            except httpx.TransportError as error:
                return error


class RemoteCollection:
    """A collection of a service; arguments are those of :class:`starshl.Collection`."""

    def __init__(self, client: Client, name: str) -> None:
        self.name = name
        self._client = client
        self._calls = CollectionCalls(name)

    def info(self) -> CollectionInfo:
        """Return what the collection is and can do."""
        return self._client.send(self._calls.info())

    def search(
        self,
        vectors: ArrayLike | None = None,
        k: int = 10,
        *,
        items: Sequence[int] | None = None,
        texts: Sequence[str] | None = None,
        radius: int | None = None,
        where: Mapping[str, Any] | None = None,
        labels: Sequence[Label] | None = None,
        among: Sequence[int] | None = None,
        **options: Any,
    ) -> list[Found]:
        """Return the nearest items of vectors, texts or stored items, one :class:`Found` per query.

        A collection of table rows takes ``rows``: dictionaries by column, or lists. Further options are ``rescore``,
        ``oversample``, ``metric``, ``class_first``, ``reject``, ``by_scores`` and ``explain``.
        """
        filters = {"k": k, "radius": radius, "where": where, "labels": labels, "among": among}
        return self._client.send(self._calls.search(vectors, items, texts, filters | options))

    def search_picture(
        self,
        picture: bytes | PathLike,
        k: int = 10,
        *,
        labels: Sequence[str] | None = None,
        **options: Any,
    ) -> list[Hit]:
        """Return the nearest items of a picture, given as a path or as the bytes of a picture file.

        Further options are ``where``, ``radius``, ``rescore`` and ``explain``.
        """
        return self._client.send(self._calls.search_picture(picture, {"k": k, "labels": labels} | options))

    def encode_picture(self, picture: bytes | PathLike) -> str:
        """Return the code of a picture in hexadecimal."""
        return self._client.send(self._calls.encode_picture(picture))

    def predict_picture(self, picture: bytes | PathLike, *, probabilities: bool = False) -> Prediction:
        """Predict the label of a picture."""
        return self._client.send(self._calls.predict_picture(picture, probabilities))

    def add_picture(
        self,
        picture: bytes | PathLike,
        *,
        id: int | None = None,
        label: Label | None = None,
        metadata: Mapping[str, Any] | None = None,
        reference: str | None = None,
    ) -> Written:
        """Store a picture as a new item, together with its preview."""
        options = {"id": id, "label": label, "metadata": metadata, "reference": reference}
        return self._client.send(self._calls.add_picture(picture, options))

    def preview(self, item: int) -> bytes:
        """Return the small picture of an item, as the bytes of a file."""
        return self._client.send(self._calls.preview(item))

    def search_together(self, searches: Sequence[Mapping[str, Any]]) -> list[list[Found]]:
        """Do several searches, each with its own options, in one request.

        Each is a dictionary with the arguments of :meth:`search`, such as ``{"items": [3], "k": 5}``.
        """
        return self._client.send(self._calls.search_together(searches))

    def recommend(
        self,
        like: Sequence[int],
        unlike: Sequence[int] = (),
        k: int = 10,
        *,
        where: Mapping[str, Any] | None = None,
        labels: Sequence[Label] | None = None,
        among: Sequence[int] | None = None,
        **options: Any,
    ) -> list[Hit]:
        """Return items like some stored items and unlike others, by their kept vectors; these items are left out.

        Further options are those of :meth:`search`.
        """
        filters = {"k": k, "where": where, "labels": labels, "among": among}
        return self._client.send(self._calls.recommend(like, unlike, filters | options))

    def encode(
        self,
        vectors: ArrayLike | None = None,
        *,
        texts: Sequence[str] | None = None,
        rows: Sequence[Any] | None = None,
    ) -> list[str]:
        """Return the codes of vectors, texts or rows of a table in hexadecimal."""
        return self._client.send(self._calls.encode(vectors, texts, rows))

    def predict(
        self,
        vectors: ArrayLike | None = None,
        *,
        texts: Sequence[str] | None = None,
        rows: Sequence[Any] | None = None,
        probabilities: bool = False,
    ) -> Prediction:
        """Predict the labels of vectors, texts or rows of a table."""
        return self._client.send(self._calls.predict(vectors, texts, rows, probabilities))

    def add(
        self,
        vectors: ArrayLike | None = None,
        *,
        texts: Sequence[str] | None = None,
        rows: Sequence[Any] | None = None,
        ids: Sequence[int] | None = None,
        labels: Sequence[Label | None] | None = None,
        metadata: Sequence[Mapping[str, Any]] | None = None,
        references: Sequence[str | None] | None = None,
    ) -> Written:
        """Store new items, given as vectors, texts or rows of a table, all of them or none."""
        call = self._calls.add(vectors, texts, rows, ids, labels, metadata, references, replace=False)
        return self._client.send(call)

    def upsert(
        self,
        vectors: ArrayLike | None = None,
        *,
        ids: Sequence[int],
        texts: Sequence[str] | None = None,
        rows: Sequence[Any] | None = None,
        labels: Sequence[Label | None] | None = None,
        metadata: Sequence[Mapping[str, Any]] | None = None,
        references: Sequence[str | None] | None = None,
    ) -> Written:
        """Store items, given as vectors, texts or rows of a table, under given ids, replacing those that exist."""
        call = self._calls.add(vectors, texts, rows, ids, labels, metadata, references, replace=True)
        return self._client.send(call)

    def update(self, ids: Sequence[int], metadata: Sequence[Mapping[str, Any]]) -> Written:
        """Replace the metadata of items."""
        return self._client.send(self._calls.update(ids, metadata))

    def set_labels(self, ids: Sequence[int], labels: Sequence[Label | None]) -> Written:
        """Set the labels of items; None removes a label."""
        return self._client.send(self._calls.set_labels(ids, labels))

    def remove(self, ids: Sequence[int]) -> Written:
        """Remove items, all of them or none."""
        return self._client.send(self._calls.remove(ids))

    def remove_matching(
        self, *, where: Mapping[str, Any] | None = None, labels: Sequence[Label] | None = None
    ) -> Written:
        """Remove all items that pass a filter; a filter is required."""
        return self._client.send(self._calls.remove_matching({"where": where, "labels": labels}))

    def get(self, ids: Sequence[int], *, vectors: bool = False) -> list[Item]:
        """Return items by id, with their kept vectors if asked for."""
        return self._client.send(self._calls.get(ids, vectors))

    def list_items(
        self,
        after: int | None = None,
        limit: int = 100,
        *,
        where: Mapping[str, Any] | None = None,
        labels: Sequence[Label] | None = None,
        among: Sequence[int] | None = None,
    ) -> ItemPage:
        """Return the first items that pass filters, of those whose ids are larger than ``after``."""
        filters = {"where": where, "labels": labels, "among": among}
        return self._client.send(self._calls.list_items(after, limit, filters))

    def count(
        self,
        *,
        where: Mapping[str, Any] | None = None,
        labels: Sequence[Label] | None = None,
        among: Sequence[int] | None = None,
    ) -> int:
        """Return how many items pass filters."""
        return self._client.send(self._calls.count({"where": where, "labels": labels, "among": among}))

    def declare_fields(self, fields: Mapping[str, str]) -> CollectionInfo:
        """Declare metadata fields as "int", "float", "str" or "bool", so that filters on them are fast."""
        return self._client.send(self._calls.declare_fields(fields))

    def fit(
        self, method: str = "StarRidge", n_bits: int = 32, *, seed: int = 0, settings: Mapping[str, Any] | None = None
    ) -> Job:
        """Begin to fit a hasher on the kept vectors and labels, and to encode all items with it."""
        return self._client.send(self._calls.fit(method, n_bits, seed, settings or {}))

    def import_file(self, path: PathLike, *, key: str | None = None) -> Job:
        """Begin to add items from a file of JSON lines, each an object with a vector.

        It may have id, label, metadata and reference, too. If the import is cut short, import the same file with the
        same key, and it goes on where it stopped; ``key`` of a job is the key that was chosen here.
        """
        return self._client.send(self._calls.import_file(path, key))

    def replace_model(self, path: PathLike) -> Job:
        """Begin to encode all items with the hasher in a model file; it needs kept vectors."""
        return self._client.send(self._calls.replace_model(path))

    def save_model(self, path: PathLike) -> None:
        """Write the hasher of the collection to a model file."""
        self._client.save(self._calls.model_path(), path)

    def jobs(self) -> list[Job]:
        """Return the jobs of this collection, the newest last."""
        return self._client.send(self._calls.jobs())

    def job(self, job: str) -> Job:
        """Say how far along a job is."""
        return self._client.send(self._calls.job(job))

    def cancel(self, job: str) -> Job:
        """Ask a job to stop."""
        return self._client.send(self._calls.cancel(job))

    def wait(self, job: str, *, seconds: float = float("inf")) -> Job:
        """Return a job once it is over, or as it is after this many seconds."""
        end, pause = time.monotonic() + seconds, 0.05
        while (now := self.job(job)).ended is None and time.monotonic() < end:
            time.sleep(min(pause, max(0.0, end - time.monotonic())))
            pause = min(2 * pause, 2.0)
        return now

    def snapshots(self) -> list[Snapshot]:
        """Return the snapshots of this collection, the newest last."""
        return self._client.send(self._calls.list_snapshots())

    def make_snapshot(self, name: str | None = None) -> Snapshot:
        """Write a snapshot of the current state."""
        return self._client.send(self._calls.make_snapshot(name))

    def save_snapshot(self, snapshot: str, path: PathLike) -> None:
        """Write a snapshot to a file here."""
        self._client.save(self._calls.snapshot_path(snapshot), path)

    def upload_snapshot(self, path: PathLike, name: str | None = None) -> Snapshot:
        """Send a snapshot from a file, under the name of the file by default."""
        return self._client.send(self._calls.upload_snapshot(path, name))

    def restore(self, snapshot: str) -> int:
        """Replace the collection by a snapshot; return the number of its items."""
        return self._client.send(self._calls.restore(snapshot))

    def delete_snapshot(self, snapshot: str) -> None:
        """Delete a snapshot."""
        self._client.send(self._calls.delete_snapshot(snapshot))
