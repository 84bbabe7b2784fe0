"""Find, check and load data sets: the STARSHL_DATA folder first, then the user's cache, then a download."""

from __future__ import annotations

import io
import os
import shutil
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from ..._common.files import array_digest, write_atomically
from ..._common.platform import user_cache
from ..._common.progress import DownloadProgress, download_progress
from ...exceptions import ChecksumError, DatasetUnavailableError, DownloadError
from .download import Source
from .registry import ENTRIES, Entry, entry_of

# Room for small arrays next to X, and for X in a wider type than the registered one.
_SMALL_ARRAYS_BYTES = 1 << 26
_BYTES_PER_ENTRY = 64  # of X: eight times the widest number


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """Rows, labels and facts about them.

    Attributes
    ----------
    name : str
    X : array of shape (n_samples, n_features)
        Values as published, without scaling, centering or shuffling.
    y : int64 array of shape (n_samples,)
        Class numbers, starting at 0.
    split : uint8 array of shape (n_samples,) or None
        The official split, if there is one: 0 = train, 1 = test.
    names : tuple of str
        Names of the classes, in the order of y.
    notes : tuple of str
        Remarks that matter for results, for example how the rows differ from those of the paper.
    extra : mapping
        Any other arrays of the file.
    """

    name: str
    X: np.ndarray
    y: np.ndarray
    split: np.ndarray | None
    names: tuple[str, ...]
    notes: tuple[str, ...] = ()
    extra: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def n_classes(self) -> int:
        return len(self.names)

    def __len__(self) -> int:
        return len(self.X)

    def __repr__(self) -> str:
        rows, features = self.X.shape
        return f"Dataset({self.name!r}, {rows:,} x {features:,} {self.X.dtype}, {self.n_classes} classes)"


def names() -> tuple[str, ...]:
    """Return the names of all data sets."""
    return tuple(entry.name for entry in ENTRIES)


def get(name: str, *, download: bool = True, progress: bool = False) -> Dataset:
    """Return a data set, downloading it if it is not on this machine.

    Parameters
    ----------
    name : str
        One of :func:`names`.
    download : bool, default=True
        False: use only what is in the folder named by STARSHL_DATA or in the user's cache.
    progress : bool, default=False
        Show a progress bar on stderr during a download.

    Examples
    --------
    >>> from starshl.data import datasets
    >>> datasets.get("digits")
    Dataset('digits', 1,797 x 64 uint8, 10 classes)
    """
    entry = entry_of(name)
    if not entry.file:
        return _dataset(entry, _checked(entry, _digits_arrays(), "scikit-learn"))
    path = locate(name)
    if path is None and not download:
        raise DatasetUnavailableError(_absent(entry) + " Allow the download, or put the file there.")
    path = path or fetch(name, progress=progress)
    return _dataset(entry, _checked(entry, _read(entry, path), str(path)))


def locate(name: str) -> Path | None:
    """Return the path of a data set's file on this machine, or None."""
    entry = entry_of(name)
    folders = [folder for folder in (_data_folder(), cache_folder()) if folder is not None]
    paths = [folder / entry.file for folder in folders] if entry.file else []
    return next((path for path in paths if path.is_file()), None)


def fetch(name: str, *, progress: bool = False) -> Path:
    """Return the path of a data set's file; download it into the user's cache if it is not here yet.

    Sources are tried in order. Arrays that do not have the registered checksum are refused.
    """
    entry = entry_of(name)
    if not entry.file:
        raise ValueError(f"{name!r} has no separate file: it comes with scikit-learn. Use get({name!r}).")
    if (path := locate(name)) is not None:
        return path
    if not entry.sources:
        raise DatasetUnavailableError(
            f"{_absent(entry)} It has no public download: {entry.no_download}. "
            f"Put {entry.file} into the folder that STARSHL_DATA names."
        )
    failures: list[tuple[Source, Exception]] = []
    with download_progress(progress) as report:
        for source in entry.sources:
            try:
                return _fetch_from(entry, source, report)
            except (ChecksumError, OSError) as error:
                # Another process may have fetched the same set meanwhile, and removed what both were downloading.
                if (path := locate(name)) is not None:
                    return path
                if not isinstance(error, ChecksumError | DownloadError):
                    raise
                failures.append((source, error))
    kind = type(failures[0][1]) if len({type(error) for _, error in failures}) == 1 else DownloadError
    reasons = " ".join(f"{source.label}: {error}" for source, error in failures)
    raise kind(
        f"{name!r} could not be downloaded. {reasons} Without a network, put {entry.file} into the folder "
        "that STARSHL_DATA names."
    )


@dataclass(frozen=True, slots=True)
class Description:
    """What a data set is, where it is and where it can come from.

    ``where`` is "folder" (STARSHL_DATA), "cache", "package" (scikit-learn), "download" or "unavailable";
    ``sources`` pairs each source with "verified" if a download from it has succeeded, else "unverified".
    """

    name: str
    title: str
    n_rows: int
    n_features: int
    n_classes: int
    where: str
    path: str | None
    sources: tuple[tuple[str, str], ...]
    license: str
    notes: tuple[str, ...]


def describe(name: str) -> Description:
    """Describe one data set."""
    entry = entry_of(name)
    path = locate(name)
    if path is not None:
        where = "cache" if path.parent == cache_folder() else "folder"
    else:
        where = "package" if not entry.file else "download" if entry.sources else "unavailable"
    notes = entry.notes
    if entry.no_download:
        notes = (*notes, f"No public download: {entry.no_download}.")
    return Description(
        name=entry.name,
        title=entry.title,
        n_rows=entry.n_rows,
        n_features=entry.n_features,
        n_classes=entry.n_classes,
        where=where,
        path=None if path is None else str(path),
        sources=tuple((s.label, "verified" if s.verified else "unverified") for s in entry.sources),
        license=entry.license,
        notes=notes,
    )


def describe_all() -> list[Description]:
    """Describe every data set."""
    return [describe(name) for name in names()]


def cache_folder() -> Path:
    """Return the user's cache of converted data sets; it may not exist yet."""
    return user_cache() / "data"


def _data_folder() -> Path | None:
    named = os.environ.get("STARSHL_DATA")
    if not named:
        return None
    if not Path(named).is_dir():
        raise DatasetUnavailableError(f"STARSHL_DATA is {named!r}, which is not a folder. Set it to one, or unset it.")
    return Path(named)


def _fetch_from(entry: Entry, source: Source, report: DownloadProgress | None) -> Path:
    folder = cache_folder() / f"{entry.name}.download"
    files = source.fetch(folder, report)
    try:
        arrays = _checked(entry, _converted(source, files), source.label)
    except ChecksumError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)  # type: ignore[arg-type]  # NumPy's stub takes any name for an option
    write_atomically(cache_folder() / entry.file, content.getvalue())
    shutil.rmtree(folder, ignore_errors=True)
    return cache_folder() / entry.file


def _converted(source: Source, files: list[Path]) -> dict[str, np.ndarray]:
    try:
        return source.convert(files)
    except Exception as error:  # a damaged file can make a reader raise anything, even MemoryError
        raise ChecksumError(f"its files are not what they should be ({error}).") from error


def _read(entry: Entry, path: Path) -> dict[str, np.ndarray]:
    try:
        _refuse_inflated(entry, path)
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except Exception as error:  # damaged bytes make NumPy raise errors of a dozen types
        raise ChecksumError(
            f"{str(path)!r} is not a readable npz file ({error}). Delete it and fetch it again."
        ) from error


def _refuse_inflated(entry: Entry, path: Path) -> None:
    """Refuse an archive that unpacks to far more than the data set, before any of it is unpacked."""
    with zipfile.ZipFile(path) as archive:
        n_bytes = sum(member.file_size for member in archive.infolist())
    limit = _SMALL_ARRAYS_BYTES + _BYTES_PER_ENTRY * entry.n_rows * entry.n_features
    if n_bytes > limit:
        raise ValueError(f"it unpacks to {n_bytes:,} bytes; {entry.name!r} takes at most {limit:,}")


def _checked(entry: Entry, arrays: dict[str, np.ndarray], origin: str) -> dict[str, np.ndarray]:
    """Return the arrays, in canonical row order, if they are those of the registry."""
    if entry.sort_rows:
        arrays = _with_sorted_rows(arrays)
    if entry.digest is not None and (digest := array_digest(arrays)) != entry.digest:
        raise ChecksumError(
            f"The arrays of {entry.name!r} from {origin} have checksum {digest[:12]}...; "
            f"{entry.digest[:12]}... was expected. They differ from the registered data set; "
            "get a fresh copy."
        )
    if not entry.keep and arrays.get("X", np.empty(0)).shape != (entry.n_rows, entry.n_features):
        raise ChecksumError(
            f"X of {entry.name!r} from {origin} is missing or does not have {entry.n_rows:,} rows and "
            f"{entry.n_features:,} features."
        )
    return arrays


def _with_sorted_rows(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    if not {"X", "y", "split", "speaker"} <= arrays.keys():
        return arrays
    keys = (*arrays["X"].T[::-1], arrays["y"], arrays["speaker"], arrays["split"])
    order = np.lexsort(keys)
    return {name: array[order] for name, array in arrays.items()}


def _dataset(entry: Entry, arrays: dict[str, np.ndarray]) -> Dataset:
    class_names = entry.class_names or tuple(arrays[entry.names_in_file].tolist())
    extra = {name: a for name, a in arrays.items() if name not in ("X", "y", "split", entry.names_in_file)}
    X, y, split = arrays["X"], arrays["y"], arrays.get("split")
    if entry.keep:
        kept = arrays[entry.keep]
        rows = np.isin(y, kept)
        extra = {name: array[rows] for name, array in extra.items() if len(array) == len(rows)}
        X, y, split = X[rows], np.searchsorted(kept, y[rows]), None if split is None else split[rows]
    return Dataset(entry.name, X, y, split, class_names, entry.notes, extra)


def _digits_arrays() -> dict[str, np.ndarray]:
    X, y = load_digits(return_X_y=True)
    return {"X": X.astype(np.uint8), "y": y.astype(np.int64)}


def _absent(entry: Entry) -> str:
    folder = os.environ.get("STARSHL_DATA")
    looked = f"{folder!r} and {str(cache_folder())!r}" if folder else f"{str(cache_folder())!r}"
    return f"The data set {entry.name!r} ({entry.file}) is not in {looked}."
