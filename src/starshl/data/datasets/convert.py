"""Published files -> the arrays ``X``, ``y`` and ``split`` of one npz file.

Every function takes the paths of the downloaded files, in the order of the source's addresses.
"""

from __future__ import annotations

import gzip
import math
import tarfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from scipy.io import loadmat

Arrays = dict[str, np.ndarray]
# No published file holds this much; a larger one is damaged or crafted.
_MAX_BYTES = 1 << 30


def digit_images_from_idx(paths: Sequence[Path]) -> Arrays:
    """Read train images, train labels, test images and test labels in the format of MNIST."""
    train, train_labels, test, test_labels = (_read_idx(path) for path in paths)
    X = np.concatenate([train, test])
    y = np.concatenate([train_labels, test_labels])
    return _arrays(X.reshape(len(X), -1), y, n_train=len(train))


def _read_idx(path: Path) -> np.ndarray:
    with gzip.open(path, "rb") as file:
        head = file.read(4)
        if head[:3] != b"\x00\x00\x08" or len(head) < 4:
            raise ValueError(f"{path.name} is not an IDX file of bytes.")
        shape = [int(n) for n in np.frombuffer(file.read(4 * head[3]), ">u4")]
        size = math.prod(shape)
        if len(shape) != head[3] or size > _MAX_BYTES:
            raise ValueError(f"{path.name} announces an array of shape {shape}, which is not that of a data set.")
        # One byte more than announced, to notice a file that is longer than it says.
        content = file.read(size + 1)
    if len(content) != size:
        raise ValueError(f"{path.name} announces {size:,} bytes and holds a different number.")
    return np.frombuffer(content, np.uint8).reshape(shape)


def digit_images_from_arff(paths: Sequence[Path]) -> Arrays:
    """Read the 70,000 images of OpenML's mnist_784, train first."""
    X, labels = _read_arff(paths[0], np.uint8)
    return _arrays(X, labels.astype(np.int64), n_train=60_000)


def usps_from_text(paths: Sequence[Path]) -> Arrays:
    """Read ``zip.train`` and ``zip.test``: one label and 256 gray values per line."""
    train, test = (np.loadtxt(path) for path in paths)
    rows = np.concatenate([train, test])
    return _arrays(rows[:, 1:].astype(np.float32), rows[:, 0], n_train=len(train))


def usps_from_arff(paths: Sequence[Path]) -> Arrays:
    """Read OpenML's USPS, whose labels 1 ... 10 stand for the digits 0 ... 9."""
    X, labels = _read_arff(paths[0], np.float32)
    return _arrays(X, labels.astype(np.int64) - 1, n_train=7291)


def pendigits_from_text(paths: Sequence[Path]) -> Arrays:
    """Read ``pendigits.tra`` and ``pendigits.tes``: 16 coordinates and one label per line."""
    train, test = (np.loadtxt(path, delimiter=",", dtype=np.int64) for path in paths)
    rows = np.concatenate([train, test])
    return _arrays(rows[:, :16].astype(np.uint8), rows[:, 16], n_train=len(train))


def pendigits_from_arff(paths: Sequence[Path]) -> Arrays:
    """Read OpenML's pendigits, train first."""
    X, labels = _read_arff(paths[0], np.uint8)
    return _arrays(X, labels.astype(np.int64), n_train=7494)


def letter_from_text(paths: Sequence[Path]) -> Arrays:
    """Read ``letter-recognition.data``: one capital letter and 16 integers per line."""
    rows = np.loadtxt(paths[0], delimiter=",", dtype=str)
    return _arrays(rows[:, 1:].astype(np.uint8), _letters(rows[:, 0]), n_train=16_000)


def letter_from_arff(paths: Sequence[Path]) -> Arrays:
    """Read OpenML's letter."""
    X, labels = _read_arff(paths[0], np.uint8)
    return _arrays(X, _letters(labels), n_train=16_000)


def _letters(labels: np.ndarray) -> np.ndarray:
    return np.array([ord(label) - ord("A") for label in labels], dtype=np.int64)


def vowel_from_text(paths: Sequence[Path]) -> Arrays:
    """Read ``vowel-context.data``: split, speaker, sex, 10 features and the class in each line."""
    rows = np.loadtxt(paths[0])
    split, speaker, sex, y = (rows[:, column].astype(np.int64) for column in (0, 1, 2, 13))
    return {"X": rows[:, 3:13], "y": y, "split": split.astype(np.uint8), "speaker": speaker, "sex": sex}


def cifar10_gray_from_archive(paths: Sequence[Path]) -> Arrays:
    """Read the binary version of CIFAR-10 as gray levels, batches 1 to 5 and then the test batch."""
    members = [f"data_batch_{k}.bin" for k in range(1, 6)] + ["test_batch.bin"]
    with tarfile.open(paths[0], "r:gz") as archive:
        files = {Path(member.name).name: member for member in archive if member.isfile()}
        records = [_cifar_records(archive, files[name]) for name in members]
    rows = np.concatenate(records)
    return _arrays(luma(rows[:, 1:].reshape(-1, 3, 1024)), rows[:, 0], n_train=50_000)


def _cifar_records(archive: tarfile.TarFile, member: tarfile.TarInfo) -> np.ndarray:
    file = archive.extractfile(member)
    if file is None or member.size > _MAX_BYTES:
        raise ValueError(f"{member.name} announces {member.size:,} bytes, which is not a batch of CIFAR-10.")
    return np.frombuffer(file.read(), np.uint8).reshape(-1, 3073)


def luma(planes: np.ndarray) -> np.ndarray:
    """Return ITU-R 601 gray levels of uint8 (n, 3, n_pixels) color planes, rounded as image libraries do."""
    red, green, blue = (planes[:, channel].astype(np.uint32) for channel in range(3))
    return ((19595 * red + 38470 * green + 7471 * blue + 32768) >> 16).astype(np.uint8)


def small_mnist_from_mat(paths: Sequence[Path]) -> Arrays:
    """Read the demo data of the *SHL authors: 300 labeled and 600 test digits."""
    names = (("Ltr", "Ltr_L"), ("te", "te_L"))
    content = _read_mat(paths[0], [name for pair in names for name in pair])
    parts = {}
    for rows, labels in names:
        X = np.asarray(content[rows], dtype=np.float64)
        parts[rows] = np.ascontiguousarray(X if X.shape[1] == 784 else X.T)
        parts[labels] = np.asarray(content[labels]).ravel().astype(np.int64)
    X = np.concatenate([parts["Ltr"], parts["te"]])
    return parts | _arrays(X, np.concatenate([parts["Ltr_L"], parts["te_L"]]), n_train=len(parts["Ltr"]))


def _read_mat(path: Path, names: list[str]) -> Arrays:
    """Return the named variables of a MAT file; others are not even unpacked."""
    try:
        content = loadmat(path, variable_names=names)
    except Exception as error:  # damaged bytes make scipy raise errors of a dozen types
        raise ValueError(f"{path.name} is not a readable MAT file ({error!r}).") from error
    absent = [name for name in names if getattr(content.get(name), "dtype", np.dtype(object)).kind not in "biuf"]
    if absent:
        raise ValueError(f"{path.name} has no array of numbers named {', '.join(absent)}.")
    return content


def _arrays(X: np.ndarray, y: np.ndarray, *, n_train: int) -> Arrays:
    split = (np.arange(len(X)) >= n_train).astype(np.uint8)
    return {"X": np.ascontiguousarray(X), "y": y.astype(np.int64), "split": split}


def _read_arff(path: Path, dtype: type) -> tuple[np.ndarray, np.ndarray]:
    """Return the numeric columns and the last column (the class, as text) of a dense ARFF file."""
    rows: list[np.ndarray] = []
    labels: list[str] = []
    with open(path, encoding="utf-8") as file:
        for line in _data_lines(file):
            values, _, label = line.rpartition(",")
            # Through float64: some files write the integer 3 as 3.0.
            rows.append(np.array(values.split(","), dtype=np.float64).astype(dtype))
            labels.append(label.strip().strip("'\""))
    if not rows:
        raise ValueError(f"{path.name} is not a dense ARFF file: it has no rows after @DATA.")
    return np.stack(rows), np.array(labels)


def _data_lines(file: Iterable[str]) -> Iterable[str]:
    in_data = False
    for line in file:
        line = line.strip()
        if in_data and line and not line.startswith("%"):
            yield line
        in_data = in_data or line.lower() == "@data"
