"""Packed codes: their bits and bytes, the signs they come from, and the space they belong to."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NoReturn, SupportsIndex, get_args

import numpy as np
from numpy.typing import DTypeLike

from .._common.files import array_digest
from .._common.validation import check_choice, check_integer
from ..exceptions import SpaceMismatchError

Metric = Literal["hamming", "hybrid"]
BIT_ORDER = "bit j of a code is bit j % 8 (least significant first) of byte j // 8"
# 64 bits: among a million spaces, two share an identity with probability 3e-8.
_N_HEX_DIGITS = 16
_SPACE_ID = re.compile(f"[0-9a-f]{{{_N_HEX_DIGITS}}}")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BinaryCodes:
    """Codes as packed bytes; bit ``j`` is bit ``j % 8`` of byte ``j // 8``, padding bits are zero.

    Parameters
    ----------
    packed : array of shape (n_codes, ceil(n_bits / 8)), uint8
    n_bits : int
    space_id : str, default=None
        The identity of the space that the codes belong to, as ``hasher.space_id_`` gives it; None is unknown. Codes of
        different spaces are never compared. Two sets of codes are equal if their bits are, whatever their spaces.
    metric : {"hamming", "hybrid"}, default="hamming"
        The distance that the codes are made for. Hybrid codes begin with a class and need a
        :class:`starshl.index.HybridIndex`.
    classes : array of shape (n_codes,), default=None
        Where a code is the word of a label, the position of its class in the codebook, and -1 elsewhere; None if no
        code is. A query tells such items from others that have the same bits.

    Examples
    --------
    >>> import numpy as np
    >>> codes = BinaryCodes.from_signs(np.array([[1, -1, 1], [-1, -1, 1]]))
    >>> codes.packed.ravel().tolist()
    [5, 4]
    >>> codes.distances(codes).tolist()
    [[0, 1], [1, 0]]
    """

    packed: np.ndarray
    n_bits: int
    space_id: str | None = None
    metric: Metric = "hamming"
    classes: np.ndarray | None = None

    def __post_init__(self) -> None:
        packed = np.asarray(self.packed)
        n_bits = check_integer(self.n_bits, "n_bits", low=1)
        width = n_bytes(n_bits)
        if packed.dtype != np.uint8 or packed.ndim != 2 or packed.shape[1] != width:
            raise ValueError(
                f"packed has dtype {packed.dtype} and shape {packed.shape}; {n_bits} bits need uint8 "
                f"and shape (n_codes, {width}). Pack signs with BinaryCodes.from_signs."
            )
        spare = 8 * width - n_bits
        if spare and np.any(packed[:, -1] >> (8 - spare)):
            raise ValueError(
                f"The last {spare} bits of each row are padding and must be zero, but some are set. "
                "Check n_bits, or the bit order: bit j is bit j % 8 of byte j // 8."
            )
        check_space_id(self.space_id)
        check_choice(self.metric, "metric", get_args(Metric))
        if self.classes is not None:
            object.__setattr__(self, "classes", _check_classes(self.classes, len(packed)))
        object.__setattr__(self, "packed", packed)
        object.__setattr__(self, "n_bits", n_bits)

    @classmethod
    def joined(cls, parts: Sequence[BinaryCodes]) -> BinaryCodes:
        """Return the codes of all parts, one after the other; there is at least one part, and they are alike."""
        classes = None
        if any(part.classes is not None for part in parts):
            known = [np.full(len(part), -1) if part.classes is None else part.classes for part in parts]
            classes = np.concatenate(known)
        return replace(parts[0], packed=np.concatenate([part.packed for part in parts]), classes=classes)

    @classmethod
    def from_scores(cls, scores: np.ndarray, space_id: str | None = None) -> BinaryCodes:
        """Pack the signs of real scores of shape (n_codes, n_bits); a score of zero or more sets the bit."""
        return cls.from_signs(signs_of(scores), space_id)

    @classmethod
    def from_signs(cls, signs: np.ndarray, space_id: str | None = None) -> BinaryCodes:
        """Pack an (n_codes, n_bits) array; entries > 0 become set bits."""
        signs = np.asarray(signs)
        if signs.ndim != 2 or signs.shape[1] < 1:
            raise ValueError(f"signs has shape {signs.shape}; it must be (n_codes, n_bits).")
        return cls(np.packbits(signs > 0, axis=1, bitorder="little"), signs.shape[1], space_id)

    def to_signs(self) -> np.ndarray:
        """Return the (n_codes, n_bits) int8 array of -1 and +1."""
        bits = np.unpackbits(self.packed, axis=1, bitorder="little", count=self.n_bits)
        return (2 * bits.astype(np.int8) - 1).astype(np.int8)

    def distances(self, other: BinaryCodes) -> np.ndarray:
        """Return all Hamming distances, shape (len(self), len(other)), int32."""
        if self.n_bits != other.n_bits:
            raise ValueError(
                f"Codes of {self.n_bits} and of {other.n_bits} bits have no Hamming distance. "
                "Encode both sides with the same hasher."
            )
        if None not in (self.space_id, other.space_id) and self.space_id != other.space_id:
            raise SpaceMismatchError(
                f"Codes of the spaces {self.space_id} and {other.space_id} have no meaningful distance. "
                "Encode both sides with the same hasher, or with hashers fitted to one Codebook."
            )
        distances = np.zeros((len(self), len(other)), dtype=np.int32)
        for mine, theirs in zip(self.packed.T, other.packed.T, strict=True):
            distances += np.bitwise_count(mine[:, None] ^ theirs[None, :])
        return distances

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NoReturn:
        raise TypeError(
            "BinaryCodes can become two kinds of arrays: .packed gives the bytes, .to_signs() gives -1 and +1. Choose "
            "one of them."
        )

    def __repr__(self) -> str:
        return f"BinaryCodes({len(self)} codes of {self.n_bits} bits)"

    def __iter__(self) -> Iterator[BinaryCodes]:
        """Yield the codes one by one, each as a collection of one."""
        return (self[row] for row in range(len(self)))

    def __len__(self) -> int:
        return len(self.packed)

    def __getitem__(self, rows: SupportsIndex | slice | Sequence[int] | np.ndarray) -> BinaryCodes:
        """Select codes; a single index gives a collection of one."""
        classes = None if self.classes is None else np.atleast_1d(self.classes[rows])
        return replace(self, packed=np.atleast_2d(self.packed[rows]), classes=classes)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, BinaryCodes) and self.n_bits == other.n_bits and np.array_equal(self.packed, other.packed)
        )

    @property
    def nbytes(self) -> int:
        """Bytes held by the packed codes."""
        return self.packed.nbytes


def _check_classes(classes: np.ndarray, n_codes: int) -> np.ndarray:
    given = np.asarray(classes)
    if given.dtype.kind not in "iu" or given.shape != (n_codes,) or np.any(given < -1):
        raise ValueError(
            f"classes has dtype {given.dtype} and shape {given.shape}; it must hold one position in the codebook per "
            f"code ({n_codes}), or -1. Get such codes from hasher.encode_database(X, y)."
        )
    return given.astype(np.int32)


def signs_of(scores: np.ndarray) -> np.ndarray:
    """Return +1 where a score is >= 0 and -1 elsewhere, as int8: the one rule by which a score becomes a bit.

    Zero counts as +1, so that every code has exactly n_bits signs; ``numpy.sign`` would return 0.
    """
    return np.where(np.asarray(scores) >= 0, np.int8(1), np.int8(-1))


def n_bytes(n_bits: int) -> int:
    """Return the whole bytes that a packed code of ``n_bits`` bits fills.

    >>> [n_bytes(n_bits) for n_bits in (1, 8, 9, 64)]
    [1, 1, 2, 8]
    """
    return -(-n_bits // 8)


def make_space_id(head: Any, arrays: Mapping[str, np.ndarray]) -> str:
    """Return the identity of a code space: the first digits of the SHA-256 of a JSON value and of named arrays.

    Codes of equal identity may be compared, codes of different ones may not.
    """
    return array_digest(arrays, json.dumps(head, sort_keys=True))[:_N_HEX_DIGITS]


def check_space_id(space_id: object) -> str | None:
    """Return an identity as it is, or refuse what cannot be one; None is unknown."""
    if space_id is None or (isinstance(space_id, str) and _SPACE_ID.fullmatch(space_id)):
        return space_id
    raise ValueError(
        f"space_id is {space_id!r}; it must be None or {_N_HEX_DIGITS} hexadecimal digits. "
        "Take it from hasher.space_id_ or codebook.space_id."
    )
