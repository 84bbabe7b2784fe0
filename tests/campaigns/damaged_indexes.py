"""Damage index files and search them: python tests/campaigns/damaged_indexes.py --files 10000

Each file is damaged in one way (flipped bytes, a cut, foreign bytes, or an edit sealed with a new checksum), then
loaded with and without its checksum, in memory and mapped, and searched if it loads. Worker processes do this, so
that a crash or a hang of one is counted and the campaign goes on. Nothing may crash or hang, nothing but
IndexFormatError may be raised, and with a checksum that was not renewed the answers must be those of the whole file.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np

from starshl import BinaryCodes
from starshl.codes import HammingWords, ScoreRule, WordDictionary
from starshl.exceptions import IndexFormatError
from starshl.index import (
    BucketIndex,
    FlatIndex,
    HybridIndex,
    MultiIndex,
    PosteriorIndex,
    Reconstruction,
    ResidualIndex,
    load_index,
    multi,
)
from starshl.index.files import read_index_file, write_index_file

FILES_PER_WORKER = 250
SECONDS_PER_WORKER = 300


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    counts = run(options.files, options.seed)
    for outcome, count in sorted(counts.items()):
        print(f"{count:8d}  {outcome}")
    return 1 if any(outcome.startswith("WRONG") for outcome in counts) else 0


def run(n_files: int, seed: int) -> Counter:
    """Damage so many files and return how often each outcome occurred; those to worry about begin with WRONG."""
    counts: Counter = Counter()
    context = multiprocessing.get_context("spawn")
    for first in range(0, n_files, FILES_PER_WORKER):
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "outcomes.txt"
            numbers = range(first, min(first + FILES_PER_WORKER, n_files))
            worker = context.Process(target=damage_files, args=(folder, str(log), numbers, seed))
            worker.start()
            worker.join(SECONDS_PER_WORKER)
            if worker.is_alive():
                worker.kill()
                worker.join()
                counts["WRONG: a worker hung"] += 1
            elif worker.exitcode:
                counts[f"WRONG: a worker died with exit code {worker.exitcode}"] += 1
            lines = log.read_text().splitlines() if log.exists() else []
            counts.update(lines)
    return counts


def damage_files(folder: str, log: str, numbers: range, seed: int) -> None:
    # Small files would always be scanned; their tables are to be attacked too.
    multi.CODES_PER_PROBE = 0
    with open(log, "a", buffering=1) as outcomes:
        for number in numbers:
            for outcome in damage_one(Path(folder) / "codes.index", np.random.default_rng([seed, number])):
                print(outcome, file=outcomes)


def damage_one(path: Path, rng: np.random.Generator):
    """Write an index, damage its file in one way and yield what came of it."""
    index, queries = random_index(rng)
    index.save(path)
    expected = answers(index, queries, rng)
    damage = DAMAGES[rng.integers(len(DAMAGES))]
    whole = path.read_bytes()
    damage(path, rng)
    untouched = path.read_bytes() == whole
    resealed = damage in (edit_and_seal, edit_header_and_seal)
    yield f"files damaged: {damage.__name__}" if not untouched else f"files that {damage.__name__} left as they were"
    for memory_map in (False, True):
        for verify in (False, True):
            yield outcome_of(path, memory_map, verify, queries, rng, None if resealed and not untouched else expected)


def outcome_of(path: Path, memory_map: bool, verify: bool, queries, rng, expected) -> str:
    how = f"verify={verify}, memory_map={memory_map}"
    try:
        loaded = load_index(path, memory_map=memory_map, verify=verify)
    except IndexFormatError:
        return f"loads refused, {how}"
    except Exception as error:
        return f"WRONG: {type(error).__name__} at load, {how}"
    try:
        found = answers(loaded, queries, rng)
        loaded.add(loaded.reconstruct(loaded.ids[:2]))
        loaded.remove(loaded.ids[:1])
    except Exception as error:
        # A foreign length makes the queries unfit, which search says itself.
        if "this index holds codes of" in str(error):
            return f"loads with another code length, {how}"
        # An edit may have set the last id to the largest there is, which leaves none to add.
        if "ids are left above" in str(error):
            return f"loads searched safely, {how}"
        return f"WRONG: {type(error).__name__} in a search, {how}"
    if expected is None or not verify:
        return f"loads searched safely, {how}"
    return f"loads with equal answers, {how}" if found == expected else f"WRONG: changed answers, {how}"


def random_index(rng: np.random.Generator):
    """Return a small index of a random kind, and queries for it."""
    n_bits = int(rng.choice([3, 8, 13, 32, 40, 64, 70, 130]))
    n_items, n_different = int(rng.choice([0, 1, 9, 400, 3000])), int(rng.choice([1, 5, 40, 3000]))
    pool = rng.choice([-1, 1], size=(n_different, n_bits))
    codes = BinaryCodes.from_signs(pool[rng.integers(n_different, size=n_items)].reshape(n_items, n_bits))
    ids = rng.permutation(3 * n_items + 1)[:n_items] - n_items // 2
    queries = np.concatenate([pool[:3], rng.choice([-1, 1], size=(3, n_bits))])
    kind, settings = random_kind(n_bits, rng)
    if kind is PosteriorIndex:
        codes = replace(codes, classes=rng.integers(-1, 4, size=n_items))
    return kind.from_codes(codes, ids, **settings), BinaryCodes.from_signs(queries)


def random_kind(n_bits: int, rng: np.random.Generator):
    """Return a class of indexes, and its arguments."""
    kind = [FlatIndex, BucketIndex, MultiIndex, PosteriorIndex, HybridIndex, ResidualIndex][rng.integers(6)]
    if kind in (FlatIndex, BucketIndex, MultiIndex):
        return kind, {}
    if kind is PosteriorIndex:
        n_classes = int(rng.integers(1, 5))
        numbers = [None, rng.permutation(9)[:n_classes]][rng.integers(2)]
        return kind, {"words": HammingWords(rng.choice([-1, 1], size=(n_classes, n_bits)), 0.7, numbers)}
    n_word_bits = int(rng.integers(1, min(n_bits, 9) + (kind is HybridIndex)))
    n_entries, n_classes = int(rng.integers(1, (1 << n_word_bits) + 1)), int(rng.integers(1, 6))
    words = WordDictionary(rng.dirichlet(np.ones(n_classes), size=n_entries).astype(np.float32), n_word_bits)
    settings = {"words": words, "rule": ScoreRule(class_weight=1.0, unit=1.5, saturation=2.0)}
    if kind is ResidualIndex:
        n_left = n_bits - n_word_bits
        settings["reconstruction"] = Reconstruction(rng.random((n_classes, n_left)), np.eye(n_left), np.ones(n_left))
    return kind, settings


def answers(index, queries: BinaryCodes, rng: np.random.Generator) -> list:
    """Return what searches of every kind answer."""
    among = np.arange(-100, 500, 3)
    scores = queries.to_signs() * np.linspace(0.1, 1, queries.n_bits)
    by_words = "probability" in index.supports
    results = [
        index.search(queries, 1),
        index.search(queries, 20),
        index.search(queries, 20, among=among),
        index.search(queries, 5, **({"min_probability": 0.3} if by_words else {"scores": scores})),
        index.search_radius(queries, 2),
        index.search_radius(queries, 2, among=among),
    ]
    if by_words:
        results.append([index.probabilities(queries, results[1].ids)])
    # Fresh arrays: a mapped file may be gone when they are compared.
    return [part.tolist() for result in results for part in result] + [index.ids.tolist()]


def flip_bytes(path: Path, rng: np.random.Generator) -> None:
    content = bytearray(path.read_bytes())
    for place in rng.integers(len(content), size=rng.integers(1, 9)):
        content[place] ^= int(rng.integers(1, 256))
    path.write_bytes(content)


def flip_bits_of_the_header(path: Path, rng: np.random.Generator) -> None:
    content = bytearray(path.read_bytes())
    end = 8 + int.from_bytes(content[:8], "little")
    for place in rng.integers(end, size=rng.integers(1, 4)):
        content[place] ^= 1 << int(rng.integers(8))
    path.write_bytes(content)


def flip_bits_of_the_arrays(path: Path, rng: np.random.Generator) -> None:
    content = bytearray(path.read_bytes())
    begin = 8 + int.from_bytes(content[:8], "little")
    if begin < len(content):
        content[int(rng.integers(begin, len(content)))] ^= 1 << int(rng.integers(8))
    path.write_bytes(content)


def cut(path: Path, rng: np.random.Generator) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: rng.integers(len(content))])


def overwrite_a_stretch(path: Path, rng: np.random.Generator) -> None:
    content = bytearray(path.read_bytes())
    begin = int(rng.integers(len(content)))
    end = min(len(content), begin + int(rng.integers(1, 600)))
    content[begin:end] = rng.bytes(end - begin) if rng.random() < 0.5 else bytes(end - begin)
    path.write_bytes(content)


def append_bytes(path: Path, rng: np.random.Generator) -> None:
    path.write_bytes(path.read_bytes() + rng.bytes(int(rng.integers(1, 100))))


NASTY_NUMBERS = (0, 1, -1, 2, 7, 2**31 - 1, -(2**31), 2**62, -(2**63), 2**63 - 1)
NASTY_FLOATS = (0.0, -0.0, -1.0, 1e-300, 1e30, 1e300, np.inf, -np.inf, np.nan)


def nasty_number(dtype: np.dtype, rng: np.random.Generator):
    """Return a number that a search might stumble over."""
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return dtype.type(NASTY_FLOATS[rng.integers(len(NASTY_FLOATS))])
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    return min(max(NASTY_NUMBERS[rng.integers(len(NASTY_NUMBERS))], low), high)


def edit_and_seal(path: Path, rng: np.random.Generator) -> None:
    """Change numbers of one array, or its shape or type, and write a checksum that matches."""
    header, arrays = read_index_file(path, memory_map=False, verify=True)
    name = sorted(arrays)[rng.integers(len(arrays))]
    array = arrays[name].copy()
    how = rng.integers(6)
    if how == 0 and array.size:
        array.reshape(-1)[rng.integers(array.size)] = array.reshape(-1)[rng.integers(array.size)]
    elif how == 1 and array.size:
        array.reshape(-1)[rng.integers(array.size)] = nasty_number(array.dtype, rng)
    elif how == 2:
        array = np.ascontiguousarray(array[..., : max(array.shape[-1] - int(rng.integers(1, 4)), 0)])
    elif how == 3:
        with np.errstate(invalid="ignore"):
            array = array.astype([np.int64, np.int32, np.uint64, np.uint32, np.uint8][rng.integers(5)])
    elif how == 4 and array.size:
        rng.shuffle(array.reshape(-1))
    elif array.size:
        content = array.reshape(-1).view(np.uint8)
        content[rng.integers(len(content))] ^= np.uint8(1 << int(rng.integers(8)))
    write_index_file(path, header, arrays | {name: array})


def edit_header_and_seal(path: Path, rng: np.random.Generator) -> None:
    """Change the kind or the code length, or leave out an array, and write a checksum that matches."""
    header, arrays = read_index_file(path, memory_map=False, verify=True)
    how = rng.integers(3)
    if how == 0:
        kinds = ["flat", "buckets", "multi", "posterior", "hybrid", "residual", "tree"]
        header["kind"] = kinds[rng.integers(len(kinds))]
    elif how == 1:
        shift = int(rng.integers(-9, 10))
        header["n_bits"] = [header["n_bits"] + shift, True, 10**12, json.loads("1e3")][rng.integers(4)]
    else:
        arrays.pop(sorted(arrays)[rng.integers(len(arrays))])
    write_index_file(path, header, arrays)


DAMAGES = (
    flip_bytes,
    flip_bits_of_the_header,
    flip_bits_of_the_arrays,
    cut,
    overwrite_a_stretch,
    append_bytes,
    edit_and_seal,
    edit_and_seal,
    edit_header_and_seal,
)


if __name__ == "__main__":
    sys.exit(main())
