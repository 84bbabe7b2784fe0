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
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from .._common.files import draft_folder, sync_folder
from .._common.validation import check_choice
from ..data.features.extractor import RAW_KINDS, Extractor
from ..exceptions import CollectionError, CollectionFormatError
from ..hashers.base import BaseHasher
from ..hashers.catalog import load
from ..learning.kernels.kernel import Kernel
from .store import Store

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


# What a collection knows of the pictures or texts behind its vectors: their kind, titles, and the extractor's file.

#: What items are.
KINDS = (*RAW_KINDS, "vectors")
_KIND, _TITLE, _EXTRACTOR = "kind", "title_field", "extractor"
_SHOWN = 80  # letters of a text in a message
_LISTED = 10  # texts in a message
_DRAFT_RAW = "extractor.draft"
_NAME = re.compile(r"extractor-[0-9a-f]{16}\.star")


def raw_facts(
    folder: Path, hasher: BaseHasher, extractor: Extractor | None, kind: str | None, title: str | None
) -> dict[str, str | int]:
    """Save the extractor of a new collection; return the facts about its items, only those that say something."""
    kind = _checked_kind(extractor, kind)
    if title is not None and (not isinstance(title, str) or not title):
        raise ValueError(f"title is {title!r}; it must be the name of a metadata field.")
    facts: dict[str, str | int] = {} if kind == "vectors" else {_KIND: kind}
    facts |= {} if title is None else {_TITLE: title}
    if extractor is not None:
        _check_fits(extractor, hasher)
        facts[_EXTRACTOR] = _save_extractor(folder, extractor)
    return facts


def _checked_kind(extractor: Extractor | None, kind: str | None) -> str:
    if extractor is not None and not isinstance(extractor, Extractor):
        raise ValueError(
            f"extractor is of type {type(extractor).__name__}; it must be an Extractor. Wrap a transformer in one: "
            "Extractor('pictures', [transformer])."
        )
    if kind is None:
        return "vectors" if extractor is None else extractor.kind
    check_choice(kind, "kind", KINDS)
    if extractor is not None and kind != extractor.kind:
        raise ValueError(f"kind is {kind!r}, and the extractor takes {extractor.kind}. Leave kind out.")
    return kind


def _check_fits(extractor: Extractor, hasher: BaseHasher) -> None:
    made, taken = extractor.n_features_out_, getattr(hasher, "n_features_in_", None)
    if made is not None and taken is not None and made != taken:
        raise ValueError(
            f"The extractor makes vectors of {made} numbers; the hasher was fitted on rows of {taken}. Fit the hasher "
            "to what the extractor makes."
        )


def check_extractor_stays(store: Store, present: BaseHasher, new: BaseHasher) -> None:
    """Refuse a new hasher that cannot take what the extractor of a collection makes."""
    made, taken = getattr(present, "n_features_in_", None), getattr(new, "n_features_in_", None)
    if extractor_file(store) is not None and made != taken:
        raise ValueError(
            f"The extractor of this collection makes vectors of {made} numbers; this hasher was fitted on rows of "
            f"{taken}. Fit it to vectors of the extractor, or make a new collection with another one."
        )


def _save_extractor(folder: Path, extractor: Extractor) -> str:
    """Save an extractor under a name made from its contents, so that the database names exactly this one."""
    draft = folder / _DRAFT_RAW
    extractor.save(draft)
    name = content_name(draft, "extractor")
    os.replace(draft, folder / name)
    sync_folder(folder)
    return name


def kind_of_items(store: Store) -> str:
    """Return what items are: "pictures", "texts" or "vectors"."""
    return store.optional_text(_KIND) or "vectors"


def title_field(store: Store) -> str | None:
    """Return the metadata field that holds the title of an item, None if there is none."""
    return store.optional_text(_TITLE)


def extractor_file(store: Store) -> str | None:
    """Return the name of the extractor's file, None if the collection has no extractor."""
    return store.optional_text(_EXTRACTOR)


def load_extractor(folder: Path, name: str, steps: Sequence[Any] | None) -> Extractor:
    """Load the extractor of that name, if it is still what was saved."""
    check_extractor_file(folder, name)
    return Extractor.load(folder / name, steps)


def unknown_texts(vectors: np.ndarray) -> list[int]:
    """Return which texts have no word that the extractor knows: those whose vectors are zeros."""
    return np.flatnonzero(~np.asarray(vectors).any(axis=1)).tolist()


def unknown_texts_note(
    texts: Sequence[str], vectors: np.ndarray, outcome: str = "what is found there means nothing"
) -> str | None:
    """Say which texts have no word that the extractor knows, and what becomes of each; None if all have one."""
    unknown = unknown_texts(vectors)
    if not unknown:
        return None
    first = repr(str(texts[unknown[0]])[:_SHOWN])
    if len(texts) == 1:
        which = f"the text {first} is known to this collection, so"
    elif len(unknown) == 1:
        which = f"texts[{unknown[0]}] ({first}) is known to this collection, so"
    else:
        others = ", ".join(f"texts[{place}]" for place in unknown[1:_LISTED]) + ", ..." * (len(unknown) > _LISTED)
        listed = f"texts[{unknown[0]}] ({first}), {others}"
        which = f"{len(unknown):,} texts is known to this collection: {listed}. So"
    return f"None of the words of {which} {outcome}. Use other words."


def check_extractor_file(folder: Path, name: str) -> None:
    """Refuse the file of an extractor that is missing or was changed."""
    path = folder / name
    if not _NAME.fullmatch(name):
        raise CollectionFormatError(f"{name!r} cannot name an extractor of {str(folder)!r}. Restore it from a copy.")
    if not path.is_file():
        raise CollectionFormatError(f"The extractor's file {str(path)!r} is missing. Restore it from a copy.")
    if name != content_name(path, "extractor"):
        raise CollectionFormatError(f"The extractor's file {str(path)!r} was changed. Restore it from a copy.")
