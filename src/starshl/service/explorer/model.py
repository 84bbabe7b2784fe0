"""The page about the model: what its fit chose, and how well it searches."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from ..._common.labels import Label
from ...collection.collection import Collection
from ...hashers.prepared import class_hasher, class_names, holds_clusters, inner_hasher
from ..http.dependencies import SearcherDep, ServiceDep, in_thread
from ..searcher import Searcher
from .charts import objective_chart
from .rendering import may_write, render

routes = APIRouter(include_in_schema=False)
_MOST_CODEWORDS = 40  # shown on the page
_MOST_WEIGHTS = 14  # shown on the page


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
    are_clusters: bool = False


def training_run_of(collection: Collection) -> TrainingRun:
    """Return what is known about the fit of a collection's hasher."""
    hasher: Any = collection.hasher
    outer, inner = inner_hasher(hasher), class_hasher(hasher)
    return TrainingRun(
        method=type(outer).__name__,
        about=f"{outer.facts.paper}, {outer.facts.year}",
        choice=str(getattr(outer, "choice_", "") or getattr(inner, "choice_", "")),
        facts=_facts(hasher, outer, inner),
        kernels=_kernels(inner),
        views=[(name, float(share)) for name, share in dict(getattr(inner, "view_weights_", {})).items()],
        codewords=_codewords(inner, class_names(hasher)),
        history=np.asarray(getattr(inner, "objective_history_", ())).tolist(),
        are_clusters=holds_clusters(hasher),
    )


def _facts(hasher: Any, outer: Any, inner: Any) -> list[tuple[str, str]]:
    facts = [("bits", str(hasher.n_bits_)), ("columns", str(getattr(hasher, "n_features_in_", "-")))]
    if hasattr(outer, "class_bits_"):
        facts.append(
            (
                f"bits for the {'cluster' if holds_clusters(hasher) else 'class'}",
                f"{outer.class_bits_}, which hold {outer.field_holds_}",
            )
        )
        facts.append(("weight of another class", f"{outer.class_weight_:g}"))
        facts.append(("class by", type(inner).__name__))
        facts.append(("neighbors by", type(outer.neighbor_hasher_).__name__))
    if hasattr(inner, "labeled_"):
        facts.append(("training rows", _rows_and_labels(hasher, np.asarray(inner.labeled_))))
    for name, words in (("ridge_", "ridge"), ("temperature_", "temperature"), ("n_iter_", "sweeps")):
        if hasattr(inner, name):
            facts.append((words, f"{getattr(inner, name):.4g}"))
    return facts


def _rows_and_labels(hasher: Any, labeled: np.ndarray) -> str:
    """Say how many rows there were, and where their labels came from: a person, or the predictions of a lesson."""
    record = getattr(hasher, "fit_record_", {})
    given, predicted = record.get("labels_given"), record.get("labels_predicted")
    if isinstance(given, int) and isinstance(predicted, int):
        return f"{len(labeled):,}: {given:,} with a label from a person, {predicted:,} with a guess of the lesson"
    return f"{len(labeled):,}, of which {int(labeled.sum()):,} had a label"


def _kernels(inner: Any) -> list[tuple[str, float]]:
    kernels, weights = getattr(inner, "kernels_", None), getattr(inner, "kernel_weights_", None)
    if kernels is None or weights is None or isinstance(kernels, str):
        return []
    shares = np.atleast_2d(np.asarray(weights)).mean(axis=0)
    if len(shares) != len(kernels) or not shares.sum() > 0:
        return []
    shares = shares / shares.sum()
    best = np.argsort(-shares, kind="stable")[:_MOST_WEIGHTS]
    return [(_short(str(kernels[place])), float(shares[place])) for place in best if shares[place] > 0]


def _short(name: str) -> str:
    """Return the name of a kernel with numbers of four digits."""
    return re.sub(r"\d+\.\d{3,}", lambda number: f"{float(number.group()):.4g}", name)


def _codewords(inner: Any, names: list[Label]) -> list[tuple[Label, list[bool]]]:
    words = getattr(inner, "codewords_", None)
    if words is None or len(words) < len(names):
        return []
    return [(name, (np.asarray(word) > 0).tolist()) for name, word in zip(names[:_MOST_CODEWORDS], words, strict=False)]


@routes.get("/explore/{name}/model")
async def model(request: Request, searcher: SearcherDep, service: ServiceDep, part: str = "") -> Response:
    """Show the training run, and the figures of the search if they were measured."""
    workspace = service.workspace(searcher.name)
    run = await in_thread(_run, searcher)
    values: dict[str, Any] = {
        "name": searcher.name,
        "active": "model",
        "run": run,
        "history": objective_chart(run.history),
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


def _run(searcher: Searcher) -> TrainingRun:
    with searcher.opened() as collection:
        return training_run_of(collection)
