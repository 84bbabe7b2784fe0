"""Kill a writer at a random instant, again and again, while another process reads.

    python tests/campaigns/killed_writers.py --cycles 1000

Every acknowledged change must survive, every batch must be stored completely or not at all, with its labels, declared
fields and kept vectors, and the reader must never see anything else. The last line counts the acknowledged changes; a
violation ends the campaign with an error.
"""

import argparse
import multiprocessing
import os
import select
import tempfile
import time
from pathlib import Path

import numpy as np

from starshl import BinaryCodes, Collection
from starshl.collection import Filters
from starshl.collection.database import Connection
from starshl.collection.filters import passing_items
from starshl.hashers.baselines import LSHash

BATCH = 20
CYCLES_PER_COLLECTION = 25
ADDED, REPLACED, LABELED, REMOVED = range(4)
N_COLUMNS = 8
FORK = multiprocessing.get_context("fork")


def write_until_killed(folder, acknowledged):
    """Add a batch, replace it, label it, remove one of three; compact at times; tell the parent after each return."""
    rng = np.random.default_rng(os.getpid())
    # It waits for readers in the middle of a state, and moves no vectors.
    Connection.vacuum = lambda connection: None

    def tell(step):
        os.write(acknowledged, f"{batch} {step}\n".encode())

    with Collection(folder) as collection:
        # Above every batch that was ever begun: removed ones must not come back under the same number.
        batch = 1 + max((row.metadata["batch"] for row in collection.rows()), default=-1) + 3
        while True:
            codes = BinaryCodes(rng.integers(0, 256, (BATCH, 3), dtype=np.uint8), 24, collection.space_id)
            ids = np.arange(batch * BATCH, (batch + 1) * BATCH)
            for store, step in ((collection.add, ADDED), (collection.upsert, REPLACED)):
                metadata = [{"batch": batch, "step": step}] * BATCH
                store(vectors_of(ids, step), codes=codes, ids=ids, metadata=metadata)
                tell(step)
            collection.set_labels(ids, ["checked"] * BATCH)
            tell(LABELED)
            if is_removed(batch):
                collection.remove(ids)
                tell(REMOVED)
            if rng.random() < 0.2:
                collection.compact()
            batch += 1


def vectors_of(ids, step):
    """Return vectors that tell the items and steps apart, of numbers that float16 holds exactly."""
    return np.stack([ids % 2048, ids // 2048 % 2048, np.full(len(ids), step), *[ids % 7] * (N_COLUMNS - 3)], axis=1)


def is_removed(batch):
    return batch % 3 == 1


def kill_writer(folder, rng):
    """Start a writer, kill it, and return the batches and steps that it acknowledged."""
    read_end, write_end = os.pipe()
    writer = FORK.Process(target=write_until_killed, args=(folder, write_end))
    writer.start()
    os.close(write_end)
    if rng.random() < 0.8:
        # Most kills fall between two acknowledgments, however busy the machine is; the others at any time.
        select.select([read_end], [], [], 30)
    time.sleep(0.04 * rng.random())
    writer.kill()
    writer.join()
    with os.fdopen(read_end) as pipe:
        lines = [line.split() for line in pipe.read().splitlines()]
    return [(int(batch), int(step)) for batch, step in lines]


def check_state(collection):
    """Return the step of each batch in one state; refuse incomplete batches, mixtures of steps and foreign vectors."""
    steps = {}
    with collection.reading() as (snapshot, store):
        rows = list(store.all_rows())
        vectors = snapshot.vectors_of(store, [row.id for row in rows])
        replaced = passing_items(snapshot, store, Filters.of({"step": REPLACED}))
        labeled = passing_items(snapshot, store, Filters.of(labels=["checked"]))
    assert sorted(snapshot.index.ids[replaced]) == [row.id for row in rows if row.metadata["step"] == REPLACED]
    assert sorted(snapshot.index.ids[labeled]) == [row.id for row in rows if row.class_id is not None]
    for row, vector in zip(rows, vectors, strict=True):
        metadata = row.metadata
        assert (vector == vectors_of(np.array([row.id]), metadata["step"])[0]).all(), (
            f"item {row.id} has another vector"
        )
        steps.setdefault(metadata["batch"], []).append(metadata["step"] if row.class_id is None else LABELED)
    for batch, seen in steps.items():
        assert len(seen) == BATCH, f"batch {batch} has {len(seen)} items"
        assert len(set(seen)) == 1, f"batch {batch} is a mixture of steps"
    return {batch: seen[0] for batch, seen in steps.items()}


def check_acknowledged(folder, acknowledged):
    """Compare what is stored with what was acknowledged."""
    with Collection(folder) as collection:
        n_items = collection.verify()
        steps = check_state(collection)
        assert len(collection) == n_items == BATCH * len(steps)
    for batch, step in acknowledged.items():
        if step == REMOVED:
            assert batch not in steps, f"batch {batch} was removed and is back"
        elif not (step == LABELED and is_removed(batch)):
            # Where a removal follows, it may be stored without having been acknowledged.
            assert steps.get(batch, -1) >= step, f"step {step} of batch {batch} is lost"


def read_until_told(folder, channel):
    """Read states through one long-lived object and through new ones; report how many."""
    n_states = 0
    with Collection(folder, read_only=True) as reader:
        while not channel.poll():
            check_state(reader)
            with Collection(folder, read_only=True) as newcomer:
                check_state(newcomer)
            n_states += 2
            time.sleep(0.1)
    channel.send(n_states)


def run_collection(folder, n_cycles, rng):
    """Return how many changes were acknowledged, and how many states the reader has seen."""
    hasher = LSHash(24, random_state=0).fit(np.eye(N_COLUMNS))
    Collection.create(folder, hasher, vectors="float16", fields={"batch": int, "step": int}).close()
    here, there = FORK.Pipe()
    reader = FORK.Process(target=read_until_told, args=(folder, there))
    reader.start()
    acknowledged, n_changes = {}, 0
    for _ in range(n_cycles):
        changes = kill_writer(folder, rng)
        n_changes += len(changes)
        acknowledged |= dict(changes)
        check_acknowledged(folder, acknowledged)
    here.send("stop")
    assert here.poll(60), "the reader has died"
    n_states = here.recv()
    reader.join()
    assert reader.exitcode == 0
    return n_changes, n_states


def main(n_cycles, seed):
    rng = np.random.default_rng(seed)
    n_changes = n_states = 0
    for first in range(0, n_cycles, CYCLES_PER_COLLECTION):
        n_here = min(CYCLES_PER_COLLECTION, n_cycles - first)
        with tempfile.TemporaryDirectory() as parent:
            changes, states = run_collection(Path(parent) / "items", n_here, rng)
        n_changes, n_states = n_changes + changes, n_states + states
        print(
            f"{first + n_here} kills, {n_changes} acknowledged changes, {n_states} states read, nothing lost",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cycles", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    main(options.cycles, options.seed)
