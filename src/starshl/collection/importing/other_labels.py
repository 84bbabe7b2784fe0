"""Items that are stored already and arrive with another label: which ones, and what becomes of them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence

from ..._common.labels import Label, Labels
from ..._common.words import counted
from ...exceptions import InputError
from ..collection import Collection
from ..labels import check_kind, class_texts

_SHOWN = 5  # items named in a message


class OtherLabels:
    """The labels that new rows would give to stored items which are the same and have others.

    A row without a label changes none. If several stored items are the same as several rows, those with the same label
    belong together first, and the others in their order.

    Parameters
    ----------
    collection : Collection
    labels : those of the new rows
    same : the ids of the stored items that are the same as each row
    """

    def __init__(self, collection: Collection, labels: Labels, same: Sequence[tuple[int, ...]]) -> None:
        self._collection, self._texts = collection, class_texts(labels)
        classes = [json.loads(text) for text in self._texts]
        given: defaultdict[tuple[int, ...], list[Label]] = defaultdict(list)
        for ids, number in zip(same, labels.index.tolist(), strict=True):
            if ids and number >= 0:
                given[ids].append(classes[number])
        stored = {item.id: item.label for item in collection.get(sorted({item for ids in given for item in ids}))}
        taken = {item: label for ids, rows in given.items() for item, label in _paired(ids, rows, stored)}
        self._stored = stored
        self._taken = {item: labels for item, labels in taken.items() if set(labels) != {stored[item]}}

    def __len__(self) -> int:
        return len(self._taken)

    def refuse(self) -> None:
        """Say which items have another label, if there are any."""
        if self._taken:
            n = len(self)
            raise InputError(
                "{items} in the collection with another label, and nothing was stored: {shown}",
                advice="Take the new labels with {update_labels}, or keep those of the collection with {keep_labels}.",
                items=f"{counted(n, 'item')} {'is' if n == 1 else 'are'}",
                shown=self._shown(),
            )

    def check(self) -> None:
        """Refuse labels that the collection cannot take, and rows that are the same item with different labels."""
        check_kind(self._texts, self._collection.label_kind or "", "the collection")
        for item, labels in self._taken.items():
            if len(set(labels)) > 1:
                raise InputError(
                    "Rows that are the same as item {item} have different labels, {names}, and nothing was stored",
                    advice="Leave one of them, or keep the label of the collection with {keep_labels}.",
                    item=item,
                    names=" and ".join(repr(label) for label in dict.fromkeys(labels)),
                )

    def store(self) -> None:
        """Give the items their new labels."""
        if self._taken:
            ids = sorted(self._taken)
            self._collection.set_labels(ids, [self._taken[item][0] for item in ids])

    def _shown(self) -> str:
        texts = [
            f"{item} is {_name(self._stored[item])} there and {' and '.join(_name(label) for label in others)} here"
            for item, others in (
                (item, [label for label in dict.fromkeys(self._taken[item]) if label != self._stored[item]])
                for item in sorted(self._taken)[:_SHOWN]
            )
        ]
        more = [f"and {len(self) - _SHOWN:,} more"] if len(self) > _SHOWN else []
        return "; ".join([*texts, *more])


def _paired(
    ids: tuple[int, ...], rows: Iterable[Label], stored: dict[int, Label | None]
) -> Iterable[tuple[int, list[Label]]]:
    """Return the labels that rows which are all the same give to the stored items that they are the same as."""
    free, others = list(ids), []
    taken: defaultdict[int, list[Label]] = defaultdict(list)
    for label in rows:
        fitting = next((item for item in free if stored[item] == label), None)
        if fitting is None:
            others.append(label)
        else:
            free.remove(fitting)
            taken[fitting].append(label)
    for label in others:
        if free:
            taken[free.pop(0)].append(label)
        elif all(stored[item] != label for item in ids):
            taken[ids[-1]].append(label)
    return taken.items()


def _name(label: Label | None) -> str:
    return "unlabeled" if label is None else repr(label)
