"""Store what a run produced, once, so that it can be scored again at any time.

A record is one file with a JSON header and raw arrays (packed codes, classes, predictions); it is complete or absent.
A folder of records stores its format, so that no report mixes records that mean different things.
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

from .._common.bundle import read_bundle, write_bundle
from .._common.files import array_digest, write_atomically
from .._common.validation import check_integer
from ..codes.binary import BinaryCodes
from ..exceptions import BundleFormatError, RecordFormatError

RECORD_FORMAT = 1
STATUSES = ("ok", "failed")
_MARKER = "starshl-records.json"
_SUFFIX = ".run"


@dataclass(frozen=True, slots=True)
class RunKey:
    """Identify a run; a finished run with the same key is never repeated.

    Parameters
    ----------
    protocol : str
        Lower-case letters, digits, - and _: it names a folder.
    run : int
    method : str
        A stable name such as "itq" or "starshl-paper", spelled like ``protocol``. Titles for readers live elsewhere.
    n_bits : int or None
        None for a method without codes.
    seed : int
    split_digest : str
    settings : dict, default={}
        Everything else that changes the result: scaling, dtype, and all parameters of the method; numbers and strings.

    Examples
    --------
    >>> RunKey("paper-usps", 0, "lsh", 16, seed=7, split_digest="...").file_name
    'lsh-016bits-run00-...run'
    >>> RunKey("../elsewhere", 0, "lsh", 16, seed=7, split_digest="...")
    Traceback (most recent call last):
    ValueError: The protocol of a run cannot be named '../elsewhere'. Use ...
    """

    protocol: str
    run: int
    method: str
    n_bits: int | None
    seed: int
    split_digest: str
    settings: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # These fields become paths, and keys are also read from files that anybody may have written.
        for part in ("protocol", "method"):
            check_file_stem(getattr(self, part), f"The {part} of a run")
        for part in ("run", "seed") if self.n_bits is None else ("run", "seed", "n_bits"):
            check_integer(getattr(self, part), part, low=0)
        if not isinstance(self.split_digest, str) or not isinstance(self.settings, dict):
            raise TypeError("A run's split_digest must be a string and its settings a dict.")

    @property
    def text(self) -> str:
        """The key as canonical JSON."""
        return json.dumps({name: getattr(self, name) for name in _KEY_FIELDS}, sort_keys=True)

    @property
    def cell(self) -> tuple[str, str, int | None, int]:
        """Protocol, method, bits and run: the cell of a table that this run fills, whatever its settings."""
        return self.protocol, self.method, self.n_bits, self.run

    @property
    def file_name(self) -> str:
        """A readable name that is unique to this key."""
        bits = "" if self.n_bits is None else f"-{self.n_bits:03d}bits"
        tag = hashlib.sha256(self.text.encode()).hexdigest()[:12]
        return f"{self.method}{bits}-run{self.run:02d}-{tag}{_SUFFIX}"


def check_file_stem(name: str, what: str) -> str:
    """Return a name that is safe as part of a path on every system, or refuse it."""
    if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,99}", name):
        raise ValueError(
            f"{what} cannot be named {name!r}. Use up to 100 lower-case letters, digits, - and _, starting with a "
            "letter or digit."
        )
    return name


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
        Wall time by stage ("fit", "encode_database", "encode_query", ...), without the time to compile loops, which
        is under "compile".
    peak_bytes : int or None
        Peak resident memory during the run, the data included.
    n_labeled : int or None
        How many labels the method learned from; None if it is not known.
    versions, machine : dict
    warnings : list of str
        What the method warned about.
    finished : str
        UTC time.
    arrays : dict of arrays
        "database" and "query" are packed codes, "y_database" and "y_query" classes; predictions are named
        in :mod:`starshl.reproduction.runner`.
    """

    key: RunKey
    dataset: str
    status: str
    message: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    peak_bytes: int | None = None
    n_labeled: int | None = None
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
    """A folder of run records, one file per run.

    Parameters
    ----------
    path : path of the folder
        It is created if absent. A folder with other contents, or with records of another format, is refused.

    Examples
    --------
    >>> import tempfile
    >>> folder = RecordFolder(tempfile.mkdtemp())
    >>> key = RunKey("paper-usps", 0, "lsh", 16, seed=7, split_digest="...")
    >>> folder.save(Record(key, "usps", "failed", message="no memory")).name
    'lsh-016bits-run00-...run'
    >>> folder.load(key).message
    'no memory'
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if self.path.exists() and not self.path.is_dir():
            raise RecordFormatError(
                "{file} is a file", "run records are kept in a folder", "Name one.", file=repr(str(self.path))
            )
        marker = self.path / _MARKER
        if not marker.exists():
            self._claim(marker)
        self._check_format(marker)

    def path_of(self, key: RunKey) -> Path:
        """Return where the record of a run is or will be."""
        return self.path / key.protocol / key.file_name

    def save(self, record: Record) -> Path:
        """Write a record, complete or not at all, and return its path."""
        path = self.path_of(record.key)
        path.parent.mkdir(exist_ok=True)
        header = {"record_format": RECORD_FORMAT, "digests": record.digests, **header_of(record)}
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

    def __len__(self) -> int:
        return len(self.paths())

    def _claim(self, marker: Path) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        # Another process may be claiming the same folder; its half-written marker is a hidden file.
        strangers = [path for path in self.path.iterdir() if not path.name.startswith(".")]
        if strangers and not marker.exists():
            raise RecordFormatError(
                "{file} holds files but no {marker}, so it is not a folder of run records",
                advice="Name an empty folder or one that starshl made.",
                file=repr(str(self.path)),
                marker=_MARKER,
            )
        content = {"kind": "starshl run records", "format": RECORD_FORMAT}
        write_atomically(marker, (json.dumps(content) + "\n").encode())

    def _check_format(self, marker: Path) -> None:
        try:
            known = json.loads(marker.read_text())["format"]
        except (ValueError, KeyError, TypeError) as error:
            raise RecordFormatError(
                "{file} is damaged ({reason})", advice="Name another folder.", file=repr(str(marker)), reason=str(error)
            ) from error
        if known != RECORD_FORMAT:
            raise RecordFormatError(
                "{file} holds run records of format {given}",
                "this version of starshl reads and writes format {known}",
                "Use the version that wrote them, or name a new folder.",
                file=repr(str(self.path)),
                given=known,
                known=RECORD_FORMAT,
            )


def read_record(path: Path) -> Record:
    """Return the record in a file; raise RecordFormatError if it cannot be read."""
    try:
        header, arrays = read_bundle(path)
    except BundleFormatError as error:
        # What this says is about model files, which can be saved again.
        raise RecordFormatError.unreadable(path, "its bytes are not those of a record") from error
    try:
        if header["record_format"] != RECORD_FORMAT:
            raise RecordFormatError.unreadable(path, f"its format is {header['record_format']}, not {RECORD_FORMAT}")
        return record_of(header, arrays)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise RecordFormatError.unreadable(path, str(error)) from error


def header_of(record: Record) -> dict[str, Any]:
    """Return everything but the arrays as plain values."""
    key = {name: getattr(record.key, name) for name in _KEY_FIELDS}
    return {"key": key, **{name: getattr(record, name) for name in _HEADER_FIELDS}}


def record_of(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Record:
    """Return the record that :func:`header_of` describes; raise ValueError, KeyError or TypeError if there is none."""
    record = Record(key=RunKey(**header["key"]), arrays=arrays, **{name: header[name] for name in _HEADER_FIELDS})
    if record.status not in STATUSES:
        raise ValueError(f"its status is {record.status!r}, not one of {', '.join(STATUSES)}")
    for name in ("dataset", "message", "finished"):
        if not isinstance(getattr(record, name), str):
            raise TypeError(f"its {name} is not text")
    for name in ("seconds", "versions", "machine"):
        if not isinstance(getattr(record, name), dict):
            raise TypeError(f"its {name} is not a mapping")
    return record
