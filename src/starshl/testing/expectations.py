"""What checks share: ways to run them and to say what went wrong, and for hashers, rows to learn from."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_digits

from .._common.bundle import read_bundle
from ..hashers.base import BaseHasher
from ..hashers.facts import Facts

_N_ROWS = 300


@cache
def _digits() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_digits(return_X_y=True)  # unpacks and parses text, which takes longer than many a fit
    return X[:_N_ROWS] / 16.0, y[:_N_ROWS]


@dataclass(frozen=True)
class Case:
    """A hasher under test and the rows it is tested on: fresh copies, so that no fit can change those of another."""

    template: BaseHasher

    @property
    def X(self) -> np.ndarray:
        return _digits()[0].copy()

    @property
    def y(self) -> np.ndarray:
        return _digits()[1].copy()

    @property
    def facts(self) -> Facts:
        return self.template.current_facts

    def make(self, **params: Any) -> BaseHasher:
        """Return a fresh hasher, with other parameters if some are given."""
        return clone(self.template).set_params(**params)

    def fitted(self) -> BaseHasher:
        """Return a copy of a hasher that was fitted once for all checks."""
        return deepcopy(self._fitted)

    @cached_property
    def _fitted(self) -> BaseHasher:
        return self.make().fit(self.X, self.y)


def run_checks(checks: Iterable[tuple[str, Callable[[], None]]], advice: Mapping[str, str | None]) -> None:
    """Run named checks; raise an AssertionError that lists all that fail, each with the advice on how to pass it.

    Checks that fail with the same message are listed together.
    """
    failed: dict[str, list[str]] = {}
    errors, n_checks = [], 0
    for name, check in checks:
        n_checks += 1
        try:
            check()
        except Exception as error:
            errors.append(error)
            message = str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
            failed.setdefault(message, []).append(name)
    if not errors:
        return
    lines = [f"{len(errors)} of {n_checks} checks failed."]
    for message, names in failed.items():
        lines.append(f"\n{', '.join(names)}\n    {message}")
        lines += [
            f"    To pass: {' '.join((advice.get(name) or '').split())}" for name in names[:1] if advice.get(name)
        ]
    raise AssertionError("\n".join(lines)) from errors[0]


def expect(condition: bool, message: str) -> None:
    """Raise an AssertionError unless the condition holds; an assert statement would vanish under ``python -O``."""
    if not condition:
        raise AssertionError(message)


def expect_same(first: np.ndarray, second: np.ndarray, what: str) -> None:
    """Raise an AssertionError unless two arrays have equal entries."""
    expect(np.array_equal(first, second), f"{what}: the arrays differ.")


def expect_error(pattern: str, call: Callable[[], object], kinds: tuple[type[Exception], ...] = (ValueError,)) -> str:
    """Return the message of the error that ``call`` raises; it must match the pattern."""
    try:
        call()
    except kinds as error:
        expect(re.search(pattern, str(error), re.DOTALL) is not None, f"expected /{pattern}/ in the error {error!s}")
        return str(error)
    names = " or ".join(kind.__name__ for kind in kinds)
    raise AssertionError(f"nothing was raised; {names} {f'like /{pattern}/ ' if pattern else ''}was expected.")


def reload(hasher: BaseHasher, path: Path) -> BaseHasher:
    """Save a hasher and read it back; :func:`starshl.load` knows the classes of the catalog only."""
    hasher.save(path)
    header, arrays = read_bundle(path)
    return type(hasher).unpack(header, arrays)


class Interruption(BaseException):
    """Raised in the middle of a fit, like the KeyboardInterrupt of an impatient user."""


@contextmanager
def interrupted_after(n_calls: int) -> Iterator[None]:
    """Raise an Interruption in this thread when so many Python functions have been called."""
    left = n_calls

    def count(frame: FrameType, event: str, _argument: object) -> None:
        nonlocal left
        if event == "call" and frame.f_code.co_name not in ("fit_completely", "interrupted_after", "__exit__"):
            left -= 1
            if left <= 0:
                sys.setprofile(None)
                raise Interruption

    sys.setprofile(count)
    try:
        yield
    finally:
        sys.setprofile(None)
