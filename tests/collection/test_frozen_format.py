"""Collections that a release wrote are opened, searched and changed by all later ones.

    python tests/collection/test_frozen_format.py 0.1.0

writes the collection of a release that is about to be made. Those of releases that were made are never written again.
"""

import sys
import tarfile
import tempfile
from pathlib import Path

import numpy as np
import pytest

from starshl import Collection
from starshl._version import __version__
from starshl.hashers.baselines import LSHash

FOLDER = Path(__file__).parent / "formats"
RELEASES = sorted(path.name.removesuffix(".tar.gz") for path in FOLDER.glob("*.tar.gz"))
X = np.random.default_rng(0).integers(-8, 9, (12, 6)) / 4.0  # whole numbers of float16 and of any product
NAMES = ["pear", "fig", None] * 4


def write(folder):
    """A collection with a bit of everything that one can hold."""
    hasher = LSHash(8, random_state=0).fit(X)
    with Collection.create(folder, hasher, vectors="float16", fields={"year": int}, title="name") as made:
        made.add(
            X,
            ids=range(100, 112),
            labels=NAMES,
            metadata=[{"name": f"item {row}", "year": 2000 + row} for row in range(12)],
            references=[f"{row}.png" for row in range(12)],
        )
        made.rename_class("fig", "date")
        with made.idempotent("a key", "an answer"):
            made.set_labels([102], ["pear"])
        made.remove([111])


@pytest.fixture(params=RELEASES)
def old(request, tmp_path):
    with tarfile.open(FOLDER / f"{request.param}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "collection"


def test_a_collection_of_a_release_holds_what_it_held(old):
    with Collection(old, read_only=True) as collection:
        assert collection.ids.tolist() == list(range(100, 111))
        assert collection.label_counts() == {"pear": 5, "date": 4}
        assert collection.fields == {"year": "int"}
        (item,) = collection.get([104], vectors=True)
        assert (item.label, item.metadata, item.reference) == ("date", {"name": "item 4", "year": 2004}, "4.png")
        assert item.vector == X[4].tolist()
        assert collection.receipt("a key") == "an answer"
        assert [change.kind for change in collection.class_changes()] == ["rename"]
        assert collection.verify() == 11


def test_a_collection_of_a_release_is_searched_as_it_was(old):
    with Collection(old, read_only=True) as collection:
        hits = collection.search(X[4:5], k=1)[0].hits
        assert [(hit.id, hit.rescored) for hit in hits] == [(104, 0.0)]
        found = collection.search(X[:1], k=11, where={"year": {"<": 2003}})[0].hits
        assert sorted(hit.id for hit in found) == [100, 101, 102]
        assert collection.hasher.encode(X) == LSHash(8, random_state=0).fit(X).encode(X)


def test_a_collection_of_a_release_can_be_changed(old):
    with Collection(old) as collection:
        collection.add(X[:1], ids=[200], labels=["date"], metadata=[{"year": 2026}])
        collection.undo_class_change()
        assert collection.label_counts() == {"pear": 5, "fig": 5}
        assert collection.verify() == 12


def test_the_collection_of_this_release_is_kept():
    assert __version__.split(".dev")[0] in RELEASES or ".dev" in __version__


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        write(Path(place) / "collection")
        with tarfile.open(FOLDER / f"{sys.argv[1]}.tar.gz", "w:gz") as archive:
            archive.add(Path(place) / "collection", "collection")
