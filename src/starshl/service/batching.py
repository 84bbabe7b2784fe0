"""Requests that wait at the same time, run as one batch, and futures that follow from others."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
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
    requests: list[_Waiting[Payload, Result]] = field(default_factory=list)
    size: int = 0


class Batcher(Generic[Key, Payload, Result]):
    """Threads that answer requests in groups; a group is what waits with the same key.

    While all threads are busy, requests collect in groups, so batches grow with the load. An idle service waits
    ``window`` seconds for company. If a group fails, each of its requests is tried alone, so none fails for another.

    Parameters
    ----------
    run : function of a key and a list of payloads that returns one result per payload
    n_threads : int
    window : float, seconds
    largest_group : int, in units of the sizes that :meth:`submit` gets
    longest_queue : int, requests that may wait
    """

    def __init__(
        self,
        run: Callable[[Key, list[Payload]], Sequence[Result]],
        *,
        n_threads: int = 2,
        window: float = 0.001,
        largest_group: int = 256,
        longest_queue: int = 4096,
    ) -> None:
        self._run = run
        self._window = window
        self._largest_group = largest_group
        self._longest_queue = longest_queue
        self._changed = threading.Condition()
        self._queue: deque[_Group[Key, Payload, Result]] = deque()
        # The group of each key that still takes requests.
        self._open: dict[Key, _Group[Key, Payload, Result]] = {}
        self._n_waiting = 0
        self._is_closed = False
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(n_threads)]
        for thread in self._threads:
            thread.start()

    @property
    def n_waiting(self) -> int:
        """How many requests no thread has taken up yet."""
        return self._n_waiting

    def submit(self, key: Key, payload: Payload, size: int = 1) -> Future[Result]:
        """Return the future result of a request; ``size`` is its share of a group."""
        future: Future[Result] = Future()
        with self._changed:
            if self._is_closed:
                raise BusyError("The service is about to stop. Try again in a moment.")
            if self._n_waiting >= self._longest_queue:
                raise BusyError(f"{self._n_waiting} requests are waiting already. Try again in a moment.")
            group = self._open.get(key)
            if group is None or group.size + size > self._largest_group:
                group = self._open[key] = _Group(key)
                self._queue.append(group)
            group.requests.append(_Waiting(payload, future))
            group.size += size
            self._n_waiting += 1
            self._changed.notify()
        return future

    def close(self) -> None:
        """Answer everything that waits, and stop."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._queue and not self._is_closed:
                    self._changed.wait()
                if not self._queue:
                    return
                is_alone = self._n_waiting == 1
            if is_alone and self._window:
                time.sleep(self._window)
            group = self._take()
            if group is not None:
                self._answer(group)

    def _take(self) -> _Group[Key, Payload, Result] | None:
        with self._changed:
            if not self._queue:
                return None
            group = self._queue.popleft()
            if self._open.get(group.key) is group:
                del self._open[group.key]
            self._n_waiting -= len(group.requests)
        return group

    def _answer(self, group: _Group[Key, Payload, Result]) -> None:
        requests = [request for request in group.requests if request.future.set_running_or_notify_cancel()]
        if not requests:
            return
        try:
            results = self._run(group.key, [request.payload for request in requests])
        except Exception as error:
            if len(requests) == 1:
                requests[0].future.set_exception(error)
                return
            for request in requests:
                self._answer_alone(group.key, request)
            return
        for request, result in zip(requests, results, strict=True):
            request.future.set_result(result)

    def _answer_alone(self, key: Key, request: _Waiting[Payload, Result]) -> None:
        try:
            request.future.set_result(self._run(key, [request.payload])[0])
        except Exception as error:
            request.future.set_exception(error)


def map_future(future: Future[First], function: Callable[[First], Second]) -> Future[Second]:
    """Return the future value of a function of another one's result."""
    outcome: Future[Second] = Future()

    def finish(done: Future[First]) -> None:
        if not outcome.set_running_or_notify_cancel():
            return
        try:
            outcome.set_result(function(done.result()))
        except BaseException as error:
            outcome.set_exception(error)

    future.add_done_callback(finish)
    return outcome


def chain_future(future: Future[First], step: Callable[[First], Future[Second]]) -> Future[Second]:
    """Return the future result of a second step, which begins when the first is done."""
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
