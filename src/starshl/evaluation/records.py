"""Run records: what a run produced, written once and scored as often as wanted.

A record is one file with a JSON header and raw arrays (packed codes, classes, predictions), complete or not
there. A folder of records knows its format, so that figures never mix records that mean different things.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .._files import write_atomically
from ..bundle import read_bundle, write_bundle
from ..codes import BinaryCodes
from ..datasets import array_digest
from ..exceptions import BundleFormatError, RecordFormatError

__all__ = ["RECORD_FORMAT", "Record", "RecordFolder", "RunKey"]

RECORD_FORMAT = 1

_MARKER = "starshl-records.json"
_SUFFIX = ".run"


@dataclass(frozen=True, slots=True)
class RunKey:
    """What identifies a run: a finished run of the same key is never repeated.

    Parameters
    ----------
    protocol : str
    run : int
    method : str
        The row of a table, for example "ITQ" or "StarSHL, paper settings".
    n_bits : int or None
        None for a method without codes.
    seed : int
    split_digest : str
    settings : dict, default={}
        Whatever else changes the result, for example the scaling; numbers and strings.
    """

    protocol: str
    run: int
    method: str
    n_bits: int | None
    seed: int
    split_digest: str
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The key as canonical JSON."""
        return json.dumps({name: getattr(self, name) for name in _KEY_FIELDS}, sort_keys=True)

    @property
    def file_name(self) -> str:
        """A readable name that is unique to this key."""
        words = re.sub(r"[^a-z0-9]+", "-", self.method.lower()).strip("-")
        bits = "" if self.n_bits is None else f"-{self.n_bits:03d}bits"
        tag = hashlib.sha256(self.text.encode()).hexdigest()[:12]
        return f"{words}{bits}-run{self.run:02d}-{tag}{_SUFFIX}"


_KEY_FIELDS = tuple(RunKey.__dataclass_fields__)


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """One run.

    Attributes
    ----------
    key : RunKey
    dataset : str
    status : {"ok", "failed"}
    message : str
        Why a run failed.
    seconds : dict
        Wall time by stage ("fit", "encode_database", "encode_query", ...).
    peak_bytes : int or None
        Peak resident memory during the run, the data included.
    parameters : dict
        All parameters of the fitted object, as text.
    versions, machine : dict
    warnings : list of str
        What the method warned about.
    finished : str
        UTC time.
    arrays : dict of arrays
        "database" and "query" are packed codes, "y_database" and "y_query" classes; predictions are named
        in :mod:`starshl.evaluation.runner`.
    """

    key: RunKey
    dataset: str
    status: str
    message: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    peak_bytes: int | None = None
    parameters: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    finished: str = ""
    arrays: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.status == "ok"

    @property
    def digests(self) -> dict[str, str]:
        """SHA-256 of every array: two runs with equal digests gave the same codes."""
        return {name: array_digest({name: array}) for name, array in sorted(self.arrays.items())}

    def codes(self, part: str) -> BinaryCodes:
        """Return the codes of "database" or "query"."""
        if part not in self.arrays or self.key.n_bits is None:
            raise ValueError(f"The record of {self.key.method!r} ({self.status}) holds no codes of {part!r}.")
        return BinaryCodes(self.arrays[part], self.key.n_bits)


_HEADER_FIELDS = tuple(name for name in Record.__dataclass_fields__ if name not in ("key", "arrays"))


class RecordFolder:
    """A folder of run records, one file a run.

    Parameters
    ----------
    path : path of the folder
        It is created if absent. A folder with other contents, or with records of another format, is refused.

    Examples
    --------
    >>> import tempfile
    >>> folder = RecordFolder(tempfile.mkdtemp())
    >>> key = RunKey("paper-usps", 0, "LSH", 16, seed=7, split_digest="...")
    >>> folder.save(Record(key, "usps", "failed", message="no memory")).name
    'lsh-016bits-run00-...run'
    >>> folder.finished(key), folder.load(key).message
    (True, 'no memory')
    """

    def __init__(self, path: str | os.PathLike):
        self.path = Path(path)
        if self.path.exists() and not self.path.is_dir():
            raise RecordFormatError(f"{str(self.path)!r} is a file; run records are kept in a folder. Name one.")
        marker = self.path / _MARKER
        if not marker.exists():
            self._claim(marker)
        self._check_format(marker)

    def path_of(self, key: RunKey) -> Path:
        """Return where the record of a run is or will be."""
        return self.path / key.protocol / key.file_name

    def finished(self, key: RunKey, *, retry_failed: bool = False) -> bool:
        """Say whether a run is done; with ``retry_failed`` a failed one does not count."""
        path = self.path_of(key)
        return path.exists() and not (retry_failed and not self.load(key).ok)

    def save(self, record: Record) -> Path:
        """Write a record, complete or not at all, and return its path."""
        path = self.path_of(record.key)
        path.parent.mkdir(exist_ok=True)
        header = {
            "record_format": RECORD_FORMAT,
            "key": {name: getattr(record.key, name) for name in _KEY_FIELDS},
            "digests": record.digests,
            **{name: getattr(record, name) for name in _HEADER_FIELDS},
        }
        write_bundle(path, header, record.arrays)
        return path

    def load(self, key: RunKey) -> Record:
        """Return the record of a run."""
        path = self.path_of(key)
        if not path.exists():
            raise FileNotFoundError(
                f"{str(self.path)!r} has no record of {key.method!r} in run {key.run} of {key.protocol!r}."
            )
        return read_record(path)

    def __iter__(self) -> Iterator[Record]:
        """Go through all records, in the order of their file names."""
        yield from map(read_record, self.paths())

    def paths(self) -> list[Path]:
        """Return the files of all records, readable or not, in the order of their names."""
        return sorted(self.path.glob(f"*/*{_SUFFIX}"))

    def of_protocol(self, protocol: str) -> Iterator[Record]:
        """Go through the records of one protocol."""
        for path in sorted((self.path / protocol).glob(f"*{_SUFFIX}")):
            yield read_record(path)

    def __len__(self) -> int:
        return len(self.paths())

    def _claim(self, marker: Path) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        # Another process may be claiming the same folder: its half-written marker is hidden.
        strangers = [found for found in self.path.iterdir() if not found.name.startswith(".")]
        if strangers and not marker.exists():
            raise RecordFormatError(
                f"{str(self.path)!r} holds files but no {_MARKER}, so it is not a folder of run records. "
                "Name an empty folder or one that starshl made."
            )
        content = {"kind": "starshl run records", "format": RECORD_FORMAT}
        write_atomically(marker, (json.dumps(content) + "\n").encode())

    def _check_format(self, marker: Path) -> None:
        try:
            found = json.loads(marker.read_text())["format"]
        except (ValueError, KeyError, TypeError) as error:
            raise RecordFormatError(f"{str(marker)!r} is damaged ({error}). Name another folder.") from error
        if found != RECORD_FORMAT:
            raise RecordFormatError(
                f"{str(self.path)!r} holds run records of format {found}; this version of starshl reads "
                f"and writes format {RECORD_FORMAT}. Use the version that wrote them, or name a new folder."
            )


def read_record(path: Path) -> Record:
    """Return the record in a file, or refuse it."""
    try:
        header, arrays = read_bundle(path)
    except BundleFormatError as error:
        # The error of the bundle speaks of model files and advises to save them again.
        raise _unreadable(path, "it is truncated, damaged or of another kind") from error
    try:
        if header["record_format"] != RECORD_FORMAT:
            raise _unreadable(path, f"its format is {header['record_format']}, not {RECORD_FORMAT}")
        key = RunKey(**header["key"])
        return Record(key=key, arrays=arrays, **{name: header[name] for name in _HEADER_FIELDS})
    except (KeyError, TypeError) as error:
        raise _unreadable(path, str(error)) from error


def _unreadable(path: Path, reason: str) -> RecordFormatError:
    return RecordFormatError(
        f"{str(path)!r} is not a readable run record ({reason}). Delete it to have the run repeated."
    )
