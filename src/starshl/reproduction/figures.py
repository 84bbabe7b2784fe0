"""The figures by name: which protocols, which rows of the line-up, which code lengths."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, replace

from .._common.words import counted
from ..evaluation.reports.document import listed
from .lineup import LINEUP, Entry, title_of
from .protocols import ALL_PROTOCOLS as PROTOCOLS
from .protocols import Protocol, protocol
from .results import ProtocolResults

_RETRIEVAL = (
    *("starshl-paper", "starshl", "ksh", "bre", "1-agh", "2-agh", "sph", "lsh"),
    *("starridge", "ksh-all", "hc-sdh", "codeword-svm", "svc", "float"),
)
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
# (data set, entry): ITQ makes at most as many bits as there are features, and Pendigits has 16.
_IMPOSSIBLE_WITHOUT_LABELS = frozenset({("pendigits", "itq")})
_QUICK_ROWS = {"n_train": 300, "n_query": 300, "n_runs": 2}


@dataclass(frozen=True, slots=True)
class Figure:
    """The runs behind one name on the command line.

    Parameters
    ----------
    name, title : str
    protocols : tuple of Protocol
    entries : tuple of str
        Keys of the line-up.
    bits : tuple of int or None
        None: the code lengths of each protocol.
    n_runs : int or None
        None: as many as each protocol has.
    quick_protocols : tuple of Protocol
    quick_bits : tuple of int
    printed : int or None
        The number of the figure in the paper; None for our own studies.
    needs_codes : bool
        The figure shows codes, so summaries of its runs are not enough.
    impossible : frozenset of pairs (data set, entry)
        Entries that cannot be run on a data set.
    """

    name: str
    title: str
    protocols: tuple[Protocol, ...]
    entries: tuple[str, ...]
    bits: tuple[int, ...] | None = None
    n_runs: int | None = None
    quick_protocols: tuple[Protocol, ...] = ()
    quick_bits: tuple[int, ...] = (5, 15, 45)
    printed: int | None = None
    needs_codes: bool = False
    impossible: frozenset[tuple[str, str]] = frozenset()

    def quick(self) -> Figure:
        """Return the same figure on a few hundred rows, at three lengths and in two runs, or one if it has one."""
        return replace(self, protocols=self.quick_protocols, bits=self.quick_bits, n_runs=self.n_runs or 2)

    def cells(self, protocol: Protocol) -> Iterator[tuple[int, Entry, int | None]]:
        """Yield run, entry and code length of every fit planned on a protocol, run by run."""
        for run in range(min(protocol.n_runs, self.n_runs or protocol.n_runs)):
            for chosen in map(LINEUP.__getitem__, self.entries):
                if (protocol.dataset, chosen.key) in self.impossible:
                    continue
                lengths = (self.bits or protocol.bits) if chosen.kind == "hasher" else (None,)
                yield from ((run, chosen, n_bits) for n_bits in dict.fromkeys(lengths))


def _retrieval(dataset: str, name: str, printed: int | None = None) -> Figure:
    full = protocol(name, PROTOCOLS)
    small = (full.reduced(**_QUICK_ROWS),)
    return Figure(dataset, f"retrieval on {dataset}", (full,), _RETRIEVAL, quick_protocols=small, printed=printed)


def _pictures() -> Figure:
    full = protocol("paper-cifar10", PROTOCOLS)
    hashers = tuple(key for key in _RETRIEVAL if LINEUP[key].kind == "hasher")
    small = (full.reduced(**_QUICK_ROWS),)
    return Figure("pictures", "retrieved pictures", (full,), hashers, (45,), 1, small, (45,), 6, needs_codes=True)


def _transductive() -> Figure:
    full = tuple(protocol(f"transductive-{dataset}", PROTOCOLS) for dataset in ("vowel", "letter"))
    title = "accuracy over code length, inductive and transductive"
    return Figure("transductive", title, full, _TRANSDUCTIVE, quick_protocols=full, quick_bits=(5, 10, 15), printed=7)


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
        impossible=_IMPOSSIBLE_WITHOUT_LABELS,
    )


_PRINTED_RETRIEVAL = ("pendigits", "usps", "mnist", "cifar10", "pascal07")
FIGURES: dict[str, Figure] = {
    figure.name: figure
    for figure in (
        *(_retrieval(name, f"paper-{name}", number) for number, name in enumerate(_PRINTED_RETRIEVAL, start=1)),
        _pictures(),
        _transductive(),
        _labels(),
        _unsupervised(),
        _retrieval("digits", "retrieval-digits"),
    )
}
#: Names of the data sets that the paper prints figures about.
PRINTED_DATA_SETS = frozenset(p.dataset for figure in FIGURES.values() if figure.printed for p in figure.protocols)


def figure(name: str) -> Figure:
    """Return a figure by name, or by its printed number; the error for an unknown name lists the closest ones.

    Examples
    --------
    >>> figure("transductive").protocols[0].n_runs
    20
    >>> figure("2").name
    'usps'
    """
    by_number = {str(figure.printed): figure for figure in FIGURES.values() if figure.printed}
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


# Compare what was run with what the figures plan.

Place = tuple[str, int | None, int]


@dataclass(frozen=True, slots=True)
class Extent:
    """Fits as (method, bits, run): those that the figures plan for a protocol, and those of them that were done.

    ``failed`` holds the methods that have a failed run.
    """

    planned: frozenset[Place]
    done: frozenset[Place]
    failed: frozenset[str] = frozenset()

    @property
    def missing(self) -> list[str]:
        """Say in words what is missing: whole runs, lengths and methods first, then single fits."""
        if not self.planned:
            return []
        methods = dict.fromkeys(method for method, _, _ in self._ordered)
        lengths = dict.fromkeys(n_bits for _, n_bits, _ in self._ordered)
        runs = {run for _, _, run in self.planned}
        done_methods = {method for method, _, _ in self.done}
        done_lengths = {n_bits for _, n_bits, _ in self.done}
        done_runs = {run for _, _, run in self.done}
        words = []
        if len(done_runs) < len(runs):
            words.append(f"{len(done_runs)} of {counted(len(runs), 'run')}")
        if lacking := [n_bits for n_bits in lengths if n_bits is not None and n_bits not in done_lengths]:
            words.append(f"no codes of {listed(lacking)} bits")
        lost = [method for method in methods if method not in done_methods]
        if absent := [title_of(method) for method in lost if method not in self.failed]:
            words.append(f"{listed(absent)} {'was' if len(absent) == 1 else 'were'} not run")
        if broken := [title_of(method) for method in lost if method in self.failed]:
            words.append(f"{listed(broken)} failed")
        rest = [p for p in self._ordered if p not in self.done and p[0] in done_methods]
        rest = [p for p in rest if p[2] in done_runs and (p[1] in done_lengths or p[1] is None)]
        if rest:
            lacks = {method: sum(place[0] == method for place in rest) for method, *_ in rest}
            singles = listed(f"{n} of {title_of(method)}" for method, n in lacks.items())
            words.append(f"single fits missing: {singles}")
        return words

    @property
    def _ordered(self) -> list[Place]:
        order = {key: place for place, key in enumerate(LINEUP)}
        return sorted(self.planned, key=lambda place: (order[place[0]], place[1] or 0, place[2]))


def extent_of(protocol: ProtocolResults) -> Extent:
    """Compare a protocol with all figures that use it; if none does, nothing is planned."""
    planned = frozenset(place for figure in FIGURES.values() for place in planned_cells(figure, protocol.name))
    done = frozenset((run.method, run.n_bits, run.run) for run in protocol.runs)
    return Extent(planned, planned & done, frozenset(protocol.failed))


def planned_cells(figure: Figure, name: str) -> set[Place]:
    """Return the fits of one figure, in full or quick, on the protocol of a name."""
    full = any(protocol.name == name for protocol in figure.protocols)
    figure = figure if full else figure.quick()
    cells = (cell for protocol in figure.protocols if protocol.name == name for cell in figure.cells(protocol))
    return {(chosen.key, n_bits, run) for run, chosen, n_bits in cells}
