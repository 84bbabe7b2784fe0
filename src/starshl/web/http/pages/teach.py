"""The teach page: label a few items by keyboard or mouse, and see what follows for all others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from ....teaching import CodesState, Lesson
from ...errors import ConflictError, UnknownError
from ...exporting import EXPORTS
from ...lesson_changes import Done, LessonChange, make_change, make_changes
from ...lessons import Board, board_of
from ...present import present_items
from ...searcher import Searcher
from ...workshop import Workshop
from ..parts import InCollection, TheService, in_thread
from ..types import MOST_ROWS, Id, Ids
from .cards import Card, cards_of
from .charts import Chart, agreement_chart, confidence_chart
from .rendering import may_write, render

__all__ = ["keys_of", "routes"]

routes = APIRouter(include_in_schema=False)
_N_PROPOSALS = 12  # one screen; more would be chosen with less knowledge
_NOT_READY = "This lesson is not prepared yet. Reload the page and wait until it is."

Order = Annotated[Literal["least", "most"], Query()]


class Answered(BaseModel):
    """Items and the label that they get; None removes their labels."""

    model_config = ConfigDict(extra="forbid")
    ids: Ids
    label: Annotated[str, Field(max_length=200)] | None
    order: Literal["least", "most"] = "least"


class Chosen(BaseModel):
    """Items to skip, or none for an undo."""

    model_config = ConfigDict(extra="forbid")
    ids: Annotated[list[Id], Field(max_length=MOST_ROWS)] = []
    order: Literal["least", "most"] = "least"


class Change(BaseModel):
    """An answer, a skip or an undo, with a key of its own: however often it is sent, it is stored once."""

    model_config = ConfigDict(extra="forbid")
    key: Annotated[str, Field(pattern=r"^[!-~]{1,100}$")]
    action: Literal["answer", "skip", "undo"]
    ids: Annotated[list[Id], Field(max_length=MOST_ROWS)] = []
    label: Annotated[str, Field(max_length=200)] | None = None


class Changes(BaseModel):
    """Changes in the order in which they were made."""

    model_config = ConfigDict(extra="forbid")
    changes: Annotated[list[Change], Field(min_length=1, max_length=MOST_ROWS)]
    order: Literal["least", "most"] = "least"


@dataclass(frozen=True, slots=True)
class _Shown:
    """A board with the cards of all items on it."""

    board: Board
    cards: dict[int, Card]
    curve: Chart | None
    histogram: Chart | None
    keys: dict[str, str]
    codes: CodesState
    identity: str
    done: Done


@routes.get("/explore/{name}/teach")
async def teach(
    request: Request, collection: InCollection, service: TheService, part: str = "", order: Order = "least"
) -> Response:
    """Show the lesson, or how far its preparation is."""
    workshop = service.workshop(collection.name)
    info = await in_thread(collection.info)
    possible = info.vectors is not None and info.n_items > 1
    writable = info.writable and may_write(request)
    values: dict[str, Any] = {
        "name": collection.name,
        "active": "teach",
        "info": info,
        "possible": possible,
        "writable": writable,
        "order": order,
        "shown": None,
        "job": None,
        "exports": EXPORTS,
    }
    if possible and writable:
        values["job"] = await in_thread(lambda: workshop.prepare_lesson(again=not part))
        lesson = await in_thread(workshop.lesson)
        values["shown"] = None if lesson is None else await in_thread(_shown, workshop, lesson, order)
    return render("teach/board.html" if part else "teach/page.html", request, **values)


@routes.get("/explore/{name}/teach/state")
async def lesson_state(collection: InCollection, service: TheService) -> Response:
    """Say which version the lesson has, so that other tabs notice changes, and how far the preparation is."""
    workshop = service.workshop(collection.name)
    return JSONResponse(await in_thread(_state, workshop))


@routes.post("/explore/{name}/teach/changes")
async def change(body: Changes, request: Request, collection: InCollection, service: TheService) -> Response:
    """Make changes in their order, each once, and show the board as it is then; it names those that were refused."""
    changes = [LessonChange(each.action, each.ids, each.label, each.key) for each in body.changes]
    return await _changed(
        request, collection, service, body.order, lambda lesson: make_changes(collection, lesson, changes)
    )


@routes.post("/explore/{name}/teach/answer")
async def give_label(body: Answered, request: Request, collection: InCollection, service: TheService) -> Response:
    """Label items, and show the board as it is then."""
    return await _changed_once(request, collection, service, body.order, LessonChange("answer", body.ids, body.label))


@routes.post("/explore/{name}/teach/skip")
async def skip(body: Chosen, request: Request, collection: InCollection, service: TheService) -> Response:
    """Do not propose some items any more."""
    return await _changed_once(request, collection, service, body.order, LessonChange("skip", body.ids))


@routes.post("/explore/{name}/teach/undo")
async def undo(body: Chosen, request: Request, collection: InCollection, service: TheService) -> Response:
    """Undo the last answer or skip."""
    return await _changed_once(request, collection, service, body.order, LessonChange("undo"))


@routes.post("/explore/{name}/teach/cancel")
async def cancel(collection: InCollection, service: TheService) -> Response:
    """Stop the preparation."""
    job = service.workshop(collection.name).job("prepare teaching")
    if job is None:
        raise UnknownError("Nothing is being prepared.")
    return JSONResponse({"state": service.jobs.cancel(collection.name, job.id).state})


async def _changed_once(
    request: Request, collection: Searcher, service: TheService, order: str, change: LessonChange
) -> Response:
    return await _changed(request, collection, service, order, lambda lesson: make_change(collection, lesson, change))


async def _changed(
    request: Request, collection: Searcher, service: TheService, order: str, change: Callable[[Lesson], Done]
) -> Response:
    """Change a lesson, and show its board; items that were asked for before come first, to be asked for again."""
    collection.check_writable()
    workshop = service.workshop(collection.name)

    def work() -> _Shown:
        lesson = workshop.lesson()
        if lesson is None:
            raise ConflictError(_NOT_READY)
        done = change(lesson)
        # From the first answer on, and not before: to look at a page must not change the model.
        lesson.refit()
        return _shown(workshop, lesson, order, done)

    shown = await in_thread(work)
    info = await in_thread(collection.info)
    values: dict[str, Any] = {"possible": True, "writable": True, "order": order, "job": None, "exports": EXPORTS}
    return render("teach/board.html", request, name=collection.name, info=info, shown=shown, **values)


def _shown(workshop: Workshop, lesson: Lesson, order: str, done: Done | None = None) -> _Shown:
    done = Done() if done is None else done
    board = board_of(lesson, _N_PROPOSALS, order, done.restored)
    ids = sorted(
        {proposal.id for proposal in board.proposals}
        | {item for each in board.members for item in each.ids}
        | {suspect.id for suspect in board.suspects}
    )
    with workshop.searcher.opened() as collection:
        cards = cards_of(collection, workshop.searcher.name, present_items(collection, ids)) if ids else []
    if len(cards) < len(ids):
        # One of them has just been removed, so this lesson is no longer about the items that there are.
        raise ConflictError(_NOT_READY)
    labels = [str(each.label) for each in board.state.classes]
    return _Shown(
        board,
        {card.id: card for card in cards},
        agreement_chart(board.curve),
        confidence_chart(board.histogram),
        keys_of(labels),
        lesson.codes(),
        workshop.lesson_identity,
        done,
    )


def keys_of(labels: list[str]) -> dict[str, str]:
    """Return the key of each class: its name if all are single digits, otherwise 1 to 9 by place."""
    if labels and all(len(label) == 1 and label.isdigit() for label in labels):
        return {label: label for label in labels}
    return {label: str(place) for place, label in enumerate(labels[:9], 1)}


def _state(workshop: Workshop) -> dict[str, Any]:
    lesson = workshop.lesson()
    job = workshop.job("prepare teaching")
    found: dict[str, Any] = {"version": None if lesson is None else lesson.version, "job": None}
    if lesson is not None:
        found["codes"] = lesson.codes().state
    if job is not None:
        found["job"] = {
            "state": job.state,
            "stage": job.stage,
            "done": job.done,
            "total": job.total,
            "error": job.error,
        }
    return found
