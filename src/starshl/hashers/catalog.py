"""Every hashing method by name: the one place where a string becomes a class."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import numpy as np

from .._common.bundle import read_bundle
from ..exceptions import BundleFormatError
from .base import BaseHasher
from .facts import Facts
from .fit_record import check_record

METHODS = {
    "StarSHL": "starshl.hashers.star.star_shl",
    "StarRidge": "starshl.hashers.star.star_ridge",
    "LSHash": "starshl.hashers.baselines.lsh",
    "ITQ": "starshl.hashers.baselines.itq",
    "SDH": "starshl.hashers.baselines.sdh",
    "CodewordSVM": "starshl.hashers.baselines.codeword_svm",
    "SSH": "starshl.hashers.baselines.ssh",
    "SignBinarizer": "starshl.hashers.baselines.sign_binarizer",
    "PCAHash": "starshl.hashers.baselines.pca_hash",
    "RandomRotation": "starshl.hashers.baselines.itq",
    "RaBitQ": "starshl.hashers.baselines.rabitq",
    "KernelLSH": "starshl.hashers.baselines.kernel_lsh",
    "SphericalHash": "starshl.hashers.baselines.spherical",
    "KMeansHash": "starshl.hashers.baselines.kmeans_hash",
    "COSDISH": "starshl.hashers.baselines.cosdish",
    "SpectralHash": "starshl.hashers.baselines.spectral",
    "AnchorGraphHash": "starshl.hashers.baselines.anchor_graph",
    "BRE": "starshl.hashers.baselines.bre",
    "KSH": "starshl.hashers.baselines.ksh",
    "SelfTaughtHash": "starshl.hashers.baselines.sth",
    "SemanticHashing": "starshl.hashers.baselines.semantic",
    "MetricLSH": "starshl.hashers.baselines.metric_lsh",
    "LDAHash": "starshl.hashers.baselines.lda_hash",
    "MLH": "starshl.hashers.baselines.mlh",
    "ParamSensitiveHash": "starshl.hashers.baselines.psh",
    "BoostSSC": "starshl.hashers.baselines.boost_ssc",
    "CGHash": "starshl.hashers.baselines.cg_hash",
    "ForgivingHash": "starshl.hashers.baselines.forgiving",
    "LAMP": "starshl.hashers.baselines.lamp",
}
# Hashers that hold another one, or a classifier: a file may name them, but they are not methods to choose from.
WRAPPERS = {
    "ClassifierHasher": "starshl.hashers.classifier",
    "HybridHasher": "starshl.hashers.hybrid",
    "PreparedHasher": "starshl.hashers.prepared",
}
# Files that hold something else than a hasher: what it is, and who reads it.
_OTHER_KINDS = {"NeighborGraph": ("a neighbor graph", "NeighborGraph"), "Embedder": ("an embedder", "Embedder")}


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
        their positions and None for the steps of :mod:`starshl.data.features`, which are in the file.
    """
    header, arrays = read_bundle(path)
    if "codebook" in header and "method" not in header:
        raise _other_kind(path, "a codebook", "Codebook")
    kind = header.get("kind")
    if isinstance(kind, str) and kind in _OTHER_KINDS and "method" not in header:
        raise _other_kind(path, *_OTHER_KINDS[kind])
    try:
        hasher = get_class(header["method"]).unpack(header, arrays, kernels=kernels, steps=steps)
    except ValueError:
        raise
    except Exception as error:  # a header that anyone may have written can lack or misplace anything
        raise BundleFormatError.damaged(f"it does not hold a complete model ({error!r})", path) from error
    record = check_record(header.get("fit_record"))
    if record is not None:
        hasher.fit_record_ = record
    return hasher


def _other_kind(path: str | os.PathLike[str], what: str, reader: str) -> BundleFormatError:
    file = repr(os.fspath(path))
    return BundleFormatError(f"{{file}} holds {what}, not a hasher", advice=f"Read it with {reader}.load.", file=file)


def pack_inner(hasher: BaseHasher, prefix: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the header entry of a fitted hasher that another one holds, and its arrays under prefixed names."""
    header, arrays = hasher.pack()
    return {"method": type(hasher).__name__, **header}, {prefix + name: array for name, array in arrays.items()}


def unpack_inner(
    header: dict[str, Any], arrays: dict[str, np.ndarray], prefix: str, kernels: Sequence[Any] | None
) -> BaseHasher:
    """Return the hasher that :func:`pack_inner` was given; ``arrays`` may hold those of others, too."""
    own = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
    return get_class(header["method"]).unpack(header, own, kernels=kernels)
