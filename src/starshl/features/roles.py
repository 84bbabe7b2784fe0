"""What each column of a table became in a fitted hasher: a number, categories or the words of a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._words import counted
from .prepared import PreparedHasher
from .table import TableFeatures

__all__ = ["column_roles", "roles_sentence"]

_MOST_NAMED = 8  # columns of a role that a sentence names


def column_roles(hasher: Any, missing: Mapping[str, int] | None = None) -> list[dict[str, Any]]:
    """Return the role of each column that a hasher was fitted on, in the order of the table.

    Parameters
    ----------
    hasher : fitted hasher
        Without names of columns, nothing is known about them.
    missing : how many cells of a column were missing in the fit, of those columns in which any were

    Returns
    -------
    roles : list of dict
        ``column``, ``role`` ("number", "category", "text" or "dropped"), ``categories`` (how many, of a category) and
        ``missing``.

    Examples
    --------
    >>> import numpy as np
    >>> from starshl.baselines import LSHash
    >>> from starshl.features import PreparedHasher, TableFeatures
    >>> table = np.array([[1.0, "red"], [3.0, "blue"], [None, "red"]], dtype=object)
    >>> hasher = PreparedHasher([TableFeatures()], LSHash(4, random_state=0)).fit(table)
    >>> hasher.feature_names_in_ = np.array(["size", "color"], dtype=object)
    >>> [(each["column"], each["role"]) for each in column_roles(hasher)]
    [('size', 'number'), ('color', 'category')]
    """
    names = getattr(hasher, "feature_names_in_", None)
    if names is None:
        return []
    steps = hasher.steps_ if isinstance(hasher, PreparedHasher) else []
    step = steps[0] if steps and isinstance(steps[0], TableFeatures) else None
    roles: list[dict[str, Any]] = []
    for position, name in enumerate(str(name) for name in names):
        role = {"column": name, **({"role": "number"} if step is None else _role(step, position))}
        roles.append({**role, "missing": missing[name]} if missing and name in missing else role)
    return roles


def roles_sentence(roles: Sequence[Mapping[str, Any]]) -> str:
    """Return the roles in one line, such as ``2 numbers (age, income), 1 category (city: 12 values)``."""
    words = {"number": ("number", "numbers"), "category": ("category", "categories"), "text": ("text", "texts")}
    parts = []
    for role, (one, many) in words.items():
        shown = [_described(each) for each in roles if each["role"] == role]
        if shown:
            rest = f" and {len(shown) - _MOST_NAMED:,} more" if len(shown) > _MOST_NAMED else ""
            parts.append(f"{counted(len(shown), one, many)} ({', '.join(shown[:_MOST_NAMED])}{rest})")
    return ", ".join(parts)


def _role(step: TableFeatures, position: int) -> dict[str, Any]:
    if position == step.text_column_:
        return {"role": "text"}
    categories = step.category_columns_.tolist()
    if position in categories:
        return {"role": "category", "categories": int(step.encoder_.category_counts_[categories.index(position)])}
    return {"role": "number" if position in step.number_columns_.tolist() else "dropped"}


def _described(role: Mapping[str, Any]) -> str:
    counts = [counted(role["categories"], "value")] if "categories" in role else []
    counts += [f"{role['missing']:,} missing"] if "missing" in role else []
    return f"{role['column']}: {', '.join(counts)}" if counts else str(role["column"])
