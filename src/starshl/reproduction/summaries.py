"""Keep the numbers of every run as lines of text: small, easy to compare, and suited to a repository.

A summary holds what a report needs of a record (scores, times, settings, versions) and none of its arrays. A folder
has one file per protocol, ``<protocol>.jsonl``, one JSON object per line. Values that many runs share (settings,
versions, machines, splits) are written once, as a line with an ``id`` that later lines refer to. New runs are
appended, so a kill loses at most the last line.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from .._common.files import write_atomically
from .records import Record, RunKey, check_file_stem, header_of, record_of
from .scores import cluster_agreement, score

SUMMARY_FORMAT = 1
_SUFFIX = ".jsonl"
_SIGNIFICANT_DIGITS = 6
_ID_LENGTH = 12
_UNREPORTED_SCORES = ("curve_macro",)
# Entry r is that of radius r.
_REPORTED_CURVES = ("precision", "recall")
_SCORES_BY_NUMBER = ("precision_at", "precision_by_class", "accuracy_knn")
_NEEDED_ROWS = {"train", "query", "classes", "smallest_class"}
_SHARED_FIELDS = ("settings", "split_digest", "versions", "machine", "rows", "warnings")
PRINTED_DIGIT = 5e-4  # tables show three digits


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The numbers of one run.

    Attributes
    ----------
    record : Record
        Without arrays.
    rows : dict
        Numbers of rows and classes: "train", "query", "classes", "smallest_class"; and what answers without a method
        would score: "majority_accuracy", by always naming the largest class of the training rows, and
        "random_precision", by a random order of the database. Empty if the run failed.
    scores : dict
        See :func:`starshl.reproduction.score`; a run without labels also has "clusters". Numbers have six significant
        digits; None is an undefined score.
    """

    record: Record
    rows: dict[str, float] = field(default_factory=dict)
    scores: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> RunKey:
        return self.record.key


def summarize_record(record: Record, *, n_jobs: int | None = None) -> RunSummary:
    """Score a record and return its summary."""
    bare = replace(record, arrays={}, seconds=_rounded(record.seconds))
    if not record.ok:
        return RunSummary(bare)
    scores = score(record, n_jobs=n_jobs)
    if "labeled" in record.arrays and not record.arrays["labeled"].any():
        scores["clusters"] = cluster_agreement(record)
    if "curve" in scores:
        scores["curve"] = {name: scores["curve"][name] for name in _REPORTED_CURVES}
    rows = _rounded(_describe_rows(record.arrays))
    return RunSummary(bare, rows, _rounded({name: scores[name] for name in scores if name not in _UNREPORTED_SCORES}))


def _describe_rows(arrays: dict[str, np.ndarray]) -> dict[str, float]:
    y_train, y_query = arrays["y_train"], arrays["y_query"]
    y_database = arrays.get("y_database", y_train)
    classes, per_class = np.unique(y_train, return_counts=True)
    shares = np.bincount(y_database, minlength=int(y_query.max()) + 1) / len(y_database)
    return {
        "train": len(y_train),
        "query": len(y_query),
        "classes": len(per_class),
        "smallest_class": int(per_class.min()),
        "majority_accuracy": float(np.mean(y_query == classes[per_class.argmax()])),
        "random_precision": float(shares[y_query].mean()),
    }


def _rounded(value: Any) -> Any:
    match value:
        case dict():
            return {name: _rounded(part) for name, part in value.items()}
        case list():
            return [_rounded(part) for part in value]
        case float():
            # JSON has no NaN.
            return float(f"{value:.{_SIGNIFICANT_DIGITS}g}") if isfinite(value) else None
    return value


class SummaryFolder:
    """A folder of summaries.

    Parameters
    ----------
    path : path of the folder
        It is created when the first summary is added.

    Attributes
    ----------
    damaged : list of str
        Lines that could not be read, as ``file:line``; the runs on them count as not done.

    Examples
    --------
    >>> import tempfile
    >>> from starshl.reproduction import Record, RunKey
    >>> folder = SummaryFolder(tempfile.mkdtemp())
    >>> key = RunKey("paper-usps", 0, "lsh", 16, seed=7, split_digest="...")
    >>> folder.add(RunSummary(Record(key, "usps", "failed", message="no memory")))
    >>> SummaryFolder(folder.path).get(key).record.message
    'no memory'
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.damaged: list[str] = []
        self._files: dict[str, _SummaryFile] = {}
        for file in sorted(self.path.glob(f"*{_SUFFIX}")):
            self._open(file.stem)

    def get(self, key: RunKey) -> RunSummary | None:
        """Return the summary of a run, None if there is none."""
        file = self._files.get(key.protocol)
        return file.summaries.get(key.text) if file else None

    def add(self, summary: RunSummary) -> None:
        """Append a summary to the file of its protocol; if that raises OSError, it is kept in memory."""
        file = self._open(summary.key.protocol)
        file.remember(summary)
        self.path.mkdir(parents=True, exist_ok=True)
        file.append(summary)

    def __iter__(self) -> Iterator[RunSummary]:
        """Go through all summaries, protocol by protocol."""
        for name in sorted(self._files):
            yield from self._files[name].summaries.values()

    def __len__(self) -> int:
        return sum(len(file.summaries) for file in self._files.values())

    def tidy(self) -> None:
        """Rewrite files that hold unreadable lines, or several summaries of one run, without them."""
        for file in self._files.values():
            file.tidy()

    def _open(self, protocol: str) -> _SummaryFile:
        if protocol not in self._files:
            check_file_stem(protocol, "A file of summaries")
            self._files[protocol] = _SummaryFile(self.path / f"{protocol}{_SUFFIX}", protocol)
            self.damaged += self._files[protocol].damaged
        return self._files[protocol]


class _SummaryFile:
    """The summaries of one protocol."""

    def __init__(self, path: Path, protocol: str):
        self.path, self.protocol = path, protocol
        self.summaries: dict[str, RunSummary] = {}
        self.damaged: list[str] = []
        self._shared: dict[str, Any] = {}
        self._untidy = False
        self._inode = path.stat().st_ino if path.exists() else None
        lines = path.read_bytes().split(b"\n") if path.exists() else []
        for number, line in enumerate(lines, start=1):
            if line.strip():
                self._read(line, number)

    def _read(self, line: bytes, number: int) -> None:
        try:
            content = json.loads(line)
            if "id" in content:
                self._shared[content["id"]] = content["value"]
                return
            summary = self._decoded(content)
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
            self.damaged.append(f"{self.path.name}:{number}")
            self._untidy = True
            return
        self.remember(summary)

    def remember(self, summary: RunSummary) -> None:
        self._untidy |= summary.key.text in self.summaries
        self.summaries[summary.key.text] = summary

    def append(self, summary: RunSummary) -> None:
        with self.path.open("ab+") as file:
            inode = os.fstat(file.fileno()).st_ino
            if inode != self._inode:
                # Another process has tidied the file, and values that lines refer to may have gone.
                self._shared, self._inode = {}, inode
            text = "".join(f"{line}\n" for line in self._encoded(summary))
            if file.tell() and not _ends_with_newline(file):
                text = f"\n{text}"
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())

    def tidy(self) -> None:
        if not self._untidy:
            return
        # Other processes may have added runs since.
        others = _SummaryFile(self.path, self.protocol).summaries
        self.summaries = others | self.summaries
        self._shared = {}
        lines = [line for summary in self.summaries.values() for line in self._encoded(summary)]
        write_atomically(self.path, "".join(f"{line}\n" for line in lines).encode())
        self._untidy = False

    def _encoded(self, summary: RunSummary) -> Iterator[str]:
        """Yield the line of a summary, after lines for values that no earlier line has."""
        header = header_of(replace(summary.record, arrays={}))
        content = {"format": SUMMARY_FORMAT, **header.pop("key"), **header, "rows": summary.rows}
        del content["protocol"]
        for name in _SHARED_FIELDS:
            text = _compact(content[name])
            identifier = hashlib.sha256(text.encode()).hexdigest()[:_ID_LENGTH]
            if identifier not in self._shared:
                self._shared[identifier] = content[name]
                yield f'{{"id":"{identifier}","value":{text}}}'
            content[name] = identifier
        yield _compact(content | {"scores": summary.scores})

    def _decoded(self, content: dict[str, Any]) -> RunSummary:
        if content["format"] != SUMMARY_FORMAT:
            raise ValueError(f"the format is {content['format']}, not {SUMMARY_FORMAT}")
        content |= {name: self._shared[content[name]] for name in _SHARED_FIELDS} | {"protocol": self.protocol}
        record = record_of(content | {"key": {name: content[name] for name in RunKey.__dataclass_fields__}}, {})
        if record.ok and not content["rows"].keys() >= _NEEDED_ROWS:
            raise ValueError(f"a finished run needs {', '.join(sorted(_NEEDED_ROWS))}")
        scores = dict(content["scores"])
        for name in _SCORES_BY_NUMBER:
            if name in scores:
                scores[name] = {int(number): value for number, value in scores[name].items()}
        return RunSummary(record, dict(content["rows"]), scores)


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _ends_with_newline(file: BinaryIO) -> bool:
    file.seek(-1, os.SEEK_END)
    return file.read(1) == b"\n"


@dataclass(frozen=True, slots=True)
class Rerun:
    """What changed when a run was done again.

    Attributes
    ----------
    differences : dict
        Name of a score -> its value before and now, of those that differ in their third digit; None is an undefined
        score. If one of the two runs failed, "status" has both.
    versions : dict
        Name of a library -> its version before and now, of those that differ.
    """

    differences: dict[str, tuple[Any, Any]]
    versions: dict[str, tuple[str, str | None]]

    @property
    def equal(self) -> bool:
        return not self.differences


def compare_rerun(before: RunSummary, now: RunSummary) -> Rerun:
    """Compare all scores from -1 to 1 that the earlier summary has; counts and seconds are not scores.

    Examples
    --------
    >>> from starshl.reproduction import Record, RunKey
    >>> record = Record(RunKey("paper-usps", 0, "lsh", 16, seed=7, split_digest="..."), "usps", "ok")
    >>> before, now = (RunSummary(record, {}, {"pr_area": 0.61, "accuracy": value}) for value in (0.9, 0.92))
    >>> compare_rerun(before, now).differences
    {'accuracy': (0.9, 0.92)}
    """
    pairs = _pairs("", before.scores, now.scores)
    differences = {name: (first, second) for name, first, second in pairs if _differs(first, second)}
    if before.record.ok != now.record.ok:
        differences = {"status": (before.record.status, now.record.status)}
    old, new = before.record.versions, now.record.versions
    return Rerun(differences, {name: (old[name], new.get(name)) for name in old if old[name] != new.get(name)})


def _pairs(name: str, before: Any, now: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield every value of the earlier scores with its name and the present one, whatever it is nested in."""
    if isinstance(before, dict):
        for key, value in before.items():
            yield from _pairs(f"{name} {key}".strip(), value, now.get(key) if isinstance(now, dict) else None)
    elif isinstance(before, list):
        present = now if isinstance(now, list) else []
        for place, value in enumerate(before):
            yield from _pairs(f"{name} {place}", value, present[place] if place < len(present) else None)
    else:
        yield name, before, now


def _differs(before: Any, now: Any) -> bool:
    if _is_score(before) and _is_score(now):
        return abs(before - now) > PRINTED_DIGIT
    return (before is None) != (now is None)


def _is_score(value: Any) -> bool:
    return isinstance(value, float) and abs(value) <= 1
