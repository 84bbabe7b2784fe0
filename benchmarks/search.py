"""Compare search speed and memory with FAISS, in one run: python benchmarks/search.py --items 1000000

``python benchmarks/search.py rescoring FILE`` measures kept vectors instead.

Each figure is the best of several rounds in which all contestants take turns, so that a busy machine
slows all of them. FAISS is optional (pip install faiss-cpu); everything else only needs starshl.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from starshl import BinaryCodes
from starshl.index import BucketIndex, FlatIndex, MultiIndex, load_index

N_BITS = 64
SMALL_BALLS = (2, 4, 6, 8)
# The last ball holds about three hundred of a million random codes.
BALLS = (*SMALL_BALLS, 18)
clock = time.perf_counter


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=256)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--cpu", action="store_true", help="measure processor time, for a busy machine; use --threads 1"
    )
    parser.add_argument("--json", type=Path, help="write all figures here as well")
    options = parser.parse_args()
    global clock
    clock = time.process_time if options.cpu else time.perf_counter
    figures = {
        "machine": {"processor": platform.processor(), "cpus": os.cpu_count(), "numpy": np.__version__},
        "options": {"items": options.items, "queries": options.queries, "threads": options.threads, "cpu": options.cpu},
    }
    for measure in (against_faiss, single_query, filters, buckets, radius, files):
        figures[measure.__name__] = measure(options)
        print(f"\n{measure.__doc__.splitlines()[0]}")
        for name, value in figures[measure.__name__].items():
            print(f"  {name:48s} {value:12.4f}")
    print_targets(figures)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))


def print_targets(figures: dict) -> None:
    """Print each target next to what was measured."""
    flat, few, passing, balls = (figures[name] for name in ("against_faiss", "buckets", "filters", "radius"))
    rows = [
        ("flat scan, times as fast as FAISS", flat.get("flat beats faiss by"), ">=", 1.5),
        ("buckets against flat, all codes different", flat["buckets against flat"], ">=", 0.9),
        ("buckets against flat, code stored", few["buckets beat flat, query equals a stored code"], ">=", 1000),
        ("buckets against flat, code not stored", few["buckets beat flat, query equals none"], ">=", 1000),
        ("flat, bytes over packed codes and ids", flat["flat bytes / (codes + ids)"], "<=", 1.3),
        ("buckets, bytes, all codes different", flat["buckets bytes / (codes + ids)"], "<=", 1.3),
        ("buckets, bytes, 1,000 codes", few["buckets bytes / (codes + ids)"], "<=", 1.3),
        ("filter, one query, over evaluating and searching", passing["one, filtered / evaluated and plain"], "<=", 1.0),
        ("filter, a batch, over evaluating and searching", passing["batch, filtered / evaluated and plain"], "<=", 1.0),
    ]
    for r in BALLS:
        rows.append((f"flat, radius {r} over top 10", balls[f"flat, radius {r} / top 10"], "<=", 1.5))
    for r in SMALL_BALLS:
        wanted = 5.0 if r == 8 and figures["options"]["items"] >= 10_000_000 else None
        rows.append((f"multi against flat, radius {r}", balls[f"multi beats flat, radius {r}"], ">=", wanted))
    rows.append(("open memory-mapped, without checksum [s]", figures["files"]["open, mapped [s]"], "", None))
    rows.append(("open memory-mapped, with checksum [s]", figures["files"]["open, mapped and verified [s]"], "", None))
    print(f"\n{'what':52s} {'measured':>12s}    target")
    for name, value, relation, wanted in rows:
        if value is None:
            print(f"{name:52s} {'not run':>12s}")
        elif wanted is None:
            print(f"{name:52s} {value:12.4f}")
        else:
            met = value >= wanted if relation == ">=" else value <= wanted
            print(f"{name:52s} {value:12.4f}    {relation} {wanted:g}{'' if met else '   MISSED'}")


def against_faiss(options) -> dict[str, float]:
    """Top 10 of a batch of queries, all codes different, milliseconds per query."""
    codes, queries = different_codes(options.items, 0), different_codes(options.queries, 1)
    flat = FlatIndex.from_codes(codes, n_jobs=options.threads)
    grouped = BucketIndex.from_codes(codes, n_jobs=options.threads)
    contestants = {"flat": lambda: flat.search(queries), "buckets": lambda: grouped.search(queries)}
    faiss_index = make_faiss(codes, options.threads)
    if faiss_index is not None:
        contestants["faiss IndexBinaryFlat"] = lambda: faiss_index.search(queries.packed, 10)
        assert np.array_equal(flat.search(queries).distances, faiss_index.search(queries.packed, 10)[0])
    best = take_turns(contestants, options.rounds)
    figures = {f"{name} [ms]": 1e3 * seconds / len(queries) for name, seconds in best.items()}
    if faiss_index is not None:
        figures["flat beats faiss by"] = best["faiss IndexBinaryFlat"] / best["flat"]
    figures["buckets against flat"] = best["flat"] / best["buckets"]
    return figures | {
        "flat bytes / (codes + ids)": flat.nbytes / (codes.nbytes + 8 * len(codes)),
        "buckets bytes / (codes + ids)": grouped.nbytes / (codes.nbytes + 8 * len(codes)),
    }


def single_query(options) -> dict[str, float]:
    """Top 10 of one query at a time, milliseconds."""
    codes, query = different_codes(options.items, 0), different_codes(1, 1)
    flat = FlatIndex.from_codes(codes, n_jobs=options.threads)
    contestants = {"flat": lambda: flat.search(query)}
    faiss_index = make_faiss(codes, options.threads)
    if faiss_index is not None:
        contestants["faiss IndexBinaryFlat"] = lambda: faiss_index.search(query.packed, 10)
    return {f"{name} [ms]": 1e3 * best for name, best in take_turns(contestants, 4 * options.rounds).items()}


def filters(options) -> dict[str, float]:
    """A filter that half of the items pass, milliseconds per batch."""
    codes, queries = different_codes(options.items, 0), different_codes(options.queries, 1)
    flat = FlatIndex.from_codes(codes, n_jobs=options.threads)
    one = queries[:1]
    prices = np.random.default_rng(2).random(options.items)
    ids = np.flatnonzero(prices < 0.5)

    def evaluate():
        return prices[flat.ids] < 0.5

    # A filter may cost as much as its evaluation followed by a plain search: both push the codes out of the caches.
    best = take_turns(
        {
            "evaluate": evaluate,
            "one": lambda: flat.search(one),
            "one, evaluated and plain": lambda: (evaluate(), flat.search(one)),
            "one, filtered": lambda: flat.search(one, among=evaluate()),
            "batch": lambda: flat.search(queries),
            "batch, evaluated and plain": lambda: (evaluate(), flat.search(queries)),
            "batch, filtered": lambda: flat.search(queries, among=evaluate()),
            "batch, filtered by ids": lambda: flat.search(queries, among=ids),
        },
        2 * options.rounds,
    )
    figures = {f"{name} [ms]": 1e3 * seconds for name, seconds in best.items()}
    for case in ("one", "batch"):
        ratio = best[f"{case}, filtered"] / best[f"{case}, evaluated and plain"]
        figures[f"{case}, filtered / evaluated and plain"] = ratio
    figures["batch, filtered by ids / by a mask"] = best["batch, filtered by ids"] / best["batch, filtered"]
    return figures


def buckets(options) -> dict[str, float]:
    """Top 10 when there are 1,000 different codes, microseconds per query."""
    rng = np.random.default_rng(0)
    pool = different_codes(1000, 0)
    codes = BinaryCodes(pool.packed[rng.integers(1000, size=options.items)], N_BITS)
    flat = FlatIndex.from_codes(codes, n_jobs=options.threads)
    grouped = BucketIndex.from_codes(codes, n_jobs=options.threads)
    known = BinaryCodes(pool.packed[rng.integers(1000, size=20_000)], N_BITS)
    unknown = different_codes(20_000, 1)
    few = {"known": known[:64], "unknown": unknown[:64]}
    best = take_turns(
        {
            "flat, query equals a stored code": lambda: flat.search(few["known"]),
            "flat, query equals none": lambda: flat.search(few["unknown"]),
            "buckets, query equals a stored code": lambda: grouped.search(known),
            "buckets, query equals none": lambda: grouped.search(unknown),
        },
        options.rounds,
    )
    counts = dict(zip(best, (64, 64, 20_000, 20_000), strict=True))
    figures = {f"{name} [us]": 1e6 * seconds / counts[name] for name, seconds in best.items()}
    for case in ("query equals a stored code", "query equals none"):
        figures[f"buckets beat flat, {case}"] = figures[f"flat, {case} [us]"] / figures[f"buckets, {case} [us]"]
    figures["buckets bytes / (codes + ids)"] = grouped.nbytes / (codes.nbytes + 8 * len(codes))
    return figures


def radius(options) -> dict[str, float]:
    """Balls around queries with 0 to 8 bits flipped, all codes different, milliseconds per query."""
    codes = different_codes(options.items, 0)
    rng = np.random.default_rng(1)
    signs = codes[rng.integers(len(codes), size=options.queries)].to_signs()
    for row in signs:
        row[rng.permutation(N_BITS)[: rng.integers(9)]] *= -1
    queries = BinaryCodes.from_signs(signs)
    flat = FlatIndex.from_codes(codes, n_jobs=options.threads)
    multi = MultiIndex.from_codes(codes, n_jobs=options.threads)
    started = clock()
    multi.search_radius(queries[:1], 8)
    figures = {"multi, first search builds tables [s]": clock() - started}
    contestants = {"flat, top 10": lambda: flat.search(queries)}
    for r in BALLS:
        contestants[f"flat, radius {r}"] = lambda r=r: flat.search_radius(queries, r)
    for r in SMALL_BALLS:
        contestants[f"multi, radius {r}"] = lambda r=r: multi.search_radius(queries, r)
    best = take_turns(contestants, options.rounds)
    figures |= {f"{name} [ms]": 1e3 * seconds / len(queries) for name, seconds in best.items()}
    for r in BALLS:
        figures[f"flat, radius {r} / top 10"] = best[f"flat, radius {r}"] / best["flat, top 10"]
    for r in SMALL_BALLS:
        figures[f"multi beats flat, radius {r}"] = best[f"flat, radius {r}"] / best[f"multi, radius {r}"]
    figures["multi bytes / (codes + ids)"] = multi.nbytes / (codes.nbytes + 8 * len(codes))
    return figures


def files(options) -> dict[str, float]:
    """Writing and opening an index file, seconds."""
    flat = FlatIndex.from_codes(different_codes(options.items, 0), n_jobs=options.threads)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "codes.index"
        best = take_turns(
            {
                "save": lambda: flat.save(path),
                "open, mapped and verified": lambda: load_index(path, memory_map=True),
                "open, mapped": lambda: load_index(path, memory_map=True, verify=False),
                "load": lambda: load_index(path),
            },
            3,
        )
    return {f"{name} [s]": seconds for name, seconds in best.items()}


def different_codes(n_codes: int, seed: int) -> BinaryCodes:
    """Random 64-bit codes, which practically never repeat."""
    packed = np.random.default_rng(seed).integers(0, 256, size=(n_codes, N_BITS // 8), dtype=np.uint8)
    return BinaryCodes(packed, N_BITS)


def make_faiss(codes: BinaryCodes, n_threads: int):
    try:
        import faiss
    except ImportError:
        return None
    faiss.omp_set_num_threads(n_threads)
    index = faiss.IndexBinaryFlat(codes.n_bits)
    index.add(codes.packed)
    return index


def take_turns(contestants: dict, rounds: int) -> dict[str, float]:
    """Return the best time of each contestant, after one call to warm up."""
    best = {}
    for name, run in contestants.items():
        run()
        best[name] = np.inf
    for _ in range(rounds):
        for name, run in contestants.items():
            started = clock()
            run()
            best[name] = min(best[name], clock() - started)
    return best


if __name__ == "__main__":
    if sys.argv[1:2] == ["rescoring"]:
        import rescoring

        rescoring.main(sys.argv[2:])
    else:
        main()
