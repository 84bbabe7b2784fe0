"""How the command line words errors and warnings: on one line, with options where Python has parameters."""

from __future__ import annotations

import csv
import errno
import os
from collections.abc import Sequence
from pathlib import Path

from ..exceptions import (
    CollectionError,
    CollectionInUseError,
    InputError,
    InputWarning,
    MissingCollectionError,
    MissingExtraError,
    MissingFunctionError,
    UnknownIdError,
)

#: Errors that say what is wrong with the input or the machine; any other one is a defect and ends with a traceback.
EXPECTED_ERRORS = (
    ValueError,
    TypeError,
    OSError,
    EOFError,
    MemoryError,
    OverflowError,
    MissingExtraError,
    CollectionError,
    UnknownIdError,
    csv.Error,
)
#: Parameters and methods of the library, and what the command line calls them.
OPTION_NAMES = {
    "n_bits": "--bits",
    "n_codewords": "--n-codewords",
    "n_jobs": "--jobs",
    "random_state": "--seed",
    "kernels": "--kernels",
    "unlabeled": "--unlabeled",
    "n_queries": "--queries",
    "picture_shape": "--pictures",
    "vectors": "--vectors",
    "decimal": "--decimal",
    "labels_from": "--labels-from",
    "ids": "--ids",
    "allow_duplicates": "--allow-duplicates",
    "update_labels": "--update-labels",
    "keep_labels": "--keep-labels",
    "declare_fields": "`starshl index declare`",
}
_TABLES = (".csv", ".tsv", ".jsonl", ".parquet")


def error_sentence(error: BaseException) -> str:
    """Return the message of an error on one line, and the options that would help."""
    if isinstance(error, MissingCollectionError):
        # A service knows folders by their whole paths, and people type short ones.
        path, here = Path(error.folder), Path.cwd()
        path = path.relative_to(here) if path.is_relative_to(here) else path
        return f"{_what_it_is(path)} {_how_to_make_one(path)}"
    if isinstance(error, CollectionInUseError):
        return (
            f"Another process is writing to {error.folder!r}. Try again when it is done; `starshl index search`, "
            "`verify` and `export`, and `starshl serve --read-only` work in the meantime."
        )
    is_full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    if isinstance(error, OSError) and (is_full or error.filename is not None):
        advice = "Free some space, or write to another disk." if is_full else "Check the path and your permissions."
        where = "" if error.filename is None else f": {os.fsdecode(error.filename)!r}"
        return f"{error.strerror}{where}. {advice}"
    if isinstance(error, MemoryError):
        return f"There is not enough memory for this ({error or 'no details'}). Use fewer rows or a machine with more."
    if isinstance(error, MissingFunctionError):
        return f"{error.texts()[0]}. The command line cannot supply functions: use this model from Python."
    message = error.worded(OPTION_NAMES) if isinstance(error, InputError) else str(error)
    return f"{_on_one_line(message)}{_options_for_table(error)}" or type(error).__name__


def _what_it_is(path: Path) -> str:
    if not path.exists():
        return f"There is no folder {str(path)!r}."
    kind = "a folder of pictures" if _has_pictures(path) else "a folder" if path.is_dir() else "a file"
    return f"{str(path)!r} is {kind}, not a collection."


def _how_to_make_one(path: Path) -> str:
    given, ending = str(path), path.suffix.lower()
    if _has_pictures(path):
        return f"Make one of it with `starshl images {given} -o COLLECTION`, then give COLLECTION instead."
    if path.is_file() and ending in (".npy", ".npz"):
        return f"Make one of it with `starshl vectors {given} -o COLLECTION`, then give COLLECTION instead."
    if path.is_file() and ending == ".txt":
        return f"Make one of it with `starshl texts {given} -o COLLECTION`, then give COLLECTION instead."
    if path.is_file() and ending in _TABLES:
        return (
            f"Make one of it with `starshl texts {given} --text COLUMN -o COLLECTION`, or, if its columns are numbers, "
            f"with `starshl vectors {given} -o COLLECTION`, then give COLLECTION instead."
        )
    return (
        "To make a collection: `starshl images FOLDER -o COLLECTION` for pictures, `starshl texts FILE -o COLLECTION` "
        "for texts, `starshl vectors FILE -o COLLECTION` for vectors."
    )


def _has_pictures(path: Path) -> bool:
    """Return whether a folder holds a picture, itself or in one of its subfolders."""
    from ..data.features.picture_files import is_picture_file

    if not path.is_dir():
        return False
    return any(is_picture_file(file) for pattern in ("*", "*/*") for file in path.glob(pattern))


def warning_sentence(warning: Warning | str) -> str:
    """Return a warning on one line, and the options that would help."""
    from ..data.tables.errors import ColumnWarning

    message = warning.worded(OPTION_NAMES) if isinstance(warning, InputWarning) else str(warning)
    hint = f" To drop it: --drop {_names_for_shell(warning.columns)}" if isinstance(warning, ColumnWarning) else ""
    return f"{_on_one_line(message)}{hint}"


def _on_one_line(message: str) -> str:
    return " ".join(message.split())


def _options_for_table(error: BaseException) -> str:
    """Return the options that let a table be read, nothing if the error is about something else."""
    from ..data.tables.errors import TableError
    from ..data.tables.reading import READABLE

    if not isinstance(error, TableError):
        return ""
    commas = " If these commas come before the decimals: --decimal ','." if "comma" in error.causes else ""
    if error.droppable:
        drop = f" To leave them out: --drop {_names_for_shell(error.droppable)}"
        return f"{commas}{_preprocessing_for(error.causes)}{drop}"
    if commas:
        return commas
    if "missing" in error.causes:
        return " A model that `starshl fit --impute` made fills them."
    files = [name for name in error.unknown if Path(name).suffix.lower() in READABLE and not Path(name).exists()]
    return f" There is no file {files[0]!r} either." if files else ""


def _preprocessing_for(causes: Sequence[str]) -> str:
    if not causes or "text" in causes:
        return " `starshl fit` takes text with --categories or --text, and empty cells with --impute."
    return " `starshl fit` fills missing values with --impute." if "missing" in causes else ""


def _names_for_shell(names: Sequence[str]) -> str:
    """Return names as one word of a command; a name that holds a comma is in quotes."""
    joined = ",".join(f'"{name}"' if "," in name else name for name in names)
    return f"'{joined}'" if any(sign.isspace() or sign == '"' for sign in joined) else joined
