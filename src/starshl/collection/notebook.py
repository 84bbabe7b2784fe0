"""What a notebook shows of a collection: the pictures of items with their names, instead of their fields."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from .._common.words import percent
from ..exceptions import CollectionError, UnknownIdError
from .answers import Hit, Item, SearchResult

if TYPE_CHECKING:
    from .collection import Collection

_MOST = 60  # items in one cell
_SIDE = 112  # pixels
_GRID = "display:flex;flex-wrap:wrap;gap:8px;margin:4px 0 10px"
_CARD = f"width:{_SIDE}px;margin:0;font-size:12px;line-height:1.3"
_PICTURE = f"width:{_SIDE}px;height:{_SIDE}px;object-fit:contain;background:#8881;border-radius:6px"
_NAME = "display:block;overflow:hidden;text-overflow:ellipsis;white-space:nowrap"
_GUESS = "border:1px dashed;border-radius:8px;padding:0 4px;font-style:italic"


class Found(list[SearchResult]):
    """What queries found, one result each. A notebook shows the pictures of the hits."""

    def __init__(self, results: Iterable[SearchResult], collection: Collection) -> None:
        super().__init__(results)
        self._collection = collection

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)  # a process that it is sent to has no open collection

    def _repr_html_(self) -> str | None:
        shown, left = [], _MOST
        for number, result in enumerate(self):
            if not left:
                break
            title = f"<b>Query {number}</b>" if len(self) > 1 else ""
            grid = cards_html(self._collection, result.hits[:left])
            if grid is None:
                return None
            shown.append(title + grid)
            left -= len(result.hits[:left])
        return "".join(shown)


def cards_html(collection: Collection, items: Sequence[Item | Hit]) -> str | None:
    """Return a grid of items as HTML; None if their collection is closed."""
    try:
        cards = [_card(collection, item) for item in items]
    except CollectionError:
        return None
    return f'<div style="{_GRID}">{"".join(cards)}</div>'


def _card(collection: Collection, item: Item | Hit) -> str:
    title = escape(collection.title_of(item), quote=True)
    try:
        preview = collection.preview(item.id)
    except UnknownIdError:
        preview = None  # removed since it was found
    shown = f'<span style="{_NAME}" title="{title}">{title}</span>'
    if preview is not None:
        content = base64.b64encode(preview.content).decode()
        shown = f'<img style="{_PICTURE}" alt="" src="data:{preview.media_type};base64,{content}">{shown}'
    return f'<figure style="{_CARD}">{shown}{_label(item)}</figure>'


def _label(item: Item | Hit) -> str:
    """Return the label of an item, or a guess, which never looks like one."""
    if item.label is not None:
        return f"<b>{escape(str(item.label))}</b>"
    if item.guess is None:
        return ""
    sure = "" if item.guess.confidence is None else f" {escape(percent(item.guess.confidence))}"
    return f'<span style="{_GUESS}">{escape(str(item.guess.label))}?{sure}</span>'
