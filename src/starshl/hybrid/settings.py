"""Settings of a HybridHasher that no fit can have are refused here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sklearn.base import clone

from .._validation import check_choice, check_integer, check_number
from ..base import BaseHasher
from ..codebooks import Codebook

if TYPE_CHECKING:
    from .hasher import HybridHasher

__all__ = ["check_settings", "class_hasher_of"]


def check_settings(hasher: HybridHasher) -> int:
    """Return n_bits if all settings are possible."""
    check_choice(hasher.form, "form", ("hamming", "residual"))
    check_integer(hasher.class_first, "class_first", low=0)
    if hasher.class_weight is not None and hasher.form == "hamming":
        check_integer(hasher.class_weight, "class_weight", low=0)
    elif hasher.class_weight is not None:
        check_number(hasher.class_weight, "class_weight", low=0)
    _check_hashers(hasher.class_hasher, hasher.neighbor_hasher)
    _check_codewords(hasher.codewords, hasher.class_hasher)
    return check_integer(hasher.n_bits, "n_bits", low=1)


def class_hasher_of(hasher: HybridHasher, seed: int) -> BaseHasher:
    """Return the class hasher to fit: a clone of the given one or the default, set to the codebook if there is one."""
    given = hasher.class_hasher
    chosen: BaseHasher = hasher._default_class_hasher(seed) if given is None else clone(given)
    if hasher.codewords is not None:
        chosen.set_params(n_bits=hasher.codewords.n_bits, codewords=hasher.codewords)
    return chosen


def _check_codewords(codewords: object, class_hasher: object) -> None:
    if codewords is None:
        return
    if not isinstance(codewords, Codebook):
        raise ValueError(f"codewords is of type {type(codewords).__name__}; it must be a Codebook or None.")
    if isinstance(class_hasher, BaseHasher) and "codewords" not in class_hasher.get_params():
        raise ValueError(
            f"codewords is a Codebook, and the class_hasher is a {type(class_hasher).__name__}, which cannot be fitted "
            "to one. Use StarRidge, StarSHL or CodewordSVM."
        )


def _check_hashers(class_hasher: object, neighbor_hasher: object) -> None:
    for name, given in (("class_hasher", class_hasher), ("neighbor_hasher", neighbor_hasher)):
        if given is not None and not isinstance(given, BaseHasher):
            raise ValueError(f"{name} is of type {type(given).__name__}; it must be a hasher or None.")
    if class_hasher is not None and not hasattr(class_hasher, "predict"):
        raise ValueError(
            f"class_hasher is a {type(class_hasher).__name__}, which predicts no classes. Give a hasher with "
            "predict, such as StarRidge."
        )
    if isinstance(neighbor_hasher, BaseHasher) and "n_bits" not in neighbor_hasher.get_params():
        raise ValueError(
            f"neighbor_hasher is a {type(neighbor_hasher).__name__}, which has no parameter n_bits. Give a "
            "hasher such as ITQ, and prepare rows before the HybridHasher."
        )
