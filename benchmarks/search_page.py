"""How long a query takes in an exported page, in Chromium without a network: encoding, search, and until it is shown.

    STARSHL_DATA=... python benchmarks/search_page.py --items 100000 --queries 300
    STARSHL_DATA=... python benchmarks/search_page.py --priority   # on a machine that does other things, as root

The items are MNIST images with noise and previews; queries are other such images, given as vectors. The last column is
the time from the click to the list of results in the page, with all that happens between.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

import numpy as np

from starshl import Collection, HybridHasher, StarRidge
from starshl.data import datasets
from starshl.data.features import preview_of
from starshl.export import write_search_page
from starshl.hashers import picture_hasher
from starshl.hashers.baselines import ITQ

BATCH = 10_000
HASHERS = {
    "gradients, StarRidge": lambda n_bits: picture_hasher((28, 28), StarRidge(n_bits, random_state=0)),
    "StarRidge": lambda n_bits: StarRidge(n_bits, random_state=0),
    "HybridHasher": lambda n_bits: HybridHasher(n_bits, random_state=0),
    "ITQ": lambda n_bits: ITQ(n_bits, random_state=0),
}
ASK = """
async (row) => {
  document.getElementById("vector").value = row.join(" ");
  const results = document.getElementById("results");
  const start = performance.now();
  const shown = new Promise((done) => {
    new MutationObserver((changes, observer) => { observer.disconnect(); done(performance.now() - start); })
      .observe(results, { attributes: true, attributeFilter: ["data-query"] });
  });
  document.getElementById("encode").click();
  const took = await shown;
  return [Number(results.dataset.encoding), Number(results.dataset.searching), took];
}
"""


def images(X, n_rows, seed):
    """Return images with noise, as bytes."""
    rng = np.random.default_rng(seed)
    chosen = X[rng.integers(0, len(X), n_rows)]
    return np.clip(chosen + rng.normal(0, 5, chosen.shape), 0, 255).astype(np.uint8)


def build(folder, hasher, X, n_items, previews):
    """Return a page of many items, and how many megabytes and seconds it took."""
    path = folder / "page.html"
    with Collection.create(folder / "items", hasher) as items:
        for number, start in enumerate(range(0, n_items, BATCH)):
            rows = images(X, min(BATCH, n_items - start), number)
            items.add(rows, previews=[preview_of(row.reshape(28, 28)) for row in rows] if previews else None)
        start = perf_counter()
        facts = write_search_page(items, path, picture=(28, 28))
    return path, facts["file_bytes"] / 1e6, perf_counter() - start


@contextmanager
def priority(is_wanted):
    """Let this process, and those that it starts, go before others."""
    if is_wanted:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    yield
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def measure(path, rows):
    """Return milliseconds of all queries (encoding, search, both, click to list), and seconds until it is ready."""
    from playwright.sync_api import sync_playwright

    browser_path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=browser_path, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_context(offline=True).new_page()
        start = perf_counter()
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]", timeout=300_000)
        ready = perf_counter() - start
        page.click("[data-mode=vector]")
        encoding, search, shown = np.array([page.evaluate(ASK, row.tolist()) for row in rows]).T
        browser.close()
    return [encoding, search, encoding + search, shown], ready


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--train", type=int, default=2000)
    parser.add_argument("--bits", type=int, default=64)
    parser.add_argument("--hashers", nargs="*", choices=HASHERS, default=list(HASHERS))
    parser.add_argument("--priority", action="store_true", help="let other programs wait while queries are measured")
    parser.add_argument("--no-previews", action="store_true")
    arguments = parser.parse_args()
    data = datasets.get("mnist")
    X = np.asarray(data.X, dtype=np.uint8)
    train = np.random.default_rng(0).choice(len(X), arguments.train, replace=False)
    queries = images(X, arguments.queries, 10_000)
    print(f"{arguments.items:,} items, {arguments.bits} bits, {arguments.train:,} training rows", end="; ")
    print(f"milliseconds of {arguments.queries} queries: median / 95th percentile / largest")
    print("| hasher | encoding | search | both | click to list | MB | s, export | s, until ready |")
    print("|---|---|---|---|---|---|---|---|")
    for name in arguments.hashers:
        hasher = HASHERS[name](arguments.bits).fit(X[train], data.y[train])
        with tempfile.TemporaryDirectory() as folder:
            path, size, export = build(Path(folder), hasher, X, arguments.items, not arguments.no_previews)
            with priority(arguments.priority):
                times, ready = measure(path, queries)
        cells = (" / ".join(f"{each:.1f}" for each in np.quantile(column, [0.5, 0.95, 1])) for column in times)
        print(f"| {name} | {' | '.join(cells)} | {size:.0f} | {export:.0f} | {ready:.1f} |", flush=True)


if __name__ == "__main__":
    main()
