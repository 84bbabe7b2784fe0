"""Service: the collections that one process serves, their snapshots and their jobs."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from pathlib import Path

from ..collection.collection import Collection
from . import inputs
from .errors import UnknownError
from .jobs import JobLog, Jobs, resolve_interrupted
from .observer import Observer
from .searcher import Searcher
from .snapshots import SnapshotFolder, delete_leftovers, recover_folder
from .workspace import Workspace

_log = logging.getLogger(__name__)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class Service:
    """Open collections by name.

    Parameters
    ----------
    folders : paths of collections, or open ones, which stay open; the name of each folder is that of its collection
    read_only : bool, default=False
    n_jobs : int, default=None
        Threads of one search.
    snapshots : path, default=None
        Where snapshots go, in a folder per collection; next to each collection if None.
    observer : Observer, default=None
        Is told of batches and changes.
    """

    def __init__(
        self,
        folders: Sequence[str | Path | Collection],
        *,
        read_only: bool = False,
        n_jobs: int | None = None,
        snapshots: str | Path | None = None,
        observer: Observer | None = None,
    ) -> None:
        self.searchers: dict[str, Searcher] = {}
        self._snapshots: dict[str, SnapshotFolder] = {}
        self._workspaces: dict[str, Workspace] = {}
        self.jobs = Jobs()
        self.is_closing = False
        try:
            for given in folders:
                is_open = isinstance(given, Collection)
                folder = Path(given.folder if isinstance(given, Collection) else given).resolve()
                name = _checked_name(folder, self.searchers)
                if not (read_only or is_open):
                    recover_folder(folder)
                self.searchers[name] = Searcher(
                    given if is_open else folder, name=name, read_only=read_only, n_jobs=n_jobs, observer=observer
                )
                beside = folder.resolve().with_name(f"{name}.snapshots")
                self._snapshots[name] = SnapshotFolder(beside if snapshots is None else Path(snapshots) / name)
                self._workspaces[name] = Workspace(self.searchers[name], self.jobs)
                if not (read_only or is_open):
                    # Nobody else writes to the collection now, so nothing of this is in use.
                    delete_leftovers(folder)
                    self._snapshots[name].delete_drafts()
                    self._read_jobs(name)
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self.searchers)!r})"

    @property
    def is_ready(self) -> bool:
        """Whether all collections answer."""
        return not self.is_closing and all(searcher.is_ready for searcher in self.searchers.values())

    def searcher(self, name: str) -> Searcher:
        """Return the searcher of a collection."""
        self._check(name)
        return self.searchers[name]

    def snapshots(self, name: str) -> SnapshotFolder:
        """Return the snapshots of a collection."""
        self._check(name)
        return self._snapshots[name]

    def workspace(self, name: str) -> Workspace:
        """Return what pages have prepared for a collection."""
        self._check(name)
        return self._workspaces[name]

    def warm_up(self) -> None:
        """Make the first requests as fast as later ones."""
        for name, searcher in self.searchers.items():
            try:
                searcher.warm_up()
                inputs.warm_up(searcher)
            except Exception as error:
                _log.warning("%s could not be warmed up", name, exc_info=error)

    def close(self) -> None:
        """Finish what was accepted, interrupt jobs, and close all collections."""
        self.is_closing = True
        self.jobs.close()
        for workspace in self._workspaces.values():
            workspace.close()
        for searcher in self.searchers.values():
            searcher.close()

    def _read_jobs(self, name: str) -> None:
        """Find the jobs of an earlier service again, and say what became of those that it did not finish."""
        log = JobLog(self.searchers[name].folder.with_name(f"{name}.jobs"))
        with self.searchers[name].opened() as collection:
            self.jobs.add_earlier(name, log, resolve_interrupted(log.read(), collection))

    def _check(self, name: str) -> None:
        if name not in self.searchers:
            known = ", ".join(sorted(self.searchers))
            raise UnknownError(f"There is no collection {name[:120]!r} here. There are: {known}.")


def _checked_name(folder: Path, taken: dict[str, Searcher]) -> str:
    name = folder.resolve().name
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"The folder {name!r} cannot name a collection in addresses. Rename it: letters, digits, dots, hyphens and "
            "underscores, of which the first is a letter or digit."
        )
    if name in taken:
        raise ValueError(
            f"Two of the folders are called {name!r}; each collection needs a different name. Rename one of them."
        )
    return name
