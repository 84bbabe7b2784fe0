"""Several code lengths from one command: which models there are, what their files are called, how they are saved."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..base import BaseHasher

__all__ = ["model_files", "parse_lengths", "save_together"]


def parse_lengths(text: str) -> tuple[int, ...]:
    """Return the code lengths in text such as "32" or "8,16,32,64"."""
    try:
        lengths = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise ValueError(
            f"--bits got {text!r}; give a number such as 32, or several separated by commas, such as 8,16,32,64."
        ) from None
    if min(lengths) < 1:
        raise ValueError(f"--bits got {text!r}; every length must be at least 1.")
    if len(set(lengths)) < len(lengths):
        raise ValueError(f"--bits got {text!r}, which names a length twice. Name each length once.")
    return lengths


def model_files(output: Path, lengths: tuple[int, ...]) -> dict[int, Path]:
    """Return the file of each length: the output itself for one, and model.8.star, model.16.star, ... for several."""
    if len(lengths) == 1:
        return {lengths[0]: output}
    return {n_bits: output.with_name(f"{output.stem}.{n_bits}{output.suffix}") for n_bits in lengths}


def save_together(hashers: list[BaseHasher], files: list[Path]) -> None:
    """Write all model files; if one of them cannot be written, none appears."""
    from .._files import draft_folder

    if len(files) == 1:
        hashers[0].save(files[0])
        return
    drafts = draft_folder(files[0])
    try:
        for hasher, file in zip(hashers, files, strict=True):
            hasher.save(drafts / file.name)
        for file in files:
            os.replace(drafts / file.name, file)
    finally:
        shutil.rmtree(drafts, ignore_errors=True)
