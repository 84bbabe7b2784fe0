"""What ``import starshl`` offers, where its version is, how its layers are listed, and what tests may patch."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import starshl

ROOT = Path(__file__).parent.parent
NAMES = [
    "BinaryCodes",
    "Codebook",
    "Collection",
    "HybridHasher",
    "NeighborGraph",
    "StarRidge",
    "StarSHL",
    "__version__",
    "binarize",
    "load",
    "make_index",
    "model_card",
    "spread_labels",
]


def test_the_root_exports_what_people_use():
    assert sorted(starshl.__all__) == sorted(dir(starshl)) == sorted(NAMES)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = starshl.nothing


@pytest.mark.parametrize("name", NAMES)
def test_every_name_of_the_root_leads_to_its_home(name):
    exported = getattr(starshl, name)
    assert name == "__version__" or exported.__name__ == name


def test_importing_the_root_imports_nothing_heavy():
    code = "import sys, starshl; print([name for name in ('numpy', 'sklearn', 'numba') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["Collection", "make_index"])
def test_what_only_searches_imports_no_library_that_only_fits_need(name):
    code = f"import sys; from starshl import {name}; print(sorted({{module.split('.')[0] for module in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"sklearn", "pandas", "joblib", "PIL", "onnx"} & set(ast.literal_eval(done.stdout))


def test_the_version_is_written_once():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["hatch"]["version"]["path"] == "src/starshl/_version.py"
    assert "\nversion:" not in (ROOT / "CITATION.cff").read_text()


def test_contributing_lists_the_layers_that_the_contract_checks():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    checked = [set(re.findall(r"\w+", layer)) for layer in project["tool"]["importlinter"]["contracts"][0]["layers"]]
    table = (ROOT / "CONTRIBUTING.md").read_text().partition("| layer | what it holds |")[2].partition("\n\n")[0]
    listed = [set(re.findall(r"`(\w+)`", row.split("|")[1])) for row in table.splitlines() if row.startswith("| `")]
    assert listed == [layer - {"_version"} for layer in checked if layer != {"__main__"}]


def test_contributing_names_paths_that_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    # Those with a star or a placeholder stand for several; make targets and module names have no slash.
    paths = set(re.findall(r"`([\w./]+/[\w./]*)`", text)) | set(re.findall(r"python ([\w./]+\.py)", text))
    assert len(paths) > 20
    places = (ROOT, ROOT / "src" / "starshl")
    assert [path for path in sorted(paths) if not any((place / path).exists() for place in places)] == []


def test_no_test_patches_a_private_name():
    patches = re.compile(r"setattr\(\s*(?:[^,()]+(?:\([^()]*\))?,\s*\"(_[a-z]\w*)\"|f?\"[\w.{}]*\.(_[a-z]\w*)\")")
    found = {
        f"{path.relative_to(ROOT)}: {match[1] or match[2]}"
        for path in (ROOT / "tests").rglob("*.py")
        for match in patches.finditer(path.read_text())
    }
    assert found == set()
