"""Hybrid hashers in model files: two hashers, and what joins them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from ..catalog import pack_inner, unpack_inner
from ..codes import BinaryCodes
from ..exceptions import BundleFormatError
from ..index.hybrid import MAX_CLASS_BITS
from ..stored_values import pack_values, unpack_values

if TYPE_CHECKING:
    from .hasher import HybridHasher

__all__ = ["check_hybrid", "pack_hybrid", "unpack_hybrid"]

_HASHERS = ("class_hasher", "neighbor_hasher")


def pack_hybrid(params: dict[str, Any], state: dict[str, Any]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return header entries and arrays of a hasher with these parameters and learned attributes."""
    header: dict[str, Any] = {"hashers": {}, "given": []}
    arrays: dict[str, np.ndarray] = {}
    for name in _HASHERS:
        inner = state.pop(name + "_")
        if params.pop(name) is not None:
            header["given"].append(name)
        if inner is not None:
            header["hashers"][name], own = pack_inner(inner, name + ".")
            arrays |= own
    header["params"], packed = pack_values(params, "param.")
    header["fitted"], fitted = pack_values(state, "fitted.")
    return header, arrays | packed | fitted


def unpack_hybrid(
    header: dict[str, Any], arrays: dict[str, np.ndarray], kernels: Sequence[Any] | None
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return parameters, the fitted hashers inside by attribute, and all other learned attributes."""
    params, fitted = unpack_values(header["params"], arrays, "param."), {}
    for name in _HASHERS:
        inner = None
        if name in header["hashers"]:
            of_class = kernels if name == "class_hasher" else None
            inner = unpack_inner(header["hashers"][name], arrays, name + ".", of_class)
        fitted[name + "_"] = inner
        if name in header["given"] and inner is not None:
            params[name] = clone(inner)
    return params, fitted, unpack_values(header["fitted"], arrays, "fitted.")


def check_hybrid(hasher: HybridHasher) -> None:
    """Refuse a hasher from a file whose parts do not fit together."""
    try:
        fits = _fields_fit(hasher) and isinstance(hasher.training_codes_, BinaryCodes)
        if hasher.form == "residual":
            hasher.make_index(hasher.training_codes_[:0])
    except (ValueError, TypeError, AttributeError) as error:
        raise BundleFormatError(f"The model file is damaged: {error}") from error
    if not fits:
        raise BundleFormatError("The model file is damaged: its class field and hashers do not fit together.")


def _fields_fit(hasher: HybridHasher) -> bool:
    inner = [hasher.class_hasher_] + ([] if hasher.neighbor_hasher_ is None else [hasher.neighbor_hasher_])
    n_left = 0 if hasher.neighbor_hasher_ is None else hasher.neighbor_hasher_.n_bits_
    whole = [hasher.n_bits_, hasher.class_bits_, hasher.n_features_in_, *hasher.seeds_]
    weight_type = float if hasher.form == "residual" else int
    return (
        all(type(number) is int for number in whole)
        and len(hasher.seeds_) == 2
        and 1 <= hasher.class_bits_ <= MAX_CLASS_BITS
        and hasher.class_bits_ + n_left == hasher.n_bits_
        and type(hasher.class_weight_) is weight_type
        and hasher.class_weight_ >= 0
        and hasattr(hasher.class_hasher_, "predict")
        and all(each.n_features_in_ == hasher.n_features_in_ for each in inner)
        and hasher.field_holds_ in ("classes", "clusters")
    )
