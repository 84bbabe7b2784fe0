"""Mercer kernels: samples in, Gram matrices out."""

from __future__ import annotations

from .banks import PART_ROWS, Bank, ColumnBank, GramBank, MemoryPlan, SpreadBank, compute_grams, make_bank
from .choice import (
    KernelsLike,
    fit_kernels,
    is_precomputed,
    paper_kernels,
    resolve_kernels,
    rich_kernels,
    scaled_kernels,
)
from .distances import DistanceTiles, distinct_rows
from .expansion import expand_grams, expand_mixture, expand_over_rows, kernel_values
from .graph_gaussian import FittedGraphGaussian, GraphGaussian
from .kernel import CallableKernel, Kernel, SpectrumKernel, check_gram, is_built_in
from .landmarks import LandmarkMap
from .mixture import KernelMix, MixtureTo
from .vector_bank import VectorBank
from .vectors import (
    Cauchy,
    Gaussian,
    NormalizedLinear,
    NormalizedPolynomial,
    ScaledCauchy,
    ScaledGaussian,
    ShiftedCosine,
)
from .views import (
    OnColumns,
    ViewsLike,
    balance_columns,
    check_views,
    describe_views,
    kernels_of_views,
    view_columns,
    view_scales,
    view_shares,
)

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

__all__ = [
    "Bank",
    "CallableKernel",
    "Cauchy",
    "ColumnBank",
    "DistanceTiles",
    "FittedGraphGaussian",
    "Gaussian",
    "GramBank",
    "GraphGaussian",
    "Kernel",
    "KernelMix",
    "KernelsLike",
    "LandmarkMap",
    "MemoryPlan",
    "MixtureTo",
    "NormalizedLinear",
    "NormalizedPolynomial",
    "OnColumns",
    "PART_ROWS",
    "ScaledCauchy",
    "ScaledGaussian",
    "ShiftedCosine",
    "SpectrumKernel",
    "SpreadBank",
    "VectorBank",
    "ViewsLike",
    "balance_columns",
    "check_gram",
    "check_views",
    "compute_grams",
    "describe_views",
    "distinct_rows",
    "expand_grams",
    "expand_mixture",
    "expand_over_rows",
    "fit_kernels",
    "is_built_in",
    "is_precomputed",
    "kernel_values",
    "kernels_of_views",
    "make_bank",
    "paper_kernels",
    "resolve_kernels",
    "rich_kernels",
    "scaled_kernels",
    "view_columns",
    "view_scales",
    "view_shares",
]
