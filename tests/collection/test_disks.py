"""A disk that is really full, and one that is really read-only."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def test_full_and_read_only_disks_lose_nothing(tmp_path):
    private = ["unshare", "--mount"]
    probe = [*private, "mount", "-t", "tmpfs", "tmpfs", str(tmp_path)]
    if shutil.which("unshare") is None or subprocess.run(probe, capture_output=True).returncode:
        pytest.skip("mounting a disk of one's own needs privileges")
    script = Path(__file__).with_name("on_small_disk.py")
    result = subprocess.run(
        [*private, sys.executable, str(script), str(tmp_path)], capture_output=True, text=True, timeout=120
    )
    assert (result.returncode, result.stdout) == (0, "all held\n"), result.stderr
