"""Threads that search an index while another one changes it get answers of one state, before or after the change."""

import copy
import pickle
import sys
import threading
from functools import partial

import numpy as np
import pytest

from starshl import BinaryCodes
from starshl.index import BucketIndex, FlatIndex, MultiIndex, multi

INDEXES = [FlatIndex, BucketIndex, MultiIndex]


@pytest.fixture(autouse=True)
def hurried_threads():
    """Let threads take turns as often as they can."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(usual)


def codes_of_few_values(n_codes, n_bits, seed):
    rng = np.random.default_rng(seed)
    pool = rng.choice([-1, 1], size=(60, n_bits))
    return BinaryCodes.from_signs(pool[rng.integers(60, size=n_codes)])


def as_bytes(answer):
    return tuple(part.tobytes() for part in answer)


def searches(queries, ids, scores):
    """Return functions of an index whose answers show every array that a search may read."""
    return [
        lambda index: as_bytes(index.search(queries, 7)),
        lambda index: as_bytes(index.search(queries, 7, among=ids)),
        lambda index: as_bytes(index.search(queries, 5, scores=scores)),
        lambda index: as_bytes(index.search_radius(queries, 2)),
        lambda index: index.reconstruct(ids).packed.tobytes(),
        lambda index: np.sort(index.ids).tobytes(),
    ]


def answers_of_states(index_class, n_bits, base, changes, asked):
    """Return the answers to every search in every state."""
    index = index_class.from_codes(*base)
    states = [[ask(index) for ask in asked]]
    for change in changes:
        change(index)
        states.append([ask(index) for ask in asked])
    return [set(answers) for answers in zip(*states, strict=True)]


def changes_of(more, first_id, n_rounds):
    """Return changes that append, insert below all others, and remove both again."""
    steps = []
    for i in range(n_rounds):
        above = 10_000 + first_id + 40 * i + np.arange(40)
        below = -1 - np.arange(40 * i, 40 * i + 40)
        steps += [
            partial(lambda ids, index: index.add(more[:40], ids), above),
            partial(lambda ids, index: index.add(more[slice(40, 80)], ids), below),
        ]
        if i % 3 == 2:
            steps.append(partial(lambda ids, index: index.remove(ids), np.concatenate([above, below])))
    return steps


@pytest.mark.parametrize("n_bits", [32, 80])
@pytest.mark.parametrize("index_class", INDEXES)
def test_searches_during_changes_answer_from_one_state(index_class, n_bits, monkeypatch):
    monkeypatch.setattr(multi, "CODES_PER_PROBE", 0)
    base = codes_of_few_values(2000, n_bits, 0), np.arange(2000)
    queries, more = codes_of_few_values(6, n_bits, 1), codes_of_few_values(80, n_bits, 0)
    scores = np.random.default_rng(3).standard_normal((6, n_bits))
    asked = searches(queries, np.arange(0, 2000, 7), scores)
    changes = changes_of(more, 0, 30)
    expected = answers_of_states(index_class, n_bits, base, changes, asked)

    index = index_class.from_codes(*base)
    stop, wrong, n_answers = threading.Event(), [], [0]

    def search_all_the_time(first):
        number = first
        while not stop.is_set():
            number = (number + 1) % len(asked)
            try:
                if asked[number](index) not in expected[number]:
                    wrong.append(number)
            except Exception as error:
                wrong.append(error)
            n_answers[0] += 1

    searchers = [threading.Thread(target=search_all_the_time, args=(i,)) for i in range(3)]
    for searcher in searchers:
        searcher.start()
    for change in changes:
        change(index)
        seen = n_answers[0]
        while n_answers[0] < seen + 2:
            pass
    stop.set()
    for searcher in searchers:
        searcher.join()
    assert not wrong
    assert n_answers[0] >= 2 * len(changes)


@pytest.mark.parametrize("index_class", INDEXES)
def test_additions_of_several_threads_are_all_kept(index_class):
    index = index_class(32)
    codes = codes_of_few_values(500, 32, 0)

    def add_some():
        for i in range(25):
            index.add(codes[slice(20 * i, 20 * i + 20)])

    writers = [threading.Thread(target=add_some) for _ in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert np.sort(index.ids).tolist() == list(range(2000))


@pytest.mark.parametrize("index_class", INDEXES)
@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, lambda index: pickle.loads(pickle.dumps(index))])
def test_a_copy_and_its_original_change_apart(index_class, clone):
    codes = codes_of_few_values(300, 32, 0)
    index = index_class.from_codes(codes[:200])
    index.add(codes[slice(200, 201)])  # leaves spare room, which a copy must not share
    other = clone(index)
    index.add(codes[slice(201, 202)], [1000])
    other.add(codes[slice(202, 203)], [1000])
    assert index.reconstruct([1000]) == codes[slice(201, 202)]
    assert other.reconstruct([1000]) == codes[slice(202, 203)]
    assert len(index) == len(other) == 202
