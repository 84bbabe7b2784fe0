"""Embedders by name: one function for each, and what comes after the colon."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np

from .embedder import Embedder
from .minilm import MiniLM
from .network import SIDE, NetworkFeatures
from .numeric import Reduce, UnitLength
from .onnx_model import OnnxModel
from .picture_files import ReadPictures
from .pictures import PictureFeatures
from .sentence_model import SentenceTransformerModel
from .text import Text

# With 2,500 titles of AG News and unit length, 600 queries: precision at 10 .69, with 128 components .64.
_N_COMPONENTS = 256
# With 3,800 titles of AG News, 1,000 queries, on three splits, precision at 10 is .70, .73, .75 for the powers 1, 2, 3;
# without labels, on two splits, .38, .47, .53. With 4, it falls again.
_IDF_POWER = 3.0
_THUMBNAIL = 32  # pixels, because the plain features look at shapes and colors


def make_embedder(name: str) -> Embedder:
    """Return the embedder of a name.

    Parameters
    ----------
    name : str
        "tfidf" : weights of the words of texts; learns from texts
        "minilm" or "minilm:FOLDER" : all-MiniLM-L6-v2, for sentences (:class:`starshl.data.features.MiniLM`)
        "pixels" : pixels, gradients and colors of pictures; learns from pictures
        "efficientnet-lite0" : a network trained on photographs, reduced to what differs among pictures; learns from
        pictures
        "onnx:FOLDER" : any network in an ONNX file (:class:`starshl.data.features.OnnxModel`)
        "sentence-transformers:NAME" : a model of that package, or a folder with one

    Examples
    --------
    >>> from starshl.data.features import make_embedder
    >>> embedder = make_embedder("tfidf").fit(["a red car", "a blue car", "fresh bread"])
    >>> embedder.takes, embedder.dimension
    (('texts',), 3)
    """
    if not isinstance(name, str):
        raise TypeError(f"name is of type {type(name).__name__}; it must be a string such as 'minilm'.")
    kind, _, argument = name.partition(":")
    if kind not in EMBEDDERS:
        raise ValueError(
            f"There is no embedder {name!r}; known are {', '.join(NAMES)}. For a model in a folder, write onnx:FOLDER."
        )
    if bool(argument) != (kind in _WITH_ARGUMENT) and not (kind in _WITH_CHOICE and argument):
        rule = f"needs one: {_NAMED[kind]}" if kind in _WITH_ARGUMENT else "takes none: leave it out"
        raise ValueError(
            f"The embedder {kind!r} got {argument!r} after a colon; it {rule}."
            if argument
            else f"The embedder {kind!r} got no argument after a colon; it {rule}."
        )
    return EMBEDDERS[kind](argument)


def _tfidf(_: str) -> Embedder:
    return Embedder("texts", [Text(_N_COMPONENTS, idf_power=_IDF_POWER), UnitLength()], name="tfidf")


def _minilm(folder: str) -> Embedder:
    return Embedder("texts", [MiniLM(str(Path(folder).resolve()) if folder else None).fit()], name="minilm")


def _pixels(_: str) -> Embedder:
    # Shown one white picture: black ones alone could be of any scale.
    features = PictureFeatures((_THUMBNAIL, _THUMBNAIL, 3)).fit(np.full((1, _THUMBNAIL, _THUMBNAIL, 3), 255, np.uint8))
    sizes = [view.stop - view.start for view in features.views.values()]
    return Embedder("pictures", [ReadPictures(_THUMBNAIL).fit(), features, Reduce(view_sizes=sizes)], name="pixels")


def _efficientnet(_: str) -> Embedder:
    steps = [ReadPictures(SIDE, shape="center").fit(), NetworkFeatures().fit(), Reduce()]
    return Embedder("pictures", steps, name="efficientnet-lite0")


def _onnx(folder: str) -> Embedder:
    model = OnnxModel(str(Path(folder).resolve())).fit()
    name = f"onnx:{Path(model.folder).name}"
    if model.kind_ == "texts":
        return Embedder("texts", [model], name=name)
    side, shape = model.reading
    return Embedder("pictures", [ReadPictures(side, shape=shape).fit(), model], name=name)


def _sentence_transformers(model: str) -> Embedder:
    step = SentenceTransformerModel(model).fit()
    return Embedder(step.takes_.split(", "), [step], name=f"sentence-transformers:{Path(model).name}")  # type: ignore[arg-type]


EMBEDDERS: Mapping[str, Callable[[str], Embedder]] = MappingProxyType(
    {
        "tfidf": _tfidf,
        "minilm": _minilm,
        "pixels": _pixels,
        "efficientnet-lite0": _efficientnet,
        "onnx": _onnx,
        "sentence-transformers": _sentence_transformers,
    }
)
_WITH_ARGUMENT, _WITH_CHOICE = ("onnx", "sentence-transformers"), ("minilm",)
_NAMED = {"onnx": "onnx:FOLDER", "sentence-transformers": "sentence-transformers:NAME_OR_FOLDER"}
#: How they are written.
NAMES = tuple(_NAMED.get(name, name) for name in EMBEDDERS)
