"""Interrupt the fit of every hasher at random moments: the hasher must stay as it was, or be fitted anew completely.

    python tests/campaigns/interrupted_fits.py --interruptions 50 [--methods ITQ KSH]

Minutes, so not part of the test suite. An alarm rings at a moment drawn from the time that the fit takes; between two
instructions Python then raises what Ctrl+C would. Exit status 1 if any hasher was left in between.
"""

from __future__ import annotations

import argparse
import pickle
import signal
import sys
import time
import warnings
from collections import Counter

import numpy as np
from sklearn.datasets import load_digits

from starshl.hashers import BaseHasher, Configuration, configurations

# Settings under which one fit takes a fraction of a second.
QUICK = {
    "BoostSSC": {"n_pairs": 1000},
    "CGHash": {"max_triplets": 300},
    "ForgivingHash": {"max_iter": 10, "pool": 2},
    "KSH": {"max_iter": 20},
    "LAMP": {"n_pairs": 100, "n_anchors": 30, "max_rows": 100},
    "MLH": {"max_iter": 3, "n_pairs": 3000},
    "MetricLSH": {"n_pairs": 200},
    "SemanticHashing": {"hidden_sizes": (30,)},
}


class Interruption(BaseException):
    """What the alarm raises, like the KeyboardInterrupt of an impatient user."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--interruptions", type=int, default=50, help="per hasher")
    parser.add_argument("--methods", nargs="*", help="names of configurations; all by default")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, interrupt)
    rng = np.random.default_rng(options.seed)
    outcomes = Counter()
    for method in list(configurations()):
        if not options.methods or method.name in options.methods:
            counts = attack(method, options.interruptions, rng)
            print(f"{method.name:24}", ", ".join(f"{n} {what}" for what, n in sorted(counts.items())), flush=True)
            outcomes += counts
    print(dict(outcomes))
    sys.exit(outcomes["left in between"] > 0)


def interrupt(_number: int, _frame: object) -> None:
    raise Interruption


def attack(method: Configuration, n_interruptions: int, rng: np.random.Generator) -> Counter:
    """Refit one hasher until it has been interrupted so many times; count what became of it."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:300] / 16.0, y[:300]
    hasher = method.make(4, **QUICK.get(method.method, {}))
    other = (np.ascontiguousarray(X[::-1] + 0.1), y[::-1])
    seconds = _seconds(lambda: hasher.fit(*other))
    complete = pickle.dumps(hasher)
    before = pickle.dumps(hasher.fit(X, y))
    counts = Counter()
    while counts["unchanged"] + counts["left in between"] < n_interruptions:
        hasher = pickle.loads(before)
        interrupted = _fit_with_alarm(hasher, other, float(rng.uniform(0, seconds)))
        state = pickle.dumps(hasher)
        if state == before:
            counts["unchanged"] += 1
        elif state == complete:
            counts["fitted completely"] += 1
        else:
            counts["left in between"] += 1
        if not interrupted:
            seconds *= 0.98  # the machine is faster than it was
    return counts


def _fit_with_alarm(hasher: BaseHasher, data: tuple[np.ndarray, np.ndarray], seconds: float) -> bool:
    try:
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-5))
        hasher.fit(*data)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except (Interruption, Exception):  # NumPy turns some interruptions into a TypeError
        return True
    return False


def _seconds(call) -> float:
    call()  # the first call compiles
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
