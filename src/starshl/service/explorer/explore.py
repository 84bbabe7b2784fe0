"""The explore page: search by click, upload, text or id; what several methods find, and why a hit matches."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, File, Query, Request, UploadFile
from fastapi.responses import RedirectResponse, Response

from ..._common.labels import Label
from ..._common.words import counted, percent
from ...client.answers import CollectionInfo, Job
from ...collection.answers import Explanation, Hit, Item
from ...collection.collection import Collection
from ...collection.explanation import n_class_bits
from ...collection.options import Filters
from ...data.features.picture_files import KINDS
from ...exceptions import MissingExtraError, UnknownIdError
from ..batching import map_future
from ..errors import TooLargeError
from ..http.dependencies import SearcherDep, ServiceDep, in_thread, result_of
from ..http.search import preview_response
from ..inputs import picture_and_preview, text_vectors
from ..searcher import Searcher, existing_items
from ..workspace import Upload, Workspace
from .guesses import GuessStatus, class_rows, filters_of, guesses_seen, status_of
from .query_description import QueryDescription, bits_of, describe_query
from .question import MOST_NEIGHBORS, Question
from .rendering import Card, cards_of, may_write, picture_of_upload, render

routes = APIRouter(include_in_schema=False)
_CARDS_PER_PAGE = 48  # a few screens on a phone
_LARGEST_PICTURE = 12 << 20
_MOST_CHOICES = 50  # in a menu; longer ones are typed
_MOST_WORDS = 2000  # characters of what is typed into the search box
_PARTS = {
    "neighbors": "explore/neighbors.html",
    "details": "explore/details.html",
    "classes": "explore/classes.html",
}


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """The query: a stored item, an upload or a text; ``vector`` is None if vectors are not kept."""

    title: str
    picture: str | None
    item: Item | None
    vector: np.ndarray | None

    @property
    def label(self) -> Label | None:
        return None if self.item is None else self.item.label


@dataclass(frozen=True, slots=True)
class MethodHits:
    """What one method found."""

    method: str
    about: str
    cards: list[Card]
    milliseconds: float
    total: int

    @property
    def n_judged(self) -> int:
        return sum(card.is_right is not None for card in self.cards)

    @property
    def n_right(self) -> int:
        return sum(card.is_right is True for card in self.cards)


@dataclass(frozen=True, slots=True)
class Match:
    """The codes of the query and of one hit, bit by bit, and why they match.

    The first ``n_class_bits`` hold a class as a number, whose bits are not compared.
    """

    card: Card
    bits: list[bool]
    n_class_bits: int
    differing: set[int]
    explanation: Explanation | None


@dataclass(slots=True)
class Exploration:
    """The contents of the page; parts that were not asked for are empty.

    Without a query, ``browsed`` are items to begin with, of ``n_found``; more come after ``next_item``. ``takes_texts``
    says whether texts can be searched for. ``preparing`` is the job that prepares other methods.
    """

    info: CollectionInfo
    question: Question
    filters: Filters
    guesses: GuessStatus
    query: SearchQuery | None = None
    results: list[MethodHits] = field(default_factory=list)
    description: QueryDescription | None = None
    match: Match | None = None
    browsed: list[Card] = field(default_factory=list)
    next_item: int | None = None
    n_found: int = 0
    takes_texts: bool = False
    preparing: Job | None = None

    @property
    def seen(self) -> str:
        """The guesses that can be accepted or rejected, for the form."""
        return guesses_seen(self.browsed)


@routes.get("/explore/{name}")
async def explore(
    request: Request, searcher: SearcherDep, service: ServiceDep, part: Annotated[str, Query(max_length=10)] = ""
) -> Response:
    """Show what a question finds; a script asks for parts of the page, first for what is fast."""
    question = Question.of(request.query_params)
    if "q" in request.query_params:
        address = await in_thread(_typed, searcher, question, request.query_params["q"])
        return RedirectResponse(f"{request.url.path}{address}{f'&part={part}' if part else ''}", 303)
    if part and part not in _PARTS:
        raise ValueError(f"The page has no part {part!r}; it has {' and '.join(_PARTS)}. Leave it out for all of it.")
    workspace = service.workspace(searcher.name)
    values: dict[str, Any] = {
        "page": await in_thread(_exploration, workspace, question, part),
        "name": searcher.name,
        "part": part,
        "most": MOST_NEIGHBORS,
        "active": "explore",
        "writable": not searcher.read_only and may_write(request),
    }
    if part in ("", "classes"):
        values |= await in_thread(_form, searcher)
    return render(_PARTS[part] if part else "explore/page.html", request, **values)


@routes.post("/explore/{name}/search")
async def search_by_picture(
    request: Request, searcher: SearcherDep, service: ServiceDep, picture: Annotated[UploadFile, File()]
) -> Response:
    """Remember an uploaded picture for a while, and go to where it is searched for."""
    content = await picture.read(_LARGEST_PICTURE + 1)
    if len(content) > _LARGEST_PICTURE:
        raise TooLargeError("The picture has more than 12 MB. Send a smaller one.")
    workspace = service.workspace(searcher.name)
    upload = await result_of(_upload(searcher, content, (picture.filename or "uploaded picture")[:100]))
    address = Question.of(request.query_params).asking(upload=workspace.add_upload(upload))
    return RedirectResponse(f"/explore/{searcher.name}{address}", 303)


@routes.get("/explore/{name}/pictures/{item}")
async def picture(item: int, searcher: SearcherDep) -> Response:
    """Return the small picture of an item."""
    return await preview_response(searcher, item)


def _typed(searcher: Searcher, question: Question, words: str) -> str:
    """Return the query of an address for what was typed: the number of an item, a part of a file name, or a text."""
    words = words.strip()[:_MOST_WORDS]
    if not words:
        return question.asking()
    number = words.removeprefix("#")
    with searcher.opened() as collection:
        # 17 is an item, and 017 part of a name.
        is_number = number.lstrip("-").isdigit() and (words != number or number == str(int(number)))
        if is_number and (words != number or existing_items(collection, [int(number)])):
            return question.asking(item=number)
        takes_texts = "texts" in _takes(collection)
        if takes_texts and collection.kind == "texts":
            return question.asking(text=words)
        found = collection.named(words)
    if len(found) == 1:
        return question.asking(item=found[0])
    return question.asking(name=words) if found or not takes_texts else question.asking(text=words)


def _form(searcher: Searcher) -> dict[str, Any]:
    """Return what the form offers: labels, fields and their frequent values, and how to ask."""
    with searcher.opened() as collection:
        fields = collection.fields
        choices = {name: list(collection.value_counts(name)) for name, kind in fields.items() if kind == "str"}
        return {
            "classes": class_rows(collection.label_counts(), collection.guesses()),
            "fields": fields,
            "choices": {name: sorted(values) for name, values in choices.items() if len(values) <= _MOST_CHOICES},
            "takes": _takes(collection),
        }


def _takes(collection: Collection) -> tuple[str, ...]:
    """Return what the embedder of a collection takes; nothing if its library, or what its file lacks, is not here."""
    try:
        return collection.takes
    except (MissingExtraError, ValueError):
        return ()


def _upload(searcher: Searcher, content: bytes, name: str) -> Future[Upload]:
    """Return the vector of a picture file and a small picture of it, or say why it cannot be used."""
    if not content:
        raise ValueError(f"No picture arrived. Choose a {KINDS} file.")
    return map_future(picture_and_preview(searcher, content), lambda found: Upload(found[0][0], found[1], name))


def _exploration(workspace: Workspace, question: Question, part: str) -> Exploration:
    if not question.is_asked:
        return _browse(workspace, question)
    page = _neighbors(workspace, question)
    if part != "neighbors":
        _add_details(workspace, page, retry=not part)
    return page


def _browse(workspace: Workspace, question: Question) -> Exploration:
    """List items to begin with, of those that pass the filters."""
    info = workspace.searcher.info()
    status, filters = status_of(workspace), filters_of(question, info, workspace)
    items, more = workspace.searcher.list_items(question.after, _CARDS_PER_PAGE, filters, question.order)
    with workspace.searcher.opened() as collection:
        cards = cards_of(collection, info.name, items)
        n_found, takes_texts = len(collection.passing(filters)), "texts" in _takes(collection)
    page = Exploration(info, question, filters, status, browsed=cards, next_item=more)
    return replace(page, n_found=n_found, takes_texts=takes_texts)


def _neighbors(workspace: Workspace, question: Question) -> Exploration:
    """Search as programs do by default."""
    info = workspace.searcher.info()
    status, filters = status_of(workspace), filters_of(question, info, workspace)
    page = Exploration(info, question, filters, status, _query(workspace, question))
    page.results.append(_search(workspace, page, "Most similar", "", rescore=None, distances=False))
    return page


def _add_details(workspace: Workspace, page: Exploration, *, retry: bool) -> None:
    """Add what the hasher makes of the query, why the chosen hit matches, and other methods if they are asked for.

    With ``retry``, a preparation of the other methods that failed begins anew.
    """
    if page.query is not None and page.query.vector is not None:
        with workspace.searcher.opened() as collection:
            page.description = describe_query(collection, page.query.vector)
    if page.question.methods:
        about = f"{page.info.method}, {counted(page.info.n_bits, 'bit')}"
        page.results.append(_search(workspace, page, "Codes", about, rescore=False if page.info.vectors else None))
        if page.query is not None and page.query.vector is not None and page.question.radius is None:
            page.results += _other_methods(workspace, page, page.query.vector)
            page.preparing = workspace.prepare_comparison(retry=retry)
    page.match = None if page.question.hit is None else _match(workspace, page, page.question.hit)


def _query(workspace: Workspace, question: Question) -> SearchQuery:
    if question.item is not None:
        with workspace.searcher.opened() as collection:
            (item,) = collection.get([question.item])
            vector = collection.vectors([item.id])[0] if collection.vector_dtype else None
            card = _card(collection, workspace.searcher.name, item)
        return SearchQuery(card.title, card.picture, item, vector)
    if question.upload is not None:
        upload = workspace.upload(question.upload)
        return SearchQuery(upload.name, picture_of_upload(upload), None, upload.vector)
    # Not by the embedder itself, for which the text would be the path of a picture in a collection of pictures.
    vectors = text_vectors(workspace.searcher, [question.text or ""]).result()
    return SearchQuery(f"“{question.text}”", None, None, vectors[0])


def _search(
    workspace: Workspace,
    page: Exploration,
    method: str,
    about: str,
    *,
    rescore: bool | None,
    distances: bool = True,
) -> MethodHits:
    """Search with the collection's own hasher; a stored item is left out of its own neighbors."""
    query, question = page.query, page.question
    assert query is not None
    options = replace(question.options(page.filters, rescore=rescore), k=question.k + (query.item is not None))
    started = time.perf_counter()
    if query.item is None:
        assert query.vector is not None
        future = workspace.searcher.search(vectors=query.vector[None].tolist(), options=options)
    else:
        future = workspace.searcher.search(items=[query.item.id], options=options)
    (found,) = future.result()
    milliseconds = 1000 * (time.perf_counter() - started)
    own = [] if query.item is None else [query.item.id]
    with workspace.searcher.opened() as collection:
        cards = _cards(collection, page, found.without(own, question.k), distances=distances)
        # It is at no distance, and so counts as near, unless a filter leaves it out.
        n_own = len(collection.passing(replace(options.filters, among=np.array(own)))) if own else 0
    return MethodHits(method, about, cards, milliseconds, found.total - n_own)


def _other_methods(workspace: Workspace, page: Exploration, vector: np.ndarray) -> list[MethodHits]:
    """Search with rescoring, by exact distances, and by the codes of another method."""
    question, query = page.question, page.query
    about = "the codes choose candidates, their vectors decide"
    if page.info.hit_probabilities:
        about += ", and how likely the class is"
    results = [_search(workspace, page, "Codes, then vectors", about, rescore=True)]
    if not workspace.comparison.is_ready:
        return results
    own = None if query is None or query.item is None else query.item.id
    with workspace.searcher.opened() as collection:
        among = collection.passing(page.filters) if page.filters else None
        for ranking in workspace.comparison.search(vector, question.k + 1, among):
            ids = [item for item in ranking.ids if item != own][: question.k]
            cards = _cards(collection, page, existing_items(collection, ids))
            results.append(MethodHits(ranking.method, ranking.about, cards, ranking.milliseconds, len(cards)))
    return results


def _cards(
    collection: Collection, page: Exploration, hits: Sequence[Hit | Item], *, distances: bool = True
) -> list[Card]:
    notes = [_note(hit, distances) if isinstance(hit, Hit) else "" for hit in hits]
    label = None if page.query is None else page.query.label
    return cards_of(collection, page.info.name, hits, query_label=label, notes=notes)


def _card(collection: Collection, name: str, item: Item, query_label: Label | None = None) -> Card:
    """Return the card of one item; raise UnknownIdError if it was removed since it was read."""
    cards = cards_of(collection, name, [item], query_label=query_label)
    if not cards:
        raise UnknownIdError(item.id)
    return cards[0]


def _note(hit: Hit, distances: bool) -> str:
    """Return how likely a hit is of the class of the query, and how far it is if that is asked for."""
    likely = [] if hit.probability is None else [percent(hit.probability)]
    if distances and hit.rescored is not None:
        likely.append(f"distance {hit.rescored:.3g}")
    elif distances and not likely:
        likely.append(counted(hit.distance, "bit") if isinstance(hit.distance, int) else f"distance {hit.distance:.3g}")
    return ", ".join(likely)


def _match(workspace: Workspace, page: Exploration, hit: int) -> Match:
    """Compare the query with one of the hits."""
    with workspace.searcher.opened() as collection:
        return _compare(collection, page, hit)


def _compare(collection: Collection, page: Exploration, hit: int) -> Match:
    query = page.query
    assert query is not None
    card = _card(collection, page.info.name, collection.get([hit])[0], query.label)
    (bits,) = bits_of(collection.codes([hit]))
    explanation = None if query.vector is None else collection.explain(query.vector[None], [hit])[0]
    if page.description is None:
        assert query.item is not None
        (own,) = bits_of(collection.codes([query.item.id]))
    else:
        own = page.description.bits
    first = n_class_bits(collection.hasher)
    differing = {place for place in range(first, len(bits)) if own[place] != bits[place]}
    return Match(card, bits, first, differing, explanation)
