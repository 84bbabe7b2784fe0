"""The figures by name: which protocols, which of the compared methods, which code lengths."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, replace

from .compared_methods import COMPARED_METHODS, ComparedMethod
from .protocols import Protocol, protocol

_RETRIEVAL = (
    *("starshl-paper", "starshl", "ksh", "bre", "1-agh", "2-agh", "sph", "lsh"),
    *("starridge", "ksh-all", "hc-sdh", "codeword-svm", "svc", "float"),
)
_LISTS = (*(key for key in _RETRIEVAL if key != "svc"), "itq")
_TRANSDUCTIVE = (
    *("starshl-paper", "starshl-paper-transductive", "starshl", "starshl-transductive"),
    *("starridge", "starridge-transductive", "svc"),
)
_LABELS = (
    *("starshl", "starridge", "starshl-graph", "starshl-labeled", "starridge-labeled", "ssh", "hc-sdh-labeled"),
    *("label-spreading", "self-training", "svc"),
)
_UNSUPERVISED = (
    *("starshl-clusters", "starshl-graph-clusters", "starridge-clusters", "k-means"),
    *("itq", "1-agh", "2-agh", "sph", "lsh"),
)
_PARTLY_LABELED_DATA = ("digits", "pendigits", "usps", "mnist", "agnews")
_LISTED_DATA = (
    *("digits", "pendigits", "usps", "mnist", "cifar10", "pascal07", "letter", "agnews", "banking77"),
    *("pascal07_objects", "caltech101", "cifar10_color"),
)
# (data set, method): ITQ makes at most as many bits as there are features, and these two have 16.
_TOO_FEW_FEATURES = frozenset({("pendigits", "itq"), ("letter", "itq")})
_PRINTED_RETRIEVAL = ("pendigits", "usps", "mnist", "cifar10", "pascal07")
_QUICK_ROWS = {"n_train": 300, "n_query": 300, "n_runs": 2}


@dataclass(frozen=True, slots=True)
class Figure:
    """The runs behind one name on the command line.

    Parameters
    ----------
    name, title : str
    protocols : tuple of Protocol
    methods : tuple of str
        Keys of compared methods.
    bits : tuple of int or None
        None: the code lengths of each protocol.
    n_runs : int or None
        None: as many as each protocol has.
    quick_protocols : tuple of Protocol
    quick_bits : tuple of int
    number : int or None
        The number of the figure in the paper; None for our own studies.
    needs_codes : bool
        The figure shows codes, so summaries of its runs are not enough.
    impossible : frozenset of pairs (data set, method)
        Methods that cannot be run on a data set.
    """

    name: str
    title: str
    protocols: tuple[Protocol, ...]
    methods: tuple[str, ...]
    bits: tuple[int, ...] | None = None
    n_runs: int | None = None
    quick_protocols: tuple[Protocol, ...] = ()
    quick_bits: tuple[int, ...] = (5, 15, 45)
    number: int | None = None
    needs_codes: bool = False
    impossible: frozenset[tuple[str, str]] = frozenset()

    def quick(self) -> Figure:
        """Return the same figure on a few hundred rows, at three lengths and in two runs, or one if it has one."""
        return replace(self, protocols=self.quick_protocols, bits=self.quick_bits, n_runs=self.n_runs or 2)

    def cells(self, protocol: Protocol) -> Iterator[tuple[int, ComparedMethod, int | None]]:
        """Yield run, method and code length of every fit planned on a protocol, run by run."""
        for run in range(min(protocol.n_runs, self.n_runs or protocol.n_runs)):
            for chosen in map(COMPARED_METHODS.__getitem__, self.methods):
                if (protocol.dataset, chosen.key) in self.impossible:
                    continue
                lengths = (self.bits or protocol.bits) if chosen.kind == "hasher" else (None,)
                yield from ((run, chosen, n_bits) for n_bits in dict.fromkeys(lengths))


def _retrieval(dataset: str, name: str, number: int | None = None) -> Figure:
    full = protocol(name)
    small = (full.reduced(**_QUICK_ROWS),)
    return Figure(dataset, f"retrieval on {dataset}", (full,), _RETRIEVAL, quick_protocols=small, number=number)


def _pictures() -> Figure:
    full = protocol("paper-cifar10")
    hashers = tuple(key for key in _RETRIEVAL if COMPARED_METHODS[key].kind == "hasher")
    small = (full.reduced(**_QUICK_ROWS),)
    return Figure("pictures", "retrieved pictures", (full,), hashers, (45,), 1, small, (45,), 6, needs_codes=True)


def _transductive() -> Figure:
    full = tuple(protocol(f"transductive-{dataset}") for dataset in ("vowel", "letter"))
    title = "accuracy over code length, inductive and transductive"
    return Figure("transductive", title, full, _TRANSDUCTIVE, quick_protocols=full, quick_bits=(5, 10, 15), number=7)


def _lists() -> Figure:
    full = tuple(protocol(f"lists-{dataset}") for dataset in _LISTED_DATA)
    small = (full[0].reduced(**_QUICK_ROWS),)
    title = "whole lists of unseen and of labeled items"
    return Figure(
        *("lists", title, full, _LISTS),
        n_runs=3,
        quick_protocols=small,
        quick_bits=(32,),
        impossible=_TOO_FEW_FEATURES,
    )


def _labels() -> Figure:
    full = tuple(protocol(f"labels-{dataset}-{n}") for dataset in _PARTLY_LABELED_DATA for n in (1, 5, 20, 100))
    small = tuple(protocol(f"labels-digits-{n}").reduced(**_QUICK_ROWS) for n in (1, 5))
    return Figure("labels", "label efficiency", full, _LABELS, quick_protocols=small, quick_bits=(32,))


def _unsupervised() -> Figure:
    full = tuple(protocol(f"unsupervised-{dataset}") for dataset in _PARTLY_LABELED_DATA)
    small = (full[0].reduced(**_QUICK_ROWS),)
    title = "codes without labels"
    return Figure(
        *("unsupervised", title, full, _UNSUPERVISED),
        quick_protocols=small,
        quick_bits=(32,),
        impossible=_TOO_FEW_FEATURES,
    )


FIGURES: dict[str, Figure] = {
    figure.name: figure
    for figure in (
        *(_retrieval(name, f"paper-{name}", number) for number, name in enumerate(_PRINTED_RETRIEVAL, start=1)),
        _pictures(),
        _transductive(),
        _lists(),
        _labels(),
        _unsupervised(),
        _retrieval("digits", "retrieval-digits"),
    )
}
#: Names of the data sets that the paper prints figures about.
PRINTED_DATA_SETS = frozenset(p.dataset for figure in FIGURES.values() if figure.number for p in figure.protocols)


def figure(name: str) -> Figure:
    """Return a figure by name, or by its printed number; the error for an unknown name lists the closest ones.

    Examples
    --------
    >>> figure("transductive").protocols[0].n_runs
    20
    >>> figure("2").name
    'usps'
    """
    by_number = {str(figure.number): figure for figure in FIGURES.values() if figure.number}
    if name in FIGURES or name in by_number:
        return FIGURES.get(name) or by_number[name]
    known = [*FIGURES, "all"]
    close = difflib.get_close_matches(str(name).lower(), known, n=3, cutoff=0.4)
    advice = f"The closest are {', '.join(close)}." if close else f"Known are {', '.join(known)}."
    raise ValueError(f"There is no figure {name!r}. {advice}")


def figures_named(names: list[str]) -> list[Figure]:
    """Return figures by name, each once; "all" means every figure."""
    wanted = list(FIGURES) if "all" in names else names
    return list({chosen.name: chosen for chosen in map(figure, wanted)}.values())
