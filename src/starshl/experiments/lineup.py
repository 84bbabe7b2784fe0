"""Who takes part: every row of every table, with the settings it runs under."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..catalog import get_class
from ..kernels import GraphGaussian
from . import references

__all__ = ["CONTESTANTS", "ROLES", "Contestant", "Sizes", "contestant"]

ROLES = ("*SHL", "supervised", "unsupervised", "partly labeled", "yardstick")

_LARGEST_KERNEL_RIDGE = 10_000
_ANCHORS_BEYOND = 5_000


@dataclass(frozen=True, slots=True)
class Sizes:
    """What a setting may depend on."""

    n_train: int
    n_classes: int


@dataclass(frozen=True, slots=True)
class Contestant:
    """One row of a table.

    Parameters
    ----------
    key : str
        The name on the command line.
    title : str
        The name in records, tables and charts.
    role : a word of ``ROLES``
    method : str
        A class of the catalog, or KMeansCodes; empty for what is no hasher.
    params : dict
        Settings beside n_bits and seed. A value that is a function is called with the :class:`Sizes`.
    preset : str
        A class method that makes the hasher instead of the class itself.
    make : callable of the seed
        Makes a classifier; only without ``method``.
    fit_on : str
        See :func:`starshl.evaluation.run`.
    start : str
        Contestants that name the same start get the same seed, hence the same first codewords.
    even_bits : bool
        The method comes in even lengths; at an odd one its last bit is dropped.
    note : str
        What a reader of the table must know.
    """

    key: str
    title: str
    role: str
    method: str = ""
    params: dict[str, Any] = field(default_factory=dict)
    preset: str = ""
    make: Callable[[int], Any] | None = None
    fit_on: str = "train"
    start: str = ""
    even_bits: bool = False
    note: str = ""

    @property
    def kind(self) -> str:
        """``"hasher"``, ``"classifier"`` or ``"search"`` (of the rows themselves)."""
        if self.method:
            return "hasher"
        return "classifier" if self.make else "search"

    def settings(self, sizes: Sizes) -> dict[str, Any]:
        """Return the settings for data of these sizes."""
        return {name: value(sizes) if callable(value) else value for name, value in self.params.items()}

    def build(self, n_bits: int, seed: int, sizes: Sizes) -> Any:
        """Return the hasher, not fitted."""
        settings = self.settings(sizes)
        if self.method == "KMeansCodes":
            return references.KMeansCodes(n_bits, random_state=seed, **settings)
        found = get_class(self.method)
        make = getattr(found, self.preset) if self.preset else found
        if "random_state" in found().get_params():
            settings["random_state"] = seed
        if self.even_bits and n_bits % 2:
            return references.FirstBits(make(n_bits + 1, **settings), n_bits)
        return make(n_bits, **settings)


def all_rows_or_anchors(sizes: Sizes) -> int | None:
    """Return None, all rows, up to 10,000 of them and a number of anchors beyond."""
    return None if sizes.n_train <= _LARGEST_KERNEL_RIDGE else _ANCHORS_BEYOND


def one_a_class(sizes: Sizes) -> int:
    """Return the number of classes."""
    return sizes.n_classes


_GRAPH = {"kernels": [GraphGaussian()]}
_HADAMARD = {"variant": "hadamard", "n_anchors": all_rows_or_anchors}
_AGH2_NOTE = "At an odd length one bit more is learned and the last one dropped."

_ALL = (
    Contestant("starshl-paper", "*SHL, paper settings", "*SHL", "StarSHL", preset="paper", start="*SHL"),
    Contestant("starshl", "*SHL, defaults", "*SHL", "StarSHL", start="*SHL"),
    Contestant(
        *("ksh", "KSH", "supervised", "KSH"),
        params={"n_labeled": 1000},
        note="Learns from 1,000 labels, as its authors recommend.",
    ),
    Contestant(
        *("bre", "BRE", "supervised", "BRE"),
        params={"variant": "supervised"},
        note="Learns from 1,000 labeled rows, as its authors recommend.",
    ),
    Contestant("1-agh", "1-AGH", "unsupervised", "AnchorGraphHash"),
    Contestant(
        *("2-agh", "2-AGH", "unsupervised", "AnchorGraphHash"),
        params={"variant": "two_layers"},
        even_bits=True,
        note=_AGH2_NOTE,
    ),
    Contestant("sph", "SPH", "unsupervised", "SpectralHash"),
    Contestant("lsh", "LSH", "unsupervised", "LSHash"),
    Contestant(
        *("ksh-all", "KSH, all labels", "supervised", "KSH"),
        params={"n_labeled": None},
        note="KSH with the labels that *SHL gets; not in the paper.",
    ),
    Contestant(
        *("hc-sdh", "HC-SDH, all rows", "supervised", "SDH"),
        params=_HADAMARD,
        note="Fixed Hadamard codewords and one kernel ridge regression; not in the paper.",
    ),
    Contestant(
        *("codeword-svm", "codeword SVM", "supervised", "CodewordSVM"),
        note="Fixed codewords and one Gaussian SVM a bit: *SHL without its learning; not in the paper.",
    ),
    Contestant(
        *("svc", "one-vs-one SVC", "yardstick"),
        make=references.one_vs_one_svc,
        fit_on="labeled",
        note="Its accuracy is what P@10 of codes has to be compared with.",
    ),
    Contestant("float", "float search", "yardstick", fit_on="none", note="Euclidean search of the rows themselves."),
    Contestant(
        *("starshl-paper-transductive", "*SHL transductive, paper settings", "*SHL", "StarSHL"),
        preset="paper",
        fit_on="train+query",
        start="*SHL",
    ),
    Contestant(
        "starshl-transductive", "*SHL transductive, defaults", "*SHL", "StarSHL", fit_on="train+query", start="*SHL"
    ),
    Contestant("starshl-graph", "*SHL, graph kernel", "*SHL", "StarSHL", params=_GRAPH, start="*SHL"),
    Contestant("starshl-labeled", "*SHL, labeled rows only", "*SHL", "StarSHL", fit_on="labeled", start="*SHL"),
    Contestant("ssh", "SSH", "partly labeled", "SSH", note="Accuracy by the nearest labeled code."),
    Contestant(
        *("hc-sdh-labeled", "HC-SDH, labeled rows only", "supervised", "SDH"),
        params=_HADAMARD,
        fit_on="labeled",
        note="Accuracy by the nearest labeled code.",
    ),
    Contestant("label-spreading", "label spreading", "yardstick", make=references.label_spreading, fit_on="train"),
    Contestant("self-training", "self-training SVC", "yardstick", make=references.self_training_svc, fit_on="train"),
    Contestant("starshl-clusters", "*SHL", "*SHL", "StarSHL", params={"n_codewords": one_a_class}, start="*SHL"),
    Contestant("itq", "ITQ", "unsupervised", "ITQ"),
    Contestant(
        *("k-means", "k-means start", "unsupervised", "KMeansCodes"),
        params={"n_clusters": one_a_class},
        note="The clusters that *SHL starts from, each with a codeword.",
    ),
)

CONTESTANTS: dict[str, Contestant] = {entry.key: entry for entry in _ALL}


def contestant(key: str) -> Contestant:
    """Return a contestant by its name on the command line, or say which names come nearest.

    Examples
    --------
    >>> contestant("sph").title
    'SPH'
    """
    if (wanted := str(key).strip().lower()) in CONTESTANTS:
        return CONTESTANTS[wanted]
    near = difflib.get_close_matches(wanted, CONTESTANTS, n=3, cutoff=0.4)
    advice = f"Nearest are {', '.join(near)}." if near else f"Known are {', '.join(CONTESTANTS)}."
    raise ValueError(f"There is no method {key!r} to compare. {advice}")
