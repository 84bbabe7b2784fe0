"""Embedders by name: the steps of each, and what comes after the colon."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import numpy as np

from .kinds import RawKind
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


class NamedSteps(NamedTuple):
    """An embedder by its name: what it takes, and its steps, of which readers are fitted."""

    name: str
    takes: tuple[RawKind, ...]
    steps: list[Any]


def named_steps(name: str, takes: RawKind | None = None) -> NamedSteps:
    """Return the steps of an embedder that has a name, as :func:`make_embedder` takes it; ``takes`` is what it must."""
    if not isinstance(name, str):
        raise TypeError(f"name is of type {type(name).__name__}; it must be a string such as 'minilm'.")
    kind, _, argument = name.partition(":")
    if kind not in EMBEDDERS:
        raise ValueError(
            f"There is no embedder {name!r}; known are {', '.join(NAMES)}. For a model in a folder, write onnx:FOLDER."
        )
    if bool(argument) != (kind in _WITH_ARGUMENT) and not (kind in _WITH_CHOICE and argument):
        rule = f"needs one: {_NAMED[kind]}" if kind in _WITH_ARGUMENT else "takes none: leave it out"
        got = repr(argument) if argument else "no argument"
        raise ValueError(f"The embedder {kind!r} got {got} after a colon; it {rule}.")
    found = EMBEDDERS[kind](argument)
    if takes is not None and takes not in found.takes:
        raise ValueError(wrong_kind(found.name, found.takes, takes))
    return found


def wrong_kind(name: str, takes: Sequence[str], given: str) -> str:
    """Say that an embedder takes something else than what is given."""
    return f"The embedder {name!r} takes {' and '.join(takes)}, and these are {given}. Choose one that takes {given}."


def _tfidf(_: str) -> NamedSteps:
    return NamedSteps("tfidf", ("texts",), [Text(_N_COMPONENTS, idf_power=_IDF_POWER), UnitLength()])


def _minilm(folder: str) -> NamedSteps:
    return NamedSteps("minilm", ("texts",), [MiniLM(str(Path(folder).resolve()) if folder else None).fit()])


def _pixels(_: str) -> NamedSteps:
    # Shown one white picture: black ones alone could be of any scale.
    features = PictureFeatures((_THUMBNAIL, _THUMBNAIL, 3)).fit(np.full((1, _THUMBNAIL, _THUMBNAIL, 3), 255, np.uint8))
    sizes = [view.stop - view.start for view in features.views.values()]
    return NamedSteps("pixels", ("pictures",), [ReadPictures(_THUMBNAIL).fit(), features, Reduce(view_sizes=sizes)])


def _efficientnet(_: str) -> NamedSteps:
    steps = [ReadPictures(SIDE, shape="center").fit(), NetworkFeatures().fit(), Reduce()]
    return NamedSteps("efficientnet-lite0", ("pictures",), steps)


def _onnx(folder: str) -> NamedSteps:
    model = OnnxModel(str(Path(folder).resolve())).fit()
    name = f"onnx:{Path(model.folder).name}"
    if model.kind_ == "texts":
        return NamedSteps(name, ("texts",), [model])
    side, shape = model.reading
    return NamedSteps(name, ("pictures",), [ReadPictures(side, shape=shape).fit(), model])


def _sentence_transformers(model: str) -> NamedSteps:
    step = SentenceTransformerModel(model).fit()
    takes = cast("tuple[RawKind, ...]", tuple(step.takes_.split(", ")))
    return NamedSteps(f"sentence-transformers:{Path(model).name}", takes, [step])


EMBEDDERS: Mapping[str, Callable[[str], NamedSteps]] = MappingProxyType(
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
