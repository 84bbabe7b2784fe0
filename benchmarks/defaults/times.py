"""Processor time of fits on 3,000 rows, all methods in one process and by turns."""

import time

from data import MAIN, draw
from store import Store

from starshl import StarRidge, StarSHL
from starshl.hashers.baselines import SDH

ALL_LENGTHS = (8, 16, 32, 64)


def run(options) -> None:
    store = Store("times", options.again, options.sets)
    warm_up()
    for split in range(min(options.splits, 3)):
        for name, task in MAIN.items():
            if not options.sets or name in options.sets:
                data = draw(task, split)
                store.measure({"set": name, "split": split}, "fit times", lambda data=data: [fit_times(data)])


def warm_up() -> None:
    """Compile all loops."""
    data = draw(MAIN["letter"], 0)
    for hasher in (StarRidge(8), StarSHL(8), SDH(8, variant="hadamard", n_anchors=None)):
        hasher.fit(data.X_train[:1800], data.y_train[:1800]).encode(data.X_query[:100])


def fit_times(data) -> dict:
    fits = {
        "StarSHL, 32 bits": lambda: StarSHL(32, random_state=0).fit(data.X_train, data.y_train),
        "HC-SDH, 32 bits": lambda: SDH(32, variant="hadamard", n_anchors=None).fit(data.X_train, data.y_train),
        "StarRidge, 32 bits": lambda: StarRidge(32, random_state=0).fit(data.X_train, data.y_train),
        "StarRidge, four lengths": lambda: four_lengths(data),
    }
    return {name: round(cpu_seconds(fit), 3) for name, fit in fits.items()}


def four_lengths(data) -> None:
    hasher = StarRidge(64, random_state=0).fit(data.X_train, data.y_train)
    for n_bits in ALL_LENGTHS:
        hasher.with_bits(n_bits)


def cpu_seconds(action) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start
