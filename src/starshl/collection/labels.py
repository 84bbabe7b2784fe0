"""Labels of a collection: whole numbers, text or booleans, all of one type, which are stored as JSON texts."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._common.labels import Label, Labels, LabelsLike, as_label_array, check_labels
from .._common.validation import check_storable
from .._common.words import counted

_LONGEST = 200  # characters of a label that somebody types


def item_labels(labels: LabelsLike, n_items: int) -> Labels:
    """Return the labels of items, which :func:`class_texts` can write.

    Labels are whole numbers, strings or booleans of one type; -1 among numbers, NaN, None and empty text mark items
    without one, as everywhere in this package.
    """
    if isinstance(labels, list | tuple):
        _refuse_mixture(labels)
        _refuse_lossy(labels)
    given = labels if labels is None or isinstance(labels, Labels) else as_label_array(labels)
    if given is not None and given.shape[:1] != (n_items,):
        given_number = counted(given.shape[0], "label") if given.shape else "A single label"
        raise ValueError(
            f"{given_number} for {counted(n_items, 'item')}. Give a list with one label per item, None where there is "
            "none."
        )
    parsed = check_labels(given, n_items)
    class_texts(parsed)  # refuses what cannot be written
    return parsed


def class_texts(labels: Labels) -> list[str]:
    """Return the different labels as JSON texts."""
    return [label_text(value) for value in labels.classes.tolist()]


def label_filter(labels: LabelsLike) -> list[str]:
    """Return the different labels that a filter asks for as sorted JSON texts; one may be given without a list."""
    given = np.atleast_1d(np.asarray(labels, dtype=object))
    return sorted(class_texts(item_labels(given, len(given))))


def label_text(value: Any) -> str:
    """Return a label as JSON; a whole number is one number, however it arrived."""
    if isinstance(value, float):
        value = int(value)
    if not isinstance(value, bool | int | str):
        raise ValueError(
            f"The label {value!r} is a {type(value).__name__}; labels are whole numbers, strings or booleans."
        )
    if isinstance(value, str):
        check_storable(value, f"The label {value!r}")
    if isinstance(value, int) and not _fits(value):
        shown = str(value) if value.bit_length() < 200 else f"of {value.bit_length()} bits"
        raise ValueError(f"The label {shown} does not fit in 64 signed bits. Use smaller numbers, or text.")
    return json.dumps(value)


def _fits(number: int) -> bool:
    return -(2**63) <= number < 2**63


def _refuse_mixture(labels: Sequence[Any]) -> None:
    """Refuse a list of labels of several types, which NumPy would turn into one."""
    kinds = {
        "text" if isinstance(label, str) else "booleans" if isinstance(label, bool | np.bool_) else "numbers"
        for label in labels
        if isinstance(label, str | bool | np.bool_ | int | np.integer) and label != ""
    }
    if len(kinds) > 1:
        raise ValueError(f"The labels mix {' and '.join(sorted(kinds))}. Give labels of the same type.")


def _refuse_lossy(labels: Sequence[Any]) -> None:
    """Refuse labels that would change in an array: NumPy drops NUL at the end, and rounds large numbers."""
    for label in labels:
        if isinstance(label, str) or (isinstance(label, int) and not isinstance(label, bool)):
            label_text(label)


def kind_of(texts: Sequence[str | None]) -> str:
    """Return what the labels are: "text", "numbers", "booleans", or "" if there are none."""
    first = next((text for text in texts if text is not None), None)
    if first is None:
        return ""
    if first.startswith('"'):
        return "text"
    return "booleans" if first in ("true", "false") else "numbers"


def check_kind(texts: Sequence[str | None], expected: str, whose: str) -> None:
    """Refuse labels whose type differs from that of the labels already stored."""
    given = kind_of(texts)
    if given and expected and given != expected:
        example = next(text for text in texts if text is not None)
        raise ValueError(
            f"The labels are {given}, such as {example}; those of {whose} are {expected}. Give labels of the same type."
        )


def label_from_text(text: str, kind: str | None) -> Label:
    """Return what somebody wrote as a label of the type that the collection has; text if that is not known."""
    if kind == "booleans":
        if text.lower() not in ("true", "false"):
            raise ValueError(f"The label is {text!r}; the labels of this collection are true and false.")
        return text.lower() == "true"
    if kind == "numbers":
        # int() would also take "1_0", and any number of digits.
        if not re.fullmatch(r"\s*[+-]?[0-9]{1,1000}\s*", text) or not _fits(int(text)):
            raise ValueError(
                f"The label is {text!r}; the labels of this collection are whole numbers of up to 64 bits."
            )
        return int(text)
    return text


def typed_label(text: str, kind: str | None, known: Sequence[Label] = ()) -> Label:
    """Return the label that somebody typed on a page.

    A name that differs from a known class in capitals only is that class: "Ship" typed next to "ship" is a slip far
    more often than a second class.
    """
    text = text.strip()
    if not text or len(text) > _LONGEST:
        raise ValueError(f"A label has 1 to {_LONGEST} characters. Type a shorter one, or at least one letter.")
    label = label_from_text(text, kind)
    if not isinstance(label, str) or label in known:
        return label
    return next((each for each in known if isinstance(each, str) and each.casefold() == label.casefold()), label)
