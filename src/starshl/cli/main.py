"""``starshl``: the commands, and one sentence instead of a traceback for every expected error."""

from __future__ import annotations

import csv
import errno
import os
import re
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .._version import __version__
from ..exceptions import CollectionError, MissingExtraError
from . import (
    cluster,
    data,
    demo,
    encode,
    export,
    fit,
    imports,
    index,
    predict,
    reproduce,
    serve,
)
from . import (
    models as card,
)
from . import (
    models as compress,
)
from . import (
    models as info,
)
from . import (
    models as methods,
)
from . import (
    reproduce as report,
)
from . import (
    serve as explore,
)
from .examples import add_examples

# Messages of the library in words of the command line.

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
    from ..data.tables.errors import ColumnWarning, TableError
    from ..data.tables.reading import READABLE

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


EXIT_EXPECTED_ERROR, EXIT_INTERRUPTED = 2, 130
EXPECTED_ERRORS = (
    ValueError,
    TypeError,
    OSError,
    EOFError,
    MemoryError,
    OverflowError,
    MissingExtraError,
    CollectionError,
    csv.Error,
)
# Some versions of Typer build on click and others on a private copy of it; BadParameter is public in all. Only what
# belongs to its base class is used here.
UsageError: type[typer.BadParameter] = typer.BadParameter.__mro__[1]


class Commands(TyperGroup):
    """A group whose commands end with one sentence on standard error when something expected goes wrong."""

    def main(self, *arguments: Any, standalone_mode: bool = True, **settings: Any) -> Any:
        if not standalone_mode:
            return super().main(*arguments, **settings | {"standalone_mode": False})
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            # Columns are matched by name when a table is read; the hasher then gets a bare array.
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            sys.exit(self._run(*arguments, **settings))

    def _run(self, *arguments: Any, **settings: Any) -> int:
        try:
            code = super().main(*arguments, **settings | {"standalone_mode": False})
            sys.stdout.flush()
            return code if isinstance(code, int) else 0
        except UsageError as error:
            return _print_usage_error(error)
        except BrokenPipeError:
            # The reader of our output has left; a second failure while Python shuts down would print a traceback.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
        except (KeyboardInterrupt, typer.Abort):
            return EXIT_INTERRUPTED
        except EXPECTED_ERRORS as error:
            if os.environ.get("STARSHL_TRACEBACK"):
                raise
            typer.echo(f"Error: {_sentence(error)}", err=True)
            return EXIT_EXPECTED_ERROR


def _print_usage_error(error: typer.BadParameter) -> int:
    message = error.format_message()
    if message.startswith("Usage:"):  # a group called without a command answers with its help
        typer.echo(message, err=True)
    else:
        command = error.ctx.command_path if error.ctx else "starshl"
        typer.echo(f"Error: {message.rstrip('.')}. See: {command} --help", err=True)
    return EXIT_EXPECTED_ERROR


def _sentence(error: BaseException) -> str:
    """Return the message of an error on one line, in words of the command line."""
    if isinstance(error, OSError) and error.filename is not None:
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        advice = "Free some space, or write to another disk." if is_full else "Check the path and your permissions."
        return f"{error.strerror}: {os.fsdecode(error.filename)!r}. {advice}"
    if isinstance(error, MemoryError):
        return f"There is not enough memory for this ({error or 'no details'}). Use fewer rows or a machine with more."
    return error_sentence(error)


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    typer.echo(f"Warning: {warning_sentence(message)}", err=True)


app = typer.Typer(
    name="starshl",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    # Plain help: loading rich would take as long as all the rest.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\b\nBegin with: starshl demo\nHelp and examples for a command: starshl fit -h",
)
app.command("fit")(fit.fit)
app.command("encode")(encode.encode)
app.command("predict")(predict.predict)
app.command("compress")(compress.compress)
app.command("export")(export.export)
app.command("card")(card.card)
app.command("info")(info.info)
app.command("methods")(methods.methods)
app.command("demo")(demo.demo)
app.command("reproduce")(reproduce.reproduce)
app.command("report")(report.report)
app.command("images")(imports.images)
app.command("texts")(imports.texts)
app.command("vectors")(imports.vectors)
app.command("serve")(serve.serve)
app.command("explore")(explore.explore)
app.add_typer(cluster.app, name="cluster")
app.add_typer(data.app, name="data")
app.add_typer(index.app, name="index")
add_examples(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"starshl {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Short binary codes learned from labels, a few labels or none."""


def main() -> None:
    """Run the command line; the entry point of the package."""
    app(prog_name="starshl")


if __name__ == "__main__":
    main()
