"""Workspace: what pages prepare for one collection in the background, and share between all who look at it."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ..client.answers import Job
from ..collection.collection import Collection
from ..collection.guesses import Guesses
from ..labeling.events import JOURNAL
from ..labeling.guessing import guess_labels, usual_source
from ..labeling.lesson import Lesson
from .comparison import OtherMethods, Quality, measure_quality
from .errors import ConflictError, UnknownError
from .jobs import Jobs, RunningJob
from .searcher import Searcher

# Pictures and selections that are remembered, so that links to a search keep working for a while.
_MOST_UPLOADS, _MOST_SELECTIONS = 200, 50

Kept = TypeVar("Kept")


@dataclass(frozen=True, slots=True, eq=False)
class Upload:
    """A picture that somebody searches with: its vector, a small picture of it as a WebP file, and its name."""

    vector: np.ndarray
    preview: bytes
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class _Started:
    """A job, and the collection that it is about."""

    job_id: str
    source: Collection


class Workspace:
    """The background work of pages about one collection, and pictures that were uploaded to search with."""

    def __init__(self, searcher: Searcher, jobs: Jobs) -> None:
        self.searcher = searcher
        self.comparison = OtherMethods(searcher)
        self._jobs = jobs
        self._lock = threading.Lock()
        self._started: dict[str, _Started] = {}
        self._uploads: OrderedDict[str, Upload] = OrderedDict()
        self._selections: OrderedDict[str, np.ndarray] = OrderedDict()
        self._lesson: Lesson | None = None
        self._lesson_vectors: tuple[str, int, int] | None = None
        #: Tells browsers whether answers that they could not send are about this collection, or another of its name.
        self.lesson_identity = ""
        self._mapped: Lesson | None = None
        self.quality: Quality | None = None

    def lesson(self) -> Lesson | None:
        """Return the lesson about the collection as it is now, None if it is not prepared yet."""
        lesson = self._lesson
        if lesson is None:
            return None
        with self.searcher.opened() as collection:
            # A restored snapshot is another collection, and new items have no neighbors yet.
            is_current = lesson.collection is collection and self._lesson_vectors == collection.vectors_state
        return lesson if is_current else None

    def prepare_lesson(self, *, retry: bool = False) -> Job | None:
        """Begin to prepare a lesson, unless there is one; return the job."""
        if self.lesson() is not None:
            return None
        return self.in_background("prepare teaching", self._prepare_lesson, retry=retry)

    def _prepare_lesson(self, job: RunningJob) -> dict[str, Any]:
        self.searcher.writer.check_writable()
        with self.searcher.opened() as collection:
            vectors = collection.vectors_state
            lesson = Lesson(collection, progress=job.report, run_exclusively=self._change_codes, in_subprocess=True)
            self.lesson_identity = _identity(collection)
        before, self._lesson, self._lesson_vectors = self._lesson, lesson, vectors
        if before is not None:
            before.close()
        return {"n_items": len(lesson.ids)}

    def _change_codes(self, action: Callable[[], None]) -> None:
        """Let new codes wait for their turn among the changes, or items that are just being added would be refused."""
        self.searcher.writer.run_exclusively(action).result()

    def known_guesses(self) -> Guesses | None:
        """Return the guessed labels of the collection, current or not, None if nobody has made any."""
        with self.searcher.opened() as collection:
            return collection.guesses()

    def guess(self) -> Job:
        """Begin to guess labels; return the job."""
        return self.in_background("guess labels", self._guess, retry=True)

    def follow_labels(self) -> Job | None:
        """Begin to guess labels if what is known of them no longer follows from the labels; return the job.

        What nobody has asked for is begun only where it takes seconds: by the model, or by a lesson that there is.
        """
        with self.searcher.opened() as collection:
            found = collection.guesses()
            if found is not None and found.is_current:
                return None
            if collection.vector_dtype is None or len(collection.labels()) == len(collection):
                return None
            by_model = usual_source(collection) == "hasher"
            if not (by_model or (not self.searcher.read_only and collection.journal(JOURNAL))):
                return None
            if not by_model and len(collection.label_counts()) < 2:
                return None
        return self.in_background("guess labels", self._guess)

    def _guess(self, job: RunningJob) -> dict[str, Any]:
        with self.searcher.opened() as collection:
            if usual_source(collection) == "hasher":
                guess_labels(collection, by="hasher", progress=job.report)
            else:
                if len(collection.label_counts()) < 2:
                    raise ValueError("Guesses need labels of two classes. Label a few items of each, such as in Teach.")
                lesson = self.lesson()
                if lesson is None:
                    self._prepare_lesson(job)
                else:
                    job.report("guessing")
                    lesson.state()
            found = collection.guesses()
        return {"n_items": 0 if found is None else len(found)}

    def prepare_map(self, *, retry: bool = False) -> Job | None:
        """Begin to place the items on a map, unless that is done; return the job."""
        if self._mapped is not None and self._mapped is self.lesson():
            return None
        return self.in_background("prepare map", self._prepare_map, retry=retry)

    def _prepare_map(self, job: RunningJob) -> dict[str, Any]:
        if self.lesson() is None:
            self._prepare_lesson(job)
        lesson = self.lesson()
        if lesson is not None:
            job.report("placing items")
            lesson.map()
            self._mapped = lesson
        return {}

    def prepare_quality(self) -> Job:
        """Begin to measure how well the collection is searched; return the job."""
        return self.in_background("measure quality", self._measure_quality, retry=True)

    def _measure_quality(self, job: RunningJob) -> dict[str, Any]:
        with self.searcher.opened() as collection:
            self.quality = measure_quality(job, collection, self.comparison)
        return {"n_queries": self.quality.n_queries}

    def prepare_comparison(self, *, retry: bool = False) -> Job | None:
        """Begin to prepare the other methods, unless they are ready or cannot be had; return the job if one runs."""
        if not self.comparison.is_possible or self.comparison.is_ready:
            return None
        job = self.in_background("compare", self.comparison.prepare, retry=retry)
        return job if job.ended is None else None

    def in_background(self, kind: str, work: Callable[[RunningJob], dict[str, Any]], *, retry: bool = False) -> Job:
        """Return the job of this kind that waits or runs, or start one.

        Without ``retry``, one that failed or was canceled is returned, too: to look at a page must not begin anew what
        may fail again, and its error must be seen. One that was about a collection since replaced says nothing.
        """
        with self.searcher.opened() as collection:
            pass
        with self._lock:
            job = self.job(kind)
            if job is None or (
                job.ended is not None and (retry or job.state == "done" or self._started[kind].source is not collection)
            ):
                job = self._jobs.start(kind, self.searcher.name, work)
                self._started[kind] = _Started(job.id, collection)
            return job

    def job(self, kind: str) -> Job | None:
        """Return the last job of this kind."""
        started = self._started.get(kind)
        try:
            return None if started is None else self._jobs.get(self.searcher.name, started.job_id)
        except UnknownError:
            return None

    def cancel_jobs(self) -> None:
        """Cancel what is being prepared: the collection is about to be replaced, and would have to wait for it."""
        for kind in list(self._started):
            job = self.job(kind)
            if job is not None:
                # It may just have ended.
                with suppress(ConflictError):
                    self._jobs.cancel(self.searcher.name, job.id)

    def add_upload(self, upload: Upload) -> str:
        """Remember an upload for as long as it is among the last ones; return its name in addresses."""
        return self._remember(self._uploads, upload, upload.vector, _MOST_UPLOADS)

    def upload(self, digest: str) -> Upload:
        """Return an upload."""
        with self._lock:
            found = self._uploads.get(digest)
        if found is None:
            raise UnknownError(
                "This picture is no longer here, because uploads are kept only for a while. Upload it again."
            )
        return found

    def add_selection(self, ids: np.ndarray) -> str:
        """Remember the ids of selected items for as long as they are among the last ones; return their name."""
        return self._remember(self._selections, ids, ids, _MOST_SELECTIONS)

    def selection(self, digest: str) -> np.ndarray:
        """Return the ids of selected items, ascending."""
        with self._lock:
            found = self._selections.get(digest)
        if found is None:
            raise UnknownError(
                "This selection is no longer here, because selections are kept only for a while. Select the items "
                "again, on the map."
            )
        return found

    def _remember(self, kept: OrderedDict[str, Kept], value: Kept, content: np.ndarray, most: int) -> str:
        digest = hashlib.sha256(content.tobytes()).hexdigest()[:20]
        with self._lock:
            kept[digest] = value
            kept.move_to_end(digest)
            while len(kept) > most:
                kept.popitem(last=False)
        return digest

    def close(self) -> None:
        """End what runs in the background."""
        if self._lesson is not None:
            self._lesson.close()


def _identity(collection: Collection) -> str:
    """Return what tells a collection from another one of the same name: its folder, and the first of its items."""
    first = collection.ids[:1]
    what = (str(collection.folder), first.tolist(), collection.vectors(first).tobytes())
    return hashlib.sha256(repr(what).encode()).hexdigest()[:20]
