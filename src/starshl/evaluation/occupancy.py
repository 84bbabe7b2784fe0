"""How codes spread over buckets of equal codes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..codes import BinaryCodes

__all__ = ["Occupancy", "occupancy"]


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Buckets of equal codes.

    Attributes
    ----------
    n_codes, n_distinct, largest : int
        The number of codes, of distinct codes, and of codes in the fullest bucket.
    mean_bucket_of_a_code : float
        How many codes share the bucket of a code drawn at random, itself included.
    code_entropy : float
        Entropy of the bucket of a random code, in bits: at most log2(n_codes) and n_bits.
    mean_bit_entropy : float
        Mean over bits of the entropy of one bit: 1 if every bit splits the codes in half.
    n_constant_bits : int
        Bits that are equal in all codes and so carry nothing.
    """

    n_codes: int
    n_distinct: int
    largest: int
    mean_bucket_of_a_code: float
    code_entropy: float
    mean_bit_entropy: float
    n_constant_bits: int


def occupancy(codes: BinaryCodes) -> Occupancy:
    """Describe how codes fill their buckets.

    Examples
    --------
    >>> import numpy as np
    >>> from starshl import BinaryCodes
    >>> buckets = occupancy(BinaryCodes.from_signs(np.array([[1, 1], [1, 1], [-1, 1], [-1, 1]])))
    >>> buckets.n_distinct, buckets.code_entropy, buckets.n_constant_bits
    (2, 1.0, 1)
    """
    if len(codes) == 0:
        raise ValueError("codes holds no codes; at least one is needed.")
    filling = np.unique(codes.packed, axis=0, return_counts=True)[1]
    bits = np.unpackbits(codes.packed, axis=1, bitorder="little", count=codes.n_bits)
    set_share = bits.mean(axis=0, dtype=np.float64)
    return Occupancy(
        n_codes=len(codes),
        n_distinct=len(filling),
        largest=int(filling.max()),
        mean_bucket_of_a_code=float((filling**2).sum() / len(codes)),
        code_entropy=float(_entropy_terms(filling / len(codes)).sum()),
        mean_bit_entropy=float((_entropy_terms(set_share) + _entropy_terms(1 - set_share)).mean()),
        n_constant_bits=int(np.isin(set_share, (0.0, 1.0)).sum()),
    )


def _entropy_terms(shares: np.ndarray) -> np.ndarray:
    # Adding 0.0 turns the -0.0 of a certain event into 0.0.
    return -shares * np.log2(np.where(shares > 0, shares, 1.0)) + 0.0
