"""ScoreRule: the distance of neighbors and the probability of the same class in one number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .._common.validation import check_number

#: A smaller probability costs no more: of a class that the query cannot have, items are in the order of distances.
LEAST_PROBABILITY = 1e-6
#: How much a distance counts beyond the saturation: items that are far alike differ by their class, and then by this.
BEYOND_SATURATION = 0.05


@dataclass(frozen=True, slots=True)
class ScoreRule:
    r"""How near an item is, given its distance d without regard to classes and the probability p of the same class.

    .. math:: s(d) - w\,u \log \max(p, 10^{-6}), \qquad s(d) = \min(d, d_0) + .05 \max(d - d_0, 0)

    Smaller is nearer.

    Parameters
    ----------
    class_weight : float
        The weight w: 0 compares neighbors only; a large one orders by class first, and then by distance.
    unit : float
        The unit u, a difference between distances that matters as much as a factor e of the probability, at weight 1.
    saturation : float
        The distance :math:`d_0`, beyond which an item is no neighbor, and distances hardly count.

    Examples
    --------
    >>> from starshl.codes import ScoreRule
    >>> rule = ScoreRule(class_weight=1, unit=2, saturation=10)
    >>> rule.scores([0, 10, 30], [1.0, 1.0, 0.5]).round(2).tolist()
    [0.0, 10.0, 12.39]
    """

    class_weight: float
    unit: float
    saturation: float

    def __post_init__(self) -> None:
        for name in ("class_weight", "unit", "saturation"):
            object.__setattr__(self, name, float(check_number(getattr(self, name), name, low=0)))

    def scores(self, distances: ArrayLike, probabilities: ArrayLike) -> np.ndarray:
        """Return the scores of items, float64."""
        return self.saturated(distances) + self.class_costs(probabilities)

    def saturated(self, distances: ArrayLike) -> np.ndarray:
        """Return what distances add to a score."""
        given = np.asarray(distances, np.float64)
        return np.minimum(given, self.saturation) + BEYOND_SATURATION * np.maximum(given - self.saturation, 0.0)

    def class_costs(self, probabilities: ArrayLike) -> np.ndarray:
        """Return what probabilities of the same class add to a score."""
        given = np.clip(np.asarray(probabilities, np.float64), LEAST_PROBABILITY, 1.0)
        return 0.0 - self.class_weight * self.unit * np.log(given)
