"""Run in a mount namespace of its own: fill a real disk of 2 MB, then make it read-only."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from starshl import Collection
from starshl.exceptions import CollectionError
from starshl.hashers.baselines import LSHash


def main(disk):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk], check=True)
    X = np.random.default_rng(0).standard_normal((100, 8))
    n_batches = fill(disk / "items", X)
    with Collection(disk / "items", read_only=True) as collection:
        expected = collection.search(X[:3], k=20)

    too_large = LSHash(4000, random_state=0).fit(np.zeros((2, 200)))
    with pytest.raises(OSError, match="No space left"):
        Collection.create(disk / "second", too_large)
    assert [path.name for path in disk.iterdir()] == ["items"]

    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    with pytest.raises(CollectionError, match="read-only"):
        Collection(disk / "items")
    with Collection(disk / "items", read_only=True) as collection:
        assert collection.verify() == 100 * n_batches
        assert collection.search(X[:3], k=20) == expected


def fill(folder, X):
    """Add batches until the disk is full; return how many are in."""
    with Collection.create(folder, LSHash(24, random_state=0).fit(X), vectors="float16") as collection:
        with pytest.raises(CollectionError, match=r"(?i)nothing of this change"):
            add_forever(collection, X)
        n_items = collection.verify()
    assert n_items > 500
    assert n_items % 100 == 0
    return n_items // 100


def add_forever(collection, X):
    while True:
        collection.add(X, labels=["a", "b"] * 50, metadata=[{"text": "x" * 300}] * 100)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    print("all held")
