"""StarSHL in a model file: kernels by name and fields, only the rows that matter, never code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from ..bundle import pack_values, unpack_values
from ..exceptions import BundleFormatError
from ..kernels import BUILT_IN_KERNELS, Kernel, is_built_in, resolve_kernels

if TYPE_CHECKING:
    from .star_shl import StarSHL

__all__ = ["pack_star_shl", "unpack_star_shl"]

_PROBES = 3  # kernel values by which a reopened callable is recognized


def pack_star_shl(hasher: StarSHL) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the header entries and arrays of a fitted hasher.

    Coefficients are kept for the support rows only; ``unpack`` puts the zeros back.
    """
    state = hasher._packable_state()
    del state["kernels_"]
    state["dual_coef_"] = hasher.dual_coef_[:, hasher.support_]
    params = hasher._packable_params()
    header: dict[str, Any] = {"n_train": hasher.dual_coef_.shape[1]}
    arrays: dict[str, np.ndarray] = {}
    if not isinstance(params["kernels"], str):
        header["kernels_param"] = [
            _pack_kernel(kernel, f"kernel_param.{m}.", arrays)
            for m, kernel in enumerate(resolve_kernels(params["kernels"]))
        ]
        params["kernels"] = "listed"
    header["kernels"] = [
        _pack_kernel(kernel, f"kernel.{m}.", arrays, hasher.support_samples_)
        for m, kernel in enumerate(hasher.kernels_)
    ]
    if isinstance(params["codewords"], (list, tuple)):
        params["codewords"] = np.asarray(params["codewords"])
    if isinstance(params["kernel_weights"], (list, tuple)):
        params["kernel_weights"] = np.asarray(params["kernel_weights"])
    for name, values in (("params", params), ("fitted", state)):
        header[name], packed = pack_values(values, f"{name}.")
        arrays |= packed
    return header, arrays


def unpack_star_shl(
    hasher_class: type[StarSHL],
    header: dict[str, Any],
    arrays: dict[str, np.ndarray],
    kernels: Sequence[Kernel | Callable] | None,
) -> StarSHL:
    """Rebuild a hasher; ``kernels`` stands in for functions that the file could not hold."""
    params = unpack_values(header["params"], arrays, "params.")
    state = unpack_values(header["fitted"], arrays, "fitted.")
    support_samples = state["support_samples_"]
    given = None if kernels is None else resolve_kernels(kernels)
    fitted = _unpack_kernels(header["kernels"], "kernel", arrays, given, support_samples)
    if params["kernels"] == "listed":
        params["kernels"] = (
            list(kernels)
            if kernels is not None
            else _unpack_kernels(header["kernels_param"], "kernel_param", arrays, None, support_samples)
        )
    elif kernels is not None:
        raise ValueError("This model was fitted with built-in kernels, which are in the file. Load it without kernels.")
    hasher = hasher_class(**params)
    for name, value in state.items():
        setattr(hasher, name, value)
    hasher.kernels_ = fitted
    hasher.dual_coef_ = np.zeros((len(hasher.intercept_), header["n_train"]))
    hasher.dual_coef_[:, hasher.support_] = state["dual_coef_"]
    return hasher


def _pack_kernel(
    kernel: Kernel, prefix: str, arrays: dict[str, np.ndarray], support: np.ndarray | None = None
) -> dict[str, Any]:
    if is_built_in(kernel):
        values = {field.name: getattr(kernel, field.name) for field in fields(kernel)}
        plain, packed = pack_values(values, prefix)
        arrays |= packed
        return {"name": type(kernel).__name__, "fields": plain}
    spec: dict[str, Any] = {"name": None}
    if support is not None and len(support):
        spec["probe"] = kernel(support[:1], support[:_PROBES])[0].astype(float).tolist()
    return spec


def _unpack_kernels(
    specs: list[dict[str, Any]],
    prefix: str,
    arrays: dict[str, np.ndarray],
    given: list[Kernel] | None,
    support: np.ndarray,
) -> list[Kernel]:
    n_missing = sum(spec["name"] is None for spec in specs)
    if given is None and n_missing:
        raise ValueError(
            f"This model was fitted with {n_missing} kernels given as functions, which a file cannot hold. "
            f"Reopen it with load(path, kernels=[...]), all {len(specs)} kernels in the order of the fit."
        )
    if given is not None and len(given) != len(specs):
        raise ValueError(f"kernels has {len(given)} entries; this model was fitted with {len(specs)} kernels.")
    found = []
    for position, spec in enumerate(specs):
        if spec["name"] is None:
            found.append(_recognize(given[position], spec, position, support))
        else:
            found.append(_unpack_kernel(spec, f"{prefix}.{position}.", arrays))
    return found


def _unpack_kernel(spec: dict[str, Any], prefix: str, arrays: dict[str, np.ndarray]) -> Kernel:
    if spec["name"] not in BUILT_IN_KERNELS:
        raise BundleFormatError(f"The model file names a kernel {spec['name']!r} that this version does not know.")
    return BUILT_IN_KERNELS[spec["name"]](**unpack_values(spec["fields"], arrays, prefix))


def _recognize(kernel: Kernel, spec: dict[str, Any], position: int, support: np.ndarray) -> Kernel:
    """Refuse a function that gives other values than the one of the fit on rows the file holds."""
    kernel = kernel.fit(support) if len(support) else kernel
    expected = spec.get("probe")
    if expected is not None:
        values = kernel(support[:1], support[:_PROBES])[0]
        if not np.allclose(values, expected, rtol=1e-6, atol=1e-9):
            raise ValueError(
                f"kernels[{position}] gives {values.tolist()} where the kernel of the fit gave {expected}: "
                "it is another function. Pass the kernels of the fit in their order."
            )
    return kernel
