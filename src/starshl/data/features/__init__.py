"""Features of pictures, texts and cells: steps that model files hold as data, and the embedder that joins them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._common.lazy import on_first_use

if TYPE_CHECKING:
    from .embedder import Embedder, as_embedder, make_embedder
    from .minilm import MiniLM
    from .network import NetworkFeatures
    from .numeric import Impute, Reduce, Scale, UnitLength
    from .onnx_model import OnnxModel
    from .picture_files import ReadPictures, open_picture, preview_of
    from .pictures import PictureFeatures
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
    "as_embedder",
    "make_embedder",
    "open_picture",
    "preview_of",
]

# On first use: a collection has an embedder that it seldom needs.
__getattr__, __dir__ = on_first_use(
    __name__,
    {
        "embedder": ["Embedder", "as_embedder", "make_embedder"],
        "minilm": ["MiniLM"],
        "network": ["NetworkFeatures"],
        "numeric": ["Impute", "Reduce", "Scale", "UnitLength"],
        "onnx_model": ["OnnxModel"],
        "picture_files": ["ReadPictures", "open_picture", "preview_of"],
        "pictures": ["PictureFeatures"],
        "sentence_model": ["SentenceTransformerModel"],
        "step": ["Step"],
        "table": ["OneHot", "TableFeatures"],
        "text": ["Text"],
    },
)
