"""The classes of a collection: each is an id forever, and its name is an attribute that can change.

Names, mergers and removals are events of a log that only grows, so every change can be undone, and what a name meant at
an earlier version is still known. Items hold ids of classes; everything that users see is looked up here.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Literal, NamedTuple

from .._common.labels import Label
from .answers import ClassChange

_MOST_NAMES = 20  # in an error message


class Event(NamedTuple):
    """What happened to a class in the change that made this version of the collection.

    ``subject`` is the id of the class or, for "undo", the number of the event that is undone, from 0. ``detail`` is the
    name of an "add" or "rename" as JSON, or the id of the class that "merge" points to.
    """

    version: int
    kind: Literal["add", "rename", "merge", "remove", "undo"]
    subject: int
    detail: str | int | None = None

    def record(self, number: int) -> tuple[int, int, int, str]:
        """Return the event of this number as the database keeps it, with a checksum over all of it."""
        content = json.dumps([self.kind, self.subject, self.detail])
        return number, self.version, _checksum(number, self.version, content), content

    @classmethod
    def of_record(cls, number: Any, version: Any, checksum: Any, content: Any) -> Event:
        """Undo :meth:`record`; raise ValueError for what cannot be an event."""
        if checksum != _checksum(number, version, content):
            raise ValueError("it does not match its checksum")
        kind, subject, detail = json.loads(content)
        named = isinstance(detail, str) and isinstance(json.loads(detail), str | int)
        fits = {
            "add": named,
            "rename": named,
            "merge": type(detail) is int,
            "remove": detail is None,
            "undo": detail is None,
        }
        if type(subject) is not int or type(version) is not int or not fits.get(kind, False):
            raise ValueError(f"it holds {content[:60]!r}")
        return cls(version, kind, subject, detail)


class NameTakenError(ValueError):
    """Two classes would have the same name."""


@dataclass(frozen=True)
class Vocabulary:
    """The classes after some events.

    Parameters
    ----------
    events : all events, the oldest first
    names : the name of each class, as a JSON text
    shown_as : the class that each one counts as, itself unless it was merged; -1 if that one was removed
    """

    events: tuple[Event, ...] = ()
    names: tuple[str, ...] = ()
    shown_as: tuple[int, ...] = ()
    _ids: dict[str, int] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def replay(cls, events: Sequence[Event]) -> Vocabulary:
        """Return the classes after events; raise ValueError for events that cannot follow each other."""
        undone = {event.subject for event in events if event.kind == "undo"}
        names: list[str] = []
        pointers: dict[int, int] = {}
        removed: set[int] = set()
        for number, (_, kind, subject, detail) in enumerate(events):
            limit = number if kind == "undo" else len(names) + (kind == "add")
            if not 0 <= subject < limit or (kind == "add" and subject != len(names)):
                raise ValueError(f"its event {number} is about {subject}, which is unknown")
            if kind == "add":
                names.append(str(detail))
            elif number not in undone:
                if kind == "rename":
                    names[subject] = str(detail)
                elif kind == "merge":
                    pointers[subject] = int(detail or 0)
                elif kind == "remove":
                    removed.add(subject)
        ends = [_end(pointers, each, len(names)) for each in range(len(names))]
        shown_as = [-1 if each in removed else each for each in ends]
        return cls(tuple(events), tuple(names), tuple(shown_as), _ids_by_name(names, shown_as))

    def with_names(self, texts: Iterable[str], version: int) -> Vocabulary:
        """Return the vocabulary in which each of these names is known; new ones become classes."""
        new = [text for text in dict.fromkeys(texts) if text not in self._ids]
        if not new:
            return self
        ids = {text: len(self.names) + place for place, text in enumerate(new)}
        events = tuple(Event(version, "add", class_id, text) for text, class_id in ids.items())
        shown_as = (*self.shown_as, *ids.values())
        return Vocabulary(self.events + events, (*self.names, *new), shown_as, self._ids | ids)

    def id_of(self, text: str) -> int | None:
        """Return the class of a name; that of a merged class stands for the class that it was merged into."""
        return self._ids.get(text)

    def require(self, text: str) -> int:
        """Return the class of a name, or say which names there are."""
        found = self.id_of(text)
        if found is not None:
            return found
        known = [self.names[each] for each in self.shown]
        meant = get_close_matches(text, known, n=1)
        listed = ", ".join(known[:_MOST_NAMES]) + (", ..." if len(known) > _MOST_NAMES else "")
        raise ValueError(
            f"No class is called {text}."
            + (f" Did you mean {meant[0]}?" if meant else "")
            + (f" There are: {listed}." if known else " There are no classes yet.")
        )

    def text(self, class_id: int | None) -> str | None:
        """Return the name under which a class is shown, as a JSON text; None if it was removed."""
        shown = -1 if class_id is None else self.shown_as[class_id]
        return None if shown < 0 else self.names[shown]

    def label(self, class_id: int | None) -> Label | None:
        """Return the label that the items of a class have now, None if it was removed."""
        return None if class_id is None else self._labels[class_id]

    @property
    def shown(self) -> list[int]:
        """The classes that were neither merged into others nor removed."""
        return [class_id for class_id, shown in enumerate(self.shown_as) if class_id == shown]

    @cached_property
    def _labels(self) -> list[Label | None]:
        texts = [self.text(class_id) for class_id in range(len(self.names))]
        return [None if text is None else json.loads(text) for text in texts]

    def members(self, texts: Iterable[str]) -> tuple[int, ...]:
        """Return all classes whose items are shown under one of these names."""
        wanted = {self.id_of(text) for text in texts} - {None}
        return tuple(class_id for class_id, shown in enumerate(self.shown_as) if shown in wanted)

    def as_of(self, version: int) -> Vocabulary:
        """Return the vocabulary as it was at an earlier version of the collection."""
        if not self.events or self.events[-1].version <= version:
            return self
        return Vocabulary.replay([event for event in self.events if event.version <= version])

    def renamed(self, text: str, new: str, version: int) -> Vocabulary:
        """Return the vocabulary in which a class has another name."""
        subject, holder = self.require(text), self.id_of(new)
        if holder is not None and self.names[subject] == new:
            raise ValueError(f"The class {text} has that name already. Nothing was changed.")
        if holder is not None:
            raise NameTakenError(f"Another class is called {new}. To make one class of the two, merge them.")
        return self._after(Event(version, "rename", subject, new))

    def merged(self, text: str, into: str, version: int) -> Vocabulary:
        """Return the vocabulary in which a class counts as another one."""
        subject, target = self.require(text), self.require(into)
        if subject == target:
            raise ValueError(f"{text} and {into} are the same class already. Nothing was changed.")
        return self._after(Event(version, "merge", subject, target))

    def without(self, text: str, version: int) -> Vocabulary:
        """Return the vocabulary in which a class is hidden, and its items have no label."""
        return self._after(Event(version, "remove", self.require(text)))

    def undone(self, number: int | None, version: int) -> Vocabulary:
        """Return the vocabulary without a change, the last one if ``number`` is None."""
        standing = [change.number for change in self.changes if not change.undone]
        if not standing:
            raise ValueError("No class was renamed, merged or removed, so there is nothing to undo.")
        chosen = standing[-1] if number is None else number
        if chosen not in standing:
            raise ValueError(
                f"There is no change {chosen} of classes to undo. There are: {', '.join(map(str, standing))}."
            )
        try:
            return self._after(Event(version, "undo", chosen))
        except NameTakenError as error:
            raise NameTakenError(
                f"The change {chosen} cannot be undone, because two classes would be called {error}. Rename the one "
                f"that has this name now, and then undo the change {chosen}."
            ) from None

    @cached_property
    def changes(self) -> tuple[ClassChange, ...]:
        """The renames, mergers and removals, undone or not, the oldest first."""
        undone = {event.subject for event in self.events if event.kind == "undo"}
        changes = []
        for number, (version, kind, subject, detail) in enumerate(self.events):
            if kind in ("add", "undo"):
                continue
            before = Vocabulary.replay(self.events[:number])
            into = before.names[int(detail or 0)] if kind == "merge" else detail
            named = None if into is None else json.loads(str(into))
            changes.append(
                ClassChange(number, version, kind, json.loads(before.names[subject]), named, number in undone)
            )
        return tuple(changes)

    def _after(self, event: Event) -> Vocabulary:
        after = Vocabulary.replay([*self.events, event])
        name, times = Counter(after.names[each] for each in after.shown).most_common(1)[0] if after.shown else ("", 0)
        if times > 1:
            raise NameTakenError(name)
        return after


def _checksum(number: Any, version: Any, content: Any) -> int:
    return zlib.crc32(f"{number!r} {version!r} {content}".encode())


def _end(pointers: dict[int, int], class_id: int, n_classes: int) -> int:
    """Follow the mergers of a class to the class that it counts as."""
    for _ in range(n_classes):
        if class_id not in pointers:
            return class_id
        class_id = pointers[class_id]
        if not 0 <= class_id < n_classes:
            break
    raise ValueError(f"its mergers lead to the class {class_id}")


def _ids_by_name(names: Sequence[str], shown_as: Sequence[int]) -> dict[str, int]:
    """Return the class of each name; a merged class's name stands for the other one unless a class has that name."""
    merged = {names[each]: shown for each, shown in enumerate(shown_as) if shown not in (-1, each)}
    return merged | {names[each]: each for each, shown in enumerate(shown_as) if shown == each}
