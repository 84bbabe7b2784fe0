"""The contract of :class:`starshl.index.HammingIndex` as checks that any implementation can be run through.

All at once, or one test per check::

    def test_my_index():
        check_index(MyIndex)

    @pytest.mark.parametrize(("name", "check"), index_checks(MyIndex))
    def test_my_index(name, check):
        check()

A check that fails raises AssertionError and says what was expected.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ..codes.binary import BinaryCodes
from ..codes.queries import EncodedQueries
from ..exceptions import SpaceMismatchError, UnknownSpaceWarning, UnsupportedOperationError
from ..index.base import CAPABILITIES, HammingIndex
from ..index.choice import load_index
from .expectations import expect, expect_error, run_checks

#: A function of the code length that returns a new, empty index.
Make = Callable[[int], HammingIndex]
#: Distances and ids, as ``search`` returns them.
DistancesAndIds: TypeAlias = tuple[np.ndarray, np.ndarray]
_N_BITS = 11  # not a whole number of bytes
_LAST_ID = np.iinfo(np.int64).max


def check_index(make: Make) -> None:
    """Run every check of the contract; raise an AssertionError that lists all that fail, and what each asks for.

    Parameters
    ----------
    make : function of the code length that returns a new, empty index; the class itself may do

    Examples
    --------
    >>> from starshl.index import FlatIndex
    >>> check_index(FlatIndex)
    """
    run_checks(index_checks(make), {check.__name__: check.__doc__ for check in _CHECKS})


def index_checks(make: Make) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield the name of each check and a function that runs it, for a test runner that reports them one by one."""
    for check in _CHECKS:
        yield check.__name__, partial(check, make)


def declares_what_it_supports(make: Make) -> None:
    """``supports`` names known capabilities, and anything else raises UnsupportedOperationError."""
    index, codes = make(_N_BITS), _codes(4)
    unknown = set(index.supports) - set(CAPABILITIES)
    expect(not unknown, f"supports names {sorted(unknown)}; known are {sorted(CAPABILITIES)}")
    index.add(codes, [1, 2, 3, 4])
    calls: dict[str, list[Callable[[], object]]] = {
        "mask": [lambda: index.search(codes, among=np.ones(4, bool))],
        "metadata": [
            lambda: index.add(codes[:1], [9], metadata=[{}]),
            lambda: index.search(codes, where={"a": 1}),
            lambda: index.search_radius(codes, 1, where={"a": 1}),
        ],
        "probability": [
            lambda: index.search(codes, min_probability=0.5),
            lambda: index.search_radius(codes, 1, min_probability=0.5),
            lambda: index.probabilities(codes, np.ones((4, 1), np.int64)),
        ],
        "reconstruct": [lambda: index.reconstruct([1]), lambda: index.queries_of([1])],
        "remove": [lambda: index.remove([1])],
        "save": [lambda: index.save("never-written.index")],
        "scores": [lambda: index.search(codes, scores=np.zeros((4, _N_BITS)))],
    }
    for capability in sorted(set(calls) - set(index.supports)):
        for call in calls[capability]:
            _raises(UnsupportedOperationError, capability, call)
    expect(sorted(index.ids.tolist()) == [1, 2, 3, 4], "an unsupported call changed the index")


def starts_empty_and_counts_its_items(make: Make) -> None:
    """A new index has no items and finds none; ``len`` and ``ids`` follow additions."""
    index, codes = make(_N_BITS), _codes(6)
    expect(len(index) == 0, f"a new index holds {len(index)} items")
    expect(index.ids.dtype == np.int64, f"ids has dtype {index.ids.dtype}, not int64")
    neighbors = index.search(codes, 3)
    expect(neighbors.ids.shape == neighbors.distances.shape == (6, 0), "an empty index returned neighbors")
    expect(index.search_radius(codes, _N_BITS).starts.tolist() == [0] * 7, "an empty index returned neighbors")
    index.add(codes, [5, -3, 12, 7, _LAST_ID, 0])
    expect(len(index) == 6, f"6 codes were added, len is {len(index)}")
    expect(sorted(index.ids.tolist()) == [-3, 0, 5, 7, 12, _LAST_ID], f"ids are {index.ids.tolist()}")


def numbers_items_without_ids(make: Make) -> None:
    """Without ids, ``add`` takes the next free ones and returns them."""
    index, codes = make(_N_BITS), _codes(3)
    expect(index.add(codes).tolist() == [0, 1, 2], "the first ids are not 0, 1, 2")
    expect(index.add(codes[:1], [10]).tolist() == [10], "add does not return the ids given")
    expect(index.add(codes[:2]).tolist() == [11, 12], "the ids after 10 are not 11 and 12")
    expect(index.add(codes[:0]).tolist() == [], "adding nothing returned ids")
    index.add(codes[:1], [_LAST_ID])
    _raises(ValueError, "ids are left", lambda: index.add(codes[:1]))


def finds_the_nearest_by_distance_and_then_by_id(make: Make) -> None:
    """``search`` returns (distances, ids) in the order of a sort, for several code lengths and many ties."""
    for n_bits in (3, 8, 11, 64, 70):
        index, codes, ids = _filled(make, n_bits)
        queries = BinaryCodes(np.concatenate([codes.packed[:3], _codes(4, n_bits, seed=5).packed]), n_bits)
        for k in (1, 10, 90):
            _compare(index.search(queries, k), _brute_force(codes, ids, queries, k), f"search, {n_bits} bits, k={k}")


def returns_numbers_of_the_declared_types(make: Make) -> None:
    """Distances are of ``distance_type`` and ids int64, also where there are none."""
    index, codes, _ = _filled(make, _N_BITS)
    for k, among in ((3, None), (3, [])):
        for found in (index.search(codes[:2], k, among=among), index.search_radius(codes[:2], 2, among=among).of(0)):
            expect(found.distances.dtype == index.distance_type, f"distances are {found.distances.dtype}")
            expect(found.ids.dtype == np.int64, f"ids are {found.ids.dtype}, not int64")


def returns_fewer_where_there_are_fewer(make: Make) -> None:
    """``k`` beyond the items held gives as many columns as there are items."""
    index, codes = make(_N_BITS), _codes(5)
    index.add(codes)
    neighbors = index.search(codes, 100)
    expect(neighbors.ids.shape == (5, 5), f"5 items and k=100 gave shape {neighbors.ids.shape}, not (5, 5)")
    expect(neighbors.distances.shape == (5, 5), "distances and ids differ in shape")
    expect(index.search(codes[:0], 3).ids.shape[0] == 0, "no queries gave rows")


def finds_all_within_a_radius(make: Make) -> None:
    """``search_radius`` returns all items up to the radius, inclusive, by distance and then by id."""
    index, codes, ids = _filled(make, _N_BITS)
    queries = codes[:4]
    for radius in (0, 2, 5, _N_BITS, 99):
        balls = index.search_radius(queries, radius)
        for q in range(4):
            distances, order = _sorted(codes, ids, queries[q])
            inside = distances <= radius
            _compare(balls.of(q), (distances[inside], order[inside]), f"search_radius {radius}")


def filters_by_ids(make: Make) -> None:
    """``among`` names the ids that may be returned; ids that are not in the index change nothing."""
    index, codes, ids = _filled(make, _N_BITS)
    queries = codes[:3]
    for chosen in (ids[20:60], ids[:2], np.array([], np.int64)):
        passing = np.isin(ids, chosen)
        expected = _brute_force(codes[passing], ids[passing], queries, 10)
        among = np.concatenate([chosen, chosen[:1], [10**12]])
        _compare(index.search(queries, 10, among=among), expected, f"search among {len(chosen)} ids")
        _compare(index.search(queries, 10, among=list(chosen)), expected, f"search among {len(chosen)} ids")
        balls = index.search_radius(queries, 4, among=among)
        for q in range(3):
            distances, order = _sorted(codes[passing], ids[passing], queries[q])
            _compare(balls.of(q), (distances[distances <= 4], order[distances <= 4]), "search_radius among ids")
    wrong_filters: tuple[Any, ...] = (7, [[1, 2]], "x", [1.5], lambda ids: ids > 1)
    for wrong in wrong_filters:
        _raises(ValueError, "among has dtype", partial(index.search, queries, 3, among=wrong))


def filters_by_a_mask(make: Make) -> None:
    """Where "mask" is supported, one boolean per item in the order of ``ids`` filters like the ids."""
    index, codes, _ = _filled(make, _N_BITS)
    if "mask" not in index.supports:
        return
    mask = np.random.default_rng(1).random(len(index)) < 0.3
    _compare(
        index.search(codes[:3], 9, among=mask), index.search(codes[:3], 9, among=index.ids[mask]), "search by a mask"
    )
    _raises(ValueError, "booleans; the index holds", lambda: index.search(codes[:1], among=mask[1:]))


def takes_queries_of_a_hasher_and_stored_ones(make: Make) -> None:
    """:class:`EncodedQueries` find what their codes find, where nothing else is compared; stored items can be such."""
    index, codes, ids = _filled(make, _N_BITS)
    _compare(index.search(EncodedQueries(codes[:3]), 9), index.search(codes[:3], 9), "search by encoded queries")
    found, expected = (index.search_radius(asked, 3).of(2) for asked in (EncodedQueries(codes[:3]), codes[:3]))
    _compare(found, expected, "search_radius by encoded queries")
    if "reconstruct" in index.supports:
        _compare(index.search(index.queries_of(ids[:3]), 9), index.search(codes[:3], 9), "search by stored items")


def says_how_likely_hits_are(make: Make) -> None:
    """Where "probability" is supported, hits have one from 0 to 1, and ``min_probability`` leaves out what is below."""
    index, codes, _ = _filled(make, _N_BITS)
    if "probability" not in index.supports:
        return
    queries = codes[:3]
    everything = index.search(queries, 120)
    likely = index.probabilities(queries, everything.ids)
    expect(likely.shape == (3, 120), f"120 hits of 3 queries have probabilities of shape {likely.shape}")
    expect(likely.dtype == np.float64, f"probabilities are {likely.dtype}, not float64")
    expect(bool(np.all((likely >= 0) & (likely <= 1))), "a probability is not from 0 to 1")
    for least in (0.0, float(np.median(likely)), 1.0):
        found = index.search(queries, 120, min_probability=least)
        for q in range(3):
            kept = likely[q] >= least
            n_kept = int(kept.sum())
            expected = everything.distances[q, kept], everything.ids[q, kept]
            _compare((found.distances[q, :n_kept], found.ids[q, :n_kept]), expected, f"min_probability={least}")
            expect(bool(np.all(found.ids[q, n_kept:] == -1)), "places that nothing fills have an id")
            expect(bool(np.all(np.isinf(found.distances[q, n_kept:]))), "places that nothing fills have a distance")
            ball = index.search_radius(queries, np.inf, min_probability=least).of(q)
            _compare(ball, expected, f"search_radius, min_probability={least}")
    nobody = -1 not in index.ids and index.probabilities(queries, np.full((3, 1), -1)).any()
    expect(not nobody, "the id -1, of no item, has a probability")
    _raises(KeyError, "is not in the index", lambda: index.probabilities(queries, np.full((3, 1), 10**12)))
    wrong_probabilities: tuple[Any, ...] = (-0.1, 1.5, np.nan, "much", True)
    for wrong in wrong_probabilities:
        _raises(ValueError, "min_probability is", partial(index.search, queries, 3, min_probability=wrong))


def orders_ties_by_scores(make: Make) -> None:
    """Where "scores" is supported, equal distances are ordered by inner product with the scores, then by id."""
    index, codes, ids = _filled(make, _N_BITS)
    if "scores" not in index.supports:
        return
    queries = codes[:3]
    scores = np.random.default_rng(2).integers(-4, 5, size=(3, _N_BITS)) / 2
    neighbors = index.search(queries, 15, scores=scores)
    inner = scores @ codes.to_signs().T
    own = np.einsum("qb,qb->q", scores, queries.to_signs())
    for q in range(3):
        # Penalties, as the index sums them: half of what a code loses against the query's own code.
        order = np.lexsort((ids, own[q] - inner[q], queries[q].distances(codes)[0]))[:15]
        expect(neighbors.ids[q].tolist() == ids[order].tolist(), "ties are not ordered by scores and then by id")
    _raises(ValueError, "scores has shape", lambda: index.search(queries, 3, scores=scores[:, :3]))
    _raises(ValueError, "finite", lambda: index.search(queries, 3, scores=scores * np.nan))


def filters_by_metadata(make: Make) -> None:
    """Where "metadata" is supported, ``where`` filters by equal values, alone and together with ``among``."""
    index, codes = make(_N_BITS), _codes(60)
    if "metadata" not in index.supports:
        return
    ids = index.add(codes, metadata=[{"label": i % 3, "name": f"'{i}\""} for i in range(60)])
    labels = np.arange(60) % 3
    expected = _brute_force(codes[labels == 1], ids[labels == 1], codes[:2], 30)
    _compare(index.search(codes[:2], 30, where={"label": 1}), expected, "search by metadata")
    both = (labels == 1) & (ids < 30)
    expected = _brute_force(codes[both], ids[both], codes[:2], 30)
    neighbors = index.search(codes[:2], 30, where={"label": 1}, among=np.arange(30))
    _compare(neighbors, expected, "search by metadata among ids")
    expect(index.search(codes[:1], 5, where={"name": "'7\""}).ids.tolist() == [[7]], "a text was not found")
    expect(index.search(codes[:1], 5, where={"label": "1"}).ids.shape == (1, 0), "the text '1' matched the number 1")
    a_list: Any = [1]
    _raises(ValueError, "where is a list", lambda: index.search(codes[:1], where=a_list))
    _raises(ValueError, "dictionaries of metadata", lambda: index.add(codes[:2], metadata=[{}]))


def removes_all_or_nothing(make: Make) -> None:
    """Where "remove" is supported, items go; an unknown id raises KeyError and removes nothing."""
    index, codes, ids = _filled(make, _N_BITS)
    if "remove" not in index.supports:
        return
    _raises(KeyError, "is not in the index", lambda: index.remove([ids[0], 10**12]))
    expect(len(index) == len(ids), "a removal with an unknown id removed something")
    index.remove(ids[:50])
    _compare(index.search(codes[:3], 20), _brute_force(codes[50:], ids[50:], codes[:3], 20), "search after a removal")
    index.add(codes[:50], ids[:50])
    _compare(index.search(codes[:3], 20), _brute_force(codes, ids, codes[:3], 20), "search after adding again")
    index.remove(ids)
    expect(len(index) == 0, "removing every item left some")


def gives_codes_back(make: Make) -> None:
    """Where "reconstruct" is supported, codes come back in the order of the ids asked for."""
    index, codes, ids = _filled(make, _N_BITS)
    if "reconstruct" not in index.supports:
        return
    expect(index.reconstruct(ids[::-1]) == codes[::-1], "reconstruct returned other codes")
    _raises(KeyError, "is not in the index", lambda: index.reconstruct([ids[0], 10**12]))


def saves_and_loads(make: Make) -> None:
    """Where "save" is supported, ``load_index`` reads an equal index, mapped or not."""
    index, codes = make(_N_BITS), replace(_codes(120), space_id="a" * 16)
    index.add(codes)
    if "save" not in index.supports:
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "codes.index"
        index.save(path)
        for memory_map in (False, True):
            loaded = load_index(path, memory_map=memory_map)
            expect(type(loaded) is type(index), f"a {type(index).__name__} was loaded as {type(loaded).__name__}")
            expect(loaded.space_id == index.space_id, f"space {index.space_id} was loaded as {loaded.space_id}")
            _compare(loaded.search(codes[:3], 20), index.search(codes[:3], 20), "search after loading")
            del loaded


def keeps_codes_of_other_spaces_out(make: Make) -> None:
    """Codes of another known space are refused; unknown ones meet known ones with one warning; plain ones with none."""
    ours, theirs, plain = (replace(_codes(5), space_id=space) for space in ("0" * 16, "f" * 16, None))
    index = make(_N_BITS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        index.add(plain[:0])
        index.search(ours, 1)  # an empty index has nothing to mix with
        index.add(ours[:2], [0, 1])
        index.add(ours[2:], [2, 3, 4])
        expect(index.space_id == "0" * 16, f"the index of codes of space {'0' * 16} has space_id {index.space_id}")
        index.search(ours, 1)
        index.search_radius(ours, 1)
        for call in (
            lambda: index.add(theirs, [5, 6, 7, 8, 9]),
            lambda: index.search(theirs, 1),
            lambda: index.search_radius(theirs, 1),
        ):
            _raises(SpaceMismatchError, "the index holds codes of space 0000000000000000", call)
        if "reconstruct" in index.supports:
            expect(index.reconstruct([1]).space_id == "0" * 16, "reconstruct returned codes of another space")
    expect(len(index) == 5, "codes of another space were added")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        index.search(plain, 1)
        index.search_radius(plain, 1)
    kinds = [each.category for each in caught]
    expect(kinds == [UnknownSpaceWarning], f"codes of an unknown space gave {kinds}, not one UnknownSpaceWarning")


def refuses_codes_made_for_another_distance(make: Make) -> None:
    """Hybrid codes need an index that knows their classes."""
    index, codes = make(_N_BITS), replace(_codes(3), metric="hybrid")
    if index.metric == "hybrid":
        return
    for call in (lambda: index.add(codes), lambda: index.search(codes, 1), lambda: index.search_radius(codes, 1)):
        _raises(ValueError, "These are hybrid codes", call)


def refuses_what_is_wrong_and_changes_nothing(make: Make) -> None:
    """Wrong codes, ids, k and radius raise errors that say so, and the index stays as it was."""
    index, codes, ids = _filled(make, _N_BITS)
    array: Any = codes.packed
    longer = BinaryCodes.from_signs(np.ones((1, _N_BITS + 1)))
    calls: list[tuple[type[Exception], str, Callable[[], object]]] = [
        (ValueError, "already in the index", lambda: index.add(codes[:3], [10**9, 10**9 + 1, int(ids[7])])),
        (ValueError, "more than once", lambda: index.add(codes[:2], [10**9, 10**9])),
        (ValueError, "dtype float64", lambda: index.add(codes[:2], [1.5, 2.5])),
        (ValueError, "1 ids for 2 codes", lambda: index.add(codes[:2], [10**9])),
        (ValueError, "64 signed bits", lambda: index.add(codes[:2], np.array([1, 2**63], np.uint64))),
        (ValueError, "shape (1, 2)", lambda: index.add(codes[:2], [[1, 2]])),
        (ValueError, "radius is -1", lambda: index.search_radius(codes, -1)),
        (TypeError, "it must be BinaryCodes", lambda: index.search(array)),
        (ValueError, f"this index holds codes of {_N_BITS}", lambda: index.add(longer)),
        (ValueError, f"this index holds codes of {_N_BITS}", lambda: index.search(longer)),
        (ValueError, f"this index holds codes of {_N_BITS}", lambda: index.search_radius(longer, 1)),
    ]
    wrong_numbers: tuple[Any, ...] = (0, -1, 2.0, True)
    calls += [(ValueError, "k is", partial(index.search, codes, k)) for k in wrong_numbers]
    for error, part, call in calls:
        _raises(error, part, call)
    expect(sorted(index.ids.tolist()) == sorted(ids.tolist()), "a refused call changed the index")


_CHECKS: tuple[Callable[[Make], None], ...] = (
    declares_what_it_supports,
    starts_empty_and_counts_its_items,
    numbers_items_without_ids,
    finds_the_nearest_by_distance_and_then_by_id,
    returns_numbers_of_the_declared_types,
    returns_fewer_where_there_are_fewer,
    finds_all_within_a_radius,
    filters_by_ids,
    filters_by_a_mask,
    takes_queries_of_a_hasher_and_stored_ones,
    says_how_likely_hits_are,
    orders_ties_by_scores,
    filters_by_metadata,
    removes_all_or_nothing,
    gives_codes_back,
    saves_and_loads,
    keeps_codes_of_other_spaces_out,
    refuses_codes_made_for_another_distance,
    refuses_what_is_wrong_and_changes_nothing,
)


def _codes(n_codes: int, n_bits: int = _N_BITS, seed: int = 0) -> BinaryCodes:
    """Return random codes, many of them equal."""
    rng = np.random.default_rng(seed)
    pool = rng.choice([-1, 1], size=(25, n_bits))
    return BinaryCodes.from_signs(pool[rng.integers(25, size=n_codes)])


def _filled(make: Make, n_bits: int) -> tuple[HammingIndex, BinaryCodes, np.ndarray]:
    """Return an index of 120 codes, added in two batches under shuffled ids, with the codes and ids."""
    index, codes = make(n_bits), _codes(120, n_bits)
    ids = np.random.default_rng(n_bits).permutation(400)[:120] - 50
    index.add(codes[:70], ids[:70])
    index.add(codes[70:], ids[70:])
    return index, codes, ids


def _sorted(codes: BinaryCodes, ids: np.ndarray, query: BinaryCodes) -> tuple[np.ndarray, np.ndarray]:
    distances = query.distances(codes)[0]
    order = np.lexsort((ids, distances))
    return distances[order], ids[order]


def _brute_force(codes: BinaryCodes, ids: np.ndarray, queries: BinaryCodes, k: int) -> tuple[np.ndarray, np.ndarray]:
    ranked = [_sorted(codes, ids, queries[q]) for q in range(len(queries))]
    k = min(k, len(ids))
    return np.array([row[0][:k] for row in ranked]), np.array([row[1][:k] for row in ranked])


def _compare(result: DistancesAndIds, expected: DistancesAndIds, what: str) -> None:
    for name, ours, theirs in zip(("distances", "ids"), result, expected, strict=True):
        expect(
            np.array_equal(ours, theirs), f"{what}: {name} is {ours.tolist()}, expected {np.asarray(theirs).tolist()}"
        )


def _raises(error: type[Exception], part: str, call: Callable[[], object]) -> None:
    message = expect_error("", call, (error,))
    expect(part in message, f"{error.__name__} says {message!r}; it should mention {part!r}")
