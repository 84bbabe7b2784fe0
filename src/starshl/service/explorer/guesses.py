"""Guesses on the explore page: classes to filter by, given and guessed, and a page of guesses accepted or rejected."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Form, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response

from ..._common.labels import Label
from ..._common.strict_json import parse_json
from ..._common.words import counted
from ...client.answers import CollectionInfo, Job
from ...collection.guesses import Guesses
from ...collection.labels import typed_label
from ...collection.options import Filters
from ...labeling.review import last_reviewed
from ..http.dependencies import SearcherDep, result_of
from ..workspace import Workspace
from .question import Question
from .rendering import Card

routes = APIRouter(include_in_schema=False)
_LONGEST_PAGE = 100_000  # characters of the ids and guesses of one page


@dataclass(frozen=True, slots=True)
class ClassRow:
    """A class, how many items were given it, and for how many others it is guessed."""

    label: Label
    n_given: int
    n_guessed: int

    @property
    def n_items(self) -> int:
        return self.n_given + self.n_guessed


@dataclass(frozen=True, slots=True)
class GuessStatus:
    """What the page says of guesses: whether there are any, and what is being done about stale ones."""

    known: bool
    is_current: bool
    job: Job | None
    can_undo: bool

    @property
    def is_waiting(self) -> bool:
        """Whether guesses are about to change."""
        return self.job is not None and self.job.ended is None


def class_rows(given: dict[Label, int], guesses: Guesses | None) -> list[ClassRow]:
    """Return all classes, the most used first."""
    guessed = {} if guesses is None else guesses.counts()
    rows = [ClassRow(label, given.get(label, 0), guessed.get(label, 0)) for label in {**given, **guessed}]
    return sorted(rows, key=lambda row: (-row.n_items, str(row.label)))


def status_of(workspace: Workspace) -> GuessStatus:
    """Return what is known of guesses, and let stale ones follow the labels."""
    job = workspace.follow_labels()
    with workspace.searcher.opened() as collection:
        found = collection.guesses()
        can_undo = bool(last_reviewed(collection))
    return GuessStatus(found is not None, found is not None and found.is_current, job, can_undo)


def filters_of(question: Question, info: CollectionInfo, workspace: Workspace) -> Filters:
    """Return which items may be found: those of a class are given and guessed ones, unless only some are wanted."""
    guesses, among = workspace.known_guesses(), _among(question, workspace)
    wanted: list[Label] | None = [typed_label(text, info.label_kind) for text in question.labels] or None
    where = question.where(info) or None
    if question.which == "given":
        with workspace.searcher.opened() as collection:
            return Filters.of(where, among, labels=wanted or list(collection.label_counts()))
    if question.which == "guessed":
        if guesses is None:
            return Filters.of(where, among=[])
        return Filters.of(where, among, guesses=wanted or list(guesses.classes))
    return Filters.of(where, among, labels=wanted, guesses=None if guesses is None else wanted)


def _among(question: Question, workspace: Workspace) -> np.ndarray | None:
    """Return the ids of what was selected on the map, and of files with a name if these are listed; None for all."""
    selected = None if question.selection is None else workspace.selection(question.selection)
    if question.name is None or question.is_asked:
        return selected
    with workspace.searcher.opened() as collection:
        named = np.array(collection.named(question.name), np.int64)
    return named if selected is None else np.intersect1d(named, selected)


def guesses_seen(cards: Sequence[Card]) -> str:
    """Return the guesses on a page as they are sent back when somebody accepts or rejects them."""
    return json.dumps([[str(card.id), card.guess.label] for card in cards if card.guess is not None])


@routes.post("/explore/{name}/guesses")
async def review(
    request: Request,
    searcher: SearcherDep,
    seen: Annotated[str, Form(max_length=_LONGEST_PAGE)] = "[]",
    accept: Annotated[str, Form(max_length=30)] = "",
    reject: Annotated[str, Form(max_length=30)] = "",
    back: Annotated[str, Form(max_length=5000)] = "",
) -> Response:
    """Accept or reject the guesses that somebody saw, all or one of them, or undo the last change."""
    if accept or reject:
        pairs = _pairs(seen)
        wanted = accept or reject
        chosen = {item: label for item, label in pairs.items() if wanted in ("all", str(item))}
        if not chosen:
            raise ValueError("There is no such guess on this page. Reload it.")
        written = await result_of(
            searcher.writer.review("accept" if accept else "reject", list(chosen), list(chosen.values()))
        )
        left = len(chosen) - written.n_items
        done = "accepted" if accept else "rejected"
        message = f"{counted(written.n_items, 'guess', 'guesses')} {done}."
        message += f" {counted(left, 'item')} had a label by now." if left else ""
    else:
        written = await result_of(searcher.writer.undo_review())
        message = f"Undone: {counted(written.n_items, 'item')} as before." if written.n_items else "Nothing to undo."
    if "application/json" in request.headers.get("accept", ""):
        return JSONResponse({"message": message})
    return RedirectResponse(f"/explore/{searcher.name}{back if back.startswith('?') else ''}", 303)


def _pairs(seen: str) -> dict[int, Label]:
    try:
        found: Any = parse_json(seen)
        return {int(item): label for item, label in found}
    except (ValueError, TypeError) as error:
        raise ValueError("The guesses that were sent cannot be read. Reload the page.") from error
