"""Measure a large collection: adding, opening, filters and searches: python benchmarks/collection.py --items 1000000

First, codes with ids and two declared fields are added at once, as by someone who moves from another system. Then
items have a label, a reference and three metadata fields, two of them declared, and arrive in batches. With
``--vectors float16`` the collection keeps their vectors, too. It is opened in new processes, as a command opens it.
Figures are by the clock; ``--cpu`` measures processor time instead, for a busy machine.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from starshl import BinaryCodes, Collection
from starshl.hashers.baselines import LSHash

N_COLUMNS = 64
TOPICS = ("world", "sports", "business", "science")
OPEN = """
import sys, time
from starshl import Collection
from starshl import make_index
from starshl import BinaryCodes
import numpy as np
make_index(BinaryCodes(np.arange(64, dtype=np.uint8).reshape(8, 8), 64))
clock = getattr(time, sys.argv[2])
started = clock()
collection = Collection(sys.argv[1], read_only=sys.argv[3] == "read")
print(clock() - started)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--batch", type=int, default=50_000)
    parser.add_argument("--bits", type=int, default=64)
    parser.add_argument("--vectors", choices=["float16", "int8"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cpu", action="store_true", help="measure processor time")
    parser.add_argument("--json", type=Path, help="write all figures here as well")
    options = parser.parse_args()
    figures = {"machine": platform.processor(), "cpus": os.cpu_count(), "options": str(options)}
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "items"
        for measure in (moving, adding, opening, filtering, changing):
            for name, value in measure(folder, options).items():
                figures[name] = value
                print(f"{name:56s} {value:12.4f}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))


def clock_of(options):
    return time.process_time if options.cpu else time.perf_counter


def moving(folder, options) -> dict[str, float]:
    """Return how fast codes with ids and two fields are added in one call, and what they take besides their codes."""
    rng, clock, n = np.random.default_rng(0), clock_of(options), options.items
    hasher = LSHash(options.bits, random_state=0).fit(rng.standard_normal((1000, N_COLUMNS)))
    codes = BinaryCodes(rng.integers(0, 256, (n, -(-options.bits // 8)), np.uint8), options.bits, hasher.space_id_)
    metadata = [{"year": 1900 + i % 120, "topic": TOPICS[i % 4]} for i in range(n)]
    folder = folder.with_name("moved")
    with Collection.create(folder, hasher, fields={"year": int, "topic": str}) as collection:
        started = clock()
        collection.add(codes=codes, ids=7 + 3 * np.arange(n), metadata=metadata)
        seconds = clock() - started
    size = sum(path.stat().st_size for path in folder.glob("items.sqlite*"))
    return {
        "moving, items per second": n / seconds,
        "moving, bytes per item besides codes": size / n - options.bits / 8,
    }


def adding(folder, options) -> dict[str, float]:
    """Return how fast items are added, and what they take on the disk."""
    rng, clock = np.random.default_rng(0), clock_of(options)
    hasher = LSHash(options.bits, random_state=0).fit(rng.standard_normal((1000, N_COLUMNS)))
    seconds, slowest = 0.0, 0.0
    fields = {"year": int, "topic": str}
    with Collection.create(folder, hasher, vectors=options.vectors, fields=fields) as collection:
        for start in range(0, options.items, options.batch):
            n = min(options.batch, options.items - start)
            X = rng.standard_normal((n, N_COLUMNS))
            numbers = np.arange(start, start + n).tolist()
            metadata = [{"year": 1900 + i % 120, "topic": TOPICS[i % 4], "page": i % 1000} for i in numbers]
            references = [f"texts/{i}.txt" for i in numbers]
            labels = [TOPICS[i % 4] for i in numbers]
            started = clock()
            collection.add(X, labels=labels, metadata=metadata, references=references)
            seconds, slowest = seconds + clock() - started, max(slowest, clock() - started)
    size = sum(path.stat().st_size for path in folder.iterdir())
    return {
        "adding, items per second": options.items / seconds,
        "adding, items per second in the slowest batch": options.batch / slowest,
        "bytes on disk per item": size / options.items,
    }


def opening(folder, options) -> dict[str, float]:
    """Return how long a new process takes to open the collection, best of several."""
    figures = {}
    for mode in ("read", "write"):
        command = [sys.executable, "-c", OPEN, str(folder), clock_of(options).__name__, mode]
        times = [float(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(options.rounds)]
        figures |= {f"open to {mode} [s], best": min(times), f"open to {mode} [s], worst": max(times)}
    return figures


def filtering(folder, options) -> dict[str, float]:
    """Return the times of one query, with and without filters."""
    query = np.random.default_rng(1).standard_normal((1, N_COLUMNS))
    figures = {}
    with Collection(folder, read_only=True) as collection, warnings.catch_warnings():
        warnings.simplefilter("ignore")

        def ms(rounds, **filters):
            best = float("inf")
            for _ in range(rounds):
                started = clock_of(options)()
                collection.search(query, 10, rescore=False, **filters)
                best = min(best, 1e3 * (clock_of(options)() - started))
            return best

        ms(2)
        plain = figures["search, no filter [ms]"] = ms(options.rounds)
        for name, filters in (
            ("a number (1 in 120 passes)", {"where": {"year": 1984}}),
            ("a range (half passes)", {"where": {"year": {">=": 1960}}}),
            ("a text (1 in 4 passes)", {"where": {"topic": "sports"}}),
            ("two fields", {"where": {"topic": "sports", "year": {">=": 1960}}}),
            ("labels (1 in 4 passes)", {"labels": ["sports"]}),
        ):
            first = ms(1, **filters)
            figures[f"search, {name}, first time [ms]"] = first
            figures[f"search, {name} [ms]"] = ms(options.rounds, **filters)
            figures[f"search, {name}, above no filter [ms]"] = figures[f"search, {name} [ms]"] - plain
        figures["search, not declared, first time [ms]"] = ms(1, where={"page": 7})
        figures["search, not declared [ms]"] = ms(2, where={"page": 7})
        with collection.reading() as (state, _):
            figures["bytes of codes and ids in memory per item"] = state.index.nbytes / len(state.index)
    return figures


def changing(folder, options) -> dict[str, float]:
    """Return the times of small changes."""
    X = np.random.default_rng(2).standard_normal((20, N_COLUMNS))
    figures = {}
    with Collection(folder) as collection:
        for name, change in (
            ("add", lambda i: collection.add(X[i : i + 1], metadata=[{"year": 2000}])),
            ("update", lambda i: collection.update([1000 * i], [{"year": 2001}])),
            ("set_labels", lambda i: collection.set_labels([1000 * i], ["sports"])),
            ("remove", lambda i: collection.remove([1000 * i])),
        ):
            started = clock_of(options)()
            for i in range(10):
                change(i)
            figures[f"{name} one item [ms]"] = 1e2 * (clock_of(options)() - started)
    return figures


if __name__ == "__main__":
    main()
