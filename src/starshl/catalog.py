"""Every hashing method by name: the one place where a string becomes a class."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib import import_module

from .base import BaseHasher
from .bundle import read_bundle
from .exceptions import BundleFormatError

__all__ = ["METHODS", "Method", "get_class", "load"]


@dataclass(frozen=True, slots=True)
class Method:
    """One line of the catalog."""

    class_name: str
    module: str
    paper: str
    year: int
    supervision: str
    cost: str
    needs: str = "vectors"


METHODS = (
    Method(
        "StarSHL",
        "starshl.models.star_shl",
        "Huang, Georgiopoulos, Anagnostopoulos: Hash Function Learning via Codewords",
        2015,
        "labels, partial labels or none",
        "sweeps x n_bits x SVM(n)",
        "vectors, kernels on any samples, or precomputed kernels",
    ),
    Method(
        "LSHash",
        "starshl.baselines.lsh",
        "Charikar: Similarity Estimation Techniques from Rounding Algorithms",
        2002,
        "none",
        "features x n_bits",
    ),
)


def get_class(class_name: str) -> type[BaseHasher]:
    """Return the class of a method of the catalog; no other name is ever imported."""
    for method in METHODS:
        if method.class_name == class_name:
            return getattr(import_module(method.module), class_name)
    known = ", ".join(method.class_name for method in METHODS)
    raise ValueError(f"There is no method {class_name!r}; known are {known}.")


def load(path: str | os.PathLike, kernels: list | None = None) -> BaseHasher:
    """Read a hasher written by ``save``.

    Parameters
    ----------
    path : path of the model file
    kernels : list, default=None
        The kernels of a StarSHL that was fitted with callables, in the same order: a model file holds no
        code, so they are not in it.
    """
    header, arrays = read_bundle(path)
    try:
        hasher_class = get_class(header["method"])
        return hasher_class._unpack(header, arrays, kernels=kernels)
    except ValueError:
        raise
    except Exception as error:  # a header that anyone may have written can lack or misplace anything
        raise BundleFormatError(
            f"{os.fspath(path)!r} is a starshl file, but not a complete model ({error!r}). "
            "Save the model again or fetch a fresh copy."
        ) from error
