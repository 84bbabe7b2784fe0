"""Routes about guesses: predicted labels of items that have none, which people accept or reject."""

from __future__ import annotations

from ...client.answers import GuessState, Job, Written
from ..workspace import Workspace
from .dependencies import SearcherDep, ServiceDep, WriteKeyDep, in_thread, result_of, router
from .schemas import ReviewRequest

routes = router("guesses", "/collections/{name}/guesses")


@routes.get("")
async def guess_state(searcher: SearcherDep, service: ServiceDep) -> GuessState:
    """Say for how many items each label is guessed, whether something has changed since, and what is under way."""
    return await in_thread(_state, service.workspace(searcher.name))


@routes.post("/update", status_code=202)
async def update_guesses(searcher: SearcherDep, service: ServiceDep) -> Job:
    """Guess the labels of all items that have none, from the labels that others have or by the model."""
    return await in_thread(service.workspace(searcher.name).guess)


@routes.post("/accept")
async def accept_guesses(body: ReviewRequest, searcher: SearcherDep, key: WriteKeyDep) -> Written:
    """Give items the labels that are guessed, all in one change; an item that has a label keeps it."""
    return await result_of(searcher.writer.review("accept", body.ids, body.labels, key))


@routes.post("/reject")
async def reject_guesses(body: ReviewRequest, searcher: SearcherDep, key: WriteKeyDep) -> Written:
    """Say that guesses are wrong, all in one change: these items are not guessed to be of these classes again."""
    return await result_of(searcher.writer.review("reject", body.ids, body.labels, key))


@routes.post("/undo")
async def undo_review(searcher: SearcherDep, key: WriteKeyDep) -> Written:
    """Undo the last acceptance, rejection, answer or skip that was not undone yet."""
    return await result_of(searcher.writer.undo_review(key))


def _state(workspace: Workspace) -> GuessState:
    guesses, job = workspace.known_guesses(), workspace.job("guess labels")
    return GuessState(
        is_current=None if guesses is None else guesses.is_current,
        by=None if guesses is None else guesses.by,
        counts=[] if guesses is None else list(guesses.counts().items()),
        job=None if job is None or job.ended is not None else job.id,
        knows_confidence=guesses is None or guesses.knows_confidence,
    )
