"""Every hashing method by name: the one place where a string becomes a class."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from .base import BaseHasher
from .bundle import read_bundle
from .exceptions import BundleFormatError

__all__ = ["METHODS", "SUPERVISION", "Method", "Variant", "configurations", "get_class", "load"]

SUPERVISION = {
    "none": "y is ignored",
    "labels": "every row must be labeled",
    "partial labels": "some rows must be labeled, the others may be",
    "optional labels": "labels of all, some or no rows",
}


@dataclass(frozen=True, slots=True)
class Variant:
    """A setting of a method that papers list as a method of its own; None is as in the method."""

    name: str
    params: dict[str, Any]
    supervision: str
    bits_multiple_of: int = 1
    max_bits: str | None = None


@dataclass(frozen=True, slots=True)
class Method:
    """One line of the catalog.

    Parameters
    ----------
    name : the class, as :func:`get_class` knows it
    module : where the class lives
    paper, year : what it comes from
    supervision : a word of ``SUPERVISION``, for the default parameters
    cost : of fitting
    needs : what ``fit`` takes
    max_bits : "any", or the name of the bound: "n_features", "rank", "n_anchors"
    bits_multiple_of : n_bits must be a multiple of it
    variants : settings compared as methods of their own
    """

    name: str
    module: str
    paper: str
    year: int
    supervision: str
    cost: str
    needs: str = "vectors"
    max_bits: str = "any"
    bits_multiple_of: int = 1
    variants: tuple[Variant, ...] = ()

    @property
    def configurations(self) -> tuple[Variant, ...]:
        """The default setting under the name of the method, then its variants."""
        return (Variant(self.name, {}, self.supervision, self.bits_multiple_of), *self.variants)


METHODS = (
    Method(
        "StarSHL",
        "starshl.models.star_shl",
        "Huang, Georgiopoulos, Anagnostopoulos: Hash Function Learning via Codewords",
        2015,
        "optional labels",
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
        variants=(Variant("LSHash bit sampling", {"variant": "bit_sampling"}, "none"),),
    ),
    Method(
        "ITQ",
        "starshl.baselines.itq",
        "Gong, Lazebnik: Iterative Quantization, a Procrustean Approach to Learning Binary Codes",
        2011,
        "none",
        "n x features^2 + n_iter x n x n_bits^2",
        max_bits="rank",
        variants=(Variant("ITQ CCA", {"embedding": "cca"}, "labels", max_bits="any"),),
    ),
    Method(
        "SDH",
        "starshl.baselines.sdh",
        "Shen, Shen, Liu, Shen: Supervised Discrete Hashing",
        2015,
        "labels",
        "n x anchors^2 + anchors^3",
        "vectors and labels",
        variants=(
            Variant("FSDH", {"variant": "fsdh"}, "labels"),
            Variant("HC-SDH", {"variant": "hadamard"}, "labels"),
        ),
    ),
    Method(
        "CodewordSVM",
        "starshl.baselines.codeword_svm",
        "Dietterich, Bakiri: Solving Multiclass Learning Problems via Error-Correcting Output Codes",
        1995,
        "labels",
        "n_bits x SVM(n)",
        "vectors and labels",
    ),
    Method(
        "SSH",
        "starshl.baselines.ssh",
        "Wang, Kumar, Chang: Semi-Supervised Hashing for Large-Scale Search",
        2012,
        "partial labels",
        "n x features^2 + n_bits x (labeled^2 x features + features^3)",
        "vectors, with labels of some rows or pairs",
        variants=(
            Variant("SSH orthogonal", {"mode": "orthogonal"}, "partial labels", max_bits="n_features"),
            Variant("SSH nonorthogonal", {"mode": "nonorthogonal"}, "partial labels", max_bits="n_features"),
        ),
    ),
    Method(
        "SignBinarizer",
        "starshl.baselines.sign_binarizer",
        "Common practice: binary quantization of embeddings, as in vector databases",
        2023,
        "none",
        "n x features",
        max_bits="n_features",
    ),
    Method(
        "PCAHash",
        "starshl.baselines.pca_hash",
        "Wang, Kumar, Chang: Semi-Supervised Hashing for Large-Scale Search (its unsupervised case)",
        2012,
        "none",
        "n x features x min(n, features)",
        max_bits="rank",
    ),
    Method(
        "RandomRotation",
        "starshl.baselines.random_rotation",
        "Gao, Long: RaBitQ, Quantizing High-Dimensional Vectors with a Theoretical Error Bound",
        2024,
        "none",
        "n x features x min(n, features)",
        max_bits="rank",
        variants=(Variant("RaBitQ", {"projection": "random"}, "none", max_bits="n_features"),),
    ),
    Method(
        "KernelLSH",
        "starshl.baselines.kernel_lsh",
        "Kulis, Grauman: Kernelized Locality-Sensitive Hashing for Scalable Image Search",
        2009,
        "none",
        "anchors^3 + anchors^2 x n_bits",
    ),
    Method(
        "SphericalHash",
        "starshl.baselines.spherical",
        "Heo, Lee, He, Chang, Yoon: Spherical Hashing",
        2012,
        "none",
        "iterations x n x n_bits x (features + n_bits)",
    ),
    Method(
        "KMeansHash",
        "starshl.baselines.kmeans_hash",
        "He, Wen, Sun: K-Means Hashing, an Affinity-Preserving Quantization Method",
        2013,
        "none",
        "n x features^2 + n_iter x n x features x 2^bits_per_subspace",
        max_bits="rank",
    ),
    Method(
        "COSDISH",
        "starshl.baselines.cosdish",
        "Kang, Li, Zhou: Column Sampling Based Discrete Supervised Hashing",
        2016,
        "labels",
        "rounds x n x n_bits x columns",
        "vectors and labels",
        variants=(Variant("COSDISH kernel", {"hash_function": "kernel"}, "labels"),),
    ),
    Method(
        "SpectralHash",
        "starshl.baselines.spectral",
        "Weiss, Torralba, Fergus: Spectral Hashing",
        2008,
        "none",
        "n x features x min(n, features)",
    ),
    Method(
        "AnchorGraphHash",
        "starshl.baselines.anchor_graph",
        "Liu, Wang, Kumar, Chang: Hashing with Graphs",
        2011,
        "none",
        "n x anchors x features + anchors^3",
        max_bits="n_anchors",
        variants=(Variant("AnchorGraphHash two layers", {"layers": 2}, "none", bits_multiple_of=2),),
    ),
    Method(
        "BRE",
        "starshl.baselines.bre",
        "Kulis, Darrell: Learning to Hash with Binary Reconstructive Embeddings",
        2009,
        "none",
        "sweeps x n_bits x (rows log rows + pairs), 1,000 rows and 50,000 pairs",
        variants=(Variant("BRE supervised", {"supervised": True}, "partial labels"),),
    ),
    Method(
        "KSH",
        "starshl.baselines.ksh",
        "Liu, Wang, Ji, Jiang, Chang: Supervised Hashing with Kernels",
        2012,
        "partial labels",
        "n x anchors x features + n_bits x (anchors^3 + steps x labeled x anchors)",
        "vectors and labels or pairs",
    ),
    Method(
        "SelfTaughtHash",
        "starshl.baselines.sth",
        "Zhang, Wang, Cai, Lu: Self-Taught Hashing for Fast Similarity Search",
        2010,
        "none",
        "n^2 x features + n_bits x linear SVM(n)",
        max_bits="n_samples - 1",
    ),
    Method(
        "SemanticHashing",
        "starshl.baselines.semantic",
        "Salakhutdinov, Hinton: Semantic Hashing",
        2009,
        "none",
        "epochs x n x network weights",
    ),
    Method(
        "MetricLSH",
        "starshl.baselines.metric_lsh",
        "Jain, Kulis, Grauman: Fast Image Search for Learned Metrics",
        2008,
        "partial labels",
        "sweeps x pairs x components^2",
        "vectors and labels or pairs",
    ),
    Method(
        "LDAHash",
        "starshl.baselines.lda_hash",
        "Strecha, Bronstein, Bronstein, Fua: LDAHash: Improved Matching with Smaller Descriptors",
        2012,
        "partial labels",
        "pairs x components^2 + components^3",
        "vectors and labels or pairs",
        max_bits="rank",
        variants=(Variant("DIF", {"method": "dif"}, "partial labels"),),
    ),
    Method(
        "MLH",
        "starshl.baselines.mlh",
        "Norouzi, Fleet: Minimal Loss Hashing for Compact Binary Codes",
        2011,
        "partial labels",
        "epochs x pairs x components x n_bits",
        "vectors and labels or pairs",
    ),
    Method(
        "ParamSensitiveHash",
        "starshl.baselines.psh",
        "Shakhnarovich, Viola, Darrell: Fast Pose Estimation with Parameter-Sensitive Hashing",
        2003,
        "partial labels",
        "features x (pairs + n)",
        "vectors and labels or pairs",
        max_bits="distinct thresholds",
    ),
    Method(
        "BoostSSC",
        "starshl.baselines.boost_ssc",
        "Shakhnarovich: Learning Task-Specific Similarity",
        2005,
        "partial labels",
        "n_bits x features x pairs",
        "vectors and labels or pairs",
        max_bits="distinct thresholds",
    ),
    Method(
        "CGHash",
        "starshl.baselines.cg_hash",
        "Li, Lin, Shen, van den Hengel, Dick: Learning Hash Functions Using Column Generation",
        2013,
        "partial labels",
        "n_bits x (L-BFGS + linear program over triplets)",
        "vectors and labels or triplets",
    ),
    Method(
        "ForgivingHash",
        "starshl.baselines.forgiving",
        "Baluja, Covell: Learning to Hash: Forgiving Hash Functions and Applications",
        2008,
        "partial labels",
        "pool x n_bits x rounds x rows x features drawn",
        "vectors and labels of groups",
    ),
    Method(
        "LAMP",
        "starshl.baselines.lamp",
        "Mu, Shen, Yan: Weakly-Supervised Hashing in Kernel Space",
        2010,
        "partial labels",
        "n_bits x convex steps x sweeps x rows x support",
        "vectors and labels or pairs",
    ),
)


def get_class(class_name: str) -> type[BaseHasher]:
    """Return the class of a method of the catalog; no other name is ever imported."""
    for method in METHODS:
        if method.name == class_name:
            return getattr(import_module(method.module), class_name)
    known = [method.name for method in METHODS]
    lower = {name.lower(): name for name in known}
    nearest = [lower[name] for name in get_close_matches(str(class_name).lower(), lower, n=3, cutoff=0.5)]
    hint = f" Did you mean {' or '.join(nearest)}?" if nearest else ""
    raise ValueError(f"There is no method {class_name!r}; known are {', '.join(known)}.{hint}")


def configurations() -> Iterator[tuple[Method, Variant]]:
    """Yield every method in its default setting and in each of its variants."""
    for method in METHODS:
        for variant in method.configurations:
            yield method, variant


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
