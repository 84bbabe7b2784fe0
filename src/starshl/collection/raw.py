"""What a collection knows of the pictures or texts behind its vectors: their kind, titles, and the extractor's file."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._files import sync_folder
from .._validation import check_choice
from ..base import BaseHasher
from ..exceptions import CollectionFormatError
from ..features import Extractor
from ..features.extractor import RAW_KINDS
from .folder import content_name
from .store import Store

__all__ = [
    "KINDS",
    "check_extractor_file",
    "check_extractor_stays",
    "extractor_file",
    "kind_of_items",
    "load_extractor",
    "raw_facts",
    "title_field",
    "unknown_texts",
    "unknown_texts_note",
]

#: What items are.
KINDS = (*RAW_KINDS, "vectors")

_KIND, _TITLE, _EXTRACTOR = "kind", "title_field", "extractor"
_SHOWN = 80  # letters of a text in a message
_LISTED = 10  # texts in a message
_DRAFT = "extractor.draft"
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
    draft = folder / _DRAFT
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
