"""Features of pictures, texts and cells: steps that model files hold as data, and the embedder that joins them."""

from __future__ import annotations

from .embedder import Embedder
from .minilm import MiniLM
from .network import NetworkFeatures
from .numeric import Impute, Reduce, Scale, UnitLength
from .onnx_model import OnnxModel
from .picture_files import ReadPictures, open_picture, preview_of
from .pictures import PictureFeatures
from .registry import make_embedder
from .sentence_model import SentenceTransformerModel
from .step import Step
from .table import OneHot, TableFeatures
from .text import Text

__all__ = [
    "Embedder",
    "Impute",
    "MiniLM",
    "NetworkFeatures",
    "OneHot",
    "OnnxModel",
    "PictureFeatures",
    "ReadPictures",
    "Reduce",
    "Scale",
    "SentenceTransformerModel",
    "Step",
    "TableFeatures",
    "Text",
    "UnitLength",
    "make_embedder",
    "open_picture",
    "preview_of",
]
