"""The page about the command line."""

import shlex
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from starshl.cli.examples import EXAMPLES
from starshl.cli.main import app

SCRIPT = Path(__file__).parents[2] / "scripts" / "write_cli_page.py"


def test_the_page_is_what_the_commands_declare():
    spec = spec_from_file_location("write_cli_page", SCRIPT)
    script = module_from_spec(spec)
    spec.loader.exec_module(script)
    text = script.PAGE.read_text(encoding="utf-8")
    assert script.updated_page(text) == text, "run: python scripts/write_cli_page.py"


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_of_a_command_are_valid_calls_of_it(name):
    command, words = get_command(app), name.split()
    for word in words:
        command = command.commands[word]
    for line in EXAMPLES[name]:
        called, *arguments = shlex.split(line)
        assert (called, arguments[: len(words)]) == ("starshl", words)
        command.make_context(name, arguments[len(words) :])  # refuses unknown options and missing arguments


def test_help_shows_examples_as_they_are_written():
    shown = CliRunner().invoke(app, ["index", "search", "-h"]).output
    assert "Examples:" in shown
    assert all(f"  {line}\n" in shown for line in EXAMPLES["index search"])


def test_no_description_is_cut_short_in_a_list_of_commands():
    for words in ([], ["index"], ["data"], ["cluster"]):
        assert "..." not in CliRunner().invoke(app, [*words, "-h"], env={"COLUMNS": "80"}).output.split("Commands:")[1]


def test_every_option_has_a_help_text():
    page = (SCRIPT.parents[1] / "docs" / "cli.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert len(rows) > 30
    assert all(row.split(" | ")[1].strip(" |") for row in rows)
