"""Measure what a new process costs before its first answer: python benchmarks/startup.py [fit] [hit]

``fit`` fits to 1,000 rows on a machine that has never compiled a loop, and again. ``hit`` searches a collection of
200,000 codes, and one of vectors: by stored item, and by a new vector. All figures are processor seconds of whole
processes.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from measuring import show

from starshl import BinaryCodes, Collection, HybridHasher
from starshl.hashers.baselines import LSHash

FIT = """
import sys
import numpy as np
from starshl import HybridHasher, StarRidge, StarSHL
rng = np.random.default_rng(0)
y = rng.integers(0, 10, 1000)
X = 2 * rng.standard_normal((10, 64))[y] + rng.standard_normal((1000, 64))
{call}.fit(X, y).encode(X[:5])
"""
METHODS = ("StarRidge(32, random_state=0)", "HybridHasher(64, random_state=0)", "StarSHL(32, random_state=0)")
HITS = {
    "import NumPy": "import numpy",
    "codes only": """
import numpy as np
from starshl import BinaryCodes, make_index
codes = BinaryCodes(np.random.default_rng(0).integers(0, 256, (200_000, 8), np.uint8), 64)
make_index(codes).search(codes[:1], 10)
""",
    "by stored item": "from starshl import Collection; Collection('{folder}', read_only=True).search(items=[5])",
    "by vector": """
import numpy as np
from starshl import Collection
Collection('{folder}', read_only=True).search(np.ones((1, {n_columns})))
""",
}


def seconds_of(code, **more) -> float:
    """Return the processor time of a new process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"OMP_NUM_THREADS": "1"} | more)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def fit(parent):
    rows = []
    for method in METHODS:
        cache = {"NUMBA_CACHE_DIR": str(parent / method[:5])}
        first, second = (seconds_of(FIT.format(call=method), **cache) for _ in range(2))
        rows.append((method, f"{first:.2f}", f"{second:.2f}", f"{first / second:.2f}"))
    show(("fit to 1,000 rows", "first", "second", "ratio"), *rows)


def hit(parent):
    rng = np.random.default_rng(0)
    codes = BinaryCodes(rng.integers(0, 256, (200_000, 8), np.uint8), 64)
    y = rng.integers(0, 10, 1800)
    X = 4 * rng.standard_normal((10, 64))[y] + rng.standard_normal((1800, 64))
    with Collection.create(parent / "codes", LSHash(64, random_state=0).fit(X)) as collection:
        collection.add(codes=BinaryCodes(codes.packed, 64, collection.space_id))
    with Collection.create(
        parent / "hybrid", HybridHasher(64, random_state=0).fit(X, y), vectors="float16"
    ) as collection:
        collection.add(X, labels=y)
    rows = []
    for folder in ("codes", "hybrid"):
        cache = {"NUMBA_CACHE_DIR": str(parent / folder) + "-loops"}
        for name, code in HITS.items():
            told = code.format(folder=parent / folder, n_columns=64) if "{folder}" in code else code
            first, *others = (seconds_of(told, **cache) for _ in range(4))
            rows.append((folder, name, f"{first:.2f}", f"{min(others):.2f}", f"{first / min(others):.2f}"))
    show(("collection", "first hit", "first run", "later", "ratio"), *rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=["fit", "hit", []], default=["fit", "hit"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for part in options.parts:
            {"fit": fit, "hit": hit}[part](Path(folder))
