"""From figures to the list of runs, each with the key under which its record is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from .. import datasets
from .._validation import check_integer
from ..datasets import Dataset
from ..evaluation import (
    Protocol,
    Record,
    RunKey,
    parameters_of,
    planned_key,
    run,
    run_classifier,
    run_float_search,
    split_data,
)
from ..exceptions import ChecksumError, DatasetUnavailableError, DownloadError
from .figures import Figure
from .lineup import CONTESTANTS, Contestant, Sizes, contestant

__all__ = ["Job", "Plan", "make_plan"]

N_NEIGHBORS = 50


@dataclass(frozen=True, slots=True)
class Job:
    """One run: a contestant at one code length on the rows of one run of a protocol."""

    protocol: Protocol
    run: int
    contestant: str
    n_bits: int | None
    key: RunKey

    @property
    def title(self) -> str:
        """What a progress line says."""
        bits = "" if self.n_bits is None else f", {self.n_bits} bits"
        return f"{self.key.method}{bits}, {self.protocol.name} run {self.run}"

    def parameters(self) -> dict[str, str]:
        """Return all parameters of the method, defaults included, as a record of this run has them."""
        chosen = CONTESTANTS[self.contestant]
        if chosen.kind == "search":
            return {}
        if chosen.kind == "classifier":
            return parameters_of(chosen.make(self.key.seed))
        sizes = _sizes(self.protocol, _loaded(self.protocol.dataset))
        return parameters_of(chosen.build(self.n_bits, self.key.seed, sizes))

    def perform(self) -> Record:
        """Do the run and return its record; a method that raises gives a failed one."""
        data = _cut(self.protocol, self.run)
        chosen = CONTESTANTS[self.contestant]
        sizes = _sizes(self.protocol, _loaded(self.protocol.dataset))
        common = {"seed": self.key.seed, "settings": _plain_settings(chosen, sizes)}
        if chosen.kind == "search":
            return run_float_search(data, chosen.title, n_neighbors=N_NEIGHBORS, n_jobs=1)
        if chosen.kind == "classifier":
            return run_classifier(chosen.make, data, chosen.title, fit_on=chosen.fit_on, **common)
        return run(
            lambda n_bits, seed: chosen.build(n_bits, seed, sizes),
            data,
            chosen.title,
            self.n_bits,
            fit_on=chosen.fit_on,
            **common,
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """Runs to do, each once, and the data sets that cannot be had with the reason."""

    jobs: tuple[Job, ...]
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
        Keys of contestants; None is all of each figure.
    data_sets : sequence of str, default=None
        Names of data sets; None is all of each figure.
    n_runs : int, default=None
        Runs of each protocol, at most as many as it has.
    quick : bool, default=False
        A few hundred rows, two runs, three lengths.

    Examples
    --------
    >>> from starshl.experiments import figure, make_plan
    >>> plan = make_plan([figure("digits")], bits=[8], methods=["lsh", "float"], n_runs=1)
    >>> [job.title for job in plan.jobs]
    ['LSH, 8 bits, retrieval-digits run 0', 'float search, retrieval-digits run 0']
    """
    wanted = None if methods is None else {contestant(name).key for name in methods}
    entries = [each.quick() if quick else each for each in figures]
    _check_choices(entries, bits, wanted, data_sets, n_runs)
    jobs: dict[str, Job] = {}
    unavailable: dict[str, str] = {}
    for entry in entries:
        for protocol in entry.protocols:
            if data_sets is not None and protocol.dataset not in data_sets:
                continue
            try:
                dataset = _loaded(protocol.dataset)
            except (ChecksumError, DatasetUnavailableError, DownloadError) as error:
                unavailable[protocol.dataset] = str(error)
                continue
            for job in _jobs_of(entry, protocol, dataset, bits, wanted, n_runs):
                jobs.setdefault(job.key.text, job)
    if unavailable and not jobs:
        raise DatasetUnavailableError(" ".join(unavailable.values()))
    return Plan(tuple(jobs.values()), unavailable)


def _check_choices(figures, bits, wanted, data_sets, n_runs) -> None:
    for value in bits or ():
        check_integer(value, "bits", low=1)
    if n_runs is not None:
        most = max(protocol.n_runs for entry in figures for protocol in entry.protocols)
        check_integer(n_runs, "runs", low=1, high=most)
    taking_part = {key for entry in figures for key in entry.contestants}
    if wanted is not None and (strangers := sorted(wanted - taking_part)):
        raise ValueError(
            f"{', '.join(strangers)} takes no part in {', '.join(entry.name for entry in figures)}. "
            f"There you find {', '.join(key for key in CONTESTANTS if key in taking_part)}."
        )
    used = list(dict.fromkeys(protocol.dataset for entry in figures for protocol in entry.protocols))
    if data_sets is not None and (strangers := sorted(set(data_sets) - set(used))):
        raise ValueError(
            f"{', '.join(strangers)} is not used by {', '.join(entry.name for entry in figures)}. "
            f"There you find {', '.join(used)}."
        )


def _jobs_of(entry: Figure, protocol: Protocol, dataset: Dataset, bits, wanted, n_runs):
    """Yield the runs of one protocol, all of one run together, so that a worker cuts its rows once."""
    if entry.n_runs is not None:
        protocol = replace(protocol, n_runs=min(protocol.n_runs, entry.n_runs))
    keys = [key for key in entry.contestants if wanted is None or key in wanted]
    sizes = _sizes(protocol, dataset)
    for number in range(min(protocol.n_runs, n_runs or protocol.n_runs)):
        split = protocol.split(dataset, number)
        for chosen in map(CONTESTANTS.__getitem__, keys):
            lengths = (bits or entry.bits or protocol.bits) if chosen.kind == "hasher" else (None,)
            for n_bits in dict.fromkeys(lengths):
                key = _key(chosen, split, protocol.scaling, n_bits, sizes)
                yield Job(protocol, number, chosen.key, n_bits, key)


def _key(chosen: Contestant, split, scaling: str, n_bits: int | None, sizes: Sizes) -> RunKey:
    if chosen.kind == "search":
        settings = {"n_neighbors": min(N_NEIGHBORS, len(split.database))}
        return planned_key(split, scaling, chosen.title, fit_on="none", seed=0, settings=settings)
    seed = split.seed(chosen.start or chosen.title)
    settings = _plain_settings(chosen, sizes)
    return planned_key(split, scaling, chosen.title, n_bits, fit_on=chosen.fit_on, seed=seed, settings=settings)


def _plain_settings(chosen: Contestant, sizes: Sizes) -> dict:
    """Return what changes the result beside the seed, as plain values: other settings are another run."""
    settings = {name: _plain(value) for name, value in chosen.settings(sizes).items()}
    return settings | ({"preset": chosen.preset} if chosen.preset else {})


def _plain(value):
    return value if isinstance(value, (str, int, float, bool, type(None))) else repr(value)


def _sizes(protocol: Protocol, dataset: Dataset) -> Sizes:
    return Sizes(protocol.rows.n_train or len(dataset), dataset.n_classes)


@lru_cache(maxsize=2)
def _loaded(name: str) -> Dataset:
    return datasets.get(name, progress=True)


@lru_cache(maxsize=1)
def _cut(protocol: Protocol, number: int):
    dataset = _loaded(protocol.dataset)
    return split_data(dataset, protocol.split(dataset, number), scaling=protocol.scaling)
