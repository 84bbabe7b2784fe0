"""Write the reference of all commands into docs/cli.md, from the declarations that --help prints.

Run it after changing a command: python scripts/write_cli_page.py
"""

from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path

from typer.main import get_command

from starshl.cli.examples import EXAMPLES
from starshl.cli.main import app

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"
MARK = "<!-- Everything below is written by scripts/write_cli_page.py. -->\n"


def updated_page(text: str) -> str:
    """Return the page with its generated part rewritten."""
    written, mark, _ = text.partition(MARK)
    if not mark:
        raise ValueError(f"{PAGE} has no line {MARK.strip()!r}; put it where the generated part begins.")
    sections = (_section(name, command) for name, command in _commands("starshl", get_command(app)))
    return written + MARK + "".join(sections)


def _commands(name: str, command) -> Iterator[tuple[str, object]]:
    """Yield all commands below a group, by full name."""
    if not hasattr(command, "commands"):
        yield name, command
        return
    for part, child in command.commands.items():
        yield from _commands(f"{name} {part}", child)


def _section(name: str, command) -> str:
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    options = [param for param in command.params if param.param_type_name == "option" and param.name != "help"]
    usage = " ".join([name, "[OPTIONS]", *map(_placeholder, arguments)])
    rows = [_row(f"`{_placeholder(param)}`", param) for param in arguments]
    rows += [_row(_spelling(param), param) for param in options]
    table = "\n".join(["| option | meaning |", "|---|---|", *rows])
    examples = "\n".join(f"    {line}" for line in EXAMPLES[name.removeprefix("starshl ")])
    return f"\n## {name}\n\n    {usage}\n\n{cleandoc(command.help)}\n\n{examples}\n\n{table}\n"


def _spelling(param) -> str:
    words = ", ".join(f"`{word}`" for word in [*param.opts, *param.secondary_opts])
    return words if param.is_flag else f"{words} {_escape(_placeholder(param))}"


def _placeholder(param) -> str:
    return param.metavar or param.name.upper()


def _row(spelling: str, param) -> str:
    notes = [_escape(param.help or "")]
    if param.required:
        notes.append("Required.")
    elif param.default is not None and param.default is not False:
        notes.append(f"Default: {param.default}.")
    return f"| {spelling} | {' '.join(notes)} |"


def _escape(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(updated_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
