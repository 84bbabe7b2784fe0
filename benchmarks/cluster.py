"""What a Dask cluster costs and gains: rows per second and per second of processor time, and memory while it runs.

    python benchmarks/cluster.py --rows 2000000            # one process, one worker, two workers
    python benchmarks/cluster.py --rows 10000000 --file-rows 10000000 --workers 2 --no-fit --clusters-only

Seconds on the clock say little on a machine that does other things; seconds of processor time do not depend on that.
The rows are one file, by default of a million rows, named as often as needed.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from starshl import StarRidge
from starshl.data.tables import ArrayRows, JoinedRows
from starshl.distributed import encode, fit, local_cluster
from starshl.hashers import encode_blocks
from starshl.hashers.baselines import ITQ

CHUNK_ROWS = 500_000


def write_rows(path, n_rows, n_features=64):
    """Write random rows, some at a time; return the file, mapped into memory."""
    rng = np.random.default_rng(0)
    rows = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n_rows, n_features))
    for start in range(0, n_rows, CHUNK_ROWS):
        chunk = rows[start : start + CHUNK_ROWS]
        rng.standard_normal(out=chunk, dtype=np.float32)
    rows.flush()
    return np.load(path, mmap_mode="r")


def memory_mb(dask_worker=None):
    """Return the memory of this process now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return round(pages * resource.getpagesize() / 2**20)


class Watch:
    """The largest memory of client and workers in every tenth of a run."""

    def __init__(self, client):
        self.client, self.samples, self.over = client, [], threading.Event()
        self.thread = threading.Thread(target=self._watch)

    def _watch(self):
        while not self.over.wait(1.0):
            self.samples.append((memory_mb(), max(self.client.run(memory_mb).values(), default=0)))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def tenths(self):
        parts = [part for part in np.array_split(np.array(self.samples), 10) if len(part)]
        return {
            "client_mb": [int(part[:, 0].max()) for part in parts],
            "worker_mb": [int(part[:, 1].max()) for part in parts],
        }


def on_workers(n_workers, work):
    """Run some work on a cluster; return seconds, seconds of processor time of client and workers, and memory."""
    with local_cluster(n_workers) as cluster, cluster.get_client() as client:
        client.run(_warm_up)
        before = sum(client.run(time.process_time).values()), time.process_time(), time.perf_counter()
        with Watch(client) as watch:
            work(client)
        seconds = time.perf_counter() - before[2]
        workers = sum(client.run(time.process_time).values()) - before[0]
        return {
            "seconds": round(seconds, 1),
            "worker_cpu": round(workers, 1),
            "client_cpu": round(time.process_time() - before[1], 1),
            **watch.tenths(),
        }


def _warm_up():
    pass


def compare_encoding(rows, hasher, worker_counts, clusters_only):
    """Encode all rows in this process, then on clusters."""
    print(f"encoding {len(rows):,} rows of {rows.shape[1]} features, {hasher.n_bits_} bits, {type(hasher).__name__}")
    if not clusters_only:
        start, cpu = time.perf_counter(), time.process_time()
        for part in rows.parts:
            encode_blocks(hasher, part, np.arange(len(part)))
        alone = {"seconds": round(time.perf_counter() - start, 1), "worker_cpu": round(time.process_time() - cpu, 1)}
        _show("one process", alone, len(rows))
    for n_workers in worker_counts:
        with tempfile.TemporaryDirectory() as folder:
            told = on_workers(n_workers, lambda client, to=folder: encode(hasher, rows, to, client=client))
        _show(f"{n_workers} workers", told, len(rows))


def compare_fitting(n_rows, worker_counts):
    """Fit StarRidge over 500 landmarks in this process, then on clusters."""
    rng = np.random.default_rng(0)
    y = rng.integers(10, size=n_rows)
    X = (rng.standard_normal((n_rows, 64)) + 2 * rng.standard_normal((10, 64))[y] / 4).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "rows.npy", X)
        source = ArrayRows(np.load(Path(folder) / "rows.npy", mmap_mode="r"))
        print(f"fitting StarRidge over 500 landmarks to {n_rows:,} rows of 64 features")
        start, cpu = time.perf_counter(), time.process_time()
        StarRidge(32, n_landmarks=500, random_state=0).fit(source, y)
        alone = {"seconds": round(time.perf_counter() - start, 1), "worker_cpu": round(time.process_time() - cpu, 1)}
        _show("one process", alone, n_rows)
        for n_workers in worker_counts:
            told = on_workers(
                n_workers,
                lambda client: fit(StarRidge(32, n_landmarks=500, random_state=0), source, y, client=client),
            )
            _show(f"{n_workers} workers", told, n_rows)


def _show(name, told, n_rows):
    rates = {"rows_per_second": round(n_rows / told["seconds"]), "rows_per_cpu": round(n_rows / told["worker_cpu"])}
    print(f"  {name}: {json.dumps(rates | told)}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--file-rows", type=int, default=1_000_000, help="rows of the file, which is named repeatedly")
    parser.add_argument("--fit-rows", type=int, default=200_000)
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--no-fit", action="store_true")
    parser.add_argument("--clusters-only", action="store_true", help="do not encode in one process first")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        X = write_rows(Path(folder) / "rows.npy", arguments.file_rows)
        hasher = ITQ(64, random_state=0).fit(np.array(X[:20_000]))
        rows = JoinedRows([ArrayRows(X)] * max(1, arguments.rows // arguments.file_rows))
        compare_encoding(rows, hasher, arguments.workers, arguments.clusters_only)
    if not arguments.no_fit:
        compare_fitting(arguments.fit_rows, arguments.workers)


if __name__ == "__main__":
    main()
