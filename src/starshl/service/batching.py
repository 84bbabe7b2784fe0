"""Requests that wait at the same time, run as one batch, and futures that follow from others."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from .errors import BusyError

Key = TypeVar("Key", bound=Hashable)
Payload = TypeVar("Payload")
Result = TypeVar("Result")
First = TypeVar("First")
Second = TypeVar("Second")


@dataclass(slots=True)
class _Waiting(Generic[Payload, Result]):
    payload: Payload
    future: Future[Result]


@dataclass(slots=True)
class _Group(Generic[Key, Payload, Result]):
    key: Key
    level: int
    requests: list[_Waiting[Payload, Result]] = field(default_factory=list)
    size: int = 0


class Batcher(Generic[Key, Payload, Result]):
    """Threads that answer requests in groups; a group is what waits with the same key.

    While all threads are busy, requests collect in groups, so batches grow with the load. A small group waits while
    another one of its key is answered, and then ``window`` seconds for company, because a few more requests in a batch
    cost less than a batch of their own. If a group fails, each of its requests is tried alone, so none fails for
    another.

    Whoever cancels the future of a request no longer waits for it. When nobody waits for a group, it ends early.

    Parameters
    ----------
    run : function of a key, a list of payloads and ``pause`` that returns one result per payload
        It calls ``pause`` between pieces of its work.
    levels : one int per thread
        A thread takes up the requests of its level and below, so there is always one for small requests.
    window : float, seconds
    small_group : int, in units of the sizes that :meth:`submit` gets
    largest_group : int, in units of the sizes that :meth:`submit` gets
    longest_queue : int, requests that may wait
    """

    def __init__(
        self,
        run: Callable[[Key, list[Payload], Callable[[], None]], Sequence[Result]],
        *,
        levels: Sequence[int],
        window: float = 0.001,
        small_group: int = 16,
        largest_group: int = 256,
        longest_queue: int = 4096,
    ) -> None:
        self._run = run
        self._window = window
        self._small_group = small_group
        self._largest_group = largest_group
        self._longest_queue = longest_queue
        self._changed = threading.Condition()
        self._queue: deque[_Group[Key, Payload, Result]] = deque()
        # The group of each key and level that still takes requests.
        self._open: dict[tuple[Key, int], _Group[Key, Payload, Result]] = {}
        self._under_way: Counter[tuple[Key, int]] = Counter()
        self._n_waiting = 0
        self._is_closed = False
        self._threads = [threading.Thread(target=self._work, args=(level,), daemon=True) for level in levels]
        for thread in self._threads:
            thread.start()

    @property
    def n_waiting(self) -> int:
        """How many requests no thread has taken up yet."""
        return self._n_waiting

    def submit(self, key: Key, payload: Payload, size: int = 1, level: int = 0) -> Future[Result]:
        """Return the future result of a request; ``size`` is its share of a group, ``level`` says who takes it up."""
        future: Future[Result] = Future()
        with self._changed:
            if self._is_closed:
                raise BusyError("The service is about to stop. Try again in a moment.")
            if self._n_waiting >= self._longest_queue:
                raise BusyError(f"{self._n_waiting} requests are waiting already. Try again in a moment.")
            group = self._open.get((key, level))
            is_new = group is None or group.size + size > self._largest_group
            if group is None or is_new:
                group = self._open[key, level] = _Group(key, level)
                self._queue.append(group)
            group.requests.append(_Waiting(payload, future))
            group.size += size
            self._n_waiting += 1
            # A thread knows of the other groups: waking one up costs as much as a small search.
            if is_new or group.size - size < self._small_group <= group.size:
                # Not every thread may take up a request of a higher level.
                self._changed.notify(1 if level == 0 else len(self._threads))
        return future

    def close(self) -> None:
        """Answer everything that waits, and stop."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _work(self, level: int) -> None:
        while True:
            with self._changed:
                while self._first(level) is None and not self._is_closed:
                    self._changed.wait()
                first = self._first(level)
                if first is None:
                    return
                is_small = first.size < self._small_group
            if is_small and self._window:
                time.sleep(self._window)
            group = self._take(level)
            if group is not None:
                self._answer(group.key, group.requests)
                with self._changed:
                    self._under_way -= Counter([(group.key, group.level)])
                    self._changed.notify_all()

    def _first(self, level: int) -> _Group[Key, Payload, Result] | None:
        return next((group for group in self._queue if group.level <= level and not self._is_growing(group)), None)

    def _is_growing(self, group: _Group[Key, Payload, Result]) -> bool:
        """Return whether a group is better left alone until the one before it is answered."""
        kind = group.key, group.level
        return group.size < self._small_group and kind in self._under_way and self._open.get(kind) is group

    def _take(self, level: int) -> _Group[Key, Payload, Result] | None:
        with self._changed:
            group = self._first(level)
            if group is None:
                return None
            self._queue.remove(group)
            if self._open.get((group.key, group.level)) is group:
                del self._open[group.key, group.level]
            self._n_waiting -= len(group.requests)
            self._under_way[group.key, group.level] += 1
        return group

    def _answer(self, key: Key, requests: list[_Waiting[Payload, Result]]) -> None:
        # A future that runs could not be canceled, so it begins to run when its result is there.
        wanted = [request for request in requests if not request.future.cancelled()]

        def pause() -> None:
            if all(request.future.cancelled() for request in wanted):
                raise CancelledError

        try:
            pause()
            results = self._run(key, [request.payload for request in wanted], pause)
        except Exception as error:
            if len(wanted) > 1 and not isinstance(error, CancelledError):
                for request in wanted:
                    self._answer(key, [request])
                return
            for request in wanted:
                if request.future.set_running_or_notify_cancel():
                    request.future.set_exception(error)
            return
        for request, result in zip(wanted, results, strict=True):
            if request.future.set_running_or_notify_cancel():
                request.future.set_result(result)


def map_future(future: Future[First], function: Callable[[First], Second]) -> Future[Second]:
    """Return the future value of a function of another one's result; to cancel it cancels the other one, too."""
    outcome: Future[Second] = Future()

    def finish(done: Future[First]) -> None:
        if not outcome.set_running_or_notify_cancel():
            return
        try:
            outcome.set_result(function(done.result()))
        except BaseException as error:
            outcome.set_exception(error)

    def give_up(done: Future[Second]) -> None:
        if done.cancelled():
            future.cancel()

    future.add_done_callback(finish)
    outcome.add_done_callback(give_up)
    return outcome


def chain_future(future: Future[First], step: Callable[[First], Future[Second]]) -> Future[Second]:
    """Return the future result of a second step, which begins when the first is done, whether or not anyone waits."""
    outcome: Future[Second] = Future()

    def fail(error: BaseException) -> None:
        if outcome.set_running_or_notify_cancel():
            outcome.set_exception(error)

    def begin(done: Future[First]) -> None:
        try:
            second = step(done.result())
        except BaseException as error:
            fail(error)
            return
        second.add_done_callback(finish)

    def finish(done: Future[Second]) -> None:
        error = done.exception()
        if error is not None:
            fail(error)
        elif outcome.set_running_or_notify_cancel():
            outcome.set_result(done.result())

    future.add_done_callback(begin)
    return outcome
