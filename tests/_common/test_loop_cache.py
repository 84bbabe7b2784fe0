"""Compiled loops are kept wherever there is room for them, and an install that cannot be written to works."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import starshl

FIT = """
import hashlib, os
import numpy as np
from starshl import StarRidge
rng = np.random.default_rng(0)
y = np.arange(60) % 3
X = np.eye(3)[y] + rng.standard_normal((60, 3))
codes = StarRidge(8, random_state=0).fit(X, y).encode(X)
print(os.environ.get("NUMBA_CACHE_DIR", ""), hashlib.sha256(codes.packed.tobytes()).hexdigest())
"""


@pytest.fixture
def sealed(tmp_path):
    """A copy of the package beside whose files nobody can keep anything, whoever runs the test."""
    package = tmp_path / "installed" / "starshl"
    shutil.copytree(Path(starshl.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [package, *(path for path in package.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").write_text("a file where a folder is needed")
    return package


def started(package, cache):
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment |= {"PYTHONPATH": str(package.parent), "XDG_CACHE_HOME": str(cache), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.Popen([sys.executable, "-c", FIT], env=environment, stdout=subprocess.PIPE, text=True)


@pytest.mark.skipif(sys.platform != "linux", reason="the user's cache is elsewhere")
def test_four_processes_at_once_share_the_cache_of_the_user(sealed, tmp_path):
    cache = tmp_path / "cache"
    processes = [started(sealed, cache) for _ in range(4)]
    answers = [process.communicate()[0].split() for process in processes]
    assert [process.returncode for process in processes] == [0] * 4
    assert len({answer[-1] for answer in answers}) == 1
    assert list(cache.rglob("*.nbi"))
    before = sorted(cache.rglob("*.nbc"))
    assert started(sealed, cache).communicate()[0].split() == answers[0]
    assert sorted(cache.rglob("*.nbc")) == before


@pytest.mark.skipif(sys.platform != "linux", reason="the user's cache is elsewhere")
def test_without_any_place_to_keep_them_loops_are_compiled_in_a_temporary_folder(sealed, tmp_path):
    no_folder = tmp_path / "file"
    no_folder.write_text("")
    process = started(sealed, no_folder)
    folder, _ = process.communicate()[0].split()
    assert process.returncode == 0
    assert "starshl-loops-" in folder
    assert not Path(folder).exists()
