"""Mercer kernels: samples in, Gram matrices out."""

from .bank import GramBank, compute_grams, expand_over_rows
from .base import Kernel
from .callables import CallableKernel
from .choice import check_gram, paper_kernels, resolve_kernels, scaled_kernels
from .graph import FittedGraphGaussian, GraphGaussian
from .strings import SpectrumKernel
from .vectors import Gaussian, NormalizedLinear, NormalizedPolynomial, ScaledGaussian

__all__ = [
    "CallableKernel",
    "FittedGraphGaussian",
    "Gaussian",
    "GramBank",
    "GraphGaussian",
    "Kernel",
    "NormalizedLinear",
    "NormalizedPolynomial",
    "ScaledGaussian",
    "SpectrumKernel",
    "check_gram",
    "compute_grams",
    "expand_over_rows",
    "paper_kernels",
    "resolve_kernels",
    "scaled_kernels",
]
