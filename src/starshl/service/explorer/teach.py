"""The teach page: label a few items by keyboard or mouse, and see what follows for all others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from ..._common.validation import Label
from ..._common.words import counted
from ...collection.items import label_from_text
from ...labeling.active_learning import Proposal
from ...labeling.background import CodesState
from ...labeling.events import CurvePoint
from ...labeling.lesson import Lesson
from ...labeling.revision import ClassCount, LessonState, Suspect
from ..errors import ConflictError, UnknownError
from ..http.dependencies import InCollection, TheService, in_thread
from ..http.schemas import MOST_ROWS, Id, Ids
from ..requests import present_items, unknown_ids
from ..searcher import Searcher
from ..workspace import Workspace
from .charts import Chart, agreement_chart, confidence_chart
from .exports import EXPORTS
from .rendering import Card, cards_of, may_write, render

routes = APIRouter(include_in_schema=False)
_N_BINS = 10  # of the histogram of confidences
_MEMBERS = 12  # shown of each class: one row of cards
_MOST_CLASSES = 40  # listed on the page
_SUSPECTS = 8  # listed on the page
# Below it, the other labels do not agree on what an item is either.
_DOUBTFUL = 0.6
_N_PROPOSALS = 12  # one screen; more would be chosen with less knowledge
_NOT_READY = "This lesson is not prepared yet. Reload the page and wait until it is."
Order = Annotated[Literal["least", "most"], Query()]


@dataclass(frozen=True, slots=True)
class ClassMembers:
    """A class: how many items were given it or are believed to be of it, and some of the believed ones."""

    label: Label
    n_given: int
    n_predicted: int
    ids: list[int]
    confidences: list[float]


@dataclass(frozen=True, slots=True)
class Board:
    """Everything that the page of a lesson shows at one moment."""

    state: LessonState
    proposals: list[Proposal]
    members: list[ClassMembers]
    histogram: list[int]
    curve: list[CurvePoint]
    suspects: list[Suspect]

    @property
    def last(self) -> CurvePoint | None:
        """The newest point of the curve."""
        return self.curve[-1] if self.curve else None


def board_of(lesson: Lesson, n_proposals: int, order: str, first: Sequence[int] = ()) -> Board:
    """Return the board of a lesson; ``order`` shows the "least" or the "most" certain members of each class.

    Items of ``first`` that have no label come before all proposals.
    """
    state, found = lesson.state(), lesson.predictions()
    open_items = ~np.asarray(found.given)
    confidences = np.asarray(found.confidences)
    histogram = np.zeros(_N_BINS, int)
    if state.classes:
        places = np.clip((confidences[open_items] * _N_BINS).astype(int), 0, _N_BINS - 1)
        histogram = np.bincount(places, minlength=_N_BINS)
    labels = np.array(found.labels, dtype=object)
    members = [
        _members(each, found.ids, confidences, np.flatnonzero(open_items & (labels == each.label)), order)
        for each in state.classes[:_MOST_CLASSES]
    ]
    doubts = [suspect for suspect in lesson.suspects(_SUSPECTS) if suspect.confidence >= _DOUBTFUL]
    asked = _asked_again(lesson, first[:n_proposals])
    again = {each.id for each in asked}
    proposals = asked + [each for each in lesson.propose(n_proposals) if each.id not in again]
    return Board(state, proposals[:n_proposals], members, histogram.tolist(), lesson.curve(), doubts)


def _asked_again(lesson: Lesson, ids: Sequence[int]) -> list[Proposal]:
    if not ids:
        return []
    found = lesson.predictions(ids)
    return [
        Proposal(int(item), label, float(confidence), "again")
        for item, label, confidence, is_given in zip(*found, strict=True)
        if not is_given
    ]


def _members(
    each: ClassCount, ids: np.ndarray, confidences: np.ndarray, places: np.ndarray, order: str
) -> ClassMembers:
    sign = -1 if order == "most" else 1
    shown = places[np.argsort(sign * confidences[places], kind="stable")[:_MEMBERS]]
    return ClassMembers(each.label, each.n_given, each.n_predicted, ids[shown].tolist(), confidences[shown].tolist())


# Changes, as a page sends them: in order, and each stored once, however often it arrives.


@dataclass(frozen=True, slots=True)
class LessonChange:
    """An answer, a skip, or an undo.

    ``label`` is what somebody typed as the answer; None takes labels away. A change with a ``key`` leaves a receipt, by
    which it is recognized if it comes a second time.
    """

    action: Literal["answer", "skip", "undo"]
    ids: Sequence[int] = ()
    label: str | None = None
    key: str | None = None


@dataclass(slots=True)
class Done:
    """What became of changes: a sentence for people, the items that an undo brought back, and refusals by key."""

    message: str = ""
    restored: list[int] = field(default_factory=list)
    refused: list[dict[str, str]] = field(default_factory=list)


def make_changes(searcher: Searcher, lesson: Lesson, changes: Sequence[LessonChange]) -> Done:
    """Make changes one after the other; one that is refused does not keep those behind it from being made."""
    total, messages = Done(), []
    for change in changes:
        try:
            done = make_change(searcher, lesson, change)
        except (ValueError, UnknownError) as error:
            total.refused.append({"key": change.key or "", "detail": str(error)})
            continue
        total.restored = done.restored
        messages += [done.message] if done.message else []
    if messages:
        several = f"{counted(len(messages), 'change')} stored, the last: " if len(messages) > 1 else ""
        total.message = several + messages[-1]
    return total


def make_change(searcher: Searcher, lesson: Lesson, change: LessonChange) -> Done:
    """Make one change when it is its turn; nothing happens, and nothing is said, if it was made before."""
    make = {"answer": _answer, "skip": _skip, "undo": _undo}[change.action]
    receipt = f"lesson/{change.key}"

    def once() -> Done:
        if change.key is None:
            return make(lesson, change)
        if lesson.collection.receipt(receipt) is not None:
            return Done()
        with lesson.collection.idempotent(receipt, change.action):
            return make(lesson, change)

    # While nothing else is written, such as a snapshot.
    with unknown_ids():
        done: Done = searcher.writer.run_exclusively(once).result()
    return done


def _answer(lesson: Lesson, change: LessonChange) -> Done:
    label = None
    if change.label is not None:
        label = label_from_text(change.label, lesson.collection.label_kind, lesson.classes)
    update = lesson.answer(change.ids, label)
    what = "unlabeled" if change.label is None else _labeled(label, change.label)
    return Done(f"{counted(len(change.ids), 'item')} {what}; {counted(update.n_changed, 'other')} changed.")


def _labeled(label: Label | None, typed: str) -> str:
    """Say which label items have now, and that it is a known class if it was typed in other letters."""
    is_known = isinstance(label, str) and label != typed.strip()
    return f"labeled {label}, as that class is written already" if is_known else f"labeled {label}"


def _skip(lesson: Lesson, change: LessonChange) -> Done:
    lesson.skip(change.ids)
    return Done(f"{counted(len(change.ids), 'item')} skipped.")


def _undo(lesson: Lesson, change: LessonChange) -> Done:
    update = lesson.undo()
    if update is None:
        return Done("There is nothing to undo.")
    return Done(f"Undone: {counted(len(update.ids), 'item')} as before.", list(update.ids))


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
    workspace = service.workspace(collection.name)
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
        values["job"] = await in_thread(lambda: workspace.prepare_lesson(again=not part))
        lesson = await in_thread(workspace.lesson)
        values["shown"] = None if lesson is None else await in_thread(_shown, workspace, lesson, order)
    return render("teach/board.html" if part else "teach/page.html", request, **values)


@routes.get("/explore/{name}/teach/state")
async def lesson_state(collection: InCollection, service: TheService) -> Response:
    """Say which version the lesson has, so that other tabs notice changes, and how far the preparation is."""
    workspace = service.workspace(collection.name)
    return JSONResponse(await in_thread(_state, workspace))


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
    job = service.workspace(collection.name).job("prepare teaching")
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
    collection.writer.check_writable()
    workspace = service.workspace(collection.name)

    def work() -> _Shown:
        lesson = workspace.lesson()
        if lesson is None:
            raise ConflictError(_NOT_READY)
        done = change(lesson)
        # From the first answer on, and not before: to look at a page must not change the model.
        lesson.refit()
        return _shown(workspace, lesson, order, done)

    shown = await in_thread(work)
    info = await in_thread(collection.info)
    values: dict[str, Any] = {"possible": True, "writable": True, "order": order, "job": None, "exports": EXPORTS}
    return render("teach/board.html", request, name=collection.name, info=info, shown=shown, **values)


def _shown(workspace: Workspace, lesson: Lesson, order: str, done: Done | None = None) -> _Shown:
    done = Done() if done is None else done
    board = board_of(lesson, _N_PROPOSALS, order, done.restored)
    ids = sorted(
        {proposal.id for proposal in board.proposals}
        | {item for each in board.members for item in each.ids}
        | {suspect.id for suspect in board.suspects}
    )
    with workspace.searcher.opened() as collection:
        cards = cards_of(collection, workspace.searcher.name, present_items(collection, ids)) if ids else []
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
        workspace.lesson_identity,
        done,
    )


def keys_of(labels: list[str]) -> dict[str, str]:
    """Return the key of each class: its name if all are single digits, otherwise 1 to 9 by place."""
    if labels and all(len(label) == 1 and label.isdigit() for label in labels):
        return {label: label for label in labels}
    return {label: str(place) for place, label in enumerate(labels[:9], 1)}


def _state(workspace: Workspace) -> dict[str, Any]:
    lesson = workspace.lesson()
    job = workspace.job("prepare teaching")
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
