"""Mean and deviation over runs, and paired differences with Student's interval."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from scipy.stats import t as student

# Student's interval of two runs is too wide to say anything.
MIN_RUNS_FOR_INTERVAL = 3
_Name = TypeVar("_Name")


@dataclass(frozen=True, slots=True)
class Summary:
    """Mean and sample deviation of ``n`` runs; the deviation of a single run is not known."""

    mean: float
    deviation: float | None
    n: int


@dataclass(frozen=True, slots=True)
class Paired:
    """How far one method lies above another on the same runs.

    ``low`` and ``high`` bound the mean difference with 95% confidence. With fewer than ``MIN_RUNS_FOR_INTERVAL`` runs
    they are None; ``differences`` lists every run. ``n_won`` counts the runs in which the first was strictly better.
    """

    difference: float
    low: float | None
    high: float | None
    differences: tuple[float, ...]

    @property
    def n(self) -> int:
        return len(self.differences)

    @property
    def n_won(self) -> int:
        return sum(difference > 0 for difference in self.differences)

    @property
    def clear(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


def summarize(values: Collection[float]) -> Summary | None:
    """Return mean and deviation, or None if there are no values.

    Examples
    --------
    >>> summarize([0.8, 0.9])
    Summary(mean=0.85..., deviation=0.0707..., n=2)
    """
    array = np.array([value for value in values if not np.isnan(value)], dtype=np.float64)
    if not len(array):
        return None
    return Summary(float(array.mean()), float(array.std(ddof=1)) if len(array) > 1 else None, len(array))


def paired(first: Mapping[int, float], second: Mapping[int, float]) -> Paired | None:
    r"""Compare two methods over the runs that both have, given as run -> value; None if they share none.

    The interval is :math:`\bar d \pm t_{0.975, n-1}\, s_d / \sqrt n` of the differences d.

    Examples
    --------
    >>> gap = paired({0: 0.9, 1: 0.8}, {0: 0.7, 1: 0.7, 2: 0.6})
    >>> round(gap.difference, 3), gap.n_won
    (0.15, 2)
    """
    shared = sorted(_known(first).keys() & _known(second).keys())
    differences = np.array([first[run] - second[run] for run in shared])
    if not shared:
        return None
    mean, n = float(differences.mean()), len(shared)
    low = high = None
    if n >= MIN_RUNS_FOR_INTERVAL:
        half = float(student.ppf(0.975, n - 1) * differences.std(ddof=1) / np.sqrt(n))
        low, high = mean - half, mean + half
    return Paired(mean, low, high, tuple(differences.tolist()))


def require_paired(first: Mapping[int, float], second: Mapping[int, float]) -> Paired:
    """Compare two methods that share at least one run, as :func:`paired` does."""
    gap = paired(first, second)
    if gap is None:
        raise ValueError("The two methods share no run, so they cannot be compared. Narrow them to shared runs first.")
    return gap


def best_of(means: Mapping[_Name, float]) -> set[_Name]:
    """Return the names with the best mean, and all whose mean is printed alike: a reader cannot tell them apart.

    Examples
    --------
    >>> sorted(best_of({"KSH": 0.9091, "LSH": 0.9, "SVC": 0.9094}))
    ['KSH', 'SVC']
    """
    printed = {name: round(mean, 3) for name, mean in means.items()}
    return {name for name, mean in printed.items() if mean == max(printed.values())}


def means_of(values: Mapping[str, Mapping[int, float]]) -> dict[str, float]:
    """Return the mean of each name that has a value.

    Examples
    --------
    >>> means_of({"LSH": {0: 0.5, 1: 1.0}, "BRE": {0: float("nan")}})
    {'LSH': 0.75}
    """
    summaries = {name: summarize(runs.values()) for name, runs in values.items()}
    return {name: summary.mean for name, summary in summaries.items() if summary is not None}


def shared_runs(values: Mapping[str, Mapping[int, float]]) -> dict[str, dict[int, float]]:
    """Narrow name -> run -> value to the runs that all names have; names without any value are left out.

    Means over different runs must not be ranked: an easy run would look like a good method.

    Examples
    --------
    >>> shared_runs({"LSH": {0: 0.5, 1: 0.9}, "KSH": {0: 0.6}, "BRE": {}})
    {'LSH': {0: 0.5}, 'KSH': {0: 0.6}}
    """
    known = {name: kept for name, runs in values.items() if (kept := _known(runs))}
    shared = set.intersection(*map(set, known.values())) if known else set()
    return {name: {run: runs[run] for run in sorted(shared)} for name, runs in known.items()}


def _known(runs: Mapping[int, float]) -> dict[int, float]:
    return {run: value for run, value in runs.items() if not np.isnan(value)}
