"""Data for the whole suite: what ships with scikit-learn, and the folder of data sets where there is one; markers."""

import os
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from sklearn.datasets import load_digits

from starshl.data.features import embedding_cache

# The same examples on every machine, however slow it is: what fails for one person fails for all.
settings.register_profile("suite", deadline=None, derandomize=True)
settings.load_profile("suite")

# What a fixture starts is a reason to leave its tests out of a quick check.
MARKERS_BY_FIXTURE = {
    "chromium": "browser",
    "cluster": "server",
    "milvus_file": "server",
    "open_index": "server",
    "postgres": "server",
    "fresh_postgres": "server",
}


@pytest.hookimpl(tryfirst=True)  # before -m deselects
def pytest_collection_modifyitems(items):
    for item in items:
        used = MARKERS_BY_FIXTURE.keys() & getattr(item, "fixturenames", ())
        for marker in {MARKERS_BY_FIXTURE[name] for name in used}:
            item.add_marker(marker)


@pytest.fixture(scope="session", autouse=True)
def own_embeddings():
    """Leave the cache of embeddings alone: what another version left there would hide a mistake of this one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedding_cache, "FEWEST", sys.maxsize)
        yield


@pytest.fixture(scope="session")
def digits():
    """All 1,797 digits, pixels in [0, 1]."""
    X, y = load_digits(return_X_y=True)
    return X / 16.0, y


@pytest.fixture(scope="module")
def chromium():
    """One browser for all tests of a module: where sync_playwright is open, no other event loop can run."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    names = ("chromium", "chromium-browser", "google-chrome")
    path = os.environ.get("STARSHL_BROWSER") or next(filter(None, map(shutil.which, names)), None)
    if path is None:
        pytest.skip("there is no browser: install Debian's chromium, or name one in STARSHL_BROWSER")
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=arguments)
        yield running
        running.close()


@pytest.fixture
def full_disk():
    """A function of a number of bytes: while its context lasts, no file grows beyond them, as on a full disk."""
    resource = pytest.importorskip("resource", reason="this system does not limit files")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    @contextmanager
    def limited(after):
        resource.setrlimit(resource.RLIMIT_FSIZE, (after, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    return limited


@pytest.fixture(scope="session")
def few_labels(digits):
    """A function of a seed and a number: labels of that many rows a class, -1 elsewhere."""
    _, y = digits

    def hide(seed, n_per_class):
        order = np.random.RandomState(seed).permutation(len(y))
        kept = np.concatenate([order[y[order] == label][:n_per_class] for label in range(10)])
        hidden = np.full(len(y), -1)
        hidden[kept] = y[kept]
        return hidden

    return hide


@pytest.fixture(scope="session")
def small_mnist():
    """The demo data of the paper's authors, from the folder named by STARSHL_DATA."""
    path = Path(os.environ.get("STARSHL_DATA", "")) / "small_mnist.npz"
    if not os.environ.get("STARSHL_DATA") or not path.is_file():
        pytest.skip("STARSHL_DATA names no folder with small_mnist.npz")
    with np.load(path, allow_pickle=False) as arrays:
        return tuple(arrays[name] for name in ("Ltr", "Ltr_L", "te", "te_L"))
