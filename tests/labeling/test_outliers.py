"""A lesson about items of which one is far from all others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from starshl import Collection
from starshl.hashers.baselines import ITQ
from starshl.labeling import Lesson


def _taught(folder: Path, size: float | None) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the accuracy after 30 answers, the neighbors of all ordinary items, and where the map has them."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:400], y[:400]
    rows = np.vstack([X, X[:1]])
    rows[-1, 5] = X[0, 5] if size is None else size
    with Collection.create(folder, ITQ(16, random_state=0).fit(X), vectors="float16") as items:
        items.add(rows)
        with Lesson(items) as lesson:
            for _ in range(30):
                item = lesson.propose(1)[0].id
                lesson.answer([item], int(y[item % 400]))
            right = np.mean(np.array(lesson.predictions().labels[:400]) == y)
            neighbors = np.array([each["ids"] for each in lesson.neighbors()])[:400]
            return float(right), neighbors, np.stack(lesson.map()[1:])


@pytest.mark.parametrize("size", [1e5, 1e6, 1e39, 1e100])
def test_a_lesson_is_as_good_with_an_outlier_as_without(tmp_path: Path, size: float) -> None:
    right, neighbors, _ = _taught(tmp_path / "plain", None)
    right_beside, neighbors_beside, places = _taught(tmp_path / "outlier", size)
    shared = [len(set(one) & set(other)) / 7 for one, other in zip(neighbors, neighbors_beside, strict=True)]
    assert right_beside > right - 0.04
    assert np.mean(shared) > 0.97
    assert np.isfinite(places).all()
