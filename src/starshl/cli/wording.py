"""Messages of the library in words of the command line."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["error_sentence", "warning_sentence"]

# Parameters of the library and the options that set them.
_OPTIONS = {
    "n_codewords": "--n-codewords",
    "n_bits": "--bits",
    "n_jobs": "--jobs",
    "random_state": "--seed",
    "kernels": "--kernels",
    "n_queries": "--queries",
    "picture_shape": "--pictures",
}
_PHRASES = (
    (r"Reopen it with load\(.*", "The command line cannot supply functions: use this model from Python."),
    (
        r"Reduce it first, for example with sklearn\..*",
        "Reduce it to a dense matrix of fewer columns first, or choose another --method.",
    ),
    (r"\by has no labels\b", "No row has a label"),
    (r"\by has labels\b", "rows have labels"),
    (r"\by has (\d+) classes\b", r"the labels name \1 classes"),
    (r"\bWith labels in y\b", "With labels"),
    (r", or give a list of Kernel objects\b", ""),
    (r"`vectors`", "--vectors"),
    (r"open this one with read_only=True", "use --read-only where a command has it"),
    (r"\(declare_fields\)", "with `starshl index declare`"),
    (r"\b[A-Z]\w+\((\w+)=([^()]*)\)", r"\1 \2"),  # StarSHL(n_codewords=10)
)
_QUOTED_TEXT = re.compile(r"('[^']*'|\"[^\"]*\")")


def error_sentence(error: BaseException) -> str:
    """Return the message of an error on one line, and the options that would help."""
    return f"{_translated(str(error))}{_hint(error)}" or type(error).__name__


def warning_sentence(warning: Warning | str) -> str:
    """Return a warning on one line, with the options that would help."""
    return f"{_translated(str(warning))}{_hint(warning)}"


def _translated(message: str) -> str:
    """Name options instead of parameters; what is in quotes came from the user and stays."""
    message = " ".join(message.split())
    for pattern, words in _PHRASES:
        message = re.sub(pattern, words, message)
    parts = _QUOTED_TEXT.split(message)
    for name, option in _OPTIONS.items():
        parts[::2] = [re.sub(rf"(?<![\w.-]){name}\b", option, part) for part in parts[::2]]
    return "".join(parts)


def _hint(problem: BaseException | str) -> str:
    from ..tables import READABLE, ColumnWarning, TableError

    if isinstance(problem, ColumnWarning):
        return f" To drop it: --drop {_joined(problem.columns)}"
    if not isinstance(problem, TableError):
        return ""
    commas = " If these commas come before the decimals: --decimal ','." if "comma" in problem.causes else ""
    if problem.droppable:
        return f"{commas}{_options_for(problem.causes)} To leave them out: --drop {_joined(problem.droppable)}"
    if commas:
        return commas
    if "missing" in problem.causes:
        return " A model that `starshl fit --impute` made fills them."
    files = [name for name in problem.unknown if Path(name).suffix.lower() in READABLE and not Path(name).exists()]
    return f" There is no file {files[0]!r} either." if files else ""


def _options_for(causes: tuple[str, ...]) -> str:
    if not causes or "text" in causes:
        return " `starshl fit` takes text with --categories or --text, and empty cells with --impute."
    return " `starshl fit` fills missing values with --impute." if "missing" in causes else ""


def _joined(names: tuple[str, ...]) -> str:
    names = tuple(f'"{name}"' if "," in name else name for name in names)
    joined = ",".join(names)
    return f"'{joined}'" if re.search(r"[\s\"]", joined) else joined
