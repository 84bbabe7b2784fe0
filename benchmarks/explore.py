"""How long the explorer takes from a click to neighbors, in a service over a large collection of pictures.

    python benchmarks/explore.py /data/mnist.npz --folder /tmp/mnist

The file holds X (pixels from 0 to 255, square pictures) and y. A collection of all rows is made in the folder unless it
is there: a hybrid hasher of 64 bits fitted on 3,000 of them, kept vectors, previews. Prints the time of the first page
and of the first pictures, and the median and the 95th percentile over clicks: the neighbors, which appear first, what
the model sees in the picture, and what other methods find, which only those wait for who ask for it.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import httpx
import numpy as np

from starshl import HybridHasher
from starshl.collection.collection import atomic_collection
from starshl.evaluation.reports.html import encode_png
from starshl.service import BackgroundServer, Service, create_app

_ROWS_AT_ONCE = 5000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--clicks", type=int, default=60)
    options = parser.parse_args()
    if not options.folder.exists():
        build(options.data, options.folder)
    app = create_app(lambda observer: Service([options.folder], observer=observer))
    app.state.service.warm_up()
    with BackgroundServer(app) as server, httpx.Client(base_url=server.address, timeout=300) as client:
        measure(client, options.folder.name, options.clicks)


def build(data: Path, folder: Path) -> None:
    """Make the collection; about half a minute for 70,000 pictures."""
    with np.load(data) as file:
        X, y = file["X"], file["y"]
    side = int(X.shape[1] ** 0.5)
    rows = np.random.default_rng(0).permutation(len(X))[:3000]
    hasher = HybridHasher(64, random_state=0).fit(X[rows] / 255.0, y[rows])
    with atomic_collection(folder, hasher, vectors="int8", fields={"digit": int}, kind="pictures") as collection:
        for start in range(0, len(X), _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            collection.add(
                X[part] / 255.0,
                labels=y[part],
                metadata=[{"digit": int(label)} for label in y[part]],
                previews=[encode_png(255 - row.reshape(side, side)) for row in X[part]],
            )


def measure(client: httpx.Client, name: str, n_clicks: int) -> None:
    timed(client, "/")
    print(f"first page: {1000 * timed(client, '/'):.0f} ms")
    browsed = f"/explore/{name}"
    timed(client, browsed)
    print(f"first page of pictures: {1000 * timed(client, browsed):.0f} ms")
    while "being prepared" in client.get(f"/explore/{name}?item=0&part=details&methods=1").text:
        time.sleep(0.5)
    n_items = client.get(f"/api/v1/collections/{name}").json()["n_items"]
    items = np.random.default_rng(1).integers(0, n_items, n_clicks).tolist()
    for part, what in (
        ("neighbors", "click to neighbors"),
        ("details", "then what the model sees"),
        ("details&methods=1", "then what other methods find, if asked for"),
    ):
        seconds = [timed(client, f"/explore/{name}?item={item}&part={part}") for item in items]
        print(f"{what}: median {1000 * np.median(seconds):.0f} ms, 95% {1000 * np.percentile(seconds, 95):.0f} ms")


def timed(client: httpx.Client, path: str) -> float:
    started = time.perf_counter()
    client.get(path).raise_for_status()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
