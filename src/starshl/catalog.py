"""Every hashing method by name: the one place where a string becomes a class."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import numpy as np

from .base import BaseHasher
from .bundle import read_bundle
from .exceptions import BundleFormatError
from .facts import Facts
from .fit_records import check_record

__all__ = [
    "METHODS",
    "WRAPPERS",
    "Configuration",
    "configurations",
    "get_class",
    "load",
    "pack_inner",
    "unpack_inner",
]

METHODS = {
    "StarSHL": "starshl.models.star_shl",
    "StarRidge": "starshl.models.star_ridge",
    "LSHash": "starshl.baselines.lsh",
    "ITQ": "starshl.baselines.itq",
    "SDH": "starshl.baselines.sdh",
    "CodewordSVM": "starshl.baselines.codeword_svm",
    "SSH": "starshl.baselines.ssh",
    "SignBinarizer": "starshl.baselines.sign_binarizer",
    "PCAHash": "starshl.baselines.pca_hash",
    "RandomRotation": "starshl.baselines.random_rotation",
    "RaBitQ": "starshl.baselines.rabitq",
    "KernelLSH": "starshl.baselines.kernel_lsh",
    "SphericalHash": "starshl.baselines.spherical",
    "KMeansHash": "starshl.baselines.kmeans_hash",
    "COSDISH": "starshl.baselines.cosdish",
    "SpectralHash": "starshl.baselines.spectral",
    "AnchorGraphHash": "starshl.baselines.anchor_graph",
    "BRE": "starshl.baselines.bre",
    "KSH": "starshl.baselines.ksh",
    "SelfTaughtHash": "starshl.baselines.sth",
    "SemanticHashing": "starshl.baselines.semantic",
    "MetricLSH": "starshl.baselines.metric_lsh",
    "LDAHash": "starshl.baselines.lda_hash",
    "MLH": "starshl.baselines.mlh",
    "ParamSensitiveHash": "starshl.baselines.psh",
    "BoostSSC": "starshl.baselines.boost_ssc",
    "CGHash": "starshl.baselines.cg_hash",
    "ForgivingHash": "starshl.baselines.forgiving",
    "LAMP": "starshl.baselines.lamp",
}

# Hashers that hold another one: a file may name them, but they are not methods to choose from.
WRAPPERS = {"HybridHasher": "starshl.hybrid.hasher", "PreparedHasher": "starshl.features.prepared"}

# Files that hold something else than a hasher: what it is, and who reads it.
_OTHER_KINDS = {"NeighborGraph": ("a neighbor graph", "NeighborGraph"), "Extractor": ("an extractor", "Extractor")}


@dataclass(frozen=True, slots=True)
class Configuration:
    """A method in its default setting, or one of its variants."""

    name: str
    hasher_class: type[BaseHasher]
    params: dict[str, Any]
    facts: Facts

    @property
    def method(self) -> str:
        """The name of the class."""
        return self.hasher_class.__name__

    @property
    def title(self) -> str:
        """The name, with the note that follows it in a table."""
        return f"{self.name}, {self.facts.note}" if self.facts.note else self.name

    def make(self, n_bits: int, *, seed: int = 0, **settings: Any) -> BaseHasher:
        """Return a hasher that is not fitted, with further settings; a method that draws at random gets the seed."""
        hasher = self.hasher_class(n_bits=n_bits, **settings, **self.params)
        return hasher.set_params(random_state=seed) if "random_state" in hasher.get_params() else hasher


def get_class(name: str) -> type[BaseHasher]:
    """Return the class of a method; no other name is ever imported."""
    homes = METHODS | WRAPPERS
    if isinstance(name, str) and name in homes:
        return getattr(import_module(homes[name]), name)
    names = [*METHODS, "HybridHasher"]
    lower = {known.lower(): known for known in names}
    nearest = [lower[match] for match in get_close_matches(str(name).lower(), lower, n=3, cutoff=0.5)]
    hint = f" Did you mean {' or '.join(nearest)}?" if nearest else ""
    raise ValueError(f"There is no method {name!r}; known are {', '.join(names)}.{hint}")


def configurations() -> Iterator[Configuration]:
    """Yield every method in its default setting, each followed by its variants."""
    for name in METHODS:
        hasher_class = get_class(name)
        yield Configuration(name, hasher_class, {}, hasher_class.facts)
        for variant in hasher_class.variants:
            yield Configuration(variant.name, hasher_class, variant.params, variant.facts(hasher_class.facts))


def load(
    path: str | os.PathLike[str], kernels: Sequence[Any] | None = None, steps: Sequence[Any] | None = None
) -> BaseHasher:
    """Read a hasher written by ``save``.

    Parameters
    ----------
    path : path of the model file
    kernels : list, default=None
        The kernels of a StarSHL that was fitted with callables, in the same order: a model file holds no
        code, so they are not in it.
    steps : list, default=None
        For a PreparedHasher whose transformers the file cannot hold: one entry per step, the fitted transformers at
        their positions and None for the steps of :mod:`starshl.features`, which are in the file.
    """
    header, arrays = read_bundle(path)
    if "codebook" in header and "method" not in header:
        raise BundleFormatError(f"{os.fspath(path)!r} holds a codebook, not a hasher. Read it with Codebook.load.")
    kind = header.get("kind")
    if isinstance(kind, str) and kind in _OTHER_KINDS and "method" not in header:
        what, reader = _OTHER_KINDS[kind]
        raise BundleFormatError(f"{os.fspath(path)!r} holds {what}, not a hasher. Read it with {reader}.load.")
    try:
        hasher = get_class(header["method"])._unpack(header, arrays, kernels=kernels, steps=steps)
    except ValueError:
        raise
    except Exception as error:  # a header that anyone may have written can lack or misplace anything
        raise BundleFormatError(
            f"{os.fspath(path)!r} is a starshl file, but not a complete model ({error!r}). "
            "Save the model again or fetch a fresh copy."
        ) from error
    record = check_record(header.get("fit_record"))
    if record is not None:
        hasher.fit_record_ = record
    return hasher


def pack_inner(hasher: BaseHasher, prefix: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the header entry of a fitted hasher that another one holds, and its arrays under prefixed names."""
    header, arrays = hasher._pack()
    return {"method": type(hasher).__name__, **header}, {prefix + name: array for name, array in arrays.items()}


def unpack_inner(
    header: dict[str, Any], arrays: dict[str, np.ndarray], prefix: str, kernels: Sequence[Any] | None
) -> BaseHasher:
    """Return the hasher that :func:`pack_inner` was given; ``arrays`` may hold those of others, too."""
    own = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
    return get_class(header["method"])._unpack(header, own, kernels=kernels)
