"""Weighted Hamming distances, for methods that learn how much each bit counts."""

from __future__ import annotations

import numpy as np

from ..codes import BinaryCodes
from ..linalg import project

__all__ = ["WeightedBits"]


class WeightedBits:
    """Adds the distance of the paper to a hasher that learns ``bit_weights_``."""

    bit_weights_: np.ndarray
    n_bits_: int

    def _learned_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"bit_weights_": (self.n_bits_,)}

    def weighted_distances(self, queries: BinaryCodes, items: BinaryCodes) -> np.ndarray:
        r"""Return :math:`\sum_b w_b [q_b \ne z_b]` with w the ``bit_weights_``, shape (n_queries, n_items).

        The paper ranks by this distance. An index ranks by the plain one: take its candidates and sort them by this.

        Parameters
        ----------
        queries : codes from ``encode``
        items : codes from ``encode_database``
        """
        if not queries.n_bits == items.n_bits == len(self.bit_weights_):
            raise ValueError(
                f"The codes have {queries.n_bits} and {items.n_bits} bits; this hasher makes codes of "
                f"{len(self.bit_weights_)}. Encode both sides with it."
            )
        asked, stored = (codes.to_signs() > 0 for codes in (queries, items))
        # Two sums of terms that are never negative: equal codes are at distance zero exactly.
        only_asked = project(asked * self.bit_weights_, ~stored)
        return only_asked + project(~asked * self.bit_weights_, stored)
