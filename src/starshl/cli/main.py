"""``starshl``: the commands, and one sentence instead of a traceback for every expected error."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .._version import __version__
from . import cluster, data, demo, encode, export, fit, imports, index, models, predict, reproduce, serve
from .errors import EXPECTED_ERRORS, error_sentence, warning_sentence
from .examples import add_examples

EXIT_EXPECTED_ERROR, EXIT_INTERRUPTED = 2, 130
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
            typer.echo(f"Error: {error_sentence(error)}", err=True)
            return EXIT_EXPECTED_ERROR


def _print_usage_error(error: typer.BadParameter) -> int:
    message = error.format_message()
    if message.startswith("Usage:"):  # a group called without a command answers with its help
        typer.echo(message, err=True)
    else:
        command = error.ctx.command_path if error.ctx else "starshl"
        typer.echo(f"Error: {message.rstrip('.')}. See: {command} --help", err=True)
    return EXIT_EXPECTED_ERROR


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
app.command("compress")(models.compress)
app.command("export")(export.export)
app.command("card")(models.card)
app.command("info")(models.info)
app.command("methods")(models.methods)
app.command("demo")(demo.demo)
app.command("reproduce")(reproduce.reproduce)
app.command("report")(reproduce.report)
app.command("images")(imports.images)
app.command("texts")(imports.texts)
app.command("vectors")(imports.vectors)
app.command("serve")(serve.serve)
app.command("explore")(serve.explore)
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
