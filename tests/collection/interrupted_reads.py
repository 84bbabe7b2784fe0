"""Run in a process of its own: stop reads with Ctrl+C again and again, keep every traceback, and change the items."""

import os
import random
import signal
import sys
import threading
import time

import numpy as np

from starshl import Collection
from starshl.hashers.baselines import LSHash

ITEMS = 200


def stopped(read, seconds):
    """Call a function and send Ctrl+C after a while; return the traceback, None if the function was done before."""
    timer = threading.Timer(seconds, os.kill, [os.getpid(), signal.SIGINT])
    try:
        timer.start()
        read()
        timer.join()
        time.sleep(0.05)
    except (KeyboardInterrupt, SystemError) as error:
        # Numba makes a SystemError of Ctrl+C while a loop hands its result over.
        if isinstance(error, SystemError) and "exception set" not in str(error):
            raise
        timer.join()
        return error
    return None


def main(folder, n_stops):
    rng, kept = random.Random(0), []
    rows = np.random.default_rng(0).standard_normal((ITEMS, 8))
    with Collection.create(folder, LSHash(16, random_state=0).fit(rows), vectors="float16") as collection:
        collection.add(rows, labels=["a"] * ITEMS, metadata=[{"price": item} for item in range(ITEMS)])
        reads = [
            lambda: [collection.get(range(ITEMS)) for _ in range(20)],
            lambda: [collection.search(rows, k=ITEMS) for _ in range(5)],
            lambda: [collection.find({"price": {"<": 5}}) for _ in range(20)],
            lambda: [collection.verify() for _ in range(5)],
        ]
        seconds = []
        for read in reads:
            started = time.perf_counter()
            read()
            seconds.append(time.perf_counter() - started)
        for attempt in range(n_stops * 10):
            number = attempt % len(reads)
            error = stopped(reads[number], rng.uniform(0.0, 0.9) * seconds[number])
            kept += [] if error is None else [error]
            label = "abc"[attempt % 3]
            collection.set_labels([attempt % ITEMS], [label])
            assert collection.get([attempt % ITEMS])[0].label == label
            assert len(collection.search(rows[:1], k=2)[0]) == 2
            assert len(collection.find(labels=[label])) > 0
            if len(kept) == n_stops:
                break
        print(len(kept), collection.verify(), len(np.unique([id(error) for error in kept])))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
