"""Every package says what it is for, and what it lists for users is listed once and documented."""

import ast
import doctest
import inspect
import re
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest

import starshl
from starshl.exceptions import MissingExtraError

ROOT = Path(__file__).parent.parent
PACKAGES = sorted(
    found.name
    for found in walk_packages(starshl.__path__, "starshl.")
    if found.ispkg and not any(part.startswith("_") for part in found.name.split("."))
)
DOCUMENTED = set(
    re.findall(
        r"^\.\. automodule:: (\S+)\n   :members:\n   :imported-members:$",
        "\n".join(page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs" / "api").glob("*.md"))),
        flags=re.MULTILINE,
    )
)
# Commands are typed, not imported; packages inside a subpackage are public where they are documented.
LISTED = {
    name: import_module(name).__all__
    for name in PACKAGES
    if hasattr(import_module(name), "__all__") and (name.count(".") == 1 or name in DOCUMENTED)
}


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_states_its_purpose_in_one_sentence(name):
    purpose = (import_module(name).__doc__ or "").split("\n\n")[0]
    assert re.fullmatch(r"\S[^\n]*\.", purpose), purpose
    assert not re.search(r"\w\w\. [A-Z]", purpose), "one sentence is enough in the first line"


@pytest.mark.parametrize("name", LISTED)
def test_what_a_package_lists_is_documented(name):
    assert name in DOCUMENTED, f"docs/api has no automodule of {name}"
    for listed in LISTED[name]:
        try:
            thing = getattr(import_module(name), listed)
        except MissingExtraError:
            continue  # an adapter of a library that is not installed
        is_code = inspect.isclass(thing) or inspect.isroutine(thing)
        assert inspect.getdoc(thing) if is_code else thing is not None, f"{name}.{listed}"


def names_used(code):
    """Return the names that some code imports from starshl, and then uses."""
    if code.startswith(">>>"):
        code = "".join(example.source for example in doctest.DocTestParser().get_examples(code))
    nodes = list(ast.walk(ast.parse(code)))
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module.startswith("starshl")]
    imported = {alias.name for node in imports for alias in node.names}
    return imported & {node.id for node in nodes if isinstance(node, ast.Name)}


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCKS = [
    block
    for page in PAGES
    for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
]
SCRIPTS = [script.read_text(encoding="utf-8") for script in sorted((ROOT / "examples").glob("*.py"))]
SHOWN = set().union(*map(names_used, BLOCKS + SCRIPTS))


@pytest.mark.parametrize("name", LISTED)
def test_every_public_name_has_an_example_that_the_tests_run(name):
    without = []
    for listed in set(LISTED[name]) - SHOWN:
        try:
            thing = getattr(import_module(name), listed)
        except MissingExtraError:
            continue
        if ">>>" not in (inspect.getdoc(thing) or ""):
            without.append(listed)
    assert without == [], "show these in a docstring, or on a page in docs/api"


def test_a_documented_package_lists_its_names():
    assert set(LISTED) | {"starshl.exceptions"} == DOCUMENTED


@pytest.mark.parametrize("name", sorted(set(starshl.__all__) - {"__version__"}))
def test_a_name_of_the_root_is_documented_with_the_package_that_lists_it(name):
    assert any(name in listed for listed in LISTED.values())
