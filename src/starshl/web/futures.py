"""Futures that follow from others."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

__all__ = ["followed", "mapped"]

First = TypeVar("First")
Second = TypeVar("Second")


def mapped(future: Future[First], function: Callable[[First], Second]) -> Future[Second]:
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


def followed(future: Future[First], step: Callable[[First], Future[Second]]) -> Future[Second]:
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
