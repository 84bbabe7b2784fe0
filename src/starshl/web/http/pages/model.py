"""The page about the model: what its fit chose, and how well it searches."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from ...searcher import Searcher
from ...training_run import TrainingRun, training_run_of
from ..parts import InCollection, TheService, in_thread
from .charts import falling_chart
from .rendering import may_write, render

__all__ = ["routes"]

routes = APIRouter(include_in_schema=False)


@routes.get("/explore/{name}/model")
async def model(request: Request, collection: InCollection, service: TheService, part: str = "") -> Response:
    """Show the training run, and the figures of the search if they were measured."""
    workshop = service.workshop(collection.name)
    run = await in_thread(_run, collection)
    values: dict[str, Any] = {
        "name": collection.name,
        "active": "model",
        "run": run,
        "history": falling_chart(run.history),
        "quality": workshop.quality,
        "job": workshop.job("measure quality"),
        "may_write": may_write(request),
    }
    return render("model/quality.html" if part else "model/page.html", request, **values)


@routes.post("/explore/{name}/model/quality")
async def measure(collection: InCollection, service: TheService) -> Response:
    """Begin to measure, and go back to the page."""
    await in_thread(service.workshop(collection.name).prepare_quality)
    return RedirectResponse(f"/explore/{collection.name}/model#quality", 303)


def _run(collection: Searcher) -> TrainingRun:
    with collection.opened() as opened:
        return training_run_of(opened)
