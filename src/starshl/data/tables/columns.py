"""Which columns of a table hold what: as users say it, and as it turns out for one file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from scipy import sparse

from ..._common.validation import check_choice
from .errors import TableError, shortened
from .locations import Location

#: What a column holds. "cells" is text that may be anything, "vectors" one list of numbers per row.
Kind = Literal["cells", "floats", "numbers", "vectors", "lists", "other"]
TableRows: TypeAlias = np.ndarray | sparse.csr_matrix
Cells: TypeAlias = list[Any] | np.ndarray
#: What may come before the decimals of a number.
DECIMALS = (".", ",")


@dataclass(frozen=True, slots=True)
class Columns:
    """What to read from a table; a name may be that of an .npz array, or a number where columns have no names.

    Parameters
    ----------
    labels : str or Path, default=None
        The column of labels, or a separate file that :func:`read_labels` reads.
    detect_labels : bool, default=False
        Without ``labels``, take the column called ``label`` or the .npz array called ``y``, if there is one.
    ignore_labels : bool, default=False
        Return no labels. The column that holds them is still no feature.
    ids : str, default=None
        The column of integer ids.
    references : str, default=None
        The column that says where the picture or text of a row is.
    vectors : str, default=None
        The column of lists, or the array, that holds the rows. By default ``X`` of an .npz, or the only column of
        lists of numbers.
    features : sequence of str, default=None
        The columns that make up a row, in this order: those that a model was fitted on. Ignored if the file has no
        names of columns.
    drop : sequence of str, default=()
        Columns to leave out.
    others : {"features", "metadata"}, default="features"
        What the columns are that no option names. With "metadata", columns of floating-point numbers still make up the
        rows if nothing else does; a .csv has no types, so there all such columns do.
    allow_missing : bool, default=False
        Return NaN for missing features instead of refusing them.
    raw : bool, default=False
        Return features as they are, in a matrix of numbers, text and None.
    numbers : sequence of str, default=None
        With ``raw``, the features that must be numbers: those that a model was fitted on as numbers. By default, each
        column that holds nothing else.
    text : str, default=None
        With ``raw``, the feature whose cells are texts of many words.
    decimal : {".", ","}, default=None
        What comes before the decimals of numbers in a .csv or .tsv. With a comma, a point may separate thousands, as in
        1.204,5; other files have numbers of their own. None is a point, unless a model knows that its table had commas.
    """

    labels: str | Path | None = None
    detect_labels: bool = False
    ignore_labels: bool = False
    ids: str | None = None
    references: str | None = None
    vectors: str | None = None
    features: Sequence[str] | None = None
    drop: Sequence[str] = ()
    others: Literal["features", "metadata"] = "features"
    allow_missing: bool = False
    raw: bool = False
    numbers: Sequence[str] | None = None
    text: str | None = None
    decimal: str | None = None

    def __post_init__(self) -> None:
        if self.decimal is not None:
            check_choice(self.decimal, "decimal", DECIMALS)

    @property
    def label_column(self) -> str | None:
        """The column of labels, None if they are in a separate file or nobody has named one."""
        return None if isinstance(self.labels, Path) else self.labels

    @property
    def named(self) -> set[str]:
        """All columns that somebody or a model has named."""
        roles = (self.label_column, self.ids, self.references, self.text, *(self.features or ()), *self.drop)
        return {name for name in roles if name is not None}

    @property
    def label_file(self) -> Path | None:
        """The separate file of labels, None if there is none."""
        return self.labels if isinstance(self.labels, Path) else None


class Source(Protocol):
    """An open file with columns; arrays of an .npz count as columns."""

    @property
    def path(self) -> Location: ...

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """The columns in their order; numbers as text where the file has no names."""
        ...

    @property
    def has_names(self) -> bool:
        """Whether a model that was fitted on names can find its features here."""
        ...

    @property
    def default_labels(self) -> str:
        """The column that holds labels unless an option names another."""
        ...

    @property
    def default_vectors(self) -> str | None:
        """The column that holds vectors unless an option names another; None if any column may."""
        ...

    def describe(self, name: str) -> str:
        """Return the type of a column in words of the file's format."""
        ...

    def position_of(self, name: str) -> str:
        """Return the column that a name means, such as the last one for -1; unknown names come back unchanged."""
        ...

    def read(
        self, features: Sequence[str], others: Sequence[str], *, allow_missing: bool
    ) -> tuple[TableRows | None, Mapping[str, Cells]]:
        """Read the features as one matrix (None if there are none) and each other column by itself."""
        ...


@dataclass(frozen=True, slots=True)
class ResolvedColumns:
    """The columns of one file by what they hold.

    Attributes
    ----------
    features : columns of numbers, or of cells, each a feature; or one column of vectors
    labels, ids, references : column, or None
    metadata : columns
    feature_names : the features, if each is a column with a name
    vectors : the column of vectors, if the file has columns
    is_vectors : whether ``features`` is one column of vectors
    """

    features: tuple[str, ...]
    labels: str | None
    ids: str | None
    references: str | None
    metadata: tuple[str, ...]
    feature_names: tuple[str, ...] | None
    vectors: str | None
    is_vectors: bool

    @property
    def named(self) -> tuple[str, ...]:
        """The columns of labels, ids and references."""
        return tuple(name for name in (self.labels, self.ids, self.references) if name is not None)

    @property
    def others(self) -> tuple[str, ...]:
        """All columns to read besides the features."""
        return tuple(dict.fromkeys([*self.named, *self.metadata]))


def resolve_columns(source: Source, columns: Columns) -> ResolvedColumns:
    """Decide what each column holds; everything that is wrong with the names is raised in one error."""
    columns = _with_positions(source, columns)
    labels = columns.label_column
    problems, unknown = _unknown_names(source, columns)
    if unknown:
        known = shortened([repr(name) for name in source.kinds], most=10)
        advice = "Its columns are {known}." if known else "It holds one matrix without names of columns."
        raise TableError(source.path, problems, advice, unknown=unknown, known=known)
    taken = {labels, columns.ids, columns.references, *columns.drop} - {None}
    features, is_vectors = _features(source, columns, taken)
    both = [name for name in (labels, columns.ids, columns.references) if name in features]
    if both:
        problems = [f"uses the column {name!r} as a feature, so it cannot have another use" for name in both]
        raise TableError(source.path, problems, "Name another column.")
    held = {*features, columns.ids, columns.references, *columns.drop}
    # Stored once, as labels: a copy would stay behind when an item gets another label.
    held |= set() if columns.ignore_labels else {labels}
    metadata = tuple(name for name in source.kinds if name not in held) if columns.others == "metadata" else ()
    return ResolvedColumns(
        features,
        labels,
        columns.ids,
        columns.references,
        metadata,
        feature_names=features if source.has_names and not is_vectors else None,
        vectors=features[0] if is_vectors and source.kinds else None,
        is_vectors=is_vectors,
    )


def _with_positions(source: Source, columns: Columns) -> Columns:
    """Return the columns with numbers such as -1 replaced and labels looked for."""

    def named(name: str | None) -> str | None:
        return None if name is None else source.position_of(name)

    labels: str | Path | None = columns.label_file or named(columns.label_column)
    if labels is None and columns.detect_labels and source.default_labels in source.kinds:
        claimed = {columns.ids, columns.references, columns.vectors, *columns.drop, *(columns.features or ())}
        labels = source.default_labels if source.default_labels not in claimed else None
    return replace(
        columns,
        labels=labels,
        ids=named(columns.ids),
        references=named(columns.references),
        vectors=named(columns.vectors),
        drop=tuple(source.position_of(name) for name in columns.drop),
    )


def _unknown_names(source: Source, columns: Columns) -> tuple[list[str], list[str]]:
    asked = [columns.label_column, columns.ids, columns.references, columns.vectors, columns.text, *columns.drop]
    unknown = [name for name in dict.fromkeys(asked) if name is not None and name not in source.kinds]
    problems = []
    for name in unknown:
        near = get_close_matches(name, list(source.kinds), n=3, cutoff=0.5)
        hint = f" (nearest: {', '.join(map(repr, near))})" if near else ""
        problems.append(f"has no column {name!r}{hint}")
    if columns.features is not None and source.has_names and columns.vectors is None:
        missing = [name for name in columns.features if name not in source.kinds and name not in unknown]
        if missing:
            unknown += missing
            problems.append(
                f"lacks {len(missing)} of the {len(columns.features)} columns that the model was fitted on: "
                f"{shortened([repr(name) for name in missing])}"
            )
    return problems, unknown


def _features(source: Source, columns: Columns, taken: set[str | None]) -> tuple[tuple[str, ...], bool]:
    """Return the columns that make up a row, and whether they are one column of vectors."""
    if columns.vectors is not None:
        if source.kinds[columns.vectors] != "vectors":
            fitting = [name for name, kind in source.kinds.items() if kind == "vectors"]
            raise TableError(
                source.path,
                [f"has {source.describe(columns.vectors)} in {columns.vectors!r}; vectors are lists of numbers"],
                "Columns that hold vectors: {fitting}.",
                fitting=", ".join(fitting) or "none",
            )
        return (columns.vectors,), True
    if columns.raw:
        return _raw_features(source, columns, taken), False
    if columns.features is not None and source.has_names:
        return _checked_numbers(source, columns.features), False
    if source.default_vectors is not None:
        return (source.default_vectors,), True
    lists = _only_vectors(source, taken)
    return ((lists,), True) if lists is not None else (_scalar_features(source, columns, taken), False)


def _raw_features(source: Source, columns: Columns, taken: set[str | None]) -> tuple[str, ...]:
    if not source.has_names:
        raise TableError(source.path, ["has no names of columns"], "Text is read from columns with names.")
    if columns.features is not None:
        return tuple(columns.features)
    free = tuple(name for name in source.kinds if name not in taken)
    if not free:
        raise TableError(source.path, ["has no column left for features"], "Drop fewer columns.")
    return free


def _only_vectors(source: Source, taken: set[str | None]) -> str | None:
    """Return the column of vectors, None without lists.

    If lists are of the wrong kind, columns of numbers are never taken for features: they may be prices, for example.
    """
    free = {name: kind for name, kind in source.kinds.items() if name not in taken}
    fitting = [name for name, kind in free.items() if kind == "vectors"]
    if len(fitting) > 1:
        raise TableError(
            source.path, [f"has several columns of vectors: {', '.join(fitting)}"], "Name one of them as {vectors}."
        )
    if fitting:
        return fitting[0]
    unfit = [name for name, kind in free.items() if kind == "lists"]
    if unfit:
        kinds = ", ".join(f"{name} ({source.describe(name)})" for name in unfit)
        raise TableError(
            source.path,
            [f"has lists that do not hold numbers: {kinds}"],
            "Convert them, or drop them so that the rows are made of the other columns.",
            droppable=unfit,
        )
    return None


def _scalar_features(source: Source, columns: Columns, taken: set[str | None]) -> tuple[str, ...]:
    free = [name for name in source.kinds if name not in taken]
    if columns.others == "metadata":
        free = [name for name in free if source.kinds[name] in ("floats", "cells")]
        if not free:
            raise TableError(
                source.path,
                ["has neither a column of vectors nor columns of floating-point numbers"],
                "Name the column that holds the vectors.",
            )
    if not free:
        raise TableError(source.path, ["has no column left for features"], "Drop fewer columns.")
    return _checked_numbers(source, free)


def _checked_numbers(source: Source, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of features; refuse all columns whose type is not a number."""
    unfit = [name for name in names if source.kinds[name] in ("other", "lists", "vectors")]
    if unfit:
        kinds = shortened([f"{name!r} ({source.describe(name)})" for name in unfit])
        raise TableError(
            source.path,
            [f"has columns that are not numbers: {kinds}"],
            "Features must be numbers. Convert these columns, drop them, or use one as labels.",
            droppable=unfit,
        )
    return tuple(names)
