"""A plan on paper for a billion rows of 768 numbers: machines, hours, bytes and cost.

    python benchmarks/billion_rows.py
    python benchmarks/billion_rows.py --rates 542382 13270 1672      # without measuring anything

Measures on this machine how many rows a core encodes, and sums up for a fit, per second of processor time. Then it
simulates a cluster that does a billion of them, with tasks that take longer than others and workers that die. Same
seed, same simulation; the measured rates are the only thing that depends on the machine.
"""

from __future__ import annotations

import argparse
import heapq
import time
from dataclasses import dataclass

import numpy as np

from starshl import StarRidge
from starshl.hashers.baselines import ITQ
from starshl.learning.kernels.landmarks import LandmarkMap
from starshl.learning.solvers.ridge import RidgeSums

N_FEATURES, N_BITS, N_CLASSES, N_LANDMARKS = 768, 64, 10, 3000
WORK = (
    "encode with ITQ",
    f"encode with StarRidge, {N_LANDMARKS:,} landmarks",
    f"fit StarRidge, {N_LANDMARKS:,} landmarks",
)
CLIENT_BYTES = 120  # per row and class of a fit, for discriminant analysis and calibration: measured on a million rows


@dataclass(frozen=True)
class Cluster:
    """What is assumed of the machines."""

    n_workers: int = 64  # cores: four machines of 16
    worker_mb_per_second: float = 60.0  # a core's share of what a machine gets from storage over 10 Gbit/s
    spread: float = 0.25  # standard deviation of the logarithm of a task's time
    straggler_share: float = 0.01  # tasks that take five times as long
    hours_between_failures: float = 20.0  # of one worker: machines that are taken away at any time
    minutes_to_return: float = 3.0
    price_per_core_hour: float = 0.04


def cpu_seconds_per_row(work, n_rows):
    """Return the processor time of some work per row; the first run, in which loops are compiled, does not count."""
    work()
    start = time.process_time()
    work()
    return (time.process_time() - start) / n_rows


def measure():
    """Return seconds of processor time per row for each kind of work, in the order of ``WORK``."""
    rng = np.random.default_rng(0)
    y = rng.integers(N_CLASSES, size=8192)
    X = (rng.standard_normal((8192, N_FEATURES)) + rng.standard_normal((N_CLASSES, N_FEATURES))[y]).astype(np.float32)
    linear = ITQ(N_BITS, random_state=0).fit(X)
    ridge = StarRidge(N_BITS, max_exact_rows=3500, n_landmarks=N_LANDMARKS, random_state=0).fit(X, y)
    features = LandmarkMap(ridge.kernels_, ridge.kernel_weights_, ridge.support_samples_)
    block, index, weights = X[:1024], y[:1024], np.ones(1024)
    sums = RidgeSums(features.n_features, N_CLASSES)
    learn = cpu_seconds_per_row(lambda: sums.add(features.features(block), index, weights), len(block))
    judge = cpu_seconds_per_row(lambda: features.features(block), len(block))
    by_itq = cpu_seconds_per_row(lambda: linear.encode(X), len(X))
    by_ridge = cpu_seconds_per_row(lambda: ridge.encode(block), len(block))
    return by_itq, by_ridge, learn + judge


def simulate(n_tasks, task_seconds, cluster, seed=0):
    """Return the minutes until all tasks are done, how many were run again, and minutes of work that was lost."""
    rng = np.random.default_rng(seed)
    durations = task_seconds * np.exp(rng.normal(-(cluster.spread**2) / 2, cluster.spread, n_tasks))
    durations[rng.random(n_tasks) < cluster.straggler_share] *= 5.0
    workers = [(0.0, number) for number in range(cluster.n_workers)]  # when each is free
    failures = rng.exponential(3600 * cluster.hours_between_failures, cluster.n_workers)
    waiting, end, n_again, lost = list(durations[::-1]), 0.0, 0, 0.0
    while waiting:
        now, worker = heapq.heappop(workers)
        duration = waiting.pop()
        if now + duration > failures[worker]:
            died = max(failures[worker], now)
            waiting.append(duration)
            n_again, lost = n_again + 1, lost + died - now
            back = died + 60 * cluster.minutes_to_return
            failures[worker] = back + rng.exponential(3600 * cluster.hours_between_failures)
            heapq.heappush(workers, (back, worker))
            continue
        end = max(end, now + duration)
        heapq.heappush(workers, (now + duration, worker))
    return end / 60, n_again, lost / 60


def show(name, seconds_per_row, n_rows, cluster, partition_rows, n_passes=1):
    """Print one line of the plan."""
    read = n_passes * 4 * N_FEATURES / (1e6 * cluster.worker_mb_per_second)
    n_tasks = -(-n_rows // partition_rows)
    minutes, n_again, lost = simulate(n_tasks, partition_rows * (seconds_per_row + read), cluster)
    ideal = n_rows * (seconds_per_row + read) / cluster.n_workers / 60
    cost = minutes / 60 * cluster.n_workers * cluster.price_per_core_hour
    print(
        f"| {name} | {n_rows:,} | {1 / seconds_per_row:,.0f} | {ideal:.1f} | {minutes:.1f} | {n_again} | {lost:.1f} | "
        f"${cost:.2f} |"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000_000)
    parser.add_argument("--fit-rows", type=int, default=10_000_000)
    parser.add_argument("--rates", type=float, nargs=3, help="rows per core and second, instead of measuring them")
    arguments = parser.parse_args()
    cluster = Cluster()
    costs = measure() if arguments.rates is None else [1 / rate for rate in arguments.rates]
    print(f"{cluster.n_workers} cores; reading a row takes {4 * N_FEATURES / cluster.worker_mb_per_second:.0f} µs")
    print("| work | rows | rows per core and second | minutes, ideal | minutes | run again | minutes lost | cost |")
    print("|---|---|---|---|---|---|---|---|")
    for name, seconds in zip(WORK, costs, strict=True):
        if name.startswith("fit"):
            show(name, seconds, arguments.fit_rows, cluster, 32_768, n_passes=2)
        else:
            show(name, seconds, arguments.rows, cluster, 65_536)
    print(f"rows: {4 * N_FEATURES * arguments.rows / 1e12:.2f} TB; codes: {N_BITS // 8 * arguments.rows / 1e9:.0f} GB")
    print(f"memory of the client during the fit: {CLIENT_BYTES * N_CLASSES * arguments.fit_rows / 1e9:.0f} GB")


if __name__ == "__main__":
    main()
