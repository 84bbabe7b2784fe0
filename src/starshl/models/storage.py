"""StarSHL in a model file: kernels by name and fields, only the rows that matter, never code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..bundle import pack_values, unpack_values
from ..exceptions import BundleFormatError
from ..kernels import BUILT_IN_KERNELS, CallableKernel, Kernel, KernelsLike, is_built_in, resolve_kernels
from .samples import SAMPLE_TYPES, Precomputed

if TYPE_CHECKING:
    from .star_shl import StarSHL

__all__ = ["pack_star_shl", "unpack_star_shl"]

Hasher = TypeVar("Hasher", bound="StarSHL")

_PROBES = 3  # kernel values by which a reopened callable is recognized


def pack_star_shl(hasher: StarSHL) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the header entries and arrays of a fitted hasher.

    Coefficients are kept for the support rows only; ``unpack`` puts the zeros back.
    """
    state = hasher._learned_state()
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
    hasher_class: type[Hasher],
    header: dict[str, Any],
    arrays: dict[str, np.ndarray],
    kernels: KernelsLike | None,
) -> Hasher:
    """Rebuild a hasher; ``kernels`` stands in for functions that the file could not hold."""
    params = unpack_values(header["params"], arrays, "params.")
    state = unpack_values(header["fitted"], arrays, "fitted.")
    support_samples = state["support_samples_"]
    given = None if kernels is None else resolve_kernels(kernels)
    fitted = _unpack_kernels(header["kernels"], "kernel", arrays, given, support_samples)
    if params["kernels"] == "listed":
        params["kernels"] = (
            _unpack_kernels(header["kernels_param"], "kernel_param", arrays, None, support_samples)
            if kernels is None
            else list(kernels)
            if isinstance(kernels, Sequence)
            else [kernels]
        )
    elif kernels is not None:
        raise ValueError("This model was fitted with built-in kernels, which are in the file. Load it without kernels.")
    hasher = hasher_class(**params)
    hasher._check_settings()
    hasher._restore_state(state)
    hasher.kernels_ = fitted
    _check_restored(hasher, header["n_train"])
    hasher.dual_coef_ = np.zeros((hasher.n_bits, header["n_train"]))
    hasher.dual_coef_[:, hasher.support_] = state["dual_coef_"]
    return hasher


def _check_restored(hasher: StarSHL, n_train: int) -> None:
    """Refuse arrays that do not belong to one model, before any of them is used as an index."""
    n_codewords, n_bits, n_support = len(hasher.classes_), hasher.n_bits, len(hasher.support_)
    # Precomputed kernels are not in the file: only the weights say how many there were.
    n_kernels = len(hasher.kernels_) or hasher.kernel_weights_.shape[-1]
    shapes = {
        "classes_": (n_codewords,),
        "codewords_": (n_codewords, n_bits),
        "codeword_counts_": (n_codewords,),
        "kernel_weights_": (n_bits, n_kernels),
        "intercept_": (n_bits,),
        "norms_": (n_bits,),
        "support_": (n_support,),
        "dual_coef_": (n_bits, n_support),
        "assignments_": (n_train,),
        "transduction_": (n_train,),
    }
    wrong = [name for name, shape in shapes.items() if np.shape(getattr(hasher, name)) != shape]
    numbers = ("codewords_", "codeword_counts_", "kernel_weights_", "intercept_", "norms_", "dual_coef_")
    wrong += [name for name in numbers if not np.isfinite(getattr(hasher, name)).all()]
    if not np.isin(hasher.codewords_, (-1, 1)).all():
        wrong.append("codewords_")
    support = hasher.support_
    if support.dtype.kind != "i" or np.any(np.diff(support, prepend=-1) <= 0) or np.any(support >= n_train):
        wrong.append("support_")
    assigned = hasher.assignments_
    if assigned.dtype.kind != "i" or np.any(assigned < 0) or np.any(assigned >= n_codewords):
        wrong.append("assignments_")
    samples_of = SAMPLE_TYPES.get(hasher.sample_kind_)
    if samples_of is None or (samples_of is Precomputed) != (len(hasher.kernels_) == 0):
        wrong.append("sample_kind_")
    elif not samples_of.are_kept(hasher.support_samples_, n_support, getattr(hasher, "n_features_in_", 0)):
        wrong.append("support_samples_")
    if hasher.n_bits_ != n_bits:
        wrong.append("n_bits_")
    if wrong:
        raise BundleFormatError(f"The model file is damaged: its {wrong[0]} does not match the rest of the model.")


def _pack_kernel(
    kernel: Kernel, prefix: str, arrays: dict[str, np.ndarray], support: np.ndarray | None = None
) -> dict[str, Any]:
    if is_built_in(kernel):
        assert is_dataclass(kernel), "Kernels of this package are dataclasses, so that a file can hold them."
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
    unpacked = []
    for position, spec in enumerate(specs):
        if spec["name"] is None and given is not None:
            unpacked.append(_recognize(given[position], spec, position, support))
        else:
            unpacked.append(_unpack_kernel(spec, f"{prefix}.{position}.", arrays))
    return unpacked


def _unpack_kernel(spec: dict[str, Any], prefix: str, arrays: dict[str, np.ndarray]) -> Kernel:
    if spec["name"] not in BUILT_IN_KERNELS:
        raise BundleFormatError(f"The model file names a kernel {spec['name']!r} that this version does not know.")
    fields_of_kernel = unpack_values(spec["fields"], arrays, prefix)
    try:
        return BUILT_IN_KERNELS[spec["name"]](**fields_of_kernel)
    except (TypeError, ValueError) as error:
        raise BundleFormatError(f"The kernel {spec['name']} in the model file is damaged: {error}") from error


def _recognize(kernel: Kernel, spec: dict[str, Any], position: int, support: np.ndarray) -> Kernel:
    """Refuse a function that gives other values than the one of the fit on rows the file holds."""
    expected = spec.get("probe")
    if expected is not None:
        try:
            # A function must be called once to see what it takes; a kernel object that learns comes fitted.
            kernel = kernel.fit(support) if isinstance(kernel, CallableKernel) else kernel
            values = np.asarray(kernel(support[:1], support[:_PROBES]))[0]
        except Exception as error:
            raise ValueError(
                f"kernels[{position}] fails on the samples of this model ({error!r}). "
                "Pass the kernels of the fit in their order, those that learn from data fitted."
            ) from error
        if not np.allclose(values, expected, rtol=1e-6, atol=1e-9):
            raise ValueError(
                f"kernels[{position}] gives {values.tolist()} where the kernel of the fit gave {expected}: "
                "it is another function. Pass the kernels of the fit in their order."
            )
    return kernel
