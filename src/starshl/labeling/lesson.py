"""Lesson: a person labels a few items of a collection, and the labels of all others follow."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from .._common.labels import Label
from .._common.validation import check_integer
from ..collection.collection import Collection
from ..index.base import check_ids
from .active_learning import Proposal, choose_at_random, choose_informative, predict_labels
from .background import BackgroundRefit, CodesState
from .codes import CodesTask, codes_worker, learn_codes, store_codes, with_preparation_of
from .events import (
    JOURNAL,
    Answer,
    CurvePoint,
    Event,
    Skip,
    active_events,
    agreement_curve,
    event_text,
    read_events,
    rejected_guesses,
)
from .items import LessonItems, Progress
from .review import Reviewed, accept_guesses, reject_guesses, undo_last
from .revision import (
    ItemMap,
    LessonState,
    Predictions,
    Revision,
    Suspect,
    Update,
    class_numbers,
    n_changed,
    ordered_classes,
    skipped_items,
    without_rejected,
)


class Lesson:
    """Teach a collection by labeling a few of its items.

    Labels are those of the collection. Everything else that a lesson knows, such as the order of the answers, is stored
    in the same transaction as the label: nothing is lost if the process ends, and a new object on the same collection
    goes on where the last one stopped. Labels that come from elsewhere count, too. Any number of threads may use one
    object; one at a time changes it.

    Items that are added to the collection later are not part of the lesson: make a new one.

    Parameters
    ----------
    collection : Collection
        Keeps vectors, and is open for writing.
    auto_refit : bool, default=False
        Refit after each change of the labels, in the background: a hybrid hasher is fitted to the given and predicted
        labels, and replaces the hasher of the collection. See :meth:`refit`.
    n_jobs : int, default=None
        Threads for finding neighbors.
    progress : callable (stage, done, total), default=None
        Called with how far along the preparation is.
    run_exclusively : callable, default=None
        Called with a function that changes the codes of the collection, and calls it when nothing else is written; for
        a service whose changes take turns. It is called at once if None.
    in_subprocess : bool, default=False
        Learn codes in a process of their own, so that answers never wait for it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_digits
    >>> from starshl.hashers.baselines import LSHash
    >>> from starshl import Collection
    >>> from starshl.labeling import Lesson
    >>> X, y = load_digits(n_class=3, return_X_y=True)
    >>> folder = Path(tempfile.mkdtemp()) / "digits"
    >>> with Collection.create(folder, LSHash(32, random_state=0).fit(X), vectors="float16") as digits:
    ...     _ = digits.add(X)
    ...     with Lesson(digits) as lesson:
    ...         for _ in range(6):
    ...             item = lesson.propose(1)[0].id
    ...             _ = lesson.answer([item], int(y[item]))
    ...         right = np.mean(lesson.predictions().labels == y)
    >>> bool(right > 0.95)
    True
    """

    def __init__(
        self,
        collection: Collection,
        *,
        auto_refit: bool = False,
        n_jobs: int | None = None,
        progress: Progress | None = None,
        run_exclusively: Callable[[Callable[[], None]], None] | None = None,
        in_subprocess: bool = False,
    ) -> None:
        self.collection = collection
        self.auto_refit = auto_refit
        self.n_jobs = n_jobs
        self.in_subprocess = in_subprocess
        self._lock = threading.RLock()
        self._ways: dict[int, str] = {}
        self._run_exclusively = _at_once if run_exclusively is None else run_exclusively
        self._items = LessonItems.of(collection, n_jobs, progress or _silent)
        self._revision = self._read_revision(None)
        self._worker = codes_worker(self._items.rows) if in_subprocess else None
        self._background = BackgroundRefit(self._refit)
        if auto_refit and len(self._revision.classes) > 1:
            self._background.request()

    @property
    def version(self) -> int:
        """The version of the collection; while it stays, so do all predictions."""
        return self._current().version

    @property
    def ids(self) -> np.ndarray:
        """The ids of all items of the lesson, ascending."""
        return self._items.ids

    @property
    def classes(self) -> list[Label]:
        """The classes that have a label, in the order in which they first came up."""
        return list(self._current().classes)

    def answer(self, ids: ArrayLike, label: Label | None) -> Update:
        """Give items a label, a known one or a new one; None removes their labels.

        When this returns, the labels are stored and all predictions are updated.
        """
        started = time.perf_counter()
        checked, label = _check_some(ids), _check_label(label)
        with self._lock:
            revision = self._current()
            positions = self._items.positions(checked)
            after: list[Label | None] = [label] * len(checked)
            event = Answer(
                ids=checked.tolist(),
                labels=after,
                before=revision.names(revision.given[positions]).tolist(),
                predicted=revision.names(revision.estimate.predicted[positions]).tolist(),
                confidences=np.round(revision.estimate.confidences[positions], 4).tolist(),
                ways=[self._ways.get(item, "chosen") for item in checked.tolist()],
                n_changed=0,
                version=revision.version + 1,
            )
            successor = self._relabeled(revision, event, positions, after)
            event = replace(event, n_changed=n_changed(revision, successor))
            self._store(successor, event, checked, after)
            return Update(self._revision.version, event.ids, event.n_changed, time.perf_counter() - started)

    def skip(self, ids: ArrayLike) -> Update:
        """Do not propose these items any more."""
        started = time.perf_counter()
        checked = _check_some(ids)
        with self._lock:
            self._items.positions(checked)
            event = Skip(checked.tolist())
            self._store(self._current().after(event, self._items.ids), event)
            return Update(self._revision.version, event.ids, 0, time.perf_counter() - started)

    def accept(self, ids: ArrayLike, labels: Sequence[Label | None] | None = None) -> Update:
        """Give items the labels that are guessed, in one change; see :func:`starshl.labeling.accept_guesses`."""
        return self._reviewed(lambda: accept_guesses(self.collection, ids, labels))

    def reject(self, ids: ArrayLike, labels: Sequence[Label | None] | None = None) -> Update:
        """Say that guesses are wrong, in one change; see :func:`starshl.labeling.reject_guesses`."""
        return self._reviewed(lambda: reject_guesses(self.collection, ids, labels))

    def undo(self) -> Update | None:
        """Undo the last answer, skip or rejection that was not undone yet; return None if there is none."""
        with self._lock:
            return self._reviewed(lambda: undo_last(self.collection)) if self.state().can_undo else None

    def _reviewed(self, change: Callable[[], Reviewed | None]) -> Update:
        """Make a change by the collection alone, and let the predictions follow."""
        started = time.perf_counter()
        with self._lock:
            before, made = self._current(), change()
            after = self._current()
            if self.auto_refit and before.version != after.version:
                self._background.request()
            ids = [] if made is None else made.ids
            return Update(after.version, ids, n_changed(before, after), time.perf_counter() - started)

    def propose(self, n: int = 9, *, n_random: int = 0) -> list[Proposal]:
        """Return items that are worth labeling, the most useful one first.

        Parameters
        ----------
        n : int, default=9
            Fewer come back if fewer have no label.
        n_random : int, default=0
            How many of them, at the end of the list, are drawn at random. These are less useful, but they show how
            often predictions agree with you on items of all kinds: ``curve(only_random=True)``.
        """
        n = check_integer(n, "n", low=1)
        n_random = check_integer(n_random, "n_random", low=0, high=n)
        revision = self._current()
        choices = choose_informative(
            self._items.graph, revision.given, revision.estimate, revision.skipped, n - n_random
        )
        choices += choose_at_random(revision.given, revision.skipped, [choice.position for choice in choices], n_random)
        confidences = revision.estimate.confidences
        proposals = [
            Proposal(
                int(self._items.ids[position]),
                revision.name(int(revision.estimate.predicted[position])),
                float(confidences[position]),
                way,
            )
            for position, way in choices
        ]
        self._ways.update({proposal.id: proposal.way for proposal in proposals})
        return proposals

    def predictions(self, ids: ArrayLike | None = None) -> Predictions:
        """Return the labels and confidences of items, of all if ``ids`` is None."""
        revision = self._current()
        checked = self._items.ids if ids is None else _check_some(ids)
        positions = self._items.positions(checked)
        labels = revision.names(revision.estimate.predicted[positions]).tolist()
        return Predictions(checked, labels, revision.estimate.confidences[positions], revision.given[positions] >= 0)

    def state(self) -> LessonState:
        """Return where the lesson stands."""
        return self._current().state()

    def curve(self, *, only_random: bool = False) -> list[CurvePoint]:
        """Return how well predictions agreed with the labels that were then given, one point per answer.

        Proposed items are harder than others, so the agreement is lower than the accuracy on all items. With
        ``only_random``, only items that were proposed at random are compared: see :meth:`propose`.
        """
        answers = [event for _, event in active_events(self._current().events) if isinstance(event, Answer)]
        return agreement_curve(answers, only_random=only_random)

    def suspects(self, n: int = 20) -> list[Suspect]:
        """Return items whose given label does not fit the other labels, the most doubtful one first."""
        return self._current().suspects(self._items.ids, check_integer(n, "n", low=1))

    def map(self) -> ItemMap:
        """Return coordinates of each item in the plane; computed once, which takes seconds."""
        coordinates = self._items.map(self.n_jobs)
        return ItemMap(self._items.ids, coordinates[:, 0], coordinates[:, 1])

    def neighbors(self) -> list[dict[str, list[int] | list[float]]]:
        """Return the seven neighbors of each item, nearest first: positions among ``ids``, and distances."""
        return self._items.neighbors()

    def codes(self) -> CodesState:
        """Return whether the codes of the collection follow from the labels."""
        return self._background.state

    def refit(self) -> None:
        """Let the codes follow the labels, in the background; one fit at a time, and the newest labels win.

        A hybrid hasher with the same number of bits is fitted to given and predicted labels; predicted ones count less.
        All items get its codes in one change, each with its most likely class. With fewer than two classes, nothing
        happens.
        """
        self._background.request()

    def cancel_refit(self) -> None:
        """Cancel a refit that is waiting or running; the codes stay as they are."""
        self._background.cancel()

    def wait_for_codes(self, seconds: float | None = None) -> bool:
        """Wait until no refit is waiting or running; return False if that took longer."""
        return self._background.wait(seconds)

    def close(self) -> None:
        """Stop what is running in the background; the collection stays open."""
        self._background.close()
        if self._worker is not None:
            self._worker.stop()

    def __repr__(self) -> str:
        revision = self._revision
        n_given = int((revision.given >= 0).sum())
        return f"Lesson({self.collection.folder.name!r}, {len(revision.given)} items, {n_given} labels)"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _current(self) -> Revision:
        """Return the newest revision, in which labels that came from elsewhere are known."""
        revision = self._revision
        if self.collection.version != revision.version:
            with self._lock:
                if self.collection.version != self._revision.version:
                    self._revision = self._read_revision(self._revision)
                revision = self._revision
        return revision

    def _read_revision(self, known: Revision | None) -> Revision:
        """Return the revision that the collection holds; predictions stay, if the labels are the known ones."""
        # Read first: if the collection changes meanwhile, the next call reads again.
        version = self.collection.version
        events = read_events(self.collection)
        labels = self.collection.labels()
        names = np.array([labels.get(item) for item in self._items.ids.tolist()], dtype=object)
        classes = ordered_classes(events, names)
        given = class_numbers(classes, names)
        if known is not None and known.classes == classes and np.array_equal(known.given, given):
            spread = known.spread
        else:
            spread = predict_labels(self._items.graph, self._items.coordinates, given, len(classes))
        ids = self._items.ids
        estimate = without_rejected(spread, rejected_guesses(events), classes, given, ids)
        revision = Revision(version, events, classes, given, skipped_items(events, ids), spread, estimate)
        self.collection.keep_guesses(revision.guesses(ids), version)
        return revision

    def _relabeled(
        self, revision: Revision, event: Answer, positions: np.ndarray, labels: Sequence[Label | None]
    ) -> Revision:
        """Return the revision after an event that gives items these labels."""
        after = revision.after(event, self._items.ids)
        names = revision.names(revision.given)
        names[positions] = labels
        classes = ordered_classes(after.events, names)
        given = class_numbers(classes, names)
        spread = predict_labels(self._items.graph, self._items.coordinates, given, len(classes))
        estimate = without_rejected(spread, rejected_guesses(after.events), classes, given, self._items.ids)
        return replace(after, classes=classes, given=given, spread=spread, estimate=estimate)

    def _store(
        self, successor: Revision, event: Event, ids: np.ndarray | None = None, labels: Sequence[Label | None] = ()
    ) -> None:
        """Store an event and its labels in one transaction, and make what follows from them the newest revision."""
        if ids is None:
            self.collection.note(JOURNAL, event_text(event))
        else:
            with self.collection.journaling(JOURNAL, event_text(event)):
                self.collection.set_labels(ids, np.array(labels, dtype=object), warn_unknown=False)
        # If another change came between, this version is not the newest one, and the next call reads again.
        self._revision = replace(successor, events=(*successor.events[:-1], event))
        self.collection.keep_guesses(self._revision.guesses(self._items.ids), self._revision.version)
        if self.auto_refit and ids is not None:
            self._background.request()

    def _refit(self, background: BackgroundRefit) -> int | None:
        """Bring the codes up to date with the newest labels; return their version, None if there is nothing to fit."""
        revision = self._current()
        if len(revision.classes) < 2:
            return None
        current = self.collection.hasher
        task = CodesTask.of(revision.classes, revision.estimate, current)
        if self._worker is None:
            hybrid, packed = learn_codes(self._items.rows, task, background.report)
        else:
            hybrid, packed = self._worker.call(task, report=background.report, check=background.check)
        fitted = with_preparation_of(current, hybrid)
        codes = fitted.as_codes(packed)
        background.report("storing")
        if not self._store_codes(revision, lambda: store_codes(self.collection, fitted, self._items.ids, codes)):
            background.request()
            return background.state.version
        return revision.version

    def _store_codes(self, revision: Revision, store: Callable[[], None]) -> bool:
        """Store codes, unless a class has come up since that they know nothing of: the next ones follow at once."""
        stored = []

        def store_if_current() -> None:
            if set(self._current().classes) <= set(revision.classes):
                store()
                stored.append(True)

        self._run_exclusively(store_if_current)
        return bool(stored)


def _check_some(ids: ArrayLike) -> np.ndarray:
    checked = check_ids(np.atleast_1d(np.asarray(ids)))
    if not len(checked):
        raise ValueError("There are no ids. Give one or more.")
    return checked


def _check_label(label: object) -> Label | None:
    """Return a label as JSON holds it; refuse what cannot be one, or marks items without one elsewhere."""
    value = label.item() if isinstance(label, np.generic) else label
    if value is None or isinstance(value, bool) or (isinstance(value, int) and value != -1):
        return value
    if isinstance(value, str) and value.strip():
        return value
    raise ValueError(
        f"The label is {label!r}; a label is text that is not empty, or a whole number other than -1. Give such a "
        "label, or None to remove labels."
    )


def _at_once(action: Callable[[], None]) -> None:
    action()


def _silent(stage: str, done: int, total: int) -> None:
    pass
