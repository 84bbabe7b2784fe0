"""The figures by name: which protocols, which contestants, which code lengths."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace

from ..evaluation import Protocol, protocol
from .lineup import CONTESTANTS

__all__ = ["FIGURES", "Figure", "figure", "figures_named"]

_RETRIEVAL = (
    *("starshl-paper", "starshl", "ksh", "bre", "1-agh", "2-agh", "sph", "lsh"),
    *("ksh-all", "hc-sdh", "codeword-svm", "svc", "float"),
)
_TRANSDUCTIVE = ("starshl-paper", "starshl-paper-transductive", "starshl", "starshl-transductive", "svc")
_LABELS = (
    *("starshl", "starshl-graph", "starshl-labeled", "ssh", "hc-sdh-labeled"),
    *("label-spreading", "self-training", "svc"),
)
_UNSUPERVISED = ("starshl-clusters", "k-means", "itq", "1-agh", "2-agh", "sph", "lsh")
_FEW = ("digits", "pendigits", "usps", "mnist")

_QUICK_ROWS = {"n_train": 300, "n_query": 300, "n_runs": 2}


@dataclass(frozen=True, slots=True)
class Figure:
    """What one name on the command line runs.

    Parameters
    ----------
    name, title : str
    protocols : tuple of Protocol
    contestants : tuple of str
        Keys of ``CONTESTANTS``.
    bits : tuple of int or None
        None: the code lengths of each protocol.
    n_runs : int or None
        None: as many as each protocol has.
    quick_protocols : tuple of Protocol
    quick_bits : tuple of int
    """

    name: str
    title: str
    protocols: tuple[Protocol, ...]
    contestants: tuple[str, ...]
    bits: tuple[int, ...] | None = None
    n_runs: int | None = None
    quick_protocols: tuple[Protocol, ...] = ()
    quick_bits: tuple[int, ...] = (5, 15, 45)

    def quick(self) -> Figure:
        """Return the same figure on a few hundred rows, two runs and three lengths, or a single one if it has one."""
        return replace(self, protocols=self.quick_protocols, bits=self.quick_bits, n_runs=self.n_runs or 2)


def _retrieval(dataset: str, name: str) -> Figure:
    full = protocol(name)
    small = (full.reduced(**_QUICK_ROWS),)
    return Figure(dataset, f"retrieval on {dataset}", (full,), _RETRIEVAL, quick_protocols=small)


def _pictures() -> Figure:
    full = protocol("paper-cifar10")
    hashers = tuple(key for key in _RETRIEVAL if CONTESTANTS[key].kind == "hasher")
    small = (full.reduced(**_QUICK_ROWS),)
    return Figure("pictures", "retrieved pictures", (full,), hashers, (45,), 1, small, (45,))


def _transductive() -> Figure:
    full = tuple(protocol(f"transductive-{dataset}") for dataset in ("vowel", "letter"))
    title = "accuracy over code length, inductive and transductive"
    return Figure("transductive", title, full, _TRANSDUCTIVE, quick_protocols=full, quick_bits=(5, 10, 15))


def _labels() -> Figure:
    full = tuple(protocol(f"labels-{dataset}-{n}") for dataset in _FEW for n in (1, 5, 20, 100))
    small = tuple(protocol(f"labels-digits-{n}").reduced(**_QUICK_ROWS) for n in (1, 5))
    return Figure("labels", "label efficiency", full, _LABELS, quick_protocols=small, quick_bits=(32,))


def _unsupervised() -> Figure:
    full = tuple(protocol(f"unsupervised-{dataset}") for dataset in _FEW)
    small = (full[0].reduced(**_QUICK_ROWS),)
    return Figure("unsupervised", "codes without labels", full, _UNSUPERVISED, quick_protocols=small, quick_bits=(32,))


FIGURES: dict[str, Figure] = {
    entry.name: entry
    for entry in (
        *(_retrieval(name, f"paper-{name}") for name in ("pendigits", "usps", "mnist", "cifar10", "pascal07")),
        _pictures(),
        _transductive(),
        _labels(),
        _unsupervised(),
        _retrieval("digits", "retrieval-digits"),
    )
}


def figure(name: str) -> Figure:
    """Return a figure by name, or say which names come nearest.

    Examples
    --------
    >>> figure("transductive").protocols[0].n_runs
    20
    """
    if name in FIGURES:
        return FIGURES[name]
    known = [*FIGURES, "all"]
    near = difflib.get_close_matches(str(name).lower(), known, n=3, cutoff=0.4)
    advice = f"Nearest are {', '.join(near)}." if near else f"Known are {', '.join(known)}."
    raise ValueError(f"There is no figure {name!r}. {advice}")


def figures_named(names: list[str]) -> list[Figure]:
    """Return figures by name, each once; "all" is every one."""
    wanted = list(FIGURES) if "all" in names else names
    return [figure(name) for name in dict.fromkeys(wanted)]
