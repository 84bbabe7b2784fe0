"""The columns of tables and a fitted hasher: which of them it reads, and what each one became."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from sklearn.utils import get_tags

from .._common.words import counted
from ..data.features.table import TableFeatures
from ..data.tables.columns import Columns
from .base import BaseHasher

_MOST_NAMED = 8  # columns of a role that a sentence names


def columns_for(hasher: BaseHasher, columns: Columns | None = None) -> Columns:
    """Return what to read from a table for a fitted hasher.

    It finds its columns by name, and gets missing values or text if its own steps take them. Decimals follow what they
    followed in the fit, unless the columns say otherwise.
    """
    columns = columns or Columns()
    tags = get_tags(hasher).input_tags
    names = hasher.feature_names
    numbers = number_columns(hasher) if names else None
    had_commas = hasher.fit_record.get("decimal") == ","
    return replace(
        columns,
        features=names or None,
        raw=tags.string and tags.two_d_array,
        # Gaps that nothing fills are refused by the hasher, too, but it does not know the file.
        allow_missing=tags.allow_nan if numbers is None else fills_gaps(hasher),
        numbers=None if numbers is None else tuple(names[place] for place in numbers),
        decimal=columns.decimal or ("," if had_commas else None),
    )


def number_columns(hasher: BaseHasher) -> list[int] | None:
    """Return where the columns stand that a hasher was fitted on as numbers, None if no step of it reads cells."""
    step = _table_step(hasher)
    return None if step is None else step.number_columns_.tolist()


def fills_gaps(hasher: BaseHasher) -> bool:
    """Return whether a hasher that was fitted on the cells of a table takes missing numbers."""
    step = _table_step(hasher)
    return step is not None and (step.impute or len(hasher.fitted_steps) > 1)


@dataclass(frozen=True, slots=True)
class ColumnRole:
    """What became of a column in a fit.

    Attributes
    ----------
    column : its name, or its number if it has none
    role : the feature that it became, if it did
    categories : how many, of a category
    missing : how many of its cells were missing, if that is known and there were some
    embedder : what reads it, of a text that an embedder reads
    """

    column: str
    role: Literal["number", "category", "text", "dropped"]
    categories: int | None = None
    missing: int | None = None
    embedder: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return what is known, as JSON holds it."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def __str__(self) -> str:
        counts = [] if self.categories is None else [counted(self.categories, "value")]
        counts += [] if self.missing is None else [f"{self.missing:,} missing"]
        shown = self.column if self.embedder is None else f"{self.column}, by {self.embedder}"
        return f"{shown}: {', '.join(counts)}" if counts else shown


def column_roles(hasher: BaseHasher) -> list[ColumnRole]:
    """Return the role of each column that a hasher was fitted on, in the order of the table.

    Examples
    --------
    >>> import numpy as np
    >>> from starshl.hashers.baselines import LSHash
    >>> from starshl.data.features import TableFeatures
    >>> from starshl.hashers import PreparedHasher
    >>> table = np.array([[1.0, "red"], [3.0, "blue"], [None, "red"]], dtype=object)
    >>> hasher = PreparedHasher([TableFeatures()], LSHash(4, random_state=0)).fit(table)
    >>> hasher.feature_names_in_ = np.array(["size", "color"], dtype=object)
    >>> print(*column_roles(hasher), sep="; ")
    size; color: 2 values
    """
    names = hasher.feature_names or range(hasher.n_features_in_)
    roles = [ColumnRole(str(name), "number") for name in names]
    step = _table_step(hasher)
    if step is None:
        return roles
    numbers = set(step.number_columns_.tolist())
    roles = [each if place in numbers else replace(each, role="dropped") for place, each in enumerate(roles)]
    if len(step.category_columns_):
        counts = step.encoder_.category_counts_.tolist()
        for place, count in zip(step.category_columns_.tolist(), counts, strict=True):
            roles[place] = replace(roles[place], role="category", categories=count)
    if step.text_column_ >= 0:
        roles[step.text_column_] = replace(roles[step.text_column_], role="text", embedder=step.embedder)
    return roles


def describe_columns(hasher: BaseHasher, missing: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return the role of each column as JSON holds it; nothing if columns have no names.

    ``missing`` is how many cells of a column were missing in the fit, of those columns in which any were.
    """
    if not hasher.feature_names:
        return []
    return [replace(each, missing=missing.get(each.column)).as_dict() for each in column_roles(hasher)]


def columns_sentence(described: Sequence[Mapping[str, Any]]) -> str:
    """Return described columns in one line, such as ``2 numbers (age, income), 1 category (city: 12 values)``."""
    words = {"number": ("number", "numbers"), "category": ("category", "categories"), "text": ("text", "texts")}
    roles = [ColumnRole(**each) for each in described]
    parts = []
    for role, (one, many) in words.items():
        shown = [str(each) for each in roles if each.role == role]
        if shown:
            rest = f" and {len(shown) - _MOST_NAMED:,} more" if len(shown) > _MOST_NAMED else ""
            parts.append(f"{counted(len(shown), one, many)} ({', '.join(shown[:_MOST_NAMED])}{rest})")
    return ", ".join(parts)


def _table_step(hasher: BaseHasher) -> TableFeatures | None:
    first = next(iter(hasher.fitted_steps), None)
    return first if isinstance(first, TableFeatures) else None
