"""The label-efficiency curves of every report: StarRidge against other ways to use a few labels."""

from __future__ import annotations

from importlib.resources import as_file, files

from ..evaluation.label_efficiency import LabelEfficiency, read_curves

__all__ = ["EMPHASIZED", "shipped_curves"]

EMPHASIZED = "StarRidge"


def shipped_curves() -> list[LabelEfficiency]:
    """Return the curves that come with the package; ``python benchmarks/defaults page`` writes their file."""
    with as_file(files(__package__).joinpath("label_efficiency.json")) as path:
        return read_curves(path)
