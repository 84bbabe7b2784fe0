"""Mercer kernels: samples in, Gram matrices out."""
