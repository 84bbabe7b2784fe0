"""Mercer kernels: samples in, Gram matrices out."""

from __future__ import annotations

from .choice import paper_kernels, rich_kernels, scaled_kernels
from .graph_gaussian import GraphGaussian
from .kernel import CallableKernel, Kernel, SpectrumKernel
from .vectors import (
    Cauchy,
    Gaussian,
    NormalizedLinear,
    NormalizedPolynomial,
    ScaledCauchy,
    ScaledGaussian,
    ShiftedCosine,
)
from .views import OnColumns

__all__ = [
    "CallableKernel",
    "Cauchy",
    "Gaussian",
    "GraphGaussian",
    "Kernel",
    "NormalizedLinear",
    "NormalizedPolynomial",
    "OnColumns",
    "ScaledCauchy",
    "ScaledGaussian",
    "ShiftedCosine",
    "SpectrumKernel",
    "paper_kernels",
    "rich_kernels",
    "scaled_kernels",
]
