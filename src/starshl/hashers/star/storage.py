"""Kernel hashers in a model file: kernels by name and fields, only the rows that matter, never code.

What comes out of a file is checked before any of it is used as an index.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, TypeAlias

import numpy as np

from ..._common.bundle import pack_values, unpack_values
from ..._common.files import array_digest
from ..._common.validation import Rows
from ..._common.words import counted
from ...codes.codebook import Codebook
from ...exceptions import BundleFormatError, MissingFunctionError
from ...learning.kernels.choice import BUILT_IN_KERNELS, KernelsLike, resolve_kernels
from ...learning.kernels.kernel import CallableKernel, Kernel, is_built_in
from ...learning.kernels.views import OnColumns, view_columns
from .samples import SAMPLE_TYPES, Precomputed, SparseVectors, take_sparse

Arrays = dict[str, np.ndarray]
StateCheck: TypeAlias = Callable[[Mapping[str, Any], int, int], None]
"""A check of learned attributes, given the number of bits and the number of training rows."""
_N_PROBES = 3  # kernel values by which a reopened callable is recognized


def pack_model(params: Mapping[str, Any], state: Mapping[str, Any]) -> tuple[dict[str, Any], Arrays]:
    """Return the header entries and arrays of a model with these settings and learned attributes.

    Coefficients are kept for the support rows only; :func:`unpack_model` puts the zeros back.
    """
    params, state = dict(params), dict(state)
    kernels, support_samples = state.pop("kernels_"), state.pop("support_samples_")
    header: dict[str, Any] = {"n_train": state["dual_coef_"].shape[1]}
    state["dual_coef_"] = state["dual_coef_"][:, state["support_"]]
    arrays: Arrays = {}
    if not isinstance(params["kernels"], str):
        listed = resolve_kernels(params["kernels"])
        header["kernels_param"] = [
            _pack_kernel(kernel, f"kernel_param.{m}.", arrays) for m, kernel in enumerate(listed)
        ]
        params["kernels"] = "listed"
    header["kernels"] = [
        _pack_kernel(kernel, f"kernel.{m}.", arrays, support_samples) for m, kernel in enumerate(kernels)
    ]
    if params.get("views") is not None:
        views = params.pop("views")
        header["views"] = list(views)
        header["view_columns"], packed = _pack_columns(views, state)
        arrays |= packed
    for name in ("codewords", "kernel_weights"):
        if isinstance(params.get(name), (list, tuple)):
            params[name] = np.asarray(params[name])
    samples_of, further = SAMPLE_TYPES[state["sample_kind_"]], state.pop("novelty_samples_", None)
    parts = {"params": params, "fitted": state, "support": samples_of.pack(support_samples)}
    if further is not None:
        parts["further"] = samples_of.pack(further)
    for name, values in parts.items():
        header[name], packed = pack_values(values, f"{name}.")
        arrays |= packed
    return header, arrays


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


def _pack_columns(views: Mapping[str, Any], state: Mapping[str, Any]) -> tuple[dict[str, Any], Arrays]:
    """Return the columns of each view as an array, by the number of the view: names if given as names, else numbers."""
    columns = {}
    for number, (name, given) in enumerate(views.items()):
        is_named = not isinstance(given, slice) and np.asarray(given).dtype.kind in "UO"
        columns[str(number)] = (
            np.asarray(given, dtype=object) if is_named else view_columns(name, given, state["n_features_in_"])
        )
    return pack_values(columns, "view.")


def unpack_model(
    header: Mapping[str, Any], arrays: Arrays, kernels: KernelsLike | None, check_state: StateCheck
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings and learned attributes; ``kernels`` stands in for functions that the file could not hold.

    ``check_state`` refuses attributes that do not belong to one model.
    """
    params = unpack_values(header["params"], arrays, "params.")
    state = unpack_values(header["fitted"], arrays, "fitted.")
    support_samples = _unpack_samples(
        unpack_values(header["support"], arrays, "support."), state, "support_", "support_samples_"
    )
    if "novelty_rows_" in state:
        further = unpack_values(header["further"], arrays, "further.")
        state["novelty_samples_"] = _unpack_samples(further, state, "novelty_rows_", "novelty_samples_")
    given = None if kernels is None else resolve_kernels(kernels)
    state["kernels_"] = _unpack_kernels(header["kernels"], "kernel", arrays, given, support_samples)
    if params["kernels"] == "listed":
        params["kernels"] = _kernels_param(header, arrays, kernels, support_samples)
    elif kernels is not None:
        raise ValueError("This model was fitted with built-in kernels, which are in the file. Load it without kernels.")
    if "views" in header:
        if not all(isinstance(name, str) and name for name in header["views"]) or not header["views"]:
            raise mismatch("views")
        columns = unpack_values(header["view_columns"], arrays, "view.")
        params["views"] = {name: columns[str(number)] for number, name in enumerate(header["views"])}
    n_train = header["n_train"]
    check_state(state, params["n_bits"], n_train)
    coefficients = np.zeros((len(state["dual_coef_"]), n_train), dtype=state["dual_coef_"].dtype)
    coefficients[:, state["support_"]] = state["dual_coef_"]
    return params, state | {"dual_coef_": coefficients, "support_samples_": support_samples}


def _kernels_param(
    header: Mapping[str, Any], arrays: Arrays, given: KernelsLike | None, support_samples: Rows
) -> Sequence[object]:
    """Return the kernels that the hasher was set to: those that are given again, or those that the file holds."""
    if given is None:
        return _unpack_kernels(header["kernels_param"], "kernel_param", arrays, None, support_samples)
    return list(given) if isinstance(given, Sequence) else [given]


def _unpack_samples(values: dict[str, Any], state: Mapping[str, Any], rows: str, name: str) -> Rows:
    """Return the attribute ``name``, the samples of the training rows that the attribute ``rows`` numbers."""
    samples_of = SAMPLE_TYPES.get(state["sample_kind_"])
    if samples_of is None:
        raise mismatch("sample_kind_")
    support_samples = None
    if all(isinstance(value, np.ndarray) for value in values.values()):
        support_samples = samples_of.unpack(values, len(state[rows]), state.get("n_features_in_", 0))
    if support_samples is None:
        raise mismatch(name)
    return support_samples


def _unpack_kernels(
    specs: list[dict[str, Any]],
    prefix: str,
    arrays: Arrays,
    given: list[Kernel] | None,
    support: Rows,
) -> list[Kernel]:
    if given is None and any(spec["name"] is None for spec in specs):
        raise MissingFunctionError(
            "This model was fitted with kernels given as functions, which a file cannot hold",
            advice="Reopen it with load(path, kernels=[...]), a list of {n_kernels} in the order of the fit.",
            n_kernels=counted(len(specs), "kernel"),
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
        raise BundleFormatError.damaged(f"it names a kernel {spec['name']!r} that this version does not know")
    fields_of_kernel = unpack_values(spec["fields"], arrays, prefix)
    if spec["name"] == OnColumns.__name__:
        if spec["kernel"]["name"] == OnColumns.__name__:  # a file could nest them without end
            raise BundleFormatError.damaged("a kernel on columns is inside another one")
        fields_of_kernel["kernel"] = _unpack_kernel(spec["kernel"], f"{prefix}kernel.", arrays)
    try:
        return BUILT_IN_KERNELS[spec["name"]](**fields_of_kernel)
    except (TypeError, ValueError) as error:
        raise BundleFormatError.damaged(f"its {spec['name']} cannot be rebuilt ({error})") from error


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


def check_star_shl(state: Mapping[str, Any], n_bits: int, n_train: int) -> None:
    """Refuse arrays that do not belong to one StarSHL."""
    n_codewords, n_support = len(state["classes_"]), len(state["support_"])
    shapes = {
        "classes_": (n_codewords,),
        "codewords_": (n_codewords, n_bits),
        "codeword_counts_": (n_codewords,),
        "kernel_weights_": (n_bits, _n_kernels(state)),
        "intercept_": (n_bits,),
        "norms_": (n_bits,),
        "support_": (n_support,),
        "dual_coef_": (n_bits, n_support),
        "assignments_": (n_train,),
        "training_packed_": (n_train, -(-n_bits // 8)),
        "transduction_": (n_train,),
    }
    numbers = ("codewords_", "codeword_counts_", "kernel_weights_", "intercept_", "norms_", "dual_coef_")
    wrong = _wrong_arrays(state, shapes, numbers) + _wrong_codes(state, n_bits) + _wrong_samples(state, n_train)
    if not _are_indices(state["assignments_"], n_codewords):
        wrong.append("assignments_")
    if state["training_packed_"].dtype != np.uint8:
        wrong.append("training_packed_")
    wrong += _wrong_novelty(state, n_codewords, n_support, n_train)
    if wrong:
        raise mismatch(wrong[0])


def check_star_ridge(state: Mapping[str, Any], n_bits: int, n_train: int) -> None:
    """Refuse arrays that do not belong to one StarRidge; after ``compress`` its support rows are no training rows."""
    n_classes, n_support, n_rows = len(state["classes_"]), len(state["support_"]), len(state["transduction_"])
    shapes = {
        "classes_": (n_classes,),
        "codewords_": (n_classes, n_bits),
        "kernel_weights_": (_n_kernels(state),),
        "intercept_": (n_classes,),
        "support_": (n_support,),
        "dual_coef_": (n_classes, n_support),
        "class_shifts_": (n_classes,),
        "training_scores_": (n_rows, n_classes),
        "assignments_": (n_rows,),
        "labeled_": (n_rows,),
        "transduction_": (n_rows,),
    }
    numbers = ("codewords_", "kernel_weights_", "intercept_", "dual_coef_", "class_shifts_", "training_scores_")
    wrong = _wrong_arrays(state, shapes, numbers) + _wrong_codes(state, n_bits) + _wrong_samples(state, n_train)
    if not _are_indices(state["assignments_"], n_classes):
        wrong.append("assignments_")
    if state["labeled_"].dtype != np.bool_ or n_train not in (n_rows, n_support):
        wrong.append("labeled_")
    for name in ("temperature_", "sharpness_", "ridge_"):
        if type(state[name]) is not float or not 0 < state[name] < np.inf:
            wrong.append(name)
    if type(state["curvature_"]) is not float or not 0 <= state["curvature_"] < np.inf:
        wrong.append("curvature_")
    if state["head_"] not in ("posterior", "linear"):
        wrong.append("head_")
    if type(state["codebook_seed_"]) is not int or not 0 <= state["codebook_seed_"] < 2**32:
        wrong.append("codebook_seed_")
    wrong += _wrong_novelty(state, n_classes, n_support, n_train)
    if wrong:
        raise mismatch(wrong[0])


def mismatch(name: str) -> BundleFormatError:
    """Return the error of a file in which an attribute does not belong to the others."""
    return BundleFormatError.damaged(f"its {name} does not match the rest of the model")


def _n_kernels(state: Mapping[str, Any]) -> int:
    # Precomputed kernels are not in the file: only the weights say how many there were.
    return len(state["kernels_"]) or int(state["kernel_weights_"].shape[-1])


def _wrong_arrays(
    state: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]], numbers: tuple[str, ...]
) -> list[str]:
    wrong = [name for name, shape in shapes.items() if np.shape(state[name]) != shape]
    return wrong + [name for name in numbers if not np.isfinite(state[name]).all()]


def _wrong_codes(state: Mapping[str, Any], n_bits: int) -> list[str]:
    if not np.isin(state["codewords_"], (-1, 1)).all():
        return ["codewords_"]
    codebook = state["codebook_"]
    is_consistent = isinstance(codebook, Codebook) and codebook.holds(state["classes_"], state["codewords_"])
    wrong = [] if is_consistent else ["codebook_"]
    return wrong if state["n_bits_"] == n_bits else [*wrong, "n_bits_"]


def _wrong_novelty(state: Mapping[str, Any], n_classes: int, n_support: int, n_train: int) -> list[str]:
    """Return what cannot be a rule of novelty; ``compress`` leaves none."""
    if "novelty_calibration_" not in state:
        return []
    shapes: dict[str, tuple[int, ...]] = {
        "novelty_units_": (2, 2),
        "novelty_calibration_": (len(state["novelty_calibration_"]),),
    }
    wrong = []
    if "novelty_rows_" in state:
        rows = state["novelty_rows_"]
        shapes |= {"novelty_intercept_": (n_classes,), "novelty_coef_": (n_classes, n_support + len(rows))}
        wrong += [] if _are_indices(rows, n_train) else ["novelty_rows_"]
        n_support += len(rows)
    wrong += _wrong_arrays(state, shapes, tuple(shapes))
    if type(state["novelty_weight_"]) is not float or not 0 <= state["novelty_weight_"] <= 1:
        wrong.append("novelty_weight_")
    if type(state["novelty_neighbors_"]) is not int or not 1 <= state["novelty_neighbors_"] <= max(1, n_support):
        wrong.append("novelty_neighbors_")
    if np.any(state["novelty_units_"][:, 1] <= 0) or np.any(np.diff(state["novelty_calibration_"]) < 0):
        wrong.append("novelty_calibration_")
    return wrong


def _wrong_samples(state: Mapping[str, Any], n_train: int) -> list[str]:
    wrong = []
    if not _are_indices(state["support_"], n_train) or np.any(np.diff(state["support_"]) <= 0):
        wrong.append("support_")
    n_features = state.get("n_features_in_", 0)
    if any(isinstance(kernel, OnColumns) and kernel.columns.max() >= n_features for kernel in state["kernels_"]):
        wrong.append("kernels_")
    if len(state["view_names_"]) != len(state["view_shares_"]):
        wrong.append("view_shares_")
    samples_of = SAMPLE_TYPES[state["sample_kind_"]]
    if (samples_of is Precomputed) != (len(state["kernels_"]) == 0):
        wrong.append("sample_kind_")
    if samples_of is SparseVectors and not take_sparse(state["kernels_"]):
        wrong.append("sample_kind_")
    return wrong


def _are_indices(values: np.ndarray, size: int) -> bool:
    return values.dtype.kind == "i" and bool(np.all((values >= 0) & (values < size)))


def digest_of_fit(state: Mapping[str, Any]) -> str:
    """Return a digest of a fit without labels: the numbers of its clusters mean nothing elsewhere."""
    return array_digest({name: state[name] for name in ("assignments_", "dual_coef_", "intercept_")})
