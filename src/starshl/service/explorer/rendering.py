"""What all pages are made of: templates, with escaping everywhere, files of scripts and styles, cards, and errors."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from fastapi import APIRouter, Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.types import Scope

from ..._common.labels import Label
from ..._common.words import counted, percent
from ...collection.answers import Guess, Hit, Item
from ...collection.collection import Collection
from ...exceptions import UnknownIdError
from ..workspace import Upload

FOREVER = "public, max-age=31536000, immutable"
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
routes = APIRouter(include_in_schema=False)
# Small pictures are part of the page itself: a request for each would take longer than everything else.
_LARGEST_INLINE = 3000
_TITLES = {
    401: "Log in first",
    403: "This is not allowed",
    404: "There is nothing here",
    408: "That took too long",
    409: "This does not fit what is here now",
    413: "That is too large",
    415: "This cannot be read",
    422: "This cannot be used as it is",
    429: "Too many requests at once",
    500: "Something went wrong",
    503: "Not right now",
}


def _read() -> dict[str, bytes]:
    folder = files(__package__).joinpath("static")
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name.endswith(tuple(_TYPES))}


_CONTENTS = _read()
# One digest for all files: scripts import each other by relative names, which then have it, too.
_DIGEST = hashlib.sha256(b"".join(name.encode() + _CONTENTS[name] for name in sorted(_CONTENTS))).hexdigest()[:16]


def asset_address(name: str) -> str:
    """Return the address of a file in ``static``, which changes whenever one of the files does."""
    if name not in _CONTENTS:
        raise KeyError(name)
    return f"/static/{_DIGEST}/{name}"


@routes.get("/static/{digest}/{name}")
async def asset(digest: str, name: str) -> Response:
    """Return a style sheet or a script."""
    if name not in _CONTENTS:
        raise HTTPException(404)
    kind = _TYPES[name[name.rindex(".") :]]
    # A page of an older version may still ask for its files: it gets the present ones, which must not stay.
    cache = FOREVER if digest == _DIGEST else "no-store"
    return Response(_CONTENTS[name], media_type=kind, headers={"Cache-Control": cache})


def label_name(label: object) -> str:
    """Return what pages call a label, and what scripts send as its name."""
    return "unlabeled" if label is None else str(label).lower() if isinstance(label, bool) else str(label)


_environment = Environment(
    loader=PackageLoader(__package__),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_environment.globals["asset"] = asset_address
_environment.globals["counted"] = counted
_environment.filters |= {"percent": percent, "label": label_name}


def render(template: str, request: Request, status: int = 200, **values: Any) -> HTMLResponse:
    """Return a page, or the part of one that a script asks for."""
    return HTMLResponse(rendered(template, request, **values), status)


def rendered(template: str, request: Request, **values: Any) -> str:
    """Return the HTML of a template."""
    return _environment.get_template(template).render(has_tokens=request.app.state.has_tokens, **values)


def may_write(request: Request) -> bool:
    """Return whether the visitor may change something, as far as tokens go."""
    token: str = request.scope["state"].get("token", "")
    return not request.app.state.has_tokens or token.startswith("write:")


@dataclass(frozen=True, slots=True)
class Card:
    """One item on a page; ``is_right`` compares its label with that of the query, None if one is not known."""

    id: int
    title: str
    picture: str | None
    label: Label | None
    note: str = ""
    is_right: bool | None = None
    guess: Guess | None = None

    @property
    def name(self) -> str:
        """What a screen reader says."""
        label = "" if self.label is None else f", labeled {self.label}"
        if self.guess is not None:
            label = f", perhaps {label_name(self.guess.label)}"
            label += "" if self.guess.confidence is None else f", {percent(self.guess.confidence)} sure"
        right = {True: ", same label", False: ", another label", None: ""}[self.is_right]
        return f"{self.title}{label}{right}"


def cards_of(
    collection: Collection,
    name: str,
    items: Sequence[Item | Hit],
    *,
    query_label: Label | None = None,
    notes: Sequence[str] | None = None,
) -> list[Card]:
    """Return cards of items that are still there; ``query_label`` says which are right, ``notes`` has one per item."""
    cards = []
    for item, note in zip(items, notes or [""] * len(items), strict=True):
        try:
            picture = _picture(collection, name, item.id)
        except UnknownIdError:
            continue  # the item was removed since it was found
        is_right = None if query_label is None or item.label is None else item.label == query_label
        cards.append(Card(item.id, collection.title_of(item), picture, item.label, note, is_right, item.guess))
    return cards


def class_names(collection: Collection) -> list[Label | None]:
    """Return what pages call each class of a collection's hasher now, None for a removed one.

    The number of a cluster must not be taken for a label.
    """
    with collection.reading() as (state, _):
        hasher, classes = state.hasher, state.shown_classes
    if hasher.holds_clusters:
        return [f"cluster {name}" for name in hasher.class_labels]
    return [classes.label(place) for place in range(len(classes.columns))]


def picture_of_upload(upload: Upload) -> str:
    """Return an uploaded picture as an address."""
    return _inline(upload.preview, "image/webp")


def _picture(collection: Collection, name: str, item: int) -> str | None:
    preview = collection.preview(item)
    if preview is None:
        return None
    if len(preview.content) <= _LARGEST_INLINE:
        return _inline(preview.content, preview.media_type)
    return f"/explore/{name}/pictures/{item}"


def _inline(content: bytes, media_type: str) -> str:
    return f"data:{media_type};base64,{base64.b64encode(content).decode()}"


def error_page(scope: Scope, problem: Mapping[str, Any], headers: Mapping[str, str]) -> HTMLResponse:
    """Return problem details as a page."""
    title = _TITLES.get(problem["status"], problem["title"])
    page = render("error.html", Request(scope), problem["status"], problem=problem, title=title)
    page.headers.update(headers)
    return page
