"""The folder of a collection besides its database: which files are its own, who may write to it, and its model."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

from .. import hashers
from .._common.platform import lock_file, sync_folder
from ..exceptions import CollectionError, CollectionFormatError, CollectionInUseError
from .code_space import CodeSpace

if TYPE_CHECKING:
    from ..hashers.base import BaseHasher
    from ..learning.kernels.kernel import Kernel

# The kernels of a hasher that was fitted with functions, which a file cannot hold; None for all others.
Kernels: TypeAlias = "Sequence[Kernel | Callable[..., object]] | None"
_HASHER_DRAFT = "hasher.draft"
_ROLLBACK_JOURNAL = "items.sqlite-journal"
_HASHER_NAME = re.compile(r"hasher-[0-9a-f]{16}\.star")
_OWN_NAME = re.compile(
    r"items\.sqlite(-wal|-shm)?|acknowledged|writer\.lock|(hasher|space|embedder)-[0-9a-f]{16}\.star"
    r"|vectors-[0-9]{1,19}\.bin|(hasher|embedder)\.draft|\..*\.partial"
)


def is_own_file(name: str) -> bool:
    """Tell whether a collection makes files of this name in its folder; any others belong to somebody else.

    >>> is_own_file("items.sqlite-wal"), is_own_file("notes.txt")
    (True, False)
    """
    return _OWN_NAME.fullmatch(name) is not None


def check_own_files(folder: Path) -> None:
    """Refuse a folder from elsewhere whose files would lead to files of the user; call it before any is opened."""
    journal = folder / _ROLLBACK_JOURNAL
    if os.path.lexists(journal):
        # SQLite obeys a journal before anything can be checked, and deletes whatever file one names.
        raise CollectionFormatError.foreign(
            journal,
            "a rollback journal",
            "a collection never has one",
            "Delete it if you trust where the folder is from.",
        )
    with os.scandir(folder) as entries:
        for entry in entries:
            # In lowercase: some file systems take both for one name.
            kind = _foreign_kind(entry) if is_own_file(entry.name.lower()) else ""
            if kind and os.path.lexists(entry.path):
                raise CollectionFormatError.foreign(
                    entry.path,
                    kind,
                    "a collection has a file of its own there",
                    "Copy the folder again, with files in place of links.",
                )


def _foreign_kind(entry: os.DirEntry[str]) -> str:
    """Return what an entry is that a collection does not make, "" for a file that has no other name."""
    if entry.is_symlink():
        return "a link"
    if entry.is_dir():
        return "a folder"
    if not entry.is_file():
        return "no regular file"
    with suppress(FileNotFoundError):
        return "a file with another name elsewhere (a hard link)" * (entry.stat().st_nlink > 1)
    return ""


def lock_for_writing(path: Path) -> int:
    """Take the writer's lock, which the system releases when the process ends, however it ends."""
    try:
        return lock_file(path)
    except BlockingIOError as error:
        raise CollectionInUseError(path.parent) from error
    except OSError as error:
        raise CollectionError(
            f"{str(path.parent)!r} cannot be written ({error.strerror}). Open it read-only, or give write permission."
        ) from error


class Model:
    """A model of the folder: what searches need to know of it at once, and the hasher, loaded when it is first used."""

    def __init__(self, folder: Path, name: str, kernels: Kernels) -> None:
        if not _HASHER_NAME.fullmatch(name):
            raise CollectionFormatError.damaged(f"{name!r} cannot be the name of its model", folder)
        self.name, self._path, self._kernels = name, folder / name, kernels
        if not self._path.is_file():
            raise CollectionFormatError.damaged(f"its model file {str(self._path)!r} is missing")
        if name != content_name(self._path, "hasher"):
            raise CollectionFormatError.damaged(f"its model file {str(self._path)!r} was changed")
        self.space = CodeSpace.read(_space_path(folder, name), name)
        self._hasher: BaseHasher | None = None
        self._loading = Lock()

    @property
    def hasher(self) -> BaseHasher:
        """The fitted hasher."""
        with self._loading:
            if self._hasher is None:
                hasher = hashers.load(self._path, kernels=self._kernels)
                made, held = (hasher.n_bits_, hasher.space_id_), (self.space.n_bits, self.space.space_id)
                if made != held:
                    raise CollectionFormatError.damaged(f"its model makes codes of {made}, not of {held}")
                self._hasher = hasher
            return self._hasher


def save_model(folder: Path, hasher: BaseHasher, kernels: Kernels) -> tuple[str, CodeSpace]:
    """Save the hasher under a name made from its contents, so that the database names exactly this one.

    Return this name, and the space of its codes, which is saved beside it.

    A hasher that these kernels cannot load again is refused, and no file of it is left.
    """
    draft = folder / _HASHER_DRAFT
    hasher.save(draft)
    try:
        space = CodeSpace.of(hashers.load(draft, kernels=kernels))
    except BaseException:
        draft.unlink()
        raise
    name = content_name(draft, "hasher")
    os.replace(draft, folder / name)
    space.save(_space_path(folder, name), name)
    # Flushed before the database names it, or a power cut could leave a database that names a missing model.
    sync_folder(folder)
    return name, space


def digest_of_model(model: str) -> str:
    """Return what items remember of the model that encoded them: a digest, which is a part of its name.

    >>> digest_of_model("hasher-0123456789abcdef.star")
    '0123456789abcdef'
    """
    return model.removeprefix("hasher-").removesuffix(".star")


def discard_other_models(folder: Path, name: str) -> None:
    """Delete the models that are not in use, and the remains of a save that was cut short."""
    kept = name, _space_path(folder, name).name
    for pattern in ("hasher-*.star", "space-*.star", _HASHER_DRAFT, f".{_HASHER_DRAFT}.*.partial"):
        for path in folder.glob(pattern):
            if path.name not in kept:
                path.unlink()


def _space_path(folder: Path, model: str) -> Path:
    return folder / f"space-{digest_of_model(model)}.star"


def content_name(path: Path, stem: str) -> str:
    """Return the name of a file that is made from its contents."""
    return f"{stem}-{hashlib.sha256(path.read_bytes()).hexdigest()[:16]}.star"
