"""Kernel hashers in a model file: kernels by name and fields, only the rows that matter, never code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from .._types import Rows
from .._words import counted
from ..codebooks import Codebook
from ..exceptions import BundleFormatError
from ..kernels import (
    BUILT_IN_KERNELS,
    CallableKernel,
    Kernel,
    KernelsLike,
    OnColumns,
    is_built_in,
    resolve_kernels,
    view_columns,
)
from ..stored_values import pack_values, unpack_values
from .learned import digest_of_fit
from .samples import SAMPLE_TYPES
from .state_checks import StateCheck, mismatch

__all__ = ["pack_model", "unpack_model"]

Arrays = dict[str, np.ndarray]

_N_PROBES = 3  # kernel values by which a reopened callable is recognized


def pack_model(params: Mapping[str, Any], state: Mapping[str, Any]) -> tuple[dict[str, Any], Arrays]:
    """Return the header entries and arrays of a model with these settings and learned attributes.

    Coefficients are kept for the support rows only; :func:`unpack_model` puts the zeros back.
    """
    params, state = dict(params), dict(state)
    kernels, kept = state.pop("kernels_"), state.pop("support_samples_")
    header: dict[str, Any] = {"n_train": state["dual_coef_"].shape[1]}
    state["dual_coef_"] = state["dual_coef_"][:, state["support_"]]
    arrays: Arrays = {}
    if not isinstance(params["kernels"], str):
        listed = resolve_kernels(params["kernels"])
        header["kernels_param"] = [
            _pack_kernel(kernel, f"kernel_param.{m}.", arrays) for m, kernel in enumerate(listed)
        ]
        params["kernels"] = "listed"
    header["kernels"] = [_pack_kernel(kernel, f"kernel.{m}.", arrays, kept) for m, kernel in enumerate(kernels)]
    if params.get("views") is not None:
        views = params.pop("views")
        header["views"] = list(views)
        header["view_columns"], packed = _pack_columns(views, state)
        arrays |= packed
    for name in ("codewords", "kernel_weights"):
        if isinstance(params.get(name), (list, tuple)):
            params[name] = np.asarray(params[name])
    samples_of, further = SAMPLE_TYPES[state["sample_kind_"]], state.pop("novelty_samples_", None)
    parts = {"params": params, "fitted": state, "support": samples_of.pack(kept)}
    if further is not None:
        parts["further"] = samples_of.pack(further)
    for name, values in parts.items():
        header[name], packed = pack_values(values, f"{name}.")
        arrays |= packed
    return header, arrays


def unpack_model(
    header: Mapping[str, Any], arrays: Arrays, kernels: KernelsLike | None, check_state: StateCheck
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings and learned attributes; ``kernels`` stands in for functions that the file could not hold.

    ``check_state`` refuses attributes that do not belong to one model.
    """
    params = unpack_values(header["params"], arrays, "params.")
    state = unpack_values(header["fitted"], arrays, "fitted.")
    kept = _unpack_samples(unpack_values(header["support"], arrays, "support."), state, "support_", "support_samples_")
    if "novelty_rows_" in state:
        further = unpack_values(header["further"], arrays, "further.")
        state["novelty_samples_"] = _unpack_samples(further, state, "novelty_rows_", "novelty_samples_")
    given = None if kernels is None else resolve_kernels(kernels)
    state["kernels_"] = _unpack_kernels(header["kernels"], "kernel", arrays, given, kept)
    if params["kernels"] == "listed":
        params["kernels"] = _listed_kernels(header, arrays, kernels, kept)
    elif kernels is not None:
        raise ValueError("This model was fitted with built-in kernels, which are in the file. Load it without kernels.")
    if "views" in header:
        if not all(isinstance(name, str) and name for name in header["views"]) or not header["views"]:
            raise mismatch("views")
        columns = unpack_values(header["view_columns"], arrays, "view.")
        params["views"] = {name: columns[str(number)] for number, name in enumerate(header["views"])}
    n_train = header["n_train"]
    _complete_old_file(state)
    check_state(state, params["n_bits"], n_train)
    coefficients = np.zeros((len(state["dual_coef_"]), n_train))
    coefficients[:, state["support_"]] = state["dual_coef_"]
    return params, state | {"dual_coef_": coefficients, "support_samples_": kept}


def _listed_kernels(
    header: Mapping[str, Any], arrays: Arrays, given: KernelsLike | None, kept: Rows
) -> Sequence[object]:
    """Return the kernels that the hasher was set to: those that are given again, or those that the file holds."""
    if given is None:
        return _unpack_kernels(header["kernels_param"], "kernel_param", arrays, None, kept)
    return list(given) if isinstance(given, Sequence) else [given]


def _complete_old_file(state: dict[str, Any]) -> None:
    """Add what files do not hold that were written before there were codebooks and views."""
    if "codebook_" not in state:
        # Such a file does not say whether its classes are clusters, so the fit is part of the identity.
        values = {"words": state["codewords_"], "classes": state["classes_"], "n_first_classes": None}
        state["codebook_"] = Codebook._unpack(values | {"fit_digest": digest_of_fit(state)})
    if "view_names_" not in state:
        state |= {"view_names_": np.empty(0, dtype=object), "view_shares_": np.empty(0)}


def _pack_columns(views: Mapping[str, Any], state: Mapping[str, Any]) -> tuple[dict[str, Any], Arrays]:
    """Return the columns of each view as an array, by the number of the view: names if given as names, else numbers."""
    columns = {}
    for number, (name, given) in enumerate(views.items()):
        is_named = not isinstance(given, slice) and np.asarray(given).dtype.kind in "UO"
        columns[str(number)] = (
            np.asarray(given, dtype=object) if is_named else view_columns(name, given, state["n_features_in_"])
        )
    return pack_values(columns, "view.")


def _unpack_samples(values: dict[str, Any], state: Mapping[str, Any], rows: str, name: str) -> Rows:
    """Return the attribute ``name``, the samples of the training rows that the attribute ``rows`` numbers."""
    samples_of = SAMPLE_TYPES.get(state["sample_kind_"])
    if samples_of is None:
        raise mismatch("sample_kind_")
    kept = None
    if all(isinstance(value, np.ndarray) for value in values.values()):
        kept = samples_of.unpack(values, len(state[rows]), state.get("n_features_in_", 0))
    if kept is None:
        raise mismatch(name)
    return kept


def _pack_kernel(kernel: Kernel, prefix: str, arrays: Arrays, support: Rows | None = None) -> dict[str, Any]:
    """Return the entry of one kernel, adding its arrays; a function is known by its values on some support rows."""
    if is_built_in(kernel):
        assert is_dataclass(kernel), "Kernels of this package are dataclasses, so that a file can hold them."
        values = {field.name: getattr(kernel, field.name) for field in fields(kernel)}
        inner = values.pop("kernel") if isinstance(kernel, OnColumns) else None
        plain, packed = pack_values(values, prefix)
        arrays |= packed
        spec: dict[str, Any] = {"name": type(kernel).__name__, "fields": plain}
        return spec if inner is None else spec | {"kernel": _pack_kernel(inner, f"{prefix}kernel.", arrays)}
    spec = {"name": None}
    if support is not None and len(support):
        spec["probe"] = kernel(support[:1], support[:_N_PROBES])[0].astype(float).tolist()
    return spec


def _unpack_kernels(
    specs: list[dict[str, Any]],
    prefix: str,
    arrays: Arrays,
    given: list[Kernel] | None,
    support: Rows,
) -> list[Kernel]:
    if given is None and any(spec["name"] is None for spec in specs):
        raise ValueError(
            "This model was fitted with kernels given as functions, which a file cannot hold. Reopen it with "
            f"load(path, kernels=[...]), a list of {counted(len(specs), 'kernel')} in the order of the fit."
        )
    if given is not None and len(given) != len(specs):
        raise ValueError(
            f"kernels has {len(given)} entries; this model was fitted with {counted(len(specs), 'kernel')}."
        )
    unpacked = []
    for position, spec in enumerate(specs):
        if spec["name"] is None and given is not None:
            unpacked.append(_recognize(given[position], spec, position, support))
        else:
            unpacked.append(_unpack_kernel(spec, f"{prefix}.{position}.", arrays))
    return unpacked


def _unpack_kernel(spec: dict[str, Any], prefix: str, arrays: Arrays) -> Kernel:
    if spec["name"] not in BUILT_IN_KERNELS:
        raise BundleFormatError(f"The model file names a kernel {spec['name']!r} that this version does not know.")
    fields_of_kernel = unpack_values(spec["fields"], arrays, prefix)
    if spec["name"] == OnColumns.__name__:
        if spec["kernel"]["name"] == OnColumns.__name__:  # a file could nest them without end
            raise BundleFormatError("The model file is damaged: a kernel on columns is inside another one.")
        fields_of_kernel["kernel"] = _unpack_kernel(spec["kernel"], f"{prefix}kernel.", arrays)
    try:
        return BUILT_IN_KERNELS[spec["name"]](**fields_of_kernel)
    except (TypeError, ValueError) as error:
        raise BundleFormatError(f"The kernel {spec['name']} in the model file is damaged: {error}") from error


def _recognize(kernel: Kernel, spec: dict[str, Any], position: int, support: Rows) -> Kernel:
    """Refuse a function that gives other values than the one of the fit on rows the file holds."""
    expected = spec.get("probe")
    if expected is not None:
        try:
            # A function must be called once to see what it takes; a kernel object that learns comes fitted.
            kernel = kernel.fit(support) if isinstance(kernel, CallableKernel) else kernel
            values = np.asarray(kernel(support[:1], support[:_N_PROBES]))[0]
        except Exception as error:
            raise ValueError(
                f"kernels[{position}] fails on the samples of this model ({error!r}). Pass the kernels of the fit in "
                "the same order; those that learn from data must be fitted."
            ) from error
        if not np.allclose(values, expected, rtol=1e-6, atol=1e-9):
            raise ValueError(
                f"kernels[{position}] gives {values.tolist()} where the kernel of the fit gave {expected}: "
                "it is another function. Pass the kernels of the fit in their order."
            )
    return kernel
