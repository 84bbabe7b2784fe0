"""From figures to the list of runs, each with the key under which it is recorded."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from .._common.validation import check_integer
from ..data import datasets
from ..data.datasets.store import Dataset
from ..exceptions import ChecksumError, DatasetUnavailableError, DownloadError
from .compared_methods import COMPARED_METHODS, ComparedMethod, Sizes, compared_method
from .figures import Figure
from .protocols import Protocol
from .records import Record, RunKey
from .runner import parameters_of, planned_key, run, run_classifier, run_float_search
from .scores import LIST_LENGTHS
from .splits import Split, SplitData, split_data

N_NEIGHBORS = LIST_LENGTHS[-1]


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One run: a compared method at one code length on the rows of one run of a protocol."""

    protocol: Protocol
    key: RunKey
    needs_codes: bool = False

    @property
    def method(self) -> ComparedMethod:
        return COMPARED_METHODS[self.key.method]

    @property
    def dataset(self) -> str:
        return self.protocol.dataset

    @property
    def group(self) -> tuple[object, ...]:
        """All lengths of one method on the rows of one run."""
        return self.key.protocol, self.key.run, self.key.method

    def effort(self, *, first: bool) -> float:
        """Seconds that it takes with 3,000 rows of 256 features, roughly; ``first`` of the lengths of a run or not."""
        of_first, of_others, per_bit = self.method.effort
        return (of_first if first else of_others) + per_bit * (self.key.n_bits or 0)

    @property
    def title(self) -> str:
        """What a progress line says."""
        bits = "" if self.key.n_bits is None else f", {self.key.n_bits} bits"
        return f"{self.method.title}{bits}, {self.protocol.name} run {self.key.run}"

    def perform(self) -> Record:
        """Do the run and return its record; a method that raises gives a failed one."""
        data = _cut(self.protocol, self.key.run)
        chosen, seed = self.method, self.key.seed
        if chosen.kind == "search":
            n_neighbors = len(data.X_database) if data.has_unseen_items else N_NEIGHBORS
            return run_float_search(data, chosen.key, n_neighbors=n_neighbors)
        if chosen.make is not None:
            return run_classifier(chosen.make, data, chosen.key, fit_on=chosen.fit_on, seed=seed)
        sizes = _sizes(self.protocol, load_dataset(self.protocol.dataset))
        return run(
            lambda n_bits, seed: chosen.build(n_bits, seed, sizes),
            data,
            chosen.key,
            check_integer(self.key.n_bits, "n_bits", low=1),
            fit_on=chosen.fit_on,
            seed=seed,
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """Runs to do, each once, and why some data sets are not available."""

    runs: tuple[PlannedRun, ...]
    unavailable: dict[str, str]


def make_plan(
    figures: Sequence[Figure],
    *,
    bits: Sequence[int] | None = None,
    methods: Sequence[str] | None = None,
    data_sets: Sequence[str] | None = None,
    n_runs: int | None = None,
    quick: bool = False,
) -> Plan:
    """List the runs of some figures; data sets that are not on this machine are downloaded.

    Parameters
    ----------
    figures : sequence of Figure
    bits : sequence of int, default=None
        Code lengths instead of each figure's own.
    methods : sequence of str, default=None
        Keys of compared methods; None is all of each figure.
    data_sets : sequence of str, default=None
        Names of data sets; None is all of each figure.
    n_runs : int, default=None
        Runs of each protocol, at most as many as it has.
    quick : bool, default=False
        A few hundred rows, two runs, three lengths.

    Examples
    --------
    >>> from starshl.reproduction import figure, make_plan
    >>> plan = make_plan([figure("digits")], bits=[8], methods=["lsh", "float"], n_runs=1)
    >>> [planned.title for planned in plan.runs]
    ['LSH, 8 bits, retrieval-digits run 0', 'float search, retrieval-digits run 0']
    """
    wanted = None if methods is None else {compared_method(name).key for name in methods}
    figures = [figure.quick() if quick else figure for figure in figures]
    _check_choices(figures, bits, wanted, data_sets, n_runs)
    runs: dict[str, PlannedRun] = {}
    unavailable: dict[str, str] = {}
    for figure in figures:
        narrowed = _narrowed(figure, bits, wanted, n_runs)
        for protocol in figure.protocols:
            if data_sets is not None and protocol.dataset not in data_sets:
                continue
            try:
                dataset = load_dataset(protocol.dataset)
            except (ChecksumError, DatasetUnavailableError, DownloadError) as error:
                unavailable[protocol.dataset] = str(error)
                continue
            for planned in _runs_of(narrowed, protocol, dataset):
                if planned.needs_codes or planned.key.text not in runs:
                    runs[planned.key.text] = planned
    if unavailable and not runs:
        raise DatasetUnavailableError(" ".join(unavailable.values()))
    return Plan(tuple(runs.values()), unavailable)


def _check_choices(
    figures: Sequence[Figure],
    bits: Sequence[int] | None,
    wanted: Collection[str] | None,
    data_sets: Sequence[str] | None,
    n_runs: int | None,
) -> None:
    names = ", ".join(figure.name for figure in figures)
    for value in bits or ():
        check_integer(value, "bits", low=1)
    if n_runs is not None:
        most = max(protocol.n_runs for figure in figures for protocol in figure.protocols)
        check_integer(n_runs, "runs", low=1, high=most)
    compared = {key for figure in figures for key in figure.methods}
    if wanted is not None and (absent := sorted(set(wanted) - compared)):
        known = ", ".join(key for key in COMPARED_METHODS if key in compared)
        raise ValueError(f"{', '.join(absent)} is not part of {names}, which compares {known}.")
    used = list(dict.fromkeys(protocol.dataset for figure in figures for protocol in figure.protocols))
    if data_sets is not None and (absent := sorted(set(data_sets) - set(used))):
        raise ValueError(f"{', '.join(absent)} is not used by {names}, which uses {', '.join(used)}.")


def _narrowed(figure: Figure, bits: Sequence[int] | None, wanted: Collection[str] | None, n_runs: int | None) -> Figure:
    methods = tuple(key for key in figure.methods if wanted is None or key in wanted)
    limits = [limit for limit in (figure.n_runs, n_runs) if limit is not None]
    lengths = tuple(bits) if bits else figure.bits
    return replace(figure, methods=methods, bits=lengths, n_runs=min(limits, default=None))


def _runs_of(figure: Figure, protocol: Protocol, dataset: Dataset) -> Iterator[PlannedRun]:
    """Yield the runs of a figure on one protocol, ordered by run, so that a worker splits the rows of a run once."""
    sizes = _sizes(protocol, dataset)
    splits: dict[int, Split] = {}
    for number, chosen, n_bits in figure.cells(protocol):
        if number not in splits:
            splits[number] = protocol.split(dataset, number)
        key = _key(chosen, splits[number], protocol.scaling, n_bits, sizes)
        yield PlannedRun(protocol, key, figure.needs_codes)


def _key(chosen: ComparedMethod, split: Split, scaling: str, n_bits: int | None, sizes: Sizes) -> RunKey:
    if chosen.kind == "search":
        n_neighbors = {"n_neighbors": min(N_NEIGHBORS, len(split.database))}
        return planned_key(split, scaling, chosen.key, fit_on="none", seed=0, parameters=n_neighbors)
    seed = split.seed(chosen.seed_label)
    if chosen.make is not None:
        parameters = parameters_of(chosen.make(seed))
    else:
        parameters = parameters_of(chosen.build(check_integer(n_bits, "n_bits", low=1), seed, sizes))
    return planned_key(split, scaling, chosen.key, n_bits, fit_on=chosen.fit_on, seed=seed, parameters=parameters)


def _sizes(protocol: Protocol, dataset: Dataset) -> Sizes:
    return Sizes(protocol.rows.n_train or len(dataset), dataset.n_classes)


@lru_cache(maxsize=2)
def load_dataset(name: str) -> Dataset:
    return datasets.get(name, progress=True)


@lru_cache(maxsize=1)
def _cut(protocol: Protocol, number: int) -> SplitData:
    dataset = load_dataset(protocol.dataset)
    return split_data(dataset, protocol.split(dataset, number), scaling=protocol.scaling)
