"""Damage model files of every method by the thousand: each is refused, or loads as a model that works.

Not collected by default. Run it with ``python tests/campaigns/damaged_models.py 10000``, or as a test with
``pytest tests/campaigns/damaged_models.py -m slow``. Every method is attacked in a process of its own, so that a
crash, a hang or a large allocation is seen and told with the seed of the file that caused it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

import starshl
from starshl._common.bundle import read_bundle
from starshl._common.files import array_digest
from starshl.data.features import Impute, Scale, TableFeatures, Text
from starshl.hashers import PreparedHasher, configurations
from starshl.learning.kernels import Gaussian, GraphGaussian

N_BITS = 4
MAX_BYTES = 2**30
SECONDS_PER_FILE = 20
QUICK = {"max_iter": 2, "n_pairs": 60, "n_constraints": 40, "n_anchors": 12, "pool": 2, "max_rows": 50}
QUICK |= {"n_support": 12, "max_triplets": 60, "pairs_per_epoch": 100, "hidden_sizes": (8,), "n_labeled": 40}
GARBAGE = (None, -1, 0, 1, 3, 10**6, 2**31, 10**15, 10**40, 0.0, 1.5, -1e308, float("nan"), "", "os:system", "a" * 999)
GARBAGE += ([], {}, [1, 2], [-1], [10**12], [2**40, 2**40], True, False, "<f8", "|O", "<U500000000", "|S400000000")
GARBAGE += ([[[[[[]]]]]], {"kind": "value", "value": 3}, {"float": "nan"}, [None] * 50)


def rows_and_labels() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    return 3 * rng.standard_normal((3, 6))[y] + rng.standard_normal((60, 6)), y


def fitted_models() -> dict[str, starshl.hashers.base.BaseHasher]:
    """Return every method of the catalog in every variant, and StarSHL with each kind of kernel."""
    X, y = rows_and_labels()
    models = {}
    for method in configurations():
        hasher = method.hasher_class(n_bits=2 if method.method in ("LDAHash",) else N_BITS, **method.params)
        names = hasher.get_params()
        changes = {name: value for name, value in QUICK.items() if name in names and name not in method.params}
        hasher.set_params(**changes)
        if "random_state" in names:
            hasher.set_params(random_state=0)
        models[method.name] = hasher.fit(X, y if method.facts.labels != "ignored" else None)
    some = np.where(np.arange(60) < 30, y, -1)
    models["StarSHL graph"] = starshl.StarSHL(N_BITS, kernels=[GraphGaussian(), Gaussian(1.0)]).fit(X, some)
    models["StarSHL precomputed"] = starshl.StarSHL(N_BITS, kernels="precomputed").fit(X @ X.T + np.eye(60), y)
    models["StarSHL text labels"] = starshl.StarSHL(N_BITS).fit(X, np.array(["a", "bb", "ccc"])[y])
    steps = [TableFeatures(categories=[0]), Impute(), Scale()]
    models["PreparedHasher"] = PreparedHasher(steps, starshl.StarSHL(N_BITS, random_state=0)).fit(X.round(), y)
    texts = ["a red car", "fresh bread", "blue sky"] * 20
    models["PreparedHasher text"] = PreparedHasher([Text(3)], starshl.StarSHL(N_BITS, random_state=0)).fit(texts, y)
    return models


def seal(header: dict, arrays: dict[str, np.ndarray]) -> bytes:
    """Return a file with a right checksum around an edited header and edited arrays."""
    digest = array_digest(arrays, head=json.dumps(header, sort_keys=True) + "\n")
    return save(arrays, metadata={"starshl": json.dumps({"header": header, "sha256": digest}, sort_keys=True)})


def damage_bytes(content: bytes, rng: np.random.Generator) -> bytes:
    """Cut, flip, insert, delete, repeat or overwrite bytes; half of the places are in the header."""
    damaged = bytearray(content)
    header_end = 8 + int.from_bytes(content[:8], "little")
    place = int(rng.integers(header_end if rng.random() < 0.5 else len(content)))
    n = int(rng.integers(1, 20))
    match rng.integers(6):
        case 0:
            damaged = damaged[:place]
        case 1:
            damaged[place] ^= 1 << int(rng.integers(8))
        case 2:
            damaged[place:place] = rng.bytes(n)
        case 3:
            del damaged[place : place + n]
        case 4:
            damaged[place : place + n] = rng.bytes(n)
        case 5:
            damaged[place:place] = damaged[max(0, place - n) : place]
    return bytes(damaged)


def edit_header(tree, rng: np.random.Generator) -> None:
    """Replace, delete, rename or add one entry somewhere in a header."""
    while True:
        keys = list(tree) if isinstance(tree, dict) else list(range(len(tree)))
        key = keys[rng.integers(len(keys))]
        if isinstance(tree[key], (dict, list)) and tree[key] and rng.random() < 0.9:
            tree = tree[key]
            continue
        value = GARBAGE[rng.integers(len(GARBAGE))]
        action = rng.random() if isinstance(tree, dict) else 1.0
        if action < 0.1:
            del tree[key]
        elif action < 0.2:
            tree[str(value)[:50]] = tree.pop(key)
        elif action < 0.3:
            tree[str(key) + "_"] = value
        else:
            tree[key] = value
        return


def edit_array(arrays: dict[str, np.ndarray], rng: np.random.Generator) -> None:
    """Remove, cut, reshape, retype or refill one array, or change one of its entries."""
    name = sorted(arrays)[rng.integers(len(arrays))]
    array = np.array(arrays[name])
    match rng.integers(8):
        case 0:
            del arrays[name]
            return
        case 1:
            array = array.ravel()[: array.size // 2]
        case 2:
            array = np.ascontiguousarray(array.T[:1])
        case 3:
            array = array.astype([np.float32, np.int8, np.int64, np.float64, np.uint8][rng.integers(5)])
        case 4:
            array = np.full_like(array, np.nan if array.dtype.kind == "f" else 77)
        case 5:
            array = array.ravel()
        case 6:
            array = np.concatenate([array.ravel(), array.ravel()])
        case 7 if array.size:
            extremes = [np.inf, -1e308, 1e300, 0.0] if array.dtype.kind == "f" else [127, 0, 1]
            if array.dtype.kind == "i" and array.dtype.itemsize > 1:
                info = np.iinfo(array.dtype)
                extremes = [info.min, info.max, -1, 10**4]
            array.flat[rng.integers(array.size)] = extremes[rng.integers(len(extremes))]
    arrays[name] = array


def use_other_methods(loaded, X, resealed: bool) -> None:
    """Call what a model offers besides scores; a resealed one may refuse, with a ValueError."""
    try:
        codes = loaded.encode_database(X)
        if hasattr(loaded, "predict"):
            assert len(loaded.predict(X)) == len(X)
        if hasattr(loaded, "weighted_distances"):
            assert loaded.weighted_distances(codes, codes).shape == (len(X), len(X))
        if hasattr(loaded, "sketch"):
            assert loaded.asymmetric_distances(X, loaded.sketch(X)).shape == (len(X), len(X))
    except ValueError:
        assert resealed, "a damaged file loaded as a model that refuses rows"


def attack_one(content: bytes, reference: np.ndarray, X, path: Path, seed: int) -> str:
    """Load one damaged file and return what became of it; anything but a refusal or a model that works raises."""
    rng = np.random.default_rng(seed)
    resealed = rng.random() < 0.6
    if resealed:
        header, arrays = read_bundle(path.with_suffix(".whole"))
        if rng.random() < 0.5:
            edit_header(header, rng)
        else:
            edit_array(arrays, rng)
        content = seal(header, arrays)
    else:
        content = damage_bytes(content, rng)
    path.write_bytes(content)
    try:
        loaded = starshl.load(path)
    except ValueError:
        return "refused"
    try:
        scores = loaded.decision_function(X)
    except ValueError:
        # A resealed edit may make another valid model, for example of rows of another length.
        assert resealed, "a damaged file loaded as a model that refuses rows"
        return "another model"
    assert scores.shape == (len(X), loaded.n_bits_), f"scores of shape {scores.shape} for {loaded.n_bits_} bits"
    assert np.isfinite(scores).all(), "a damaged file loaded as a model whose scores are not finite"
    codes = loaded.encode(X)
    assert (len(codes), codes.n_bits) == scores.shape, "codes and scores differ in length"
    use_other_methods(loaded, X, resealed)
    if resealed and not np.array_equal(scores, reference):
        return "another model"
    assert np.array_equal(scores, reference), "a damaged file loaded as a changed model"
    return "same model"


def attack(hasher, rows, folder: Path, seeds: range) -> Counter:
    """Attack one model in this process; the file ``progress`` names the seed at work."""
    path = folder / "model.star"
    whole = path.with_suffix(".whole")
    hasher.save(whole)
    content, reference = whole.read_bytes(), hasher.decision_function(rows)
    results: Counter = Counter()
    warnings.simplefilter("ignore")
    for seed in seeds:
        (folder / "progress").write_text(str(seed))
        signal.alarm(SECONDS_PER_FILE)
        results[attack_one(content, reference, rows, path, seed)] += 1
        signal.alarm(0)
    return results


def attack_in_child(name: str, hasher, folder: Path, seeds: range) -> tuple[Counter, int]:
    """Return what became of the files and the largest memory of the process that read them."""
    X, _ = rows_and_labels()
    rows = X @ X.T if name == "StarSHL precomputed" else X
    rows = ["a red car", "bread", ""] if name == "PreparedHasher text" else rows
    pid = os.fork()
    if pid == 0:
        try:
            (folder / "results").write_text(json.dumps(attack(hasher, rows, folder, seeds)))
        except BaseException as error:
            (folder / "error").write_text(repr(error))
            os._exit(1)
        os._exit(0)
    _, status, usage = os.wait4(pid, 0)
    if status:
        error = (folder / "error").read_text() if (folder / "error").exists() else f"status {status}"
        raise AssertionError(f"{name}, seed {(folder / 'progress').read_text()}: {error}")
    return Counter(json.loads((folder / "results").read_text())), usage.ru_maxrss * 1024


def run(n_files: int, first_seed: int = 0, report=lambda line: None) -> Counter:
    """Attack all models with ``n_files`` files in all and return the counts by outcome."""
    models = fitted_models()
    per_model = -(-n_files // len(models))
    total: Counter = Counter()
    for position, (name, hasher) in enumerate(models.items()):
        seeds = range(first_seed + position * per_model, first_seed + (position + 1) * per_model)
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            results, peak = attack_in_child(name, hasher, Path(folder), seeds)
        report(f"{name:30} {dict(results)} {peak / 2**20:6.0f} MB {time.perf_counter() - start:6.1f} s")
        assert peak < MAX_BYTES, f"{name} took {peak:,} bytes"
        total += results
    return total


@pytest.mark.slow
def test_damaged_models_are_refused_or_work():
    results = run(2000)
    assert results["refused"] > results["another model"]


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]] or [10_000]  # how many files, and perhaps the first seed
    outcome = run(*numbers, report=lambda line: print(line, flush=True))
    print(dict(outcome), sum(outcome.values()), "files")
