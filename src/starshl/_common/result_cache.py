"""Results that several fits have in common, computed once within a block.

The same rows are often learned from many times, at nine code lengths for example, and kernels between them are the same
every time. Functions whose result depends on nothing but their arguments pass it to :func:`cached`; inside of
:func:`caching_results` a second call with equal arguments gets the result of the first, so no number changes.
"""

from __future__ import annotations

import hashlib
import pickle
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np

Result = TypeVar("Result")
_MAX_BYTES = 4 << 30
_MIN_SECONDS = 0.02  # what is quicker to compute is not worth its memory
_ACTIVE: ContextVar[ResultCache | None] = ContextVar("result cache", default=None)


class ResultCache:
    """Results by the digest of their arguments; the one not asked for longest goes first if they take too much memory.

    ``seconds_saved`` counts what results that were found here took when they were computed.
    """

    def __init__(self, max_bytes: int = _MAX_BYTES, min_seconds: float = _MIN_SECONDS):
        self.max_bytes, self.min_seconds = max_bytes, min_seconds
        self.seconds_saved = 0.0
        self._results: OrderedDict[bytes, tuple[Any, float, Callable[[Any], int]]] = OrderedDict()

    def clear(self) -> None:
        """Forget all results."""
        self._results.clear()

    def get(
        self, key: bytes, compute: Callable[[], Result], size_of: Callable[[Result], int], *, always: bool = False
    ) -> Result:
        """Return a result, computed if it is not here; ``always`` stores it even if that was quick."""
        if key in self._results:
            self._results.move_to_end(key)
            result, seconds, _ = self._results[key]
            self.seconds_saved += seconds
            return result
        start, saved = time.perf_counter(), self.seconds_saved
        result = compute()
        seconds = time.perf_counter() - start + self.seconds_saved - saved
        if always or seconds >= self.min_seconds:
            self._store(key, result, seconds, size_of)
        return result

    def _store(self, key: bytes, result: Any, seconds: float, size_of: Callable[[Any], int]) -> None:
        size = size_of(result)
        if size > self.max_bytes:
            return
        if isinstance(result, np.ndarray):
            result.setflags(write=False)
        # Some results grow, so they are measured anew.
        while self._results and size + self._total_size() > self.max_bytes:
            self._results.popitem(last=False)
        self._results[key] = result, seconds, size_of

    def _total_size(self) -> int:
        return sum(size_of(result) for result, _, size_of in self._results.values())


@contextmanager
def caching_results(cache: ResultCache) -> Iterator[None]:
    """Cache the results of all calls within the block."""
    token = _ACTIVE.set(cache)
    try:
        yield
    finally:
        _ACTIVE.reset(token)


def cached(
    name: str,
    arguments: object,
    compute: Callable[[], Result],
    size_of: Callable[[Result], int] = lambda result: getattr(result, "nbytes", 0),
    *,
    always: bool = False,
) -> Result:
    """Return ``compute()``, or what it returned before for the same name and equal arguments.

    Outside of :func:`caching_results`, and for arguments that cannot be pickled, it is always computed. ``size_of``
    says how many bytes a result takes. What is computed quickly is stored only with ``always``, for results that cache
    what they compute later. Nobody may change a result; arrays refuse it.

    Examples
    --------
    >>> with caching_results(ResultCache()):
    ...     first = cached("square", 3, lambda: time.sleep(0.03) or 9)
    ...     second = cached("square", 3, lambda: "not computed")
    >>> first, second
    (9, 9)
    """
    cache = _ACTIVE.get()
    if cache is None:
        return compute()
    try:
        key = _digest(name, arguments)
    except (AttributeError, TypeError, pickle.PicklingError):
        return compute()
    return cache.get(key, compute, size_of, always=always)


def can_cache(n_bytes: int) -> bool:
    """Tell whether a result of this size would be stored: some are too large to be made without need."""
    return _ACTIVE.get() is not None and n_bytes <= cache_size()


def cache_size() -> int:
    """Return how many bytes of results are stored at most, 0 outside of :func:`caching_results`."""
    cache = _ACTIVE.get()
    return 0 if cache is None else cache.max_bytes


def note_saved(seconds: float) -> None:
    """Count seconds that a cached result saved by what it caches itself."""
    if (cache := _ACTIVE.get()) is not None:
        cache.seconds_saved += seconds


def seconds_saved() -> float:
    """Return how long the results found in the cache so far took when they were computed."""
    cache = _ACTIVE.get()
    return 0.0 if cache is None else cache.seconds_saved


def _digest(name: str, arguments: object) -> bytes:
    # Arrays go to the digest directly, not through a copy in the pickle.
    digest = hashlib.sha256()
    digest.update(pickle.dumps((name, arguments), protocol=5, buffer_callback=lambda array: digest.update(array.raw())))
    return digest.digest()
