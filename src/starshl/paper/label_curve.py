"""The label-efficiency curve of every report: StarRidge against other ways to use a few labels."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from ..evaluation.label_efficiency import LabelEfficiency, Learner, label_efficiency, read_curves, write_curves
from ..evaluation.runner import Classifier
from ..models import StarRidge
from . import yardsticks
from .neighbor_learners import PoissonLearning, spreading_on_neighbors

__all__ = ["EMPHASIZED", "curves_for", "label_learners", "measure_digits"]

EMPHASIZED = "StarRidge"

_FILE = "label-efficiency.json"
# Enough rows for a graph, few enough for a demonstration.
_N_ROWS = 800
_N_BITS = 16


def label_learners(n_bits: int = _N_BITS, n_jobs: int | None = None) -> dict[str, Learner]:
    """Return the learners of the curve by the names that readers see."""

    def star_ridge(X: np.ndarray, y: np.ndarray, seed: int) -> np.ndarray:
        return StarRidge(n_bits, n_jobs=n_jobs, random_state=seed).fit(X, y).transduction_

    def labeled_rows_only(X: np.ndarray, y: np.ndarray, seed: int) -> np.ndarray:
        return StarRidge(n_bits, n_jobs=n_jobs, random_state=seed).fit(X[y >= 0], y[y >= 0]).predict(X)

    return {
        EMPHASIZED: star_ridge,
        "StarRidge, labeled rows only": labeled_rows_only,
        "Poisson learning": lambda X, y, seed: PoissonLearning().fit(X, y).transduction_,
        "label spreading": lambda X, y, seed: spreading_on_neighbors().fit(X, y).transduction_,
        "SVC, labeled rows only": _on_labeled_rows(yardsticks.one_vs_one_svc),
    }


def _on_labeled_rows(make: Callable[[int], Classifier]) -> Learner:
    def learn(X: np.ndarray, y: np.ndarray, seed: int) -> np.ndarray:
        classifier = make(seed)
        classifier.fit(X[y >= 0], y[y >= 0])
        return classifier.predict(X)

    return learn


def measure_digits(records: Path, *, n_draws: int = 3, n_jobs: int | None = None) -> LabelEfficiency:
    """Measure the curve on some of scikit-learn's digits, and keep it beside the records for their reports."""
    X, y = load_digits(return_X_y=True)
    chosen = np.random.default_rng(0).permutation(len(X))[:_N_ROWS]
    curve = label_efficiency(
        X[chosen],
        y[chosen],
        label_learners(n_jobs=n_jobs),
        title=f"digits, {_N_ROWS} rows",
        origin=f"Measured on this machine; mean of {n_draws} draws of labels.",
        n_draws=n_draws,
    )
    write_curves(records / _FILE, [curve])
    return curve


def curves_for(records: Path) -> list[LabelEfficiency]:
    """Return the curves that were measured with these records, or else those that come with the package."""
    if (records / _FILE).is_file():
        return read_curves(records / _FILE)
    shipped = files(__package__).joinpath("label_efficiency.json")
    with as_file(shipped) as path:
        return read_curves(path)
