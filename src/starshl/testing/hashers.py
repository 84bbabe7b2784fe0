"""check_hasher: the contract of BaseHasher as named checks, like scikit-learn's ``check_estimator``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from sklearn.base import clone

from ..base import BaseHasher
from . import _code_checks, _fit_checks, _label_checks
from ._expectations import Case, run_checks

__all__ = ["check_hasher", "hasher_checks"]

_CHECKS = {
    name.removeprefix("check_"): check
    for module in (_code_checks, _fit_checks, _label_checks)
    for name, check in vars(module).items()
    if name.startswith("check_")
}


def check_hasher(hasher: BaseHasher | Callable[[], BaseHasher]) -> None:
    """Run every check of the contract; raise an AssertionError that names the first one that fails.

    The hasher is fitted several dozen times on 300 rows of 64 features, so give it settings under which that is
    quick. Checks follow the facts it declares: what it does with labels, and what limits the length of its codes.
    ``sklearn.utils.estimator_checks.check_estimator`` covers the part of the contract that is scikit-learn's.

    Parameters
    ----------
    hasher : BaseHasher, or a function without arguments that returns one
        Not fitted. It needs a fixed ``random_state`` if it draws numbers.

    Examples
    --------
    >>> from starshl.baselines import LSHash
    >>> from starshl.testing import check_hasher
    >>> check_hasher(LSHash(4, random_state=0))
    """
    run_checks(hasher_checks(hasher))


def hasher_checks(hasher: BaseHasher | Callable[[], BaseHasher]) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield the name of each check and a function that runs it, for a test runner that reports them one by one."""
    template = hasher if isinstance(hasher, BaseHasher) else hasher()
    for name, check in _CHECKS.items():
        yield name, partial(check, Case(clone(template)))
