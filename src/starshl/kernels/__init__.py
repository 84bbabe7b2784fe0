"""Mercer kernels: samples in, Gram matrices out."""

from .bank import GramBank, compute_grams
from .banks import MemoryPlan, make_bank
from .base import Kernel
from .callables import CallableKernel
from .choice import (
    KernelsLike,
    check_gram,
    fit_kernels,
    is_built_in,
    paper_kernels,
    resolve_kernels,
    rich_kernels,
    scaled_kernels,
)
from .distances import DistanceTiles
from .expansion import expand_grams, expand_mixture, expand_over_rows
from .graph import FittedGraphGaussian, GraphGaussian
from .landmarks import LandmarkMap
from .mix import KernelMix
from .mixture import MixtureTo
from .rows import distinct_rows
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

BUILT_IN_KERNELS = {
    kernel.__name__: kernel
    for kernel in (
        Cauchy,
        FittedGraphGaussian,
        Gaussian,
        GraphGaussian,
        NormalizedLinear,
        NormalizedPolynomial,
        ScaledCauchy,
        ScaledGaussian,
        ShiftedCosine,
        SpectrumKernel,
    )
}

__all__ = [
    "BUILT_IN_KERNELS",
    "CallableKernel",
    "Cauchy",
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
    "ScaledCauchy",
    "ScaledGaussian",
    "ShiftedCosine",
    "SpectrumKernel",
    "VectorBank",
    "check_gram",
    "compute_grams",
    "distinct_rows",
    "expand_grams",
    "expand_mixture",
    "expand_over_rows",
    "fit_kernels",
    "is_built_in",
    "make_bank",
    "paper_kernels",
    "resolve_kernels",
    "rich_kernels",
    "scaled_kernels",
]
