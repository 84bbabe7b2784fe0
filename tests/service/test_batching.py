"""Requests that wait together run together, and never fail together."""

import threading
import time
from concurrent.futures import Future

import pytest

from starshl.service.batching import Batcher, chain_future, map_future
from starshl.service.errors import BusyError


class Slow:
    """A run that notes its groups and waits until it may go on."""

    def __init__(self):
        self.groups, self.go_on, self.begun = [], threading.Event(), threading.Event()

    def __call__(self, key, payloads, pause):
        self.begun.set()
        assert self.go_on.wait(60)
        pause()
        self.groups.append((key, list(payloads)))
        if "bad" in payloads:
            raise ValueError("bad payload")
        return [f"{key}{payload}" for payload in payloads]


@pytest.fixture
def slow():
    return Slow()


@pytest.fixture
def batcher(slow):
    made = Batcher(slow, levels=[0], window=0.0, largest_group=4, longest_queue=8)
    yield made
    slow.go_on.set()
    made.close()


def occupy(batcher, slow):
    first = batcher.submit("x", 0)
    assert slow.begun.wait(60)
    return first


def test_requests_with_one_key_that_wait_together_are_one_call(batcher, slow):
    occupy(batcher, slow)
    futures = [batcher.submit(key, number) for number, key in enumerate("aabab")]
    slow.go_on.set()
    assert [future.result(60) for future in futures] == ["a0", "a1", "b2", "a3", "b4"]
    assert slow.groups == [("x", [0]), ("a", [0, 1, 3]), ("b", [2, 4])]


def test_a_group_takes_no_more_than_its_limit(batcher, slow):
    occupy(batcher, slow)
    futures = [batcher.submit("a", number, size) for number, size in enumerate((3, 1, 2, 9))]
    slow.go_on.set()
    assert [future.result(60) for future in futures] == ["a0", "a1", "a2", "a3"]
    assert [payloads for _, payloads in slow.groups[1:]] == [[0, 1], [2], [3]]


def test_one_bad_request_does_not_spoil_the_others(batcher, slow):
    occupy(batcher, slow)
    good, bad, other = (batcher.submit("a", payload) for payload in (1, "bad", 2))
    slow.go_on.set()
    assert (good.result(60), other.result(60)) == ("a1", "a2")
    with pytest.raises(ValueError, match="bad payload"):
        bad.result(60)


def test_a_canceled_request_is_left_out(batcher, slow):
    occupy(batcher, slow)
    canceled, kept = batcher.submit("a", 1), batcher.submit("a", 2)
    assert canceled.cancel()
    slow.go_on.set()
    assert kept.result(60) == "a2"
    assert slow.groups[-1] == ("a", [2])


def test_a_running_group_ends_when_all_its_requests_are_canceled(batcher, slow):
    running = occupy(batcher, slow)
    assert running.cancel()
    first, second = batcher.submit("a", 1), batcher.submit("a", 2)
    slow.go_on.set()
    assert (first.result(60), second.result(60)) == ("a1", "a2")
    assert slow.groups == [("a", [1, 2])]


def test_a_group_goes_on_for_one_of_its_requests(slow):
    batcher = Batcher(slow, levels=[0], window=0.0)
    occupied = occupy(batcher, slow)
    left, stayed = batcher.submit("a", 1), batcher.submit("a", 2)
    slow.go_on.set()
    occupied.result(60)
    left.cancel()
    assert stayed.result(60) == "a2"
    batcher.close()


def test_canceling_what_follows_cancels_the_request(batcher, slow):
    occupy(batcher, slow)
    request = batcher.submit("a", 1)
    assert map_future(request, str.upper).cancel()
    assert request.cancelled()


def test_small_requests_have_a_thread_of_their_own():
    held, go_on = threading.Semaphore(0), threading.Event()

    def run(key, payloads, pause):
        if key != "small":
            held.release()
            assert go_on.wait(60)
        return payloads

    batcher = Batcher(run, levels=[0, 1, 2], window=0.0)
    large = [batcher.submit(f"large {number}", number, level=2) for number in range(3)]
    middling = [batcher.submit(f"middling {number}", number, level=1) for number in range(3)]
    for _ in range(2):
        assert held.acquire(timeout=60)
    for number in range(10):
        assert batcher.submit("small", number).result(60) == number
    assert batcher.n_waiting == 4
    go_on.set()
    batcher.close()
    assert [future.result(0) for future in large + middling] == [0, 1, 2, 0, 1, 2]


def test_a_long_queue_is_refused(batcher, slow):
    occupy(batcher, slow)
    for number in range(8):
        batcher.submit(str(number), number)
    with pytest.raises(BusyError, match="8 requests are waiting"):
        batcher.submit("more", 0)


def test_closing_answers_everything_that_waits_and_refuses_more(batcher, slow):
    first = occupy(batcher, slow)
    waiting = batcher.submit("a", 1)
    slow.go_on.set()
    batcher.close()
    assert (first.result(0), waiting.result(0)) == ("x0", "a1")
    with pytest.raises(BusyError, match="about to stop"):
        batcher.submit("a", 2)


def test_futures_that_follow_carry_results_and_errors():
    first, second, broken = Future(), Future(), Future()
    outcome = chain_future(
        map_future(first, lambda number: number + 1), lambda number: second if number == 2 else broken
    )
    failed = chain_future(broken, lambda number: second)
    first.set_result(1)
    second.set_result("done")
    broken.set_exception(ValueError("no"))
    assert outcome.result(0) == "done"
    with pytest.raises(ValueError, match="no"):
        failed.result(0)


def test_a_small_group_waits_while_one_of_its_key_is_answered_and_others_do_not(slow):
    batcher = Batcher(slow, levels=[0, 1], window=0.0, small_group=3)
    first = occupy(batcher, slow)
    few = [batcher.submit("x", number) for number in (1, 2)]
    other = batcher.submit("y", 3)
    while batcher.n_waiting > 2:  # the second thread takes the other key
        time.sleep(0.001)
    assert not any(future.done() for future in few)
    slow.go_on.set()
    assert [future.result(60) for future in (first, *few, other)] == ["x0", "x1", "x2", "y3"]
    assert sorted(slow.groups) == [("x", [0]), ("x", [1, 2]), ("y", [3])]
    batcher.close()


def test_a_group_that_is_no_longer_small_does_not_wait(slow):
    batcher = Batcher(slow, levels=[0, 0], window=0.0, small_group=2)
    occupy(batcher, slow)
    many = [batcher.submit("x", number) for number in (1, 2)]
    while batcher.n_waiting:
        time.sleep(0.001)
    slow.go_on.set()
    assert [future.result(60) for future in many] == ["x1", "x2"]
    batcher.close()
