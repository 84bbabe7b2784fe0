"""Items that are held like those of a flat index, and compared in another way."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from .class_rule import Candidates
from .flat_items import PlaneItems

__all__ = ["HeldItems"]


@dataclass(frozen=True, eq=False)
class HeldItems(PlaneItems):
    """Codes and ids of ``plain``; subclasses say how they are compared, and may hold more about each item."""

    plain: PlaneItems
    n_bits: int = field(init=False)
    planes: np.ndarray = field(init=False)
    n_items: int = field(init=False)

    def __post_init__(self) -> None:
        for name in ("n_bits", "planes", "n_items"):
            object.__setattr__(self, name, getattr(self.plain, name))

    @property
    def ids(self) -> np.ndarray:
        return self.plain.ids

    def ids_at(self, positions: np.ndarray) -> np.ndarray:
        return self.plain.ids_at(positions)

    @property
    def last_id(self) -> int | None:
        return self.plain.last_id

    @property
    def nbytes(self) -> int:
        return self.plain.nbytes

    def inserted(self, planes: np.ndarray, ids: np.ndarray) -> Self:
        return replace(self, plain=self.plain.inserted(planes, ids))

    def kept(self, mask: np.ndarray) -> Self:
        return replace(self, plain=self.plain.kept(mask))

    def find(self, ids: np.ndarray) -> np.ndarray:
        return self.plain.find(ids)

    def by_id(self, found: Candidates) -> Candidates:
        """Return candidates with ids in place of their positions."""
        return found._replace(positions=self.ids_at(found.positions))
