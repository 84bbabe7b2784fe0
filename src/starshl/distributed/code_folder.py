"""A folder of packed codes, written one partition at a time: each one whole, written once, and known by its checksum.

While it is written, ``manifest.json`` says what it is to hold, and ``journal.jsonl`` has a line for each partition that
is done. A partition counts once its line is on the disk, and the line is written after the file. At the end, the
manifest lists all partitions and the journal goes.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from .._common.files import replacing_file, write_atomically
from .._common.platform import lock_folder, sync_folder
from .._common.strict_json import parse_json
from .._common.validation import check_integer
from ..codes.binary import BinaryCodes

MANIFEST, JOURNAL, ASSEMBLED = "manifest.json", "journal.jsonl", "codes.npy"


class CodeFolder:
    """The folder of one run, new or half done.

    Parameters
    ----------
    folder : path
    plan : what the codes are of and how they are made; a folder that was begun with another plan is refused
    n_partitions : int
    """

    def __init__(self, folder: Path, plan: dict[str, Any], n_partitions: int):
        self.folder, self.plan, self.n_partitions = folder, plan, n_partitions
        self.done: dict[int, dict[str, Any]] = {}

    @contextmanager
    def locked(self) -> Iterator[CodeFolder]:
        """Take the folder for this process alone, and find out what an earlier run has left."""
        self.folder.mkdir(parents=True, exist_ok=True)
        handle = self._lock()
        try:
            self._begin()
            yield self
        finally:
            os.close(handle)

    def write(self, number: int, packed: np.ndarray) -> None:
        """Store the codes of one partition; when this returns, they survive a crash."""
        name = f"part-{number:06d}.npy"
        with replacing_file(self.folder / name) as file:
            _write_codes(file, len(packed), [packed])
        entry = {"partition": number, "file": name, "rows": len(packed), "sha256": _checksum(self.folder / name)}
        self._append_to_journal(f"{json.dumps(entry)}\n".encode())
        self.done[number] = entry

    def finish(self, *, one_file: bool = False) -> dict[str, Any]:
        """Write the manifest of all partitions, and perhaps one file with all codes; return the manifest."""
        entries = [self.done[number] for number in range(self.n_partitions)]
        n_rows = sum(entry["rows"] for entry in entries)
        if one_file and not (self.folder / ASSEMBLED).exists():
            with replacing_file(self.folder / ASSEMBLED) as file:
                paths = (self.folder / entry["file"] for entry in entries)
                _write_codes(file, n_rows, (np.load(path, mmap_mode="r", allow_pickle=False) for path in paths))
        manifest = self.plan | {"complete": True, "n_rows": n_rows, "partitions": entries}
        self._write_manifest(manifest)
        (self.folder / JOURNAL).unlink(missing_ok=True)
        return manifest

    def _lock(self) -> int:
        try:
            return lock_folder(self.folder)
        except BlockingIOError as error:
            raise ValueError(
                f"Another process is writing codes to {str(self.folder)!r}. Wait for it, or choose another folder."
            ) from error

    def _begin(self) -> None:
        path = self.folder / MANIFEST
        if not path.exists():
            # A crash may have left a manifest that was not finished.
            if any(not path.match(f".{MANIFEST}.*.partial") for path in self.folder.iterdir()):
                raise ValueError(
                    f"The folder {str(self.folder)!r} is not empty, but holds no codes. Choose an empty or new folder."
                )
            self._write_manifest(self.plan | {"complete": False})
            return
        found = read_manifest(self.folder)
        other = [name for name, value in self.plan.items() if found.get(name) != value]
        if other:
            raise ValueError(
                f"The folder {str(self.folder)!r} holds codes of another run: its {', '.join(other)} differ. Choose a "
                "new folder, or repeat the old run to continue it."
            )
        entries = found["partitions"] if found["complete"] else self._read_journal()
        self.done = {entry["partition"]: entry for entry in entries if self._is_intact(entry)}

    def _read_journal(self) -> list[dict[str, Any]]:
        """Return the entries of the journal, and cut off a last line that a crash left unfinished."""
        path = self.folder / JOURNAL
        content = path.read_bytes() if path.exists() else b""
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):
            write_atomically(path, whole)
        return [parse_json(line) for line in whole.splitlines()]

    def _is_intact(self, entry: dict[str, Any]) -> bool:
        path = self.folder / entry["file"]
        return path.is_file() and _checksum(path) == entry["sha256"]

    def _write_manifest(self, manifest: dict[str, Any]) -> None:
        write_atomically(self.folder / MANIFEST, f"{json.dumps(manifest, indent=1)}\n".encode())
        sync_folder(self.folder)

    def _append_to_journal(self, line: bytes) -> None:
        path = self.folder / JOURNAL
        try:
            with path.open("ab") as journal:
                journal.write(line)
                journal.flush()
                os.fsync(journal.fileno())
        except OSError as error:
            error.filename = error.filename or str(path)  # an error of a full disk names no file
            raise


def read_manifest(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the manifest of a folder of codes."""
    path = Path(folder) / MANIFEST
    if not path.is_file():
        raise FileNotFoundError(f"There are no codes in {os.fspath(folder)!r}: it has no {MANIFEST}. Check the path.")
    try:
        manifest = parse_json(path.read_bytes())
        if manifest["format"] != "starshl-codes" or manifest["version"] != 1:
            raise ValueError("it is of another format")
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{str(path)!r} is not the manifest of a folder of codes ({error}). Encode again.") from error
    return manifest


def load_codes(folder: str | os.PathLike[str], partition: int | None = None) -> BinaryCodes:
    """Return the codes of all rows, or of one partition, of a folder that a run has finished.

    A folder holds bytes, which do not say which codes of items follow from labels: these read as words of posteriors
    that are nearly, not wholly, certain. ``hasher.relabel(codes, labels)`` adds what is missing.
    """
    manifest = read_manifest(folder)
    if not manifest["complete"]:
        raise ValueError(
            f"The codes in {os.fspath(folder)!r} are not complete. Repeat the run, and it goes on where it stopped."
        )
    entries = manifest["partitions"]
    if partition is not None:
        entries = [entries[check_integer(partition, "partition", low=0, high=len(entries) - 1)]]
    for entry in entries:
        path = Path(folder) / entry["file"]
        if not path.is_file() or _checksum(path) != entry["sha256"]:
            raise ValueError(f"{str(path)!r} is damaged or missing. Repeat the run, which makes it again.")
    packed = [np.load(Path(folder) / entry["file"], allow_pickle=False) for entry in entries]
    return BinaryCodes(np.concatenate(packed), manifest["n_bits"], manifest["space_id"], metric=manifest["metric"])


def _write_codes(file: BinaryIO, n_rows: int, parts: Iterable[np.ndarray]) -> None:
    """Write an .npy file; unlike np.save, with the reason where the disk does not take it."""
    for number, part in enumerate(parts):
        if number == 0:
            header = {"descr": "|u1", "fortran_order": False, "shape": (n_rows, part.shape[1])}
            np.lib.format.write_array_header_1_0(file, header)
        file.write(np.ascontiguousarray(part, dtype=np.uint8).data)


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
