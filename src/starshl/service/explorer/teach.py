"""The teach page: label a few items by keyboard or mouse, and see what follows for all others.

A browser sends its changes (answers, skips and undos) in lists, and gets back the board that follows from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from ..._common.labels import Label
from ..._common.words import counted
from ...collection.labels import typed_label
from ...exceptions import UnknownIdError
from ...labeling.active_learning import Proposal
from ...labeling.background import CodesState
from ...labeling.events import CurvePoint
from ...labeling.lesson import Lesson
from ...labeling.revision import ClassCount, LessonState, Suspect
from ..errors import ConflictError, UnknownError, worded
from ..http.dependencies import SearcherDep, ServiceDep, in_thread
from ..http.schemas import MOST_ROWS, Id
from ..searcher import existing_items
from ..workspace import Workspace
from .charts import Chart, agreement_chart, confidence_chart
from .exports import EXPORTS
from .rendering import Card, cards_of, may_write, render, rendered

routes = APIRouter(include_in_schema=False)
_N_PROPOSALS = 12  # one screen; more would be proposed with less knowledge
_N_BINS = 10  # of the histogram of confidences
_MEMBERS = 12  # shown of each class: one row of cards
_MOST_CLASSES = 40  # whose members are shown
_SEEN_AT_ONCE = 9  # classes, as many as have keys
_SUSPECTS = 8  # listed on the page
# Below it, the other labels do not agree on what an item is either.
_DOUBTFUL = 0.6
_NOT_READY = "This lesson is not prepared yet. Reload the page and wait until it is."
Order = Literal["least", "most"]


class Change(BaseModel):
    """An answer, a skip or an undo, with a key of its own: however often it is sent, it is stored once.

    ``label`` is what somebody typed as the answer; None removes labels.
    """

    model_config = ConfigDict(extra="forbid")
    key: Annotated[str, Field(pattern=r"^[!-~]{1,100}$")]
    action: Literal["answer", "skip", "undo"]
    ids: Annotated[list[Id], Field(max_length=MOST_ROWS)] = []
    label: Annotated[str, Field(max_length=200)] | None = None


class Changes(BaseModel):
    """Changes in the order in which they were made, and which members of each class to show after them."""

    model_config = ConfigDict(extra="forbid")
    changes: Annotated[list[Change], Field(min_length=1, max_length=MOST_ROWS)]
    order: Order = "least"


@dataclass(slots=True)
class Outcome:
    """What became of changes: a sentence for people, the items that an undo brought back, and refusals by key."""

    message: str = ""
    restored: list[int] = field(default_factory=list)
    refused: list[dict[str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ClassMembers:
    """A class: how many items were given it, for how many it is predicted, and some of these."""

    label: Label
    n_given: int
    n_predicted: int
    ids: list[int]
    confidences: list[float]


@dataclass(frozen=True, slots=True)
class Board:
    """Everything that the page of a lesson shows; ``cards`` are those of all items on it, by id.

    ``identity`` tells collections of the same name apart.
    """

    state: LessonState
    proposals: list[Proposal]
    members: list[ClassMembers]
    suspects: list[Suspect]
    last: CurvePoint | None
    agreement: Chart | None
    confidences: Chart | None
    codes: CodesState
    identity: str
    cards: dict[int, Card]

    @property
    def classes(self) -> list[ClassCount]:
        """All classes; if they are more than can be seen at once, the most used first."""
        classes = self.state.classes
        return sorted(classes, key=_by_use) if len(classes) > _SEEN_AT_ONCE else classes


@routes.get("/explore/{name}/teach")
async def teach(
    request: Request,
    searcher: SearcherDep,
    service: ServiceDep,
    part: str = "",
    order: Annotated[Order, Query()] = "least",
) -> Response:
    """Show the lesson, or how far its preparation is."""
    workspace = service.workspace(searcher.name)
    info = await in_thread(searcher.info)
    values: dict[str, Any] = {
        "name": searcher.name,
        "active": "teach",
        "info": info,
        "possible": info.vectors is not None and info.n_items > 1,
        "writable": info.writable and may_write(request),
        "order": order,
        "board": None,
        "job": None,
        "exports": EXPORTS,
    }
    if values["possible"] and values["writable"]:
        values["job"] = await in_thread(workspace.prepare_lesson)
        lesson = await in_thread(workspace.lesson)
        values["board"] = None if lesson is None else await in_thread(_board, workspace, lesson, order)
    return render("teach/board.html" if part else "teach/page.html", request, **values)


@routes.get("/explore/{name}/teach/state")
async def lesson_state(searcher: SearcherDep, service: ServiceDep) -> Response:
    """Say which version the lesson has, so that other tabs notice changes, and how far the preparation is."""
    return JSONResponse(await in_thread(_state, service.workspace(searcher.name)))


@routes.post("/explore/{name}/teach/prepare")
async def prepare(searcher: SearcherDep, service: ServiceDep) -> Response:
    """Begin a preparation anew that has failed or was canceled, and go back to the page."""
    await in_thread(lambda: service.workspace(searcher.name).prepare_lesson(retry=True))
    return RedirectResponse(f"/explore/{searcher.name}/teach", 303)


@routes.post("/explore/{name}/teach/cancel")
async def cancel(searcher: SearcherDep, service: ServiceDep) -> Response:
    """Stop the preparation."""
    job = service.workspace(searcher.name).job("prepare teaching")
    if job is None:
        raise UnknownError("Nothing is being prepared.")
    return JSONResponse({"state": service.jobs.cancel(searcher.name, job.id).state})


@routes.post("/explore/{name}/teach/changes")
async def change(body: Changes, request: Request, searcher: SearcherDep, service: ServiceDep) -> Response:
    """Make changes in their order, each once; return what became of them, and the board as it is then."""
    searcher.writer.check_writable()
    outcome, board = await in_thread(_changed, service.workspace(searcher.name), body)
    values = {"name": searcher.name, "order": body.order, "exports": EXPORTS}
    return JSONResponse(
        {
            "message": outcome.message,
            "restored": list(map(str, outcome.restored)),  # scripts hold numbers of 53 bits
            "refused": outcome.refused,
            "board": rendered("teach/lesson.html", request, board=board, **values),
        }
    )


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


def _changed(workspace: Workspace, body: Changes) -> tuple[Outcome, Board]:
    lesson = workspace.lesson()
    if lesson is None:
        raise ConflictError(_NOT_READY)
    outcome = _make_changes(workspace, lesson, body.changes)
    # From the first answer on, and not before: to look at a page must not change the model.
    lesson.refit()
    return outcome, _board(workspace, lesson, body.order, outcome.restored)


def _make_changes(workspace: Workspace, lesson: Lesson, changes: Sequence[Change]) -> Outcome:
    """Make changes one after the other; one that is refused does not keep those behind it from being made."""
    total, messages = Outcome(), []
    for change in changes:
        try:
            made = _make_once(workspace, lesson, change)
        except (ValueError, UnknownIdError) as error:
            total.refused.append({"key": change.key, "detail": worded(error)})
            continue
        total.restored = made.restored
        messages += [made.message] if made.message else []
    if messages:
        several = f"{counted(len(messages), 'change')} stored, the last: " if len(messages) > 1 else ""
        total.message = several + messages[-1]
    return total


def _make_once(workspace: Workspace, lesson: Lesson, change: Change) -> Outcome:
    """Make one change when it is its turn; if its receipt says that it was made before, there is nothing to say."""
    receipt = f"lesson/{change.key}"

    def make() -> Outcome:
        if lesson.collection.receipt(receipt) is not None:
            return Outcome()
        with lesson.collection.idempotent(receipt, change.action):
            return _make(lesson, change)

    # While nothing else is written, such as a snapshot.
    return workspace.searcher.writer.run_exclusively(make).result()


def _make(lesson: Lesson, change: Change) -> Outcome:
    if change.action == "skip":
        lesson.skip(change.ids)
        return Outcome(f"{counted(len(change.ids), 'item')} skipped.")
    if change.action == "undo":
        undone = lesson.undo()
        if undone is None:
            return Outcome("There is nothing to undo.")
        return Outcome(f"Undone: {counted(len(undone.ids), 'item')} as before.", list(undone.ids))
    label, what = None, "unlabeled"
    if change.label is not None:
        label = typed_label(change.label, lesson.collection.label_kind, lesson.classes)
        what = f"labeled {label}"
        if isinstance(label, str) and label != change.label.strip():
            what += ", as that class is written already"
    update = lesson.answer(change.ids, label)
    return Outcome(f"{counted(len(change.ids), 'item')} {what}; {counted(update.n_changed, 'other')} changed.")


def _board(workspace: Workspace, lesson: Lesson, order: Order, restored: Sequence[int] = ()) -> Board:
    """Return the board of a lesson; items that an undo has restored come before all proposals.

    ``order`` shows the least or the most certain members of each class.
    """
    state, found, curve = lesson.state(), lesson.predictions(), lesson.curve()
    is_open, confidences = ~np.asarray(found.given), np.asarray(found.confidences)
    # A number for each label: to compare sixty thousand objects with each class takes longer than all else here.
    number_of = {each.label: number for number, each in enumerate(state.classes)} | {None: -1}
    numbers = np.fromiter(map(number_of.__getitem__, found.labels), np.int64, len(found.labels))
    members = [
        _members(each, found.ids, confidences, np.flatnonzero(is_open & (numbers == number_of[each.label])), order)
        for each in sorted(state.classes, key=_by_use)[:_MOST_CLASSES]
    ]
    suspects = [suspect for suspect in lesson.suspects(_SUSPECTS) if suspect.confidence >= _DOUBTFUL]
    proposals = _proposals(lesson, restored)
    ids = sorted(
        {proposal.id for proposal in proposals}
        | {item for each in members for item in each.ids}
        | {suspect.id for suspect in suspects}
    )
    return Board(
        state=state,
        proposals=proposals,
        members=members,
        suspects=suspects,
        last=curve[-1] if curve else None,
        agreement=agreement_chart(curve),
        confidences=confidence_chart(_histogram(confidences[is_open])) if state.knows_confidence else None,
        codes=lesson.codes(),
        identity=workspace.lesson_identity,
        cards=_cards(workspace, ids),
    )


def _by_use(each: ClassCount) -> int:
    """Sort what has the most labels first; guesses would move classes around after each answer."""
    return -each.n_given


def _proposals(lesson: Lesson, restored: Sequence[int]) -> list[Proposal]:
    """Return what to ask for: first the restored items that have no label, then the most useful ones."""
    again: list[Proposal] = []
    if restored:
        again = [
            Proposal(int(item), label, float(confidence), "again")
            for item, label, confidence, is_given in zip(*lesson.predictions(restored[:_N_PROPOSALS]), strict=True)
            if not is_given
        ]
    known = {each.id for each in again}
    return [*again, *(each for each in lesson.propose(_N_PROPOSALS) if each.id not in known)][:_N_PROPOSALS]


def _members(
    each: ClassCount, ids: np.ndarray, confidences: np.ndarray, positions: np.ndarray, order: Order
) -> ClassMembers:
    sign = -1 if order == "most" else 1
    shown = positions[np.argsort(sign * confidences[positions], kind="stable")[:_MEMBERS]]
    return ClassMembers(each.label, each.n_given, each.n_predicted, ids[shown].tolist(), confidences[shown].tolist())


def _histogram(confidences: np.ndarray) -> list[int]:
    bins = np.clip((confidences * _N_BINS).astype(int), 0, _N_BINS - 1)
    return np.bincount(bins, minlength=_N_BINS).tolist()


def _cards(workspace: Workspace, ids: list[int]) -> dict[int, Card]:
    with workspace.searcher.opened() as collection:
        cards = cards_of(collection, workspace.searcher.name, existing_items(collection, ids)) if ids else []
    if len(cards) < len(ids):
        # One of them has just been removed, so this lesson is no longer about the items that there are.
        raise ConflictError(_NOT_READY)
    return {card.id: card for card in cards}
