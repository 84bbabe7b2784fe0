"""Thousands of damaged index files, a few of them in every run of the suite."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "damaged_indexes.py"


@pytest.mark.parametrize("n_files", [100, pytest.param(10_000, marks=pytest.mark.slow)])
def test_damaged_index_files_are_refused_or_searched_safely(n_files):
    done = subprocess.run([sys.executable, SCRIPT, "--files", str(n_files)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "loads refused" in done.stdout
