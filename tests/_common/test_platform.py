import ast
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import starshl
from starshl._common import platform
from starshl._common.platform import lock_file, lock_folder, peak_memory, sync_content, write_at

POSIX_ONLY = {"fcntl", "grp", "mmap", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
WITHOUT_FCNTL = """
import sys
from pathlib import Path

sys.modules["fcntl"] = None
import numpy as np
import starshl
from starshl.hashers.baselines import LSHash

X = np.random.default_rng(0).standard_normal((60, 4))
hasher = LSHash(8, random_state=0).fit(X)
with starshl.Collection.create(Path(sys.argv[1]) / "items", hasher) as collection:
    collection.add(X)
with starshl.Collection(Path(sys.argv[1]) / "items") as collection:
    collection.remove([0])
    print(len(collection), collection.search(X[:1], k=3)[0][0].id > 0)
"""


def test_collections_are_made_changed_and_opened_without_fcntl(tmp_path):
    process = subprocess.run([sys.executable, "-c", WITHOUT_FCNTL, tmp_path], capture_output=True, text=True)
    assert process.stdout == "59 True\n", process.stderr


def test_modules_of_one_system_are_imported_in_one_file():
    package = Path(starshl.__file__).parent
    found = {
        (str(path.relative_to(package)), name)
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names])
        if name in POSIX_ONLY
    }
    assert found == {("_common/platform.py", "fcntl"), ("_common/platform.py", "mmap")}


@pytest.mark.parametrize("lock", [lock_file, lock_folder])
def test_a_lock_is_held_until_its_handle_is_closed(tmp_path, lock):
    path = tmp_path / "writer.lock" if lock is lock_file else tmp_path
    handle = lock(path)
    with pytest.raises(BlockingIOError):
        lock(path)
    os.close(handle)
    os.close(lock(path))


def test_windows_locks_a_byte_and_says_so_if_another_holds_it(tmp_path, monkeypatch):
    held = set()

    def locking(handle, mode, n_bytes):
        file = os.fstat(handle).st_ino
        if file in held:
            raise PermissionError(13, "Permission denied")
        held.add(file)

    monkeypatch.setattr(platform, "fcntl", None)
    monkeypatch.setattr(platform, "msvcrt", SimpleNamespace(locking=locking, LK_NBLCK=2))
    os.close(lock_file(tmp_path / "writer.lock"))
    with pytest.raises(BlockingIOError):
        lock_file(tmp_path / "writer.lock")


def test_a_folder_that_cannot_be_opened_is_locked_by_a_file_next_to_it(tmp_path, monkeypatch):
    folder = tmp_path / "codes"
    folder.mkdir()
    monkeypatch.setattr(platform, "open_folder", lambda folder: None)
    handle = lock_folder(folder)
    with pytest.raises(BlockingIOError):
        lock_folder(folder)
    os.close(handle)
    platform.sync_folder(folder)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("missing", [(), ("pwrite", "fdatasync")])
def test_writing_at_a_position_changes_nothing_else(tmp_path, monkeypatch, missing):
    for name in missing:
        monkeypatch.delattr(os, name)
    path = tmp_path / "numbers"
    path.write_bytes(b"0123456789")
    handle = platform.open_file(path, os.O_WRONLY)
    assert write_at(handle, b"ab", 4) == 2
    sync_content(handle)
    os.close(handle)
    assert path.read_bytes() == b"0123ab6789"


def test_writing_into_a_private_map_leaves_the_file_alone(tmp_path):
    path = tmp_path / "numbers"
    path.write_bytes(b"0123456789")
    with path.open("rb") as file:
        mapped = platform.map_file(file.fileno(), private=True)
    mapped[0:2] = b"ab"
    assert mapped[:] == b"ab23456789"
    assert path.read_bytes() == b"0123456789"


def test_peak_memory_sees_what_a_block_allocates():
    with peak_memory() as idle:
        pass
    if idle.peak_bytes is None:
        pytest.skip("this system cannot reset its high-water mark")
    with peak_memory() as busy:
        block = np.ones(30_000_000)
    del block
    with peak_memory() as after:
        pass
    assert busy.peak_bytes - idle.peak_bytes > 200e6
    assert after.peak_bytes < busy.peak_bytes - 200e6
