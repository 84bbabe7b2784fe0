"""The docstrings of large packages, which show a newcomer what their files are for."""

import re
from importlib import import_module
from pathlib import Path

import pytest


@pytest.mark.parametrize("name", ["starshl.collection", "starshl.service"])
def test_the_map_of_a_package_names_its_files(name):
    package = import_module(name)
    files = {path.stem for path in Path(package.__file__).parent.glob("*.py")} - {"__init__"}
    assert set(re.findall(r"``(\w+)``", package.__doc__)) == files
