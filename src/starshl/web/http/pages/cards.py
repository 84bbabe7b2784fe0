"""Items as pages show them: a picture or a title, a label, and whether a hit is right."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ....answers import Label
from ....collection import Collection, Hit, Item
from ...workshop import Upload

__all__ = ["Card", "cards_of", "picture_of_upload"]

# Small pictures are part of the page itself: a request for each would take longer than everything else.
_LARGEST_INLINE = 3000


@dataclass(frozen=True, slots=True)
class Card:
    """One item on a page; ``is_right`` compares its label with that of the query, None if one is not known."""

    id: int
    title: str
    picture: str | None
    label: Label | None
    note: str = ""
    is_right: bool | None = None

    @property
    def name(self) -> str:
        """What a screen reader says."""
        label = "" if self.label is None else f", labeled {self.label}"
        right = {True: ", same label", False: ", another label", None: ""}[self.is_right]
        return f"{self.title}{label}{right}"


def cards_of(
    collection: Collection, name: str, items: Sequence[Item | Hit], *, asked: Label | None = None, notes: Any = None
) -> list[Card]:
    """Return cards of items that are still there; ``asked`` is the label of the query, ``notes`` a text per item."""
    cards = []
    for item, note in zip(items, notes or [""] * len(items), strict=True):
        try:
            picture = _picture(collection, name, item.id)
        except KeyError:
            continue  # the item was removed since it was found
        is_right = None if asked is None or item.label is None else item.label == asked
        cards.append(Card(item.id, collection.title_of(item), picture, item.label, note, is_right))
    return cards


def picture_of_upload(upload: Upload) -> str:
    """Return an uploaded picture as an address."""
    return _inline(upload.preview, "image/webp")


def _picture(collection: Collection, name: str, item: int) -> str | None:
    preview = collection.preview(item)
    if preview is None:
        return None
    if len(preview.content) <= _LARGEST_INLINE:
        return _inline(preview.content, preview.media_type)
    return f"/explore/{name}/pictures/{item}"


def _inline(content: bytes, media_type: str) -> str:
    return f"data:{media_type};base64,{base64.b64encode(content).decode()}"
