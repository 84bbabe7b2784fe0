"""The folder of a collection: how it is made, who may write to it, and its model file."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TypeAlias

from .._files import draft_folder, sync_folder
from ..base import BaseHasher
from ..catalog import load
from ..exceptions import CollectionError, CollectionFormatError
from ..kernels import Kernel

__all__ = [
    "Kernels",
    "SavedModel",
    "appearing_folder",
    "content_name",
    "discard_other_models",
    "encoder_of",
    "is_own_file",
    "load_model",
    "lock_for_writing",
    "save_model",
]

# The kernels of a hasher that was fitted with functions, which a file cannot hold; None for all others.
Kernels: TypeAlias = Sequence[Kernel | Callable[..., object]] | None

_DRAFT = "hasher.draft"
_MODEL_NAME = re.compile(r"hasher-[0-9a-f]{16}\.star")
_OWN_NAME = re.compile(
    r"items\.sqlite(-wal|-shm|-journal)?|acknowledged|writer\.lock|(hasher|extractor)-[0-9a-f]{16}\.star"
    r"|vectors-[0-9]{1,19}\.bin|\w+\.draft|\..*\.partial"
)


def is_own_file(name: str) -> bool:
    """Tell whether a collection makes files of this name in its folder; any others belong to somebody else.

    >>> is_own_file("items.sqlite-wal"), is_own_file("notes.txt")
    (True, False)
    """
    return _OWN_NAME.fullmatch(name) is not None


@contextmanager
def appearing_folder(folder: Path) -> Iterator[Path]:
    """Fill a folder next to the target and rename it at the end, so that it appears complete or not at all."""
    if folder.exists():
        raise FileExistsError(f"{str(folder)!r} exists already. Open it, or choose another folder.")
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = draft_folder(folder)
    try:
        yield made
        sync_folder(made)
        made.rename(folder)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    sync_folder(folder.parent)


def lock_for_writing(path: Path) -> int:
    """Take the writer's lock, which the system releases when the process ends, however it ends."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise CollectionError(
            f"{str(path.parent)!r} cannot be written ({error.strerror}). Open it with read_only=True, or "
            "give write permission."
        ) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(handle)
        raise CollectionError(
            f"Another process is writing to {str(path.parent)!r}. Close it there first, or open this one "
            "with read_only=True."
        ) from error
    return handle


class SavedModel(NamedTuple):
    """The name of a model file, and the space of the codes that the loaded model makes; "" if it is unknown."""

    name: str
    space_id: str


def save_model(folder: Path, hasher: BaseHasher, kernels: Kernels) -> SavedModel:
    """Save the hasher under a name made from its contents, so that the database names exactly this one.

    A hasher that these kernels cannot load again is refused, and no file of it is left.
    """
    draft = folder / _DRAFT
    hasher.save(draft)
    try:
        space_id = load(draft, kernels=kernels).space_id_ or ""
    except BaseException:
        draft.unlink()
        raise
    name = content_name(draft, "hasher")
    os.replace(draft, folder / name)
    # Flushed before the database names it, or a power cut could leave a database that names a missing model.
    sync_folder(folder)
    return SavedModel(name, space_id)


def load_model(folder: Path, name: str, kernels: Kernels) -> BaseHasher:
    """Load the model of that name, if it is still what was saved."""
    path = folder / name
    if not _MODEL_NAME.fullmatch(name):
        raise CollectionFormatError(f"{name!r} cannot name a model of {str(folder)!r}. Restore it from a copy.")
    if not path.is_file():
        raise CollectionFormatError(f"The model file {str(path)!r} is missing. Restore it from a copy.")
    if name != content_name(path, "hasher"):
        raise CollectionFormatError(f"The model file {str(path)!r} was changed. Restore it from a copy.")
    return load(path, kernels=kernels)


def encoder_of(model: str) -> str:
    """Return what items remember of the model that encoded them: a digest, which is a part of its name.

    >>> encoder_of("hasher-0123456789abcdef.star")
    '0123456789abcdef'
    """
    return model.removeprefix("hasher-").removesuffix(".star")


def discard_other_models(folder: Path, name: str) -> None:
    """Delete the models that are not in use, and the remains of a save that was cut short."""
    for pattern in ("hasher-*.star", _DRAFT, f".{_DRAFT}.*.partial"):
        for path in folder.glob(pattern):
            if path.name != name:
                path.unlink()


def content_name(path: Path, stem: str) -> str:
    """Return the name of a file that is made from its contents."""
    return f"{stem}-{hashlib.sha256(path.read_bytes()).hexdigest()[:16]}.star"
