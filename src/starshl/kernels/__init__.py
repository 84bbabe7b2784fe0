"""Mercer kernels: samples in, Gram matrices out."""

from .bank import GramBank, compute_grams
from .banks import Bank, MemoryPlan, make_bank
from .base import Kernel
from .callables import CallableKernel
from .choice import (
    KernelsLike,
    check_gram,
    fit_kernels,
    is_built_in,
    is_precomputed,
    paper_kernels,
    resolve_kernels,
    rich_kernels,
    scaled_kernels,
)
from .column_bank import ColumnBank
from .columns import OnColumns, balance_columns, view_scales
from .distances import DistanceTiles
from .expansion import expand_grams, expand_mixture, expand_over_rows, kernel_values
from .graph import FittedGraphGaussian, GraphGaussian
from .landmarks import LandmarkMap
from .mix import KernelMix
from .mixture import MixtureTo
from .rows import distinct_rows
from .spread_bank import PART_ROWS, SpreadBank
from .strings import SpectrumKernel
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
from .views import ViewsLike, check_views, describe_views, kernels_of_views, view_columns, view_shares

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
    "BUILT_IN_KERNELS",
    "PART_ROWS",
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
