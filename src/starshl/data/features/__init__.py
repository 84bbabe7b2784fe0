"""Features of pictures, texts and cells: steps that model files hold as data, and the embedder that joins them."""

from __future__ import annotations

from .embedder import Embedder
from .network import NetworkFeatures
from .numeric import Impute, Reduce, Scale, UnitLength
from .picture_files import ReadPictures, open_picture, preview_of
from .pictures import PictureFeatures
from .step import Step
from .table import OneHot, TableFeatures
from .text import Text

__all__ = [
    "Embedder",
    "Impute",
    "NetworkFeatures",
    "OneHot",
    "PictureFeatures",
    "ReadPictures",
    "Reduce",
    "Scale",
    "Step",
    "TableFeatures",
    "Text",
    "UnitLength",
    "open_picture",
    "preview_of",
]
