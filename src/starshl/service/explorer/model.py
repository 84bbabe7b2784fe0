"""The page about the model: what its fit chose, and how well it searches."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from ..._common.labels import Label
from ...codes.binary import BinaryCodes
from ...evaluation.whole_lists import Reliability, reliability
from ...hashers.base import BaseHasher
from ..http.dependencies import SearcherDep, ServiceDep, in_thread
from ..searcher import Searcher
from .charts import objective_chart, reliability_chart
from .rendering import class_names, may_write, render

routes = APIRouter(include_in_schema=False)
_MOST_CODEWORDS = 40  # shown on the page
_MOST_WEIGHTS = 14  # shown on the page
_MOST_ROWS = 1000  # half a million pairs tell how right probabilities are


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """The story of a fit: facts in words, weights as shares, codewords as bits, and how the objective fell."""

    method: str
    about: str
    choice: str
    facts: list[tuple[str, str]]
    kernels: list[tuple[str, float]] = field(default_factory=list)
    views: list[tuple[str, float]] = field(default_factory=list)
    codewords: list[tuple[Label, list[bool]]] = field(default_factory=list)
    history: list[float] = field(default_factory=list)
    reliability: Reliability | None = None
    are_clusters: bool = False


@routes.get("/explore/{name}/model")
async def model(request: Request, searcher: SearcherDep, service: ServiceDep, part: str = "") -> Response:
    """Show the training run, and the figures of the search if they were measured."""
    workspace = service.workspace(searcher.name)
    run = await in_thread(_training_run, searcher)
    values: dict[str, Any] = {
        "name": searcher.name,
        "active": "model",
        "run": run,
        "history": objective_chart(run.history),
        "reliability": None if run.reliability is None else reliability_chart(run.reliability),
        "quality": workspace.quality,
        "job": workspace.job("measure quality"),
        "may_write": may_write(request),
    }
    return render("model/quality.html" if part else "model/page.html", request, **values)


@routes.post("/explore/{name}/model/quality")
async def measure(searcher: SearcherDep, service: ServiceDep) -> Response:
    """Begin to measure, and go back to the page."""
    await in_thread(service.workspace(searcher.name).prepare_quality)
    return RedirectResponse(f"/explore/{searcher.name}/model#quality", 303)


def _training_run(searcher: Searcher) -> TrainingRun:
    """Return what is known about the fit of a collection's hasher."""
    with searcher.opened() as collection:
        hasher, names = collection.hasher, class_names(collection)
    whole, of_classes = hasher.inner.fit_summary, hasher.class_part.fit_summary
    best = sorted(of_classes.kernels, key=lambda pair: -pair[1])[:_MOST_WEIGHTS]
    return TrainingRun(
        method=hasher.method_name,
        about=f"{hasher.facts.paper}, {hasher.facts.year}",
        choice=whole.choice or of_classes.choice or "",
        facts=_facts(hasher),
        kernels=[(_rounded(str(kernel)), share) for kernel, share in best if share > 0],
        views=list(of_classes.views.items()),
        codewords=_codewords(hasher, names),
        history=[] if of_classes.objective is None else of_classes.objective.tolist(),
        reliability=_reliability(hasher),
        are_clusters=hasher.holds_clusters,
    )


def _reliability(hasher: BaseHasher) -> Reliability | None:
    """Return how right probabilities are for pairs of training rows that took no part in their own posteriors."""
    words = hasher.words
    if words is None or "probability" not in hasher.supports or "training_rows" not in hasher.class_part.supports:
        return None
    training = hasher.class_part.training_rows()
    known = np.flatnonzero(training.label >= 0)[:_MOST_ROWS]
    if len(known) < 2:
        return None
    posteriors, classes = training.posteriors[known], training.label[known]
    items = words.posteriors_of(BinaryCodes.from_signs(words.encode(posteriors)))
    pairs = ~np.eye(len(known), dtype=np.bool_)
    return reliability(np.clip(posteriors @ items.T, 0.0, 1.0)[pairs], (classes[:, None] == classes)[pairs])


def _facts(hasher: BaseHasher) -> list[tuple[str, str]]:
    facts = {"bits": str(hasher.n_bits_), "columns": "-" if hasher.row_width is None else str(hasher.row_width)}
    facts |= {**hasher.inner.fit_summary.figures, **hasher.class_part.fit_summary.figures}
    return list(facts.items())


def _rounded(name: str) -> str:
    """Return the name of a kernel with numbers of four digits."""
    return re.sub(r"\d+\.\d{3,}", lambda number: f"{float(number.group()):.4g}", name)


def _codewords(hasher: BaseHasher, names: list[Label | None]) -> list[tuple[Label, list[bool]]]:
    words = hasher.class_part.class_words
    if words is None:
        return []
    shown = [(name, (word > 0).tolist()) for name, word in zip(names, words, strict=True) if name is not None]
    return shown[:_MOST_CODEWORDS]
