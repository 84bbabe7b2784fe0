"""Small collections, and the service over them in this process."""

import asyncio
import shutil
import threading

import httpx
import numpy as np
import pytest

from starshl import Collection
from starshl.hashers.baselines import LSHash
from starshl.service import Service, create_app
from starshl.service.settings import Settings

from .drawn import import_raw

N_ITEMS, N_COLUMNS = 60, 8


class InProcess:
    """Sends requests to an app without a socket; the requests of several threads run at the same time."""

    def __init__(self, app):
        self.app = app
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        self._http = httpx.AsyncClient(transport=transport, base_url="http://localhost")

    def __call__(self, method, path, root="/api/v1", **settings):
        sent = self._http.request(method, f"{root}{path}", **settings)
        return asyncio.run_coroutine_threadsafe(sent, self._loop).result()

    def together(self, *requests):
        async def send():
            return await asyncio.gather(
                *(self._http.request(method, f"/api/v1{path}", json=body) for method, path, body in requests)
            )

        return asyncio.run_coroutine_threadsafe(send(), self._loop).result()

    def close(self):
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self.app.state.service.close()


@pytest.fixture(scope="session")
def rows():
    return np.random.default_rng(0).standard_normal((N_ITEMS, N_COLUMNS)).round(3)


@pytest.fixture(scope="session")
def template(tmp_path_factory, rows):
    """A closed collection of 60 items with vectors, labels "a", "b", "c" and prices 0 ... 59."""
    folder = tmp_path_factory.mktemp("template") / "things"
    with Collection.create(folder, LSHash(24, random_state=0).fit(rows), vectors="float16") as collection:
        collection.add(
            rows,
            labels=["abc"[i % 3] for i in range(N_ITEMS)],
            metadata=[{"price": i} for i in range(N_ITEMS)],
            references=[f"{i}.png" for i in range(N_ITEMS)],
        )
    return folder


@pytest.fixture(scope="session")
def raw_collections(tmp_path_factory):
    """A folder with two closed collections: "pictures", of 24 pictures, and "texts", of 24 texts."""
    root = tmp_path_factory.mktemp("raw")
    import_raw(root)
    return root


@pytest.fixture
def folder(template, tmp_path):
    return shutil.copytree(template, tmp_path / "things")


@pytest.fixture
def running():
    """A function of folders and settings that returns an app in process; all are closed at the end."""
    opened = []

    def start(*folders, settings=None, **options):
        app = create_app(lambda observer: Service(folders, observer=observer, **options), settings or Settings())
        opened.append(InProcess(app))
        return opened[-1]

    yield start
    for each in opened:
        each.close()


@pytest.fixture
def ask(running, folder):
    """A function (method, path, **httpx settings) that asks a service of one collection, things."""
    return running(folder)


@pytest.fixture(scope="module")
def shared(template, tmp_path_factory):
    """The same for the tests of a module that change nothing they depend on."""
    folder = shutil.copytree(template, tmp_path_factory.mktemp("shared") / "things")
    app = InProcess(create_app(lambda observer: Service([folder], observer=observer)))
    yield app
    app.close()
