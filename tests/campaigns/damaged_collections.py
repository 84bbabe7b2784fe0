"""Damage the files of collections at random and open them.

    python tests/campaigns/damaged_collections.py --files 10000

Each damaged collection must be refused, or hold exactly what was acknowledged; nothing may crash. The last line counts
the outcomes; a violation ends the campaign with an error that names the seed and the number of the file.
"""

import argparse
import shutil
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

from starshl import Collection
from starshl.collection.database import Connection
from starshl.exceptions import CollectionError, CollectionFormatError
from starshl.hashers.baselines import LSHash

ROWS = np.random.default_rng(0).standard_normal((60, 8))
LOG = "items.sqlite-wal"


def make_closed(folder):
    """Store several changes and close the collection."""
    hasher = LSHash(24, random_state=0).fit(ROWS)
    with Collection.create(folder, hasher, vectors="float16", fields={"text": str}) as collection:
        change_several_times(collection)
        collection.compact()
        return contents(collection)


def make_with_log(folder, *, moved_first):
    """Copy a collection while its log holds several changes, as a killed writer leaves it.

    With ``moved_first``, the first change is in the database already.
    """
    real_checkpoint = Connection.checkpoint
    hasher = LSHash(24, random_state=0).fit(ROWS)
    with Collection.create(folder.with_name("open"), hasher, vectors="int8", fields={"text": str}) as collection:
        if moved_first:
            collection.add(ROWS[:10], ids=np.arange(1000, 1010))
        Connection.checkpoint = lambda connection: None
        try:
            change_several_times(collection)
        finally:
            Connection.checkpoint = real_checkpoint
        stored = contents(collection)
        shutil.copytree(folder.with_name("open"), folder)
    shutil.rmtree(folder.with_name("open"))
    assert (folder / LOG).stat().st_size > 10_000
    return stored


def contents(collection):
    """Return everything that must survive: searches, with filters of every kind, and then rows and vectors.

    Searches come first: what is damaged must be noticed when it is used, not only when everything is read.
    """
    filters = ({}, {"where": {"text": "x" * 40}}, {"labels": ["a", "b"]}, {"where": {"label": 20}})
    answers = [collection.search(ROWS[:3], k=5, oversample=2, **some) for some in filters]
    return collection.rows(), collection.vectors(collection.ids).tobytes(), answers


def change_several_times(collection):
    for start in (0, 20, 40):
        ids = np.arange(start, start + 20)
        collection.add(ROWS[ids], ids=ids, metadata=[{"label": start, "text": "x" * 40}] * 20)
    collection.update([3, 30], [{"label": "new"}, {"label": "class"}])
    collection.set_labels([2, 3, 4], ["a", "b", "c"])
    collection.remove([5, 50])
    collection.upsert(ROWS[10:20], ids=np.arange(20, 30))


def damage(folder, rng):
    """Damage one file, or remove the log; return a description."""
    files = sorted(path for path in folder.iterdir() if path.name not in ("writer.lock", "items.sqlite-shm"))
    logs = [path for path in files if path.name == LOG]
    path = files[rng.integers(len(files))] if not logs or rng.random() < 0.5 else logs[0]
    content = bytearray(path.read_bytes())
    kind = rng.choice(["flip", "flips", "cut", "zeros", "gone"], p=[0.6, 0.15, 0.12, 0.12, 0.01])
    if kind == "gone":
        path.unlink()
        return path.name, kind
    if content:
        if kind == "cut":
            del content[rng.integers(len(content)) :]
        elif kind == "zeros":
            start = int(rng.integers(len(content)))
            end = min(len(content), start + int(rng.integers(1, 5000)))
            content[start:end] = bytes(end - start)
        else:
            for place in rng.integers(len(content), size=1 if kind == "flip" else rng.integers(2, 20)):
                content[place] ^= 1 << int(rng.integers(8))
    path.write_bytes(content)
    return path.name, str(kind)


def outcome(folder, expected, read_only):
    """Return "refused" or "intact"; anything else is an error."""
    try:
        with Collection(folder, read_only=read_only) as collection:
            n_items = len(expected[0])
            assert contents(collection) == expected, "items have changed"
            assert collection.verify() == n_items, "items are lost"
            if not read_only:
                new = collection.add(ROWS[:2], labels=["x", "y"])
                assert len(collection) == n_items + 2
                collection.remove(new)
                collection.compact()
                assert_same_items(contents(collection), expected)
    except (CollectionError, CollectionFormatError):
        return "refused"
    except FileNotFoundError:
        # The database itself is the file that is gone.
        if (folder / "items.sqlite").exists():
            raise
        return "refused"
    return "intact"


def assert_same_items(found, expected):
    """Compare all but the positions of the vectors, which a compaction changes."""
    rows, wanted = ([row._replace(vector_position=None) for row in side[0]] for side in (found, expected))
    assert (rows, *found[1:]) == (wanted, *expected[1:]), "a change has changed more than it should"


def main(n_files, seed, parent):
    sources = {name: parent / name for name in ("closed", "log", "log after a checkpoint")}
    expected = {
        "closed": make_closed(sources["closed"]),
        "log": make_with_log(sources["log"], moved_first=False),
        "log after a checkpoint": make_with_log(sources["log after a checkpoint"], moved_first=True),
    }
    counts = Counter()
    for number in range(n_files):
        rng = np.random.default_rng([seed, number])
        source = list(sources)[rng.integers(len(sources))]
        broken = parent / "broken"
        shutil.copytree(sources[source], broken)
        name, kind = damage(broken, rng)
        try:
            result = outcome(broken, expected[source], read_only=bool(rng.random() < 0.6))
        except BaseException as error:
            raise AssertionError(f"file {number} of seed {seed}: {kind} in {name} of {source!r}") from error
        counts["model" if name.endswith(".star") else name, result] += 1
        shutil.rmtree(broken)
        if (number + 1) % 1000 == 0:
            print(f"{number + 1} damaged collections, nothing lost silently", flush=True)
    for (name, result), count in sorted(counts.items()):
        print(f"{name}: {count} {result}")
    print(f"{n_files} damaged collections, no violation")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.filterwarnings("ignore", message="The filter reads the metadata of all")
    with tempfile.TemporaryDirectory() as folder:
        main(options.files, options.seed, Path(folder))
