"""Chromium and a service over small collections: a folder of drawn pictures, and copies of it to change."""

import shutil

import numpy as np
import pytest

from starshl import Collection
from starshl.data.features import Embedder, PictureFeatures, ReadPictures, preview_of
from starshl.hashers.baselines import ITQ
from starshl.service import BackgroundServer, Service, create_app

from .acting import PATIENCE

KINDS = ("circle", "cross", "square")
N_PICTURES, N_LABELED = 240, 160
COPIES = (
    "album",
    "lesson",
    "shared",
    "fresh",
    "careful",
    "twice",
    "brushed",
    "idle",
    "quick",
    "stale",
    "unread",
    "guessed",
    "renamed",
)


def draw(kind, rng, side=24):
    """Return a picture of a shape somewhere on noise, light on dark or dark on light."""
    rows, columns = np.mgrid[:side, :side] - side / 2 + rng.uniform(-2, 2, 2)[:, None, None]
    size = rng.uniform(6, 8)
    shape = {
        "circle": np.abs(np.hypot(rows, columns) - size) < 1.8,
        "cross": (np.abs(np.abs(rows) - np.abs(columns)) < 2) & (np.maximum(np.abs(rows), np.abs(columns)) < size),
        "square": np.abs(np.maximum(np.abs(rows), np.abs(columns)) - size) < 1.8,
    }[kind]
    gray = 40 + 150 * shape + rng.normal(0, 14, shape.shape)
    return np.repeat(gray.clip(0, 255).astype(np.uint8)[:, :, None], 3, axis=2)


@pytest.fixture(scope="session")
def truth():
    """The kind of each picture, by id."""
    return [KINDS[place] for place in np.random.default_rng(1).integers(0, 3, N_PICTURES)]


@pytest.fixture(scope="session")
def pictures(tmp_path_factory, truth):
    """A folder of picture files; none of their names says what they show."""
    images = pytest.importorskip("PIL.Image")
    folder, rng = tmp_path_factory.mktemp("pictures"), np.random.default_rng(2)
    for number, kind in enumerate(truth):
        images.fromarray(draw(kind, rng)).save(folder / f"{number:03}.png")
    return folder


@pytest.fixture(scope="session")
def template(pictures, tmp_path_factory):
    """A collection made from the folder, without labels."""
    paths = sorted(pictures.iterdir())
    features = PictureFeatures((16, 16, 3)).fit(np.full((1, 16, 16, 3), 255, np.uint8))
    embedder = Embedder("pictures", [ReadPictures(side=16).fit(), features])
    vectors = embedder.embed(paths)
    folder = tmp_path_factory.mktemp("template") / "album"
    hasher = ITQ(16, random_state=0).fit(vectors)
    with Collection.create(folder, hasher, vectors="float16", embedder=embedder, fields={"sheet": int}) as collection:
        collection.add(
            vectors,
            references=[path.name for path in paths],
            metadata=[{"sheet": place // 40} for place in range(len(paths))],
            previews=[preview_of(path) for path in paths],
        )
    return folder


@pytest.fixture(scope="module")
def site(template, truth, tmp_path_factory):
    """The address of a service; most of "album" have labels, the others none."""
    place = tmp_path_factory.mktemp("site")
    folders = [shutil.copytree(template, place / name) for name in COPIES]
    with Collection(folders[0]) as album:
        album.set_labels(range(N_LABELED), truth[:N_LABELED])
    with BackgroundServer(create_app(lambda observer: Service(folders, observer=observer))) as server:
        yield server.address


@pytest.fixture
def visit(chromium, site):
    """A function of a path that opens a page; at the end, none may have had an error in its scripts."""
    contexts, errors = [], []

    def open_page(path, **settings):
        context = chromium.new_context(**{"viewport": {"width": 1280, "height": 900}} | settings)
        context.set_default_timeout(1000 * PATIENCE)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(site + path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert errors == []
