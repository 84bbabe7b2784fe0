"""The page about the command line."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "write_cli_page.py"


def test_the_page_is_what_the_commands_declare():
    spec = spec_from_file_location("write_cli_page", SCRIPT)
    script = module_from_spec(spec)
    spec.loader.exec_module(script)
    text = script.PAGE.read_text(encoding="utf-8")
    assert script.updated_page(text) == text, "run: python scripts/write_cli_page.py"


def test_every_option_has_a_help_text():
    page = (SCRIPT.parents[1] / "docs" / "cli.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert len(rows) > 30
    assert all(row.split(" | ")[1].strip(" |") for row in rows)
