"""What items are before they are vectors: pictures or texts, and the file of the embedder that reads them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from .._common.platform import sync_folder
from .._common.validation import check_choice, check_storable
from .._common.words import counted
from ..data import features
from ..data.features.kinds import RAW_KINDS, RawKind
from ..exceptions import CollectionFormatError
from .folder import content_name
from .store import Store

if TYPE_CHECKING:
    from ..data.features.embedder import Embedder, Given
    from ..hashers.base import BaseHasher

#: What items are.
ItemKind: TypeAlias = RawKind | Literal["vectors"]
KINDS = (*RAW_KINDS, "vectors")
_DRAFT = "embedder.draft"
_NAME = re.compile(r"embedder-[0-9a-f]{16}\.star")
_SHOWN = 80  # letters of a text in a message
_LISTED = 10  # texts in a message
_STORED = 100_000  # characters of a text that are shown with a hit; as JSON, they fit into the metadata of an item


def item_meta(
    folder: Path, hasher: BaseHasher, embedder: Embedder | None, kind: str | None, title: str | None
) -> dict[str, str | int]:
    """Save the embedder of a new collection, if it has one; return the meta entries about its items."""
    meta: dict[str, str | int] = {"kind": _checked_kind(embedder, kind)}
    if title is not None:
        if not isinstance(title, str) or not title:
            raise ValueError(f"title is {title!r}; it must be the name of a metadata field.")
        check_storable(title, "title")
        meta["title_field"] = title
    if embedder is not None:
        _check_fits(embedder, hasher)
        meta["embedder"] = _save_embedder(folder, embedder)
    return meta


def _checked_kind(embedder: Embedder | None, kind: str | None) -> str:
    if kind is None:
        return "vectors" if embedder is None else embedder.takes[0]
    check_choice(kind, "kind", KINDS)
    if embedder is not None and kind not in embedder.takes:
        raise ValueError(f"kind is {kind!r}, and the embedder takes {' and '.join(embedder.takes)}. Leave kind out.")
    return kind


def _check_fits(embedder: Embedder, hasher: BaseHasher) -> None:
    made, taken = embedder.dimension, hasher.row_width
    if made is not None and taken is not None and made != taken:
        raise ValueError(
            f"The embedder makes vectors of {made} numbers; the hasher was fitted on rows of {taken}. Fit the hasher "
            "to what the embedder makes."
        )


def _save_embedder(folder: Path, embedder: Embedder) -> str:
    """Save an embedder under a name made from its contents, so that the database names exactly this one."""
    draft = folder / _DRAFT
    embedder.save(draft)
    name = content_name(draft, "embedder")
    os.replace(draft, folder / name)
    sync_folder(folder)
    return name


def embedder_file(store: Store) -> str | None:
    """Return the name of the embedder's file, None if the collection has no embedder."""
    return store.text_meta("embedder") or None


def load_embedder(folder: Path, name: str, given: Given) -> Embedder:
    """Load the embedder of that name, if it is still what was saved; ``given`` is what its file cannot hold."""
    check_embedder_file(folder, name)
    return features.Embedder.load(folder / name, features.make_embedder(given) if isinstance(given, str) else given)


def check_embedder_file(folder: Path, name: str) -> None:
    """Refuse the file of an embedder that is missing or was changed."""
    path = folder / name
    if not _NAME.fullmatch(name):
        raise CollectionFormatError.damaged(f"{name!r} cannot be the name of its embedder", folder)
    if not path.is_file():
        raise CollectionFormatError.damaged(f"the file of its embedder, {str(path)!r}, is missing")
    if name != content_name(path, "embedder"):
        raise CollectionFormatError.damaged(f"the file of its embedder, {str(path)!r}, was changed")


def check_embedder_stays(store: Store, present: BaseHasher, new: BaseHasher) -> None:
    """Refuse a new hasher that cannot take what the embedder of a collection makes."""
    made, taken = present.row_width, new.row_width
    if embedder_file(store) is not None and made != taken:
        raise ValueError(
            f"The embedder of this collection makes vectors of {made} numbers; this hasher was fitted on rows of "
            f"{taken}. Fit it to vectors of the embedder, or make a new collection with another one."
        )


def text_notes(
    embedder: Embedder,
    texts: Sequence[str],
    vectors: np.ndarray,
    outcome: str = "what is found there means nothing",
) -> list[str]:
    """Say which texts have no word that the embedder knows, what becomes of them, and how many texts are cut."""
    notes = unknown_texts_note(texts, vectors, outcome), embedder.cut_note(texts)
    return [note for note in notes if note is not None]


def stored_text(text: str) -> str:
    """Return what an item keeps of its text: the beginning of one that is very long."""
    return text[:_STORED]


def note_of_stored(embedder: Embedder, texts: Sequence[str]) -> str:
    """Say how many texts of items are longer than the embedder reads, or than an item keeps; empty if none are."""
    n_long = sum(len(text) > _STORED for text in texts)
    has, rest = ("has", "it keeps") if n_long == 1 else ("have", "they keep")
    kept = f"{counted(n_long, 'text')} {has} more than {_STORED:,} characters; {rest} the beginning."
    return " ".join(note for note in (embedder.cut_note(texts), kept if n_long else None) if note)


def unknown_texts_note(texts: Sequence[str], vectors: np.ndarray, outcome: str) -> str | None:
    """Say which texts have no word that the embedder knows, and what becomes of each; None if all have one."""
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


def unknown_texts(vectors: np.ndarray) -> list[int]:
    """Return which texts have no word that the embedder knows: those whose vectors are zeros."""
    return np.flatnonzero(~np.asarray(vectors).any(axis=1)).tolist()
