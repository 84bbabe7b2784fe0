"""Compare search speed and memory with FAISS, in one run: python benchmarks/search.py --items 1000000

``python benchmarks/search.py rescoring FILE`` measures kept vectors instead, and ``--only shapes lists --cpu`` some
parts alone: many neighbors, wide balls, long codes and few items, or the inverted lists of FAISS.

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
    parser.add_argument("--only", nargs="+", choices=MEASURES, help="some parts alone, without targets")
    parser.add_argument("--json", type=Path, help="write all figures here as well")
    options = parser.parse_args()
    global clock
    clock = time.process_time if options.cpu else time.perf_counter
    figures = {
        "machine": {"processor": platform.processor(), "cpus": os.cpu_count(), "numpy": np.__version__},
        "options": {"items": options.items, "queries": options.queries, "threads": options.threads, "cpu": options.cpu},
    }
    for name in options.only or USUAL:
        figures[name] = MEASURES[name](options)
        print(f"\n{MEASURES[name].__doc__.splitlines()[0]}")
        for what, value in figures[name].items():
            print(f"  {what:48s} {value:12.4f}", flush=True)
    if not options.only:
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


def shapes(options) -> dict[str, float]:
    """Times of FAISS over those of flat, where flat was slowest: many neighbors, wide balls, long codes, few items."""
    codes, queries = different_codes(options.items, 0), different_codes(64, 1)
    figures = {}
    for k in (10, 100, 1000, 10_000):
        for batch in (1, 32):
            figures |= race(f"k = {k:,}, batch {batch}", codes, queries[:batch], k, options)
    for r in (18, 20, 22, 25):
        figures |= race_in_balls(r, codes, queries[:8], options)
    for n_bits in (256, 512, 1024):
        longer, asked = different_codes(options.items * 2 // 5, 2, n_bits), different_codes(64, 3, n_bits)
        for batch in (1, 64):
            figures |= race(f"{n_bits} bits, batch {batch}", longer, asked[:batch], 10, options)
    few = FlatIndex.from_codes(codes[:1000], n_jobs=options.threads)
    seconds = take_turns({"few": lambda: [few.search(queries[:1]) for _ in range(1000)]}, options.rounds)
    return figures | {"1,000 items, batch 1 [us]": 1e3 * seconds["few"]}


def race(name: str, codes: BinaryCodes, queries: BinaryCodes, k: int, options) -> dict[str, float]:
    """Return milliseconds per query, and how many times as long FAISS takes."""
    flat, faiss_index = FlatIndex.from_codes(codes, n_jobs=options.threads), make_faiss(codes, options.threads)
    best = take_turns(
        {"flat": lambda: flat.search(queries, k=k), "faiss": lambda: faiss_index.search(queries.packed, k)},
        options.rounds * (1 + 4 // len(queries)),
    )
    return {f"{name} [ms]": 1e3 * best["flat"] / len(queries), f"{name}, FAISS": best["faiss"] / best["flat"]}


def race_in_balls(r: int, codes: BinaryCodes, queries: BinaryCodes, options) -> dict[str, float]:
    flat, faiss_index = FlatIndex.from_codes(codes, n_jobs=options.threads), make_faiss(codes, options.threads)
    # FAISS returns what is nearer than its radius.
    best = take_turns(
        {
            "flat": lambda: flat.search_radius(queries, r),
            "faiss": lambda: faiss_index.range_search(queries.packed, r + 1),
        },
        options.rounds,
    )
    n_hits = len(faiss_index.range_search(queries.packed, r + 1)[2]) // len(queries)
    name = f"radius {r}, {n_hits:,} hits"
    return {f"{name} [ms]": 1e3 * best["flat"] / len(queries), f"{name}, FAISS": best["faiss"] / best["flat"]}


def lists(options) -> dict[str, float]:
    """Approximate search in lists of FAISS beside the flat scan, codes around centers, top 10, batch 64."""
    from starshl.index.adapters import FaissIndex

    codes, queries = clustered_codes(options.items, options.items // 500)
    flat = FlatIndex.from_codes(codes, n_jobs=options.threads)
    started = clock()
    make_faiss(codes[:1], options.threads)  # which sets the number of threads
    approximate = FaissIndex.from_codes(codes, kind="ivf")
    figures = {"lists, made in [s]": clock() - started}
    true = flat.search(queries).distances
    best = take_turns({"flat": lambda: flat.search(queries)}, options.rounds)
    figures["flat [ms]"] = 1e3 * best["flat"] / len(queries)
    for n_probes in (1, 4, 16, 32, 64, 128):
        approximate.n_probes = n_probes
        found = approximate.search(queries).distances
        # Ties are as good as each other: what counts is how near the hits are.
        figures[f"{n_probes} probes, recall"] = float(np.mean(found <= true[:, -1:]))
        best = take_turns({"lists": lambda: approximate.search(queries)}, options.rounds)
        figures[f"{n_probes} probes [ms]"] = 1e3 * best["lists"] / len(queries)
    return figures


def clustered_codes(n_codes: int, n_centers: int) -> tuple[BinaryCodes, BinaryCodes]:
    """Random hyperplanes on 32 features around centers, and the codes of 64 queries around the same centers."""
    rng = np.random.default_rng(0)
    centers, planes = rng.standard_normal((n_centers, 32), np.float32), rng.standard_normal((32, N_BITS), np.float32)
    packed = np.empty((n_codes + 64, N_BITS // 8), dtype=np.uint8)
    for start in range(0, len(packed), 100_000):
        piece = packed[start : start + 100_000]
        rows = centers[rng.integers(n_centers, size=len(piece))]
        rows = rows + 0.5 * rng.standard_normal(rows.shape, np.float32)
        piece[:] = np.packbits(rows @ planes >= 0, axis=1, bitorder="little")
    return BinaryCodes(packed[:-64], N_BITS), BinaryCodes(packed[-64:], N_BITS)


def different_codes(n_codes: int, seed: int, n_bits: int = N_BITS) -> BinaryCodes:
    """Random codes, which practically never repeat."""
    packed = np.random.default_rng(seed).integers(0, 256, size=(n_codes, n_bits // 8), dtype=np.uint8)
    return BinaryCodes(packed, n_bits)


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


MEASURES = {
    each.__name__: each for each in (against_faiss, single_query, filters, buckets, radius, files, shapes, lists)
}
USUAL = [name for name in MEASURES if name not in ("shapes", "lists")]

if __name__ == "__main__":
    if sys.argv[1:2] == ["rescoring"]:
        import rescoring

        rescoring.main(sys.argv[2:])
    else:
        main()
