"""The explore page: query by click, upload, text or id, and what several methods find."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Annotated, Any

from fastapi import APIRouter, File, Query, Request, UploadFile
from fastapi.responses import RedirectResponse, Response

from ...data.features.picture_files import KINDS
from ..batching import map_future
from ..errors import TooLargeError
from ..http.dependencies import SearcherDep, ServiceDep, in_thread, result_of
from ..http.search import preview_answer
from ..inputs import picture_and_preview, preview
from ..searcher import Searcher
from ..workspace import Upload, Workspace
from .exploration import Exploration, browse, look_closer, neighbors
from .question import MOST_NEIGHBORS, Question
from .rendering import render

routes = APIRouter(include_in_schema=False)
_LARGEST_PICTURE = 12 << 20
_MOST_CHOICES = 50  # in a menu; longer ones are typed
_PARTS = {"near": "explore/near.html", "rest": "explore/rest.html"}


def read_upload(searcher: Searcher, content: bytes, name: str) -> Future[Upload]:
    """Return the vector of a picture file and a small picture of it, or say why it cannot be used."""
    if not content:
        raise ValueError(f"No picture arrived. Choose a {KINDS} file.")
    return map_future(picture_and_preview(searcher, content), lambda found: Upload(found[0][0], found[1], name))


@routes.get("/explore/{name}")
async def explore(
    request: Request, searcher: SearcherDep, service: ServiceDep, part: Annotated[str, Query(max_length=10)] = ""
) -> Response:
    """Show what a question finds; a script asks for parts of the page, first for what is fast."""
    question = Question.of(request.query_params)
    if "q" in request.query_params:
        return RedirectResponse(str(request.url.path) + _interpreted(question, request.query_params["q"]), 303)
    workspace = service.workspace(searcher.name)
    found = await in_thread(_gathered, workspace, question, part)
    template = _PARTS.get(part, "explore/page.html")
    about = await in_thread(_filters, workspace) if not part else {}
    shown: dict[str, Any] = {
        "page": found,
        "name": searcher.name,
        "part": part,
        "most": MOST_NEIGHBORS,
        "active": "explore",
    }
    return render(template, request, **shown | about)


@routes.post("/explore/{name}/search")
async def search_by_picture(
    request: Request, searcher: SearcherDep, service: ServiceDep, picture: Annotated[UploadFile, File()]
) -> Response:
    """Keep an uploaded picture for a while, and go to where it is searched for."""
    content = await picture.read(_LARGEST_PICTURE + 1)
    if len(content) > _LARGEST_PICTURE:
        raise TooLargeError("The picture has more than 12 MB. Send a smaller one.")
    workspace = service.workspace(searcher.name)
    upload = await result_of(read_upload(searcher, content, (picture.filename or "uploaded picture")[:100]))
    address = Question.of(request.query_params).address(
        upload=workspace.add_upload(upload), item=None, text=None, hit=None
    )
    return RedirectResponse(f"/explore/{searcher.name}{address}", 303)


@routes.get("/explore/{name}/pictures/{item}")
async def picture(item: int, searcher: SearcherDep) -> Response:
    """Return the small picture of an item."""
    return preview_answer(await in_thread(preview, searcher, item))


def _gathered(workspace: Workspace, question: Question, part: str) -> Exploration:
    if not question.is_asked:
        return browse(workspace, question)
    found = neighbors(workspace, question)
    return found if part == "near" else look_closer(workspace, found, retry=not part)


def _filters(workspace: Workspace) -> dict[str, Any]:
    """Return what the form offers: labels, fields and their frequent values, and how to ask."""
    with workspace.searcher.opened() as collection:
        fields = collection.fields
        choices = {field: list(collection.value_counts(field)) for field, kind in fields.items() if kind == "str"}
        return {
            "labels": collection.label_counts(),
            "fields": fields,
            "choices": {field: sorted(values) for field, values in choices.items() if len(values) <= _MOST_CHOICES},
            "takes": collection.kind if collection.embedder is not None else "vectors",
        }


def _interpreted(question: Question, words: str) -> str:
    """Return the query of an address for what was typed: an id if it is a number, otherwise a text."""
    words = words.strip()
    if not words:
        return question.address(item=None, text=None, upload=None, hit=None)
    if words.lstrip("#-").isdigit():
        return question.address(item=words.lstrip("#"), text=None, upload=None, hit=None, after=None)
    return question.address(item=None, text=words[:2000], upload=None, hit=None, after=None)
