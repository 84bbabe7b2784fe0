"""Codes that follow a lesson: a hasher fitted to what is believed of a sample of the items, and the codes of all."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np

from .._common.validation import Label
from ..codes.binary import BinaryCodes
from ..codes.codebook import Codebook
from ..collection.collection import Collection
from ..hashers.base import BaseHasher
from ..hashers.hybrid import HybridHasher
from ..hashers.prepared import PreparedHasher, inner_hasher, without_steps
from ..hashers.star.star_ridge import StarRidge
from ..learning.linalg import principal_directions
from .active_learning import Beliefs

_MOST_ROWS = 2500  # a fit takes seconds; what the others say is in the spread labels already
_FEWEST_PER_CLASS = 10  # discriminant analysis needs as many
_FEWEST_WORDS = 16  # room for new classes before codes have to change their space
_LEAST_TRUST = 0.02  # a weight must be positive; such a row counts next to nothing
_BATCH = 4096  # items between two reports of progress


@dataclass(frozen=True, slots=True)
class CodesTask:
    """Everything but the rows that codes follow from; small enough to be sent to another process.

    Parameters
    ----------
    classes : their names
    given, index : int arrays of shape (n_items,), places among the classes, -1 for none: what a person said, and what
        is believed
    confidences : array of shape (n_items,), of what is believed
    n_bits : length of the codes so far
    codebook : words of the classes, others in reserve
    """

    classes: tuple[Label, ...]
    given: np.ndarray
    index: np.ndarray
    confidences: np.ndarray
    n_bits: int
    codebook: Codebook

    @classmethod
    def of(cls, classes: tuple[Label, ...], given: np.ndarray, beliefs: Beliefs, current: BaseHasher) -> Self:
        """Return the task of bringing the codes of the current hasher up to date."""
        return cls(classes, given, beliefs.index, beliefs.confidences, current.n_bits_, _codebook(classes, current))


def learn_codes(rows: np.ndarray, task: CodesTask, report: Callable[[str], None]) -> tuple[HybridHasher, np.ndarray]:
    """Return a hybrid hasher and the packed codes of all rows, each with the class that is believed of it.

    The hasher is fitted to given labels and, with less weight, to others. The class of an item takes the place of its
    word in a codebook with words in reserve. As long as these suffice, and unless a rare class needs further rows,
    codes before and after are of one space.
    """
    report("fitting")
    hasher, names, packed = _fitted(rows, task), np.array(task.classes), []
    for start in range(0, len(rows), _BATCH):
        report(f"encoding {start:,} of {len(rows):,}")
        part = slice(start, start + _BATCH)
        packed.append(hasher.relabel(hasher.encode(rows[part]), names[task.index[part]]).packed)
    return hasher, np.concatenate(packed)


def _fitted(rows: np.ndarray, task: CodesTask) -> HybridHasher:
    chosen = _sampled(task)
    is_given = task.given[chosen] >= 0
    trust = np.where(is_given, 1.0, np.maximum(2 * task.confidences[chosen] - 1, _LEAST_TRUST))
    n_digits = (len(task.codebook.words) - 1).bit_length()
    n_wanted = max(task.n_bits - n_digits, 1)
    # Columns that depend on others, as those of categories do, give no bits.
    n_bits = n_digits + max(len(principal_directions(rows[chosen], n_wanted)[0]), 1)
    ridge = StarRidge(task.codebook.n_bits, codewords=task.codebook, random_state=0)
    hybrid = HybridHasher(ridge, n_bits=n_bits, codewords=task.codebook, random_state=0)
    hybrid.fit(rows[chosen], np.array(task.classes)[task.index[chosen]], sample_weight=trust)
    # Not all labels of the fit come from a person, and its record must say so.
    n_given = int(is_given.sum())
    hybrid.fit_record_ = hybrid.fit_record_ | {"labels_given": n_given, "labels_believed": len(chosen) - n_given}
    return hybrid


def in_place_of(current: BaseHasher, hybrid: HybridHasher) -> BaseHasher:
    """Return a hasher that prepares vectors as the current one does, if it does."""
    if not isinstance(current, PreparedHasher):
        return hybrid
    fitted = current.with_hasher(hybrid)
    fitted.fit_record_ = hybrid.fit_record_
    return fitted


def store_codes(collection: Collection, hasher: BaseHasher, ids: np.ndarray, codes: BinaryCodes) -> None:
    """Replace the hasher of a collection by another one that gives these items these codes.

    Items that were added since they were computed get the codes of their kept vectors; those that were removed are left
    out.
    """
    held = collection.ids
    if not np.array_equal(held, ids):
        added = held[~np.isin(held, ids)]
        stays = np.isin(ids, held)
        parts = [codes.packed[stays]]
        if len(added):
            parts.append(without_steps(hasher).encode_database(collection.vectors(added)).packed)
        ids, codes = np.concatenate([ids[stays], added]), hasher.as_codes(np.concatenate(parts))
    collection.replace_hasher(hasher, ids, codes=codes)


def _sampled(task: CodesTask) -> np.ndarray:
    """Return the rows to fit: always the same ones but for classes that are rare among them."""
    n_items = len(task.given)
    order = np.random.RandomState(0).permutation(n_items)
    chosen = np.zeros(n_items, dtype=bool)
    chosen[order[:_MOST_ROWS]] = True
    for number in range(len(task.classes)):
        members = task.index == number
        n_missing = min(_FEWEST_PER_CLASS, int(members.sum())) - int((members & chosen).sum())
        if n_missing > 0:
            outside = members & ~chosen
            ranked = np.lexsort((np.arange(n_items), -task.confidences, ~outside))
            chosen[ranked[:n_missing]] = True
    return np.flatnonzero(chosen)


def _codebook(classes: Sequence[Label], current: BaseHasher) -> Codebook:
    """Return the codebook of the current hasher with words for new classes or, if that cannot be, a new one."""
    inner = inner_hasher(current)
    kept = getattr(getattr(inner, "class_hasher_", None), "codebook_", None)
    if isinstance(inner, HybridHasher) and inner.field_holds_ == "classes" and isinstance(kept, Codebook):
        new = [label for label in classes if label not in kept.classes.tolist()]
        same_type = isinstance(kept.classes.tolist()[0], str) == isinstance(classes[0], str)
        if same_type and len(new) <= kept.n_reserved and kept.fit_digest is None:
            for label in new:
                kept = kept.assign(label)
            return kept
    n_words = max(_FEWEST_WORDS, 1 << (2 * len(classes) - 1).bit_length())
    return Codebook.numbered(list(classes), n_reserved=n_words - len(classes))


# Where the codes of a lesson are learned: here, or in a process of their own that keeps no answer waiting.

_SECONDS_IDLE = 60.0  # a process that waits for longer is ended: it holds memory, and a new one starts within seconds
_MODULE = f"{__package__}.learning_process"


class Learner(Protocol):
    """Learns codes of the same rows, again and again."""

    def learn(self, task: CodesTask, report: Callable[[str], None]) -> tuple[HybridHasher, np.ndarray]:
        """Return what :func:`learn_codes` does."""

    def stop(self) -> None:
        """End what is running, as far as that is possible; the next task begins anew."""


class LearnsHere:
    """Learns in the thread that asks."""

    def __init__(self, rows: np.ndarray) -> None:
        self._rows = rows

    def learn(self, task: CodesTask, report: Callable[[str], None]) -> tuple[HybridHasher, np.ndarray]:
        return learn_codes(self._rows, task, report)

    def stop(self) -> None:
        pass


class LearnsApart:
    """Learns in another process, of low priority.

    In this one, a fit would compete with every answer for the interpreter and for the threads of BLAS, which take turns
    however many cores there are.
    """

    def __init__(self, rows: np.ndarray) -> None:
        self._rows = rows
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._ending: threading.Timer | None = None

    @property
    def process_id(self) -> int | None:
        """The number of the process, None if there is none."""
        process = self._process
        return None if process is None else process.pid

    def learn(self, task: CodesTask, report: Callable[[str], None]) -> tuple[HybridHasher, np.ndarray]:
        process, is_new = self._running()
        try:
            # After the process has begun: whoever cancels from now on ends it.
            report("fitting")
            if is_new:
                _send(process, self._rows)
            return _asked(process, task, report)
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            report("fitting")  # ends this if it was canceled, which is why the process is gone
            self.stop()
            raise RuntimeError(f"The process that learns codes has ended (code {process.returncode}).") from error
        except BaseException:
            # It may be in the middle of something that nobody waits for any more.
            self.stop()
            raise
        finally:
            self._end_later()

    def stop(self) -> None:
        with self._lock:
            process, self._process = self._process, None
            if self._ending is not None:
                self._ending.cancel()
        if process is not None:
            process.kill()
            # Only this: a thread may be reading from it, and gets to know that it has ended.
            process.wait()

    def _running(self) -> tuple[subprocess.Popen[bytes], bool]:
        """Return the process, and whether it has just begun and knows no rows yet."""
        with self._lock:
            if self._ending is not None:
                self._ending.cancel()
            if self._process is not None and self._process.poll() is None:
                return self._process, False
            # Not from the folder of the user, whose files may be called like modules; Ctrl+C is for this process alone,
            # and warnings of a fit that nobody called are for nobody.
            command = [sys.executable, "-P", "-W", "ignore", "-m", _MODULE]
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=None, start_new_session=True
            )
            self._process = process
        return process, True

    def _end_later(self) -> None:
        with self._lock:
            if self._process is not None:
                self._ending = threading.Timer(_SECONDS_IDLE, self.stop)
                self._ending.daemon = True
                self._ending.start()


def _asked(
    process: subprocess.Popen[bytes], task: CodesTask, report: Callable[[str], None]
) -> tuple[HybridHasher, np.ndarray]:
    _send(process, task)
    assert process.stdout is not None
    while True:
        kind, content = pickle.load(process.stdout)
        if kind == "error":
            raise ValueError(content)
        if kind == "learned":
            hasher, packed = content
            return hasher, packed
        report(content)


def _send(process: subprocess.Popen[bytes], value: Any) -> None:
    assert process.stdin is not None
    pickle.dump(value, process.stdin, pickle.HIGHEST_PROTOCOL)
    process.stdin.flush()
