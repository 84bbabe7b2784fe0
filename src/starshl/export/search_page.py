"""One HTML file that searches a collection, and encodes queries, in a browser without a network."""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from .._common.files import write_atomically
from .._common.progress import row_progress
from .._common.words import counted
from ..codes.binary import BinaryCodes
from ..codes.score_rule import ScoreRule
from ..codes.word_dictionary import WordDictionary
from ..collection.collection import Collection
from ..collection.explanation import n_class_bits
from ..data.features.picture_files import ReadPictures
from ..data.features.pictures import PictureFeatures
from ..data.features.step import Reader
from ..data.features.text import Text
from ..exceptions import CollectionError, NotExpressibleError
from ..hashers.base import BaseHasher
from ..index.posterior import WordIndex
from ..index.residual import ResidualIndex
from .browser_runtime import BrowserRuntime, browser_runtime
from .onnx_model import model_of
from .scores import CLASSES, PROBABILITIES, can_be_written

_BATCH = 5000  # items that are read at a time
_MAX_PREVIEW_BYTES = 100_000_000  # so that a browser can still open the page and people can send it
_NEIGHBORHOOD_ITEMS, _N_NEIGHBORS = 1000, 10  # which tell how far apart the codes of neighbors are


def write_search_page(
    collection: Collection,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    picture: Sequence[int] | None = None,
    runtime: str | os.PathLike[str] | None = None,
    progress: bool = False,
) -> dict[str, Any]:
    """Write one HTML file that finds the nearest items of a collection, offline, wherever it is opened.

    It holds the codes, labels, titles and previews of all items, the model as an ONNX graph and onnxruntime-web, which
    npm installs into the user's cache when it is first needed. A query is an item, a vector, a picture or a drawing,
    depending on what the model takes. Items are ordered as by the index of the hasher: by Hamming distance, or by
    probabilities of the class and neighbor bits. Kept vectors are not part of the page, so that the residual form of a
    :class:`starshl.HybridHasher` counts bits there.

    Parameters
    ----------
    collection : Collection
    path : path of the file to write, complete or absent
    title : str, default=None
        None is the name of the collection's folder.
    picture : (height, width) or (height, width, 3), default=None
        If the vectors are pixels: the shape of the pictures, so that queries can be drawn. You need not give it if the
        model or the embedder of the collection has a PictureFeatures step.
    runtime : path, default=None
        A folder with the files of onnxruntime-web, for machines without npm.
    progress : bool, default=False
        Show a progress bar on standard error.

    Returns
    -------
    contents : dict
        What the page holds. ``encodes`` tells whether it encodes queries; if the model cannot be exported to ONNX,
        ``why_not`` says so, and the page can still find items similar to a given one.
    """
    hasher = collection.hasher
    if len(collection) == 0:
        raise ValueError(f"The collection {str(collection.folder)!r} is empty. Add items first.")
    model, source = _model(collection, picture)
    loaded = None if model is None else browser_runtime(runtime)
    items, words = read_items(collection, _MAX_PREVIEW_BYTES, progress), PageWords.of(collection)
    if words is not None and words.label_classes is not None:
        items.items["label_classes"] = words.label_classes
    contents: dict[str, Any] = {
        "n_items": len(items.codes),
        "n_bits": collection.n_bits,
        "n_previews": items.n_previews,
        "preview_types": items.preview_types,
        "rule": None if words is None else words.rule,
        "encodes": model is not None,
        **source,
    }
    entries = b"" if words is None else words.entries
    page = _page(title or collection.folder.resolve().name, hasher, contents, items, entries, model, loaded)
    write_atomically(path, page)
    return contents | {"file_bytes": len(page)}


def _model(collection: Collection, picture: Sequence[int] | None) -> tuple[bytes | None, dict[str, Any]]:
    """Return the model of a page and what it takes; without a model, why there is none."""
    hasher = collection.hasher
    reader, steps = _embedder_steps(collection)
    # Words for the class follow from probabilities, so that codes are needed for other bits only.
    outputs = ["codes"] if hasher.words is None or n_class_bits(hasher) else []
    outputs += ["label"] if can_be_written(hasher.class_part, CLASSES) else []
    has_probabilities = hasher.words is not None or can_be_written(hasher.class_part, PROBABILITIES)
    outputs += ["probabilities"] if has_probabilities else []
    first: Any = next(iter([*steps, *hasher.fitted_steps]), None)
    if isinstance(first, Reader) and first.is_slow:
        why_not = f"A page does not hold the network {type(first).__name__}, which reads what people would ask with."
        return None, {"n_features": 0, "picture": None, "why_not": why_not}
    n_features = getattr(first, "n_features_in_", 0) if steps else hasher.row_width or 0
    try:
        model = model_of(hasher, steps, n_features, outputs, "float32")
    except NotExpressibleError as error:
        return None, {"n_features": 0, "picture": None, "why_not": str(error)}
    shape = _picture(collection, first, reader, picture, n_features)
    about = {
        "n_features": n_features,
        "picture": shape,
        "takes": _takes(first, has_embedder=bool(steps) and collection.kind != "rows"),
    }
    about["classes"] = [str(label) for label in hasher.class_labels]
    if isinstance(first, Text):
        about["known_words"] = [str(word) for word in first.words_]
    return model.SerializeToString(), about


def _embedder_steps(collection: Collection) -> tuple[ReadPictures | None, list[Any]]:
    """Return the step that reads picture files, which a browser does itself, and those after it."""
    embedder = collection.embedder
    if embedder is None:
        return None, []
    first, *others = embedder.steps
    return (first, others) if isinstance(first, ReadPictures) else (None, embedder.steps)


def _takes(first: Any, *, has_embedder: bool) -> str:
    """Return what people ask the model about, besides items."""
    if isinstance(first, Text):
        return "texts"
    return "pictures" if has_embedder else "vectors"


def _picture(
    collection: Collection, first: Any, reader: ReadPictures | None, given: Sequence[int] | None, n_features: int
) -> dict[str, Any] | None:
    """Return what a browser must know to turn pictures into rows, None if rows are not pictures."""
    crop = "whole" if reader is None else reader.shape
    if isinstance(first, PictureFeatures):
        height, width, n_channels = first.shape_.tolist()
        return {"height": height, "width": width, "channels": n_channels, "white": first.white_, "crop": crop}
    if given is None:
        return None
    height, width, n_channels = (*given, 1)[:3]
    if height * width * n_channels != n_features:
        raise ValueError(
            f"Pictures of {'x'.join(map(str, given))} have {height * width * n_channels} values; the vectors of this "
            f"collection have {n_features}. Give the shape of its pictures."
        )
    return {"height": height, "width": width, "channels": n_channels, "white": _white(collection), "crop": crop}


def _white(collection: Collection) -> float:
    """Return the largest value of pixels, from kept vectors or from the rows that the model keeps."""
    if collection.vector_dtype is not None:
        return float(collection.vectors(collection.ids[:1000]).max())
    kept = collection.hasher.kept_samples
    return 1.0 if kept is None else float(kept.max())


@dataclass(frozen=True, slots=True)
class PageWords:
    """What the words at the beginning of codes stand for, as a page needs to know it.

    Parameters
    ----------
    rule : what JSON holds
    entries : bytes of a dictionary's entries by class, float32; none for Hamming words
    label_classes : the class of each item whose code follows from a label, -1 for others; None for a dictionary
    """

    rule: dict[str, Any]
    entries: bytes = b""
    label_classes: list[int] | None = None

    @classmethod
    def of(cls, collection: Collection) -> PageWords | None:
        """Return the words of a collection, None if its codes are compared bit by bit."""
        hasher = collection.hasher
        words = hasher.words
        if words is None:
            return None
        with collection.reading() as (state, _):
            groups, index = state.shown_classes.columns.tolist(), state.index
        assert isinstance(index, WordIndex), "Words are searched by their index."
        score = _rule_of_bits(collection, index) if isinstance(index, ResidualIndex) else index.rule
        rule: dict[str, Any] = {
            "groups": groups,
            "class_bits": words.n_bits,
            "has_neighbors": n_class_bits(hasher) > 0,
            "weight": score.class_weight * score.unit,
            "saturation": score.saturation,
            "shows_probabilities": "probability" in hasher.supports,
            "cautions": hasher.class_part.fit_summary.cautions,
        }
        if isinstance(words, WordDictionary):
            return cls(rule | {"has_labels": words.has_labels}, words.entries.T.astype("<f4").tobytes())
        codewords = _words([BinaryCodes.from_signs(words.codewords).packed], words.n_bits)
        decay = np.exp(-words.sharpness * np.arange(words.n_bits + 1))
        labels = words.columns_of(collection.codes(collection.ids)).tolist()
        return cls(rule | {"codewords": codewords.ravel().tolist(), "decay": decay.tolist()}, label_classes=labels)


def _rule_of_bits(collection: Collection, index: ResidualIndex) -> ScoreRule:
    """Return a rule about numbers of bits, as they differ between neighbors; that of the index is about vectors."""
    some = collection.codes(collection.ids[:: -(-len(collection) // _NEIGHBORHOOD_ITEMS)])
    classes = index.words.posteriors_of(some).argmax(axis=1)
    bits = BinaryCodes.from_signs(some.to_signs()[:, index.words.n_bits :])
    distances = np.where(classes[:, None] == classes, bits.distances(bits).astype(np.float64), np.inf)
    np.fill_diagonal(distances, np.inf)
    nearest = np.sort(distances, axis=1)[:, :_N_NEIGHBORS]
    usual, far = np.quantile(nearest[np.isfinite(nearest)], [0.5, 0.9]) if np.isfinite(nearest).any() else (0.0, 1.0)
    return ScoreRule(index.rule.class_weight, max(float(far - usual), 1.0), float(far))


@dataclass(frozen=True, slots=True)
class PageItems:
    """The items of a page.

    Parameters
    ----------
    codes : array of shape (n_items, n_words), uint32, by ascending id
    items : ids, labels, titles and where previews end, as JSON holds them
    previews : all of them, one after the other
    preview_types : their media types, by number
    """

    codes: np.ndarray
    items: dict[str, Any]
    previews: bytes
    preview_types: list[str]

    @property
    def n_previews(self) -> int:
        ends = [0, *self.items.get("preview_ends", [])]
        return int(np.count_nonzero(np.diff(ends)))

    def json(self) -> bytes:
        return json.dumps(self.items, separators=(",", ":"), ensure_ascii=False).encode()


def read_items(collection: Collection, max_preview_bytes: int, progress: bool = False) -> PageItems:
    """Read all items of a collection, which must not change in the meantime.

    Previews that take more than ``max_preview_bytes`` together are all left out.
    """
    version, ids = collection.version, collection.ids
    batches = [ids[start : start + _BATCH] for start in range(0, len(ids), _BATCH)]
    reader = _Reader(collection, max_preview_bytes)
    with row_progress("reading items", len(ids), shown=progress) as report:
        for batch in batches:
            reader.read(batch)
            report(len(batch))
    if collection.version != version:
        raise CollectionError("The collection changed while it was read. Export it again.")
    return reader.result(ids)


class _Reader:
    """Collects items batch by batch."""

    def __init__(self, collection: Collection, max_preview_bytes: int) -> None:
        self.collection, self.max_preview_bytes = collection, max_preview_bytes
        self.packed: list[np.ndarray] = []
        self.labels: list[Any] = []
        self.titles: list[str] = []
        self.has_titles = False
        self.contents: list[bytes] = []
        self.n_bytes = 0
        self.types: list[str] = []

    def read(self, ids: np.ndarray) -> None:
        self.packed.append(self.collection.codes(ids).packed)
        for item in self.collection.get(ids):
            self.labels.append(item.label)
            self.titles.append(self.collection.title_of(item))
            self.has_titles |= self.titles[-1] != f"Item {item.id}"
            if self.n_bytes <= self.max_preview_bytes:
                self._read_preview(item.id)

    def _read_preview(self, item: int) -> None:
        preview = self.collection.preview(item)
        self.contents.append(b"" if preview is None else preview.content)
        self.types.append("" if preview is None else preview.media_type)
        self.n_bytes += len(self.contents[-1])

    def result(self, ids: np.ndarray) -> PageItems:
        # Numbers of scripts are exact up to 2**53; the page only shows and compares ids, so text serves as well.
        is_exact = not len(ids) or max(abs(int(ids.min())), int(ids.max())) <= 2**53
        items: dict[str, Any] = {"ids": ids.tolist() if is_exact else [str(number) for number in ids.tolist()]}
        if self.has_titles:
            items["titles"] = self.titles
        names = sorted({label for label in self.labels if label is not None}, key=str)
        if names:
            place = {label: number for number, label in enumerate(names)}
            items["label_names"] = [str(name) for name in names]
            items["labels"] = [-1 if label is None else place[label] for label in self.labels]
        types: list[str] = []
        has_previews = 0 < self.n_bytes <= self.max_preview_bytes
        if has_previews:
            types = sorted({name for name in self.types if name})
            items["preview_ends"] = np.cumsum([len(content) for content in self.contents]).tolist()
            items["preview_types"] = [types.index(name) if name else 0 for name in self.types]
        previews = b"".join(self.contents) if has_previews else b""
        return PageItems(_words(self.packed, self.collection.n_bits), items, previews, types)


def _words(packed: list[np.ndarray], n_bits: int) -> np.ndarray:
    """Return codes as 32-bit words, little end first, the last one filled up with zeros."""
    codes = np.concatenate([np.empty((0, -(-n_bits // 8)), np.uint8), *packed])
    n_words = -(-n_bits // 32)
    padded = np.zeros((len(codes), 4 * n_words), np.uint8)
    padded[:, : codes.shape[1]] = codes
    return padded.view("<u4")


def _page(
    title: str,
    hasher: BaseHasher,
    contents: Mapping[str, Any],
    items: PageItems,
    entries: bytes,
    model: bytes | None,
    runtime: BrowserRuntime | None,
) -> bytes:
    source = files(__package__).joinpath("page")
    html, css, search, script = (
        source.joinpath(name).read_text(encoding="utf-8") for name in ("page.html", "page.css", "search.js", "page.js")
    )
    parts = {"codes": items.codes.tobytes(), "items": items.json(), "entries": entries, "previews": items.previews}
    if model is not None and runtime is not None:
        parts |= {"model": model, "runtime": runtime.script, "wasm": runtime.wasm}
    n_items = counted(contents["n_items"], "item")
    footer = f"Made by starshl. The model runs in {runtime.name} (MIT license)." if runtime else "Made by starshl."
    filled = {
        "title": escape(title),
        "css": css,
        "facts": f"{n_items}, {hasher.method_name}, {contents['n_bits']} bits. This page needs no network.",
        "footer": escape(footer),
        "manifest": json.dumps(dict(contents)).replace("<", "\\u003c"),
        "parts": "\n".join(_embedded(name, content) for name, content in parts.items() if content),
        "search": search,
        "script": script,
    }
    # All at once: what is filled in may look like a mark itself.
    return re.sub(r"\{(\w+)\}", lambda mark: filled[mark.group(1)], html).encode()


def _embedded(name: str, content: bytes) -> str:
    # No time stamp: the same collection makes the same page.
    packed = base64.b64encode(gzip.compress(content, 6, mtime=0)).decode()
    return f'<script id="{name}" type="text/plain">{packed}</script>'
