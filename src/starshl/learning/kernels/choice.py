"""Which kernels a user means: presets by name, kernel objects and functions, as a list that can be fitted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Literal, TypeAlias, get_args

import numpy as np

from ...exceptions import InputError
from .graph_gaussian import FittedGraphGaussian, GraphGaussian
from .kernel import CallableKernel, Kernel, KernelFunction, MedianKernel, SpectrumKernel
from .vectors import (
    Cauchy,
    Gaussian,
    NormalizedLinear,
    NormalizedPolynomial,
    ScaledCauchy,
    ScaledGaussian,
    ShiftedCosine,
    median_distance,
)
from .views import OnColumns, by_columns, reads_columns

KernelPreset: TypeAlias = Literal["scaled", "rich", "paper", "graph", "precomputed"]
KernelsLike: TypeAlias = KernelPreset | Kernel | KernelFunction | Sequence[Kernel | KernelFunction]
"""What users pass as kernels: a word, one kernel, or a list; functions count as kernels."""
BUILT_IN_KERNELS = {
    kernel.__name__: kernel
    for kernel in (
        Cauchy,
        FittedGraphGaussian,
        Gaussian,
        GraphGaussian,
        NormalizedLinear,
        NormalizedPolynomial,
        OnColumns,
        ScaledCauchy,
        ScaledGaussian,
        ShiftedCosine,
        SpectrumKernel,
    )
}
"""The kernels that a model file can hold, by name."""
_PAPER_SIGMAS = tuple(2.0**k for k in (-7, -5, -3, -1, 0, 1, 3, 5, 7))
# Narrower Gaussians memorize rows, wider ones repeat the linear and polynomial kernels beside them. On six data sets
# this range stays within .01 of the best of nine other ranges and single bandwidths, in precision at 10.
_SCALED_FACTORS = (2**-1.5, 2**-1.0, 2**-0.5, 1.0)
# Short scales and high powers separate classes where a Gaussian is flat: beside the Gaussians they gain .004 to .009 of
# precision at 10 with squared loss, on MNIST, CIFAR-10 and Letter.
_CAUCHY_FACTOR = 0.5
_COSINE_POWERS = (4, 8, 16)


def paper_kernels() -> list[Kernel]:
    """Return the eleven kernels of the paper's experiments; their bandwidths are absolute."""
    return [NormalizedLinear(), NormalizedPolynomial(degree=2, bias=1.0), *map(Gaussian, _PAPER_SIGMAS)]


def scaled_kernels() -> list[Kernel]:
    """Return the paper's families with bandwidths that follow the median distance between training rows."""
    return [
        NormalizedLinear(),
        NormalizedPolynomial(degree=2, bias=1.0),
        *map(ScaledGaussian, _SCALED_FACTORS),
    ]


def rich_kernels() -> list[Kernel]:
    """Return eight kernels for a mixture that is learned once for all bits; scales follow the median distance."""
    return [
        *map(ScaledGaussian, _SCALED_FACTORS),
        ScaledCauchy(_CAUCHY_FACTOR),
        *map(ShiftedCosine, _COSINE_POWERS),
    ]


def graph_kernels() -> list[Kernel]:
    """Return the kernel that learns most from unlabeled rows, with its default settings."""
    return [GraphGaussian()]


_PRESETS: dict[str, Callable[[], list[Kernel]]] = {
    "scaled": scaled_kernels,
    "rich": rich_kernels,
    "paper": paper_kernels,
    "graph": graph_kernels,
}


def is_precomputed(kernels: object) -> bool:
    """Tell whether the setting says that X holds kernel values."""
    return isinstance(kernels, str) and kernels == "precomputed"


def resolve_kernels(kernels: KernelsLike) -> list[Kernel]:
    """Return the kernels that a word or a list stands for; not for "precomputed"."""
    if isinstance(kernels, str):
        if kernels in _PRESETS:
            return _PRESETS[kernels]()
        raise InputError(
            "{parameter} is {value!r}",
            "choose one of {words}",
            "In Python, this can also be a list of Kernel objects.",
            parameter="kernels",
            value=kernels,
            words=", ".join(map(repr, get_args(KernelPreset))),
        )
    if isinstance(kernels, Kernel) or callable(kernels):
        kernels = [kernels]
    if not isinstance(kernels, Sequence) or len(kernels) == 0:
        raise ValueError(
            f"kernels is {kernels!r}; give a word such as 'scaled' or 'paper', or a list of at least one kernel."
        )
    return [_as_kernel(kernel, position) for position, kernel in enumerate(kernels)]


def _as_kernel(kernel: object, position: int) -> Kernel:
    if isinstance(kernel, Kernel):
        return kernel
    if callable(kernel) and not isinstance(kernel, type):
        return CallableKernel(kernel)
    hint = " Create the kernel: write its name with parentheses." if isinstance(kernel, type) else ""
    raise ValueError(
        f"kernels[{position}] is {kernel!r}, which is neither a kernel object nor a function of two samples.{hint}"
    )


def fit_kernels(
    kernels: Sequence[Kernel], samples: np.ndarray, sample_weight: np.ndarray | None = None
) -> list[Kernel]:
    """Fit each kernel on all rows; those measured in median distances of the same columns share one median."""
    if reads_columns(kernels):
        fitted = list(kernels)
        for group in by_columns(kernels):
            inner = fit_kernels(group.kernels, group.read(samples), sample_weight)
            for position, kernel in zip(group.positions, inner, strict=True):
                before = kernels[position]
                fitted[position] = before.around(kernel) if isinstance(before, OnColumns) else kernel
        return fitted
    median = cache(partial(median_distance, samples, sample_weight))
    return [
        kernel.fit(samples, sample_weight, median())
        if isinstance(kernel, MedianKernel)
        else kernel.fit(samples, sample_weight)
        for kernel in kernels
    ]
