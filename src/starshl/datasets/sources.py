"""Where a data set can be downloaded, and what turns the downloaded files into arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..exceptions import DownloadError
from .download import Progress, download, read_json

__all__ = ["OpenML", "Source", "Web"]


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

    def fetch(self, folder: Path, progress: Progress | None) -> list[Path]:
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

    def fetch(self, folder: Path, progress: Progress | None) -> list[Path]:
        """Download the data file into ``folder``, unless it is there already."""
        path = folder / f"openml-{self.data_id}.arff"
        if not path.exists():
            url = f"{self.api}/{self.data_id}"
            about = read_json(url).get("data_set_description")
            if not isinstance(about, dict) or not isinstance(about.get("url"), str):
                raise DownloadError(f"{url} names no data file.")
            download(about["url"], path, md5=_text_or_none(about.get("md5_checksum")), progress=progress)
        return [path]


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


Source = Web | OpenML
