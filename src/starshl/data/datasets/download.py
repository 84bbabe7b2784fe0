"""Where data sets can be downloaded, and how: broken connections are resumed, and damaged files refused."""

from __future__ import annotations

import hashlib
import http.client
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np

from ..._common.progress import DownloadProgress
from ..._common.strict_json import parse_json
from ...exceptions import ChecksumError, DownloadError

_ATTEMPTS = 4  # for faults of a network that pass
_TIMEOUT = 30.0  # seconds without a byte
_CHUNK = 1 << 18
_MAX_JSON_BYTES = 1 << 24  # 16 MB; a description of a data set takes a few kB
_MAX_LENGTH_DIGITS = 18
# Answers after which another attempt may succeed.
_TEMPORARY_STATUS = {408, 425, 429, 500, 502, 503, 504}


@dataclass(frozen=True, slots=True)
class Web:
    """Files at fixed addresses.

    ``verified`` means that a download from here has given the registered arrays. The checksum
    of the arrays is compared whether a source is verified or not.
    """

    urls: tuple[str, ...]
    convert: Callable[[Sequence[Path]], dict[str, np.ndarray]]
    md5: tuple[str, ...] = ()
    verified: bool = False

    @property
    def label(self) -> str:
        return self.urls[0].partition("//")[2].partition("/")[0]

    def fetch(self, folder: Path, progress: DownloadProgress | None) -> list[Path]:
        """Download all files into ``folder``; those that are there already are kept."""
        paths = [folder / url.rpartition("/")[2] for url in self.urls]
        for url, path, md5 in zip(self.urls, paths, self.md5 or (None,) * len(paths), strict=True):
            if not path.exists():
                download(url, path, md5=md5, progress=progress)
        return paths


@dataclass(frozen=True, slots=True)
class OpenML:
    """One ARFF file of openml.org; its API gives the address and the MD5."""

    data_id: int
    convert: Callable[[Sequence[Path]], dict[str, np.ndarray]]
    verified: bool = False
    api: str = "https://www.openml.org/api/v1/json/data"

    @property
    def label(self) -> str:
        return f"openml.org, data set {self.data_id}"

    def fetch(self, folder: Path, progress: DownloadProgress | None) -> list[Path]:
        """Download the data file into ``folder``, unless it is there already."""
        path = folder / f"openml-{self.data_id}.arff"
        if not path.exists():
            url = f"{self.api}/{self.data_id}"
            about = read_json(url).get("data_set_description")
            if not isinstance(about, dict) or not isinstance(about.get("url"), str):
                raise DownloadError(f"{url} names no data file.")
            download(about["url"], path, md5=_text_or_none(about.get("md5_checksum")), progress=progress)
        return [path]


Source = Web | OpenML


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def download(
    url: str,
    target: Path,
    *,
    md5: str | None = None,
    progress: DownloadProgress | None = None,
    pause: float = 1.0,
) -> Path:
    """Write the file at ``url`` to ``target`` and return that path.

    Bytes arrive in ``<target>.part``. A cut connection, in this process or an earlier one, is resumed by
    a Range request if the server still has the same file; otherwise the download starts over.

    Parameters
    ----------
    url : str
    target : Path
    md5 : str or None, default=None
        The MD5 that the publisher states; it protects against damage, not against an attack.
    progress : callable or None, default=None
        Called with (file name, bytes so far, bytes in total or None).
    pause : float
        Seconds to wait before the second attempt, doubled for each further one.
    """
    if not url.startswith(("http://", "https://")):
        raise DownloadError(f"{url!r} is not a web address; only http and https are followed.")
    target = Path(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            _receive(url, part, progress)
            break
        except urllib.error.HTTPError as error:
            error.close()
            if error.code not in _TEMPORARY_STATUS or attempt == _ATTEMPTS:
                raise DownloadError(f"{url} answered {error.code} ({error.reason}).") from error
        except (_CutError, OSError, http.client.HTTPException) as error:
            if attempt == _ATTEMPTS:
                raise DownloadError(
                    f"{url} could not be read ({_reason(error)}), tried {_ATTEMPTS} times. "
                    "Check the network and try again: what has arrived is kept."
                ) from error
        sleep(pause * 2 ** (attempt - 1))
    if md5 is not None and (actual := _md5_of(part)) != md5.lower():
        _forget(part)
        raise ChecksumError(f"The file from {url} has MD5 {actual}; {md5} was expected. It was discarded.")
    part.replace(target)
    _validator_of(part).unlink(missing_ok=True)
    return target


def read_json(url: str) -> dict[str, Any]:
    """Return the JSON object at ``url``."""
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT) as answer:
            value = parse_json(answer.read(_MAX_JSON_BYTES))
    except urllib.error.HTTPError as error:
        error.close()
        raise DownloadError(f"{url} answered {error.code} ({error.reason}).") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise DownloadError(f"{url} could not be read ({_reason(error)}). Check the network.") from error
    if not isinstance(value, dict):
        raise DownloadError(f"{url} answered with a JSON {type(value).__name__} instead of an object.")
    return value


class _CutError(Exception):
    """The connection ended before the file did."""


def _receive(url: str, part: Path, progress: DownloadProgress | None) -> None:
    validator = _validator_of(part)
    stamp = _read_stamp(validator)
    have = part.stat().st_size if part.exists() and stamp else 0
    headers = {"User-Agent": "starshl", "Accept-Encoding": "identity"}
    if have:
        # If-Range: a server whose file has changed sends it whole instead of the missing end.
        headers |= {"Range": f"bytes={have}-", "If-Range": stamp}
    with _open(url, headers, part) as answer:
        resumed = answer.status == 206 and _starts_at(answer.headers, have)
        if answer.status == 206 and not resumed:
            _forget(part)
            raise _CutError("the server sent a different range than requested")
        _remember(validator, answer.headers)
        done = have if resumed else 0
        length = _announced_length(answer.headers)
        total = None if length is None else done + length
        with open(part, "ab" if resumed else "wb") as file:
            while chunk := answer.read(_CHUNK):
                file.write(chunk)
                done += len(chunk)
                if progress is not None:
                    progress(url.rpartition("/")[2], done, total)
    if total is not None and done < total:
        raise _CutError(f"the connection ended after {done:,} of {total:,} bytes")


def _open(url: str, headers: dict[str, str], part: Path) -> http.client.HTTPResponse:
    try:
        return urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code != 416:
            raise
        error.close()
        _forget(part)
        raise _CutError("the server refused the requested range") from error


def _announced_length(headers: Message) -> int | None:
    text = headers.get("Content-Length")
    if text is None:
        return None
    # int() would also take "-5", "1_000" and digits of other scripts.
    if not (text.isascii() and text.isdigit()) or len(text) > _MAX_LENGTH_DIGITS:
        raise _CutError(f"the server announced a length of {text[:40]!r}")
    return int(text)


def _starts_at(headers: Message, have: int) -> bool:
    return headers.get("Content-Range", "").startswith(f"bytes {have}-")


def _validator_of(part: Path) -> Path:
    return part.with_name(part.name + ".validator")


def _remember(validator: Path, headers: Message) -> None:
    """Keep what identifies the server's version of the file; without it a part cannot be resumed."""
    etag = headers.get("ETag", "")
    stamp = headers.get("Last-Modified", "") if etag.startswith("W/") or not etag else etag
    if _is_stamp(stamp):
        validator.write_text(stamp)
    else:
        validator.unlink(missing_ok=True)


def _read_stamp(validator: Path) -> str:
    """Return the stamp of a partial file, empty if there is none that can go into a request."""
    try:
        stamp = validator.read_text()
    except (FileNotFoundError, UnicodeDecodeError):
        return ""
    return stamp if _is_stamp(stamp) else ""


def _is_stamp(text: str) -> bool:
    return bool(text) and text.isascii() and text.isprintable()


def _forget(part: Path) -> None:
    part.unlink(missing_ok=True)
    _validator_of(part).unlink(missing_ok=True)


def _md5_of(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _reason(error: Exception) -> str:
    cause = getattr(error, "reason", None)
    return str(cause if cause is not None else error) or type(error).__name__
