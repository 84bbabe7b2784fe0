"""Settings of a HybridHasher that no fit can have are refused here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._validation import check_choice, check_integer, check_number
from ..base import BaseHasher

if TYPE_CHECKING:
    from .hasher import HybridHasher

__all__ = ["check_settings"]


def check_settings(hasher: HybridHasher) -> int:
    """Return n_bits if all settings are possible."""
    check_choice(hasher.form, "form", ("hamming", "residual"))
    check_integer(hasher.class_first, "class_first", low=0)
    if hasher.class_weight is not None and hasher.form == "hamming":
        check_integer(hasher.class_weight, "class_weight", low=0)
    elif hasher.class_weight is not None:
        check_number(hasher.class_weight, "class_weight", low=0)
    _check_hashers(hasher.class_hasher, hasher.neighbor_hasher)
    return check_integer(hasher.n_bits, "n_bits", low=1)


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
