"""AsyncClient: asks a service from asyncio.

Client, which waits for its answers, is the same without ``async``: scripts/write_sync_client.py writes synchronous.py
from this file.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack
from urllib.parse import quote

import httpx
from numpy.typing import ArrayLike

from .._common.files import replacing_file
from .._common.labels import Label
from ..collection.answers import ClassChange, Item, Prediction, Preview, SearchResult
from .answers import CollectionInfo, GuessState, ItemPage, Job, Snapshot, Written
from .calls import (
    Call,
    PathLike,
    given,
    items_body,
    new_items,
    new_key,
    plain_ids,
    plain_labels,
    preview_in,
    queries,
    search_body,
)
from .transport import Retries, ServiceProblem, checked_address, read_answer, unreachable

if TYPE_CHECKING:
    from ..collection.guesses import Order
    from ..collection.options import FilterKeywords, SearchKeywords

Result = TypeVar("Result")
_ROOT = "/api/v1/collections"
_PIECE = 1 << 20  # bytes of a file in memory at a time


class AsyncClient:
    """A connection to a service, for asyncio.

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
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._retries = Retries() if retries is None else retries
        self.http = httpx.AsyncClient(
            base_url=checked_address(address), headers=headers, timeout=timeout, transport=transport
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.http.base_url)!r})"

    async def collections(self) -> list[CollectionInfo]:
        """Return what the service holds."""
        return await self.send(Call("GET", _ROOT, CollectionInfo.all_in("collections")))

    def collection(self, name: str) -> AsyncCollection:
        """Return a collection to use; the first request shows whether it exists."""
        return AsyncCollection(self, name)

    async def send(self, call: Call[Result]) -> Result:
        """Send a request, again if need be, and return the answer."""
        attempt = 0
        while True:
            attempt += 1
            outcome = await self._try(call)
            wait = self._retries.wait_after(attempt, outcome, idempotent=call.idempotent)
            if wait is None:
                break
            await asyncio.sleep(wait)
        if isinstance(outcome, httpx.TransportError):
            raise unreachable(self.http.base_url, outcome) from outcome
        return call.read(read_answer(outcome, as_json=call.as_json))

    async def save(self, address: str, path: PathLike) -> None:
        """Write what is at an address to a file, which appears when it is complete."""
        try:
            async with self.http.stream("GET", address) as response:
                if not response.is_success:
                    await response.aread()
                    read_answer(response)
                with replacing_file(Path(path)) as file:
                    async for piece in response.aiter_bytes(_PIECE):
                        await asyncio.to_thread(file.write, piece)
        except httpx.TransportError as error:
            raise unreachable(self.http.base_url, error) from error

    async def aclose(self) -> None:
        """Close the connections."""
        await self.http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _try(self, call: Call[Any]) -> httpx.Response | httpx.TransportError:
        file = None if call.file is None else _pieces(call.file)
        try:
            return await self.http.request(call.method, call.path, **call.arguments(file))
        except httpx.TransportError as error:
            return error


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    """Yield the content of a file."""
    with await asyncio.to_thread(path.open, "rb") as file:
        while piece := await asyncio.to_thread(file.read, _PIECE):
            yield piece


class AsyncCollection:
    """A collection of a service; arguments are those of :class:`starshl.Collection`.

    The service itself makes vectors from ``texts``, and from ``rows`` of a table: dictionaries by column, or lists.
    """

    def __init__(self, client: AsyncClient, name: str) -> None:
        self.name = name
        self._client = client

    def __repr__(self) -> str:
        return f"{self._client!r}.collection({self.name!r})"

    async def info(self) -> CollectionInfo:
        """Return what the collection is and can do."""
        return await self._client.send(Call("GET", self._path(), CollectionInfo.of))

    async def search(
        self,
        X: ArrayLike | None = None,
        k: int = 10,
        *,
        items: Sequence[int] | None = None,
        texts: Sequence[str] | None = None,
        rows: Sequence[Any] | None = None,
        **options: Unpack[SearchKeywords],
    ) -> list[SearchResult]:
        """Return the nearest items of vectors, texts, rows of a table or stored items, as a collection finds them.

        Options are those of :meth:`starshl.Collection.search`.
        """
        body = search_body(X, k, items=items, texts=texts, rows=rows, **options)
        return await self._client.send(Call("POST", self._path("search"), SearchResult.all_in("results"), body))

    async def search_picture(
        self,
        picture: bytes | PathLike,
        k: int = 10,
        **options: Unpack[SearchKeywords],
    ) -> SearchResult:
        """Return the nearest items of a picture, given as a path or as the bytes of a picture file.

        Options are ``where``, ``labels``, ``radius``, ``min_probability``, ``rescore`` and ``explain``.
        """
        given_options = {"k": k, **options}
        call = Call.of_picture(self._path("search/picture"), SearchResult.all_in("results"), picture, given_options)
        (found,) = await self._client.send(call)
        return found

    async def encode_picture(self, picture: bytes | PathLike) -> str:
        """Return the code of a picture in hexadecimal."""
        call = Call.of_picture(self._path("encode/picture"), lambda answer: str(answer["codes"][0]), picture, {})
        return await self._client.send(call)

    async def predict_picture(
        self, picture: bytes | PathLike, *, probabilities: bool = False, reject: float | None = None
    ) -> Prediction:
        """Predict the label of a picture."""
        options = {"probabilities": probabilities, "reject": reject}
        return await self._client.send(Call.of_picture(self._path("predict/picture"), Prediction.of, picture, options))

    async def add_picture(
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
        call = Call.of_picture(self._path("items/picture"), Written.of, picture, options, new_key())
        return await self._client.send(call)

    async def preview(self, item: int) -> Preview | None:
        """Return the small picture of an item with its media type, None if it has none."""
        path = self._path(f"items/{int(item)}/preview")
        try:
            return await self._client.send(Call("GET", path, preview_in, as_json=False))
        except ServiceProblem as problem:
            if problem.status != HTTPStatus.NOT_FOUND:
                raise
        await self.get([item])  # Whatever else was not found is a problem here, too.
        return None

    async def search_together(self, searches: Sequence[Mapping[str, Any]]) -> list[list[SearchResult]]:
        """Do several searches, each with its own options, in one request.

        Each is a dictionary with the arguments of :meth:`search`, such as ``{"items": [3], "k": 5}``.
        """
        bodies = [search_body(**each) for each in searches]
        read = SearchResult.all_in("results")
        path, body = self._path("search/batch"), {"searches": bodies}
        return await self._client.send(Call("POST", path, lambda answer: [*map(read, answer["answers"])], body))

    async def recommend(
        self, like: Sequence[int], unlike: Sequence[int] = (), k: int = 10, **options: Unpack[SearchKeywords]
    ) -> SearchResult:
        """Return items like some stored items and unlike others, by their kept vectors; these items are left out.

        Options are those of :meth:`search`, without ``radius``.
        """
        body = given({"k": k, **options}) | {"like": plain_ids(like), "unlike": plain_ids(unlike)}
        (found,) = await self._client.send(Call("POST", self._path("recommend"), SearchResult.all_in("results"), body))
        return found

    async def encode(
        self,
        X: ArrayLike | None = None,
        *,
        texts: Sequence[str] | None = None,
        rows: Sequence[Any] | None = None,
    ) -> list[str]:
        """Return the codes of vectors, texts or rows of a table in hexadecimal."""
        body = queries(X, texts, rows)
        return await self._client.send(Call("POST", self._path("encode"), lambda answer: list(answer["codes"]), body))

    async def predict(
        self,
        X: ArrayLike | None = None,
        *,
        texts: Sequence[str] | None = None,
        rows: Sequence[Any] | None = None,
        probabilities: bool = False,
        reject: float | None = None,
    ) -> Prediction:
        """Predict the labels of vectors, texts or rows of a table."""
        body = queries(X, texts, rows) | {"probabilities": probabilities} | given({"reject": reject})
        return await self._client.send(Call("POST", self._path("predict"), Prediction.of, body))

    async def add(
        self,
        X: ArrayLike | None = None,
        *,
        texts: Sequence[str] | None = None,
        rows: Sequence[Any] | None = None,
        labels: Sequence[Label | None] | None = None,
        ids: Sequence[int] | None = None,
        metadata: Sequence[Mapping[str, Any]] | None = None,
        references: Sequence[str | None] | None = None,
    ) -> Written:
        """Store new items, given as vectors, texts or rows of a table, all of them or none."""
        items = new_items(X, texts, rows, ids, labels, metadata, references)
        return await self._write("POST", "items", items)

    async def upsert(
        self,
        X: ArrayLike | None = None,
        *,
        ids: Sequence[int],
        texts: Sequence[str] | None = None,
        rows: Sequence[Any] | None = None,
        labels: Sequence[Label | None] | None = None,
        metadata: Sequence[Mapping[str, Any]] | None = None,
        references: Sequence[str | None] | None = None,
    ) -> Written:
        """Store items, given as vectors, texts or rows of a table, under given ids, replacing those that exist."""
        items = new_items(X, texts, rows, ids, labels, metadata, references)
        return await self._write("PUT", "items", items)

    async def update(self, ids: Sequence[int], metadata: Sequence[Mapping[str, Any]]) -> Written:
        """Replace the metadata of items."""
        columns: dict[str, list[Any]] = {"id": plain_ids(ids), "metadata": [dict(entry) for entry in metadata]}
        return await self._write("PATCH", "items", items_body(columns))

    async def set_labels(self, ids: Sequence[int], labels: Sequence[Label | None] | None) -> Written:
        """Set the labels of items; None removes a label, or those of all these items instead of a list."""
        known = plain_ids(ids)
        columns = {"id": known, "label": [None] * len(known) if labels is None else plain_labels(labels)}
        return await self._write("PUT", "labels", items_body(columns))

    async def remove(self, ids: Sequence[int]) -> Written:
        """Remove items, all of them or none."""
        return await self._write("POST", "items/remove", {"ids": plain_ids(ids)})

    async def remove_matching(
        self, *, where: Mapping[str, Any] | None = None, labels: Sequence[Label] | None = None
    ) -> Written:
        """Remove all items that pass a filter; a filter is required, and an empty one is none."""
        return await self._write("POST", "items/remove", given({"where": where, "labels": labels}))

    async def get(self, ids: Sequence[int], *, vectors: bool = False) -> list[Item]:
        """Return items by id, with their kept vectors if asked for."""
        path, body = self._path("items/get"), {"ids": plain_ids(ids)}
        return await self._client.send(Call("POST", path, Item.all_in("items"), body, params={"vectors": vectors}))

    async def list_items(
        self,
        after: int | None = None,
        limit: int = 100,
        *,
        order: Order = "id",
        **filters: Unpack[FilterKeywords],
    ) -> ItemPage:
        """Return the first items that pass filters, of those that come after the item ``after``.

        They are listed by id, or the "likeliest" or the "least_sure" guesses first.
        """
        body = given({**filters, "after": after, "limit": limit, "order": order})
        return await self._client.send(Call("POST", self._path("items/list"), ItemPage.of, body))

    async def count(self, **filters: Unpack[FilterKeywords]) -> int:
        """Return how many items pass filters."""
        call = Call("POST", self._path("items/count"), lambda answer: int(answer["count"]), given(filters))
        return await self._client.send(call)

    async def declare_fields(self, fields: Mapping[str, type | str]) -> None:
        """Declare metadata fields as int, float, str or bool, or by these words, so that filters on them are fast."""
        words = {name: getattr(kind, "__name__", kind) for name, kind in fields.items()}
        await self._client.send(Call("PUT", self._path("fields"), lambda answer: None, {"fields": words}))

    async def label_counts(self) -> dict[Label, int]:
        """Return how many items have each label, the most frequent first; unlabeled items are not counted."""

        def read(answer: Mapping[str, Any]) -> dict[Label, int]:
            return {each["label"]: each["items"] for each in answer["classes"] if each["items"]}

        return await self._client.send(Call("GET", self._path("classes"), read))

    async def guess_state(self) -> GuessState:
        """Return for how many items each label is guessed, and whether something has changed since."""
        return await self._client.send(Call("GET", self._path("guesses"), GuessState.of))

    async def update_guesses(self) -> Job:
        """Begin to guess the labels of all items that have none."""
        return await self._client.send(Call("POST", self._path("guesses/update"), Job.of))

    async def accept_guesses(self, ids: Sequence[int], labels: Sequence[Label | None] | None = None) -> Written:
        """Give items the labels that are guessed, all in one change; an item that has a label keeps it.

        ``labels`` are the guesses that a person has seen; what is guessed now if None.
        """
        return await self._review("accept", ids, labels)

    async def reject_guesses(self, ids: Sequence[int], labels: Sequence[Label | None] | None = None) -> Written:
        """Say that guesses are wrong, all in one change: items are not guessed to be of these classes again."""
        return await self._review("reject", ids, labels)

    async def undo_review(self) -> Written:
        """Undo the last acceptance, rejection, answer or skip that was not undone yet."""
        return await self._write("POST", "guesses/undo", {})

    async def _review(self, kind: str, ids: Sequence[int], labels: Sequence[Label | None] | None) -> Written:
        known = None if labels is None else plain_labels(labels)
        return await self._write("POST", f"guesses/{kind}", given({"ids": plain_ids(ids), "labels": known}))

    async def class_changes(self) -> list[ClassChange]:
        """Return all renames, mergers and removals of classes, undone or not, the oldest first."""
        return await self._client.send(Call("GET", self._path("classes"), ClassChange.all_in("changes")))

    async def rename_class(self, label: Label, name: Label) -> ClassChange:
        """Give a class another name; no code changes."""
        return await self._change_classes("rename", {"label": label, "name": name})

    async def merge_classes(self, label: Label, into: Label) -> ClassChange:
        """Let a class count as another one; no code changes."""
        return await self._change_classes("merge", {"label": label, "into": into})

    async def remove_class(self, label: Label) -> ClassChange:
        """Hide a class: its items have no label until this is undone."""
        return await self._change_classes("remove", {"label": label})

    async def undo_class_change(self, number: int | None = None) -> ClassChange:
        """Undo a rename, merger or removal of a class, the last one that stands if ``number`` is None."""
        return await self._change_classes("undo", {"number": number})

    async def _change_classes(self, kind: str, body: Mapping[str, Any]) -> ClassChange:
        call = Call("POST", self._path("classes", kind), ClassChange.of, body, headers=new_key())
        return await self._client.send(call)

    async def fit(
        self, method: str = "StarRidge", n_bits: int = 32, *, seed: int = 0, settings: Mapping[str, Any] | None = None
    ) -> Job:
        """Begin to fit a hasher on the kept vectors and labels, and to encode all items with it."""
        body = {"method": method, "n_bits": n_bits, "seed": seed, "settings": dict(settings or {})}
        return await self._client.send(Call("POST", self._path("fit"), Job.of, body, idempotent=False))

    async def import_file(self, path: PathLike, *, key: str | None = None) -> Job:
        """Begin to add items from a file of JSON lines, each an object with a vector.

        It may have id, label, metadata and reference, too. If the import is cut short, import the same file with the
        same key, and it goes on where it stopped; ``key`` of a job is the key that was chosen here.
        """
        headers = new_key() if key is None else {"Idempotency-Key": key}
        return await self._client.send(Call("POST", self._path("import"), Job.of, file=Path(path), headers=headers))

    async def replace_model(self, path: PathLike) -> Job:
        """Begin to encode all items with the hasher in a model file; it needs kept vectors."""
        return await self._client.send(Call("PUT", self._path("model"), Job.of, file=Path(path), idempotent=False))

    async def save_model(self, path: PathLike) -> None:
        """Write the hasher of the collection to a model file."""
        await self._client.save(self._path("model"), path)

    async def jobs(self) -> list[Job]:
        """Return the jobs of this collection, the newest last."""
        return await self._client.send(Call("GET", self._path("jobs"), Job.all_in("jobs")))

    async def job(self, job: str) -> Job:
        """Say how far along a job is."""
        return await self._client.send(Call("GET", self._path("jobs", job), Job.of))

    async def cancel(self, job: str) -> Job:
        """Ask a job to stop."""
        return await self._client.send(Call("POST", self._path("jobs", job, "cancel"), Job.of, idempotent=False))

    async def wait(self, job: str, *, seconds: float = float("inf")) -> Job:
        """Return a job once it is over, or as it is after this many seconds."""
        end, pause = time.monotonic() + seconds, 0.05
        while (now := await self.job(job)).ended is None and time.monotonic() < end:
            await asyncio.sleep(min(pause, max(0.0, end - time.monotonic())))
            pause = min(2 * pause, 2.0)
        return now

    async def snapshots(self) -> list[Snapshot]:
        """Return the snapshots of this collection, the newest last."""
        return await self._client.send(Call("GET", self._path("snapshots"), Snapshot.all_in("snapshots")))

    async def make_snapshot(self, name: str | None = None) -> Snapshot:
        """Write a snapshot of the current state."""
        call = Call("POST", self._path("snapshots"), Snapshot.of, {"name": name}, idempotent=False)
        return await self._client.send(call)

    async def save_snapshot(self, snapshot: str, path: PathLike) -> None:
        """Write a snapshot to a file here."""
        await self._client.save(self._path("snapshots", snapshot), path)

    async def upload_snapshot(self, path: PathLike, name: str | None = None) -> Snapshot:
        """Send a snapshot from a file, under the name of the file by default."""
        address = self._path("snapshots", Path(path).stem if name is None else name)
        return await self._client.send(Call("PUT", address, Snapshot.of, file=Path(path), idempotent=False))

    async def restore(self, snapshot: str) -> int:
        """Replace the collection by a snapshot; return the number of its items."""
        path = self._path("snapshots", snapshot, "restore")
        return await self._client.send(Call("POST", path, lambda answer: int(answer["n_items"]), idempotent=False))

    async def delete_snapshot(self, snapshot: str) -> None:
        """Delete a snapshot."""
        path = self._path("snapshots", snapshot)
        await self._client.send(Call("DELETE", path, lambda answer: None, idempotent=False))

    async def _write(self, method: str, what: str, body: Mapping[str, Any]) -> Written:
        return await self._client.send(Call(method, self._path(what), Written.of, body, headers=new_key()))

    def _path(self, what: str = "", *names: str) -> str:
        """Return the address of something of the collection, such as ("snapshots", name)."""
        parts = [_ROOT, quote(self.name, safe=""), what, *(quote(name, safe="") for name in names)]
        return "/".join(part for part in parts if part)
