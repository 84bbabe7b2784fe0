"""ONNX graphs that grow from their inputs to their output, and the sessions that run them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..._common.extras import require

_OPSET = 17  # of ONNX
_IR_VERSION = 8  # read by all releases of ONNX Runtime that the extras allow


class OnnxGraph:
    """Nodes and weights of a graph that grows from its input to its output."""

    def __init__(self, weights: Mapping[str, np.ndarray], *, extra: str) -> None:
        self._weights = weights
        self._helper = require("onnx.helper", extra=extra)
        self._numbers = require("onnx.numpy_helper", extra=extra)
        self._types = require("onnx", extra=extra).TensorProto
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}

    def node(self, operation: str, inputs: list[str], **attributes: Any) -> str:
        """Add a node; return the name of its output."""
        return self.nodes(operation, inputs, 1, **attributes)[0]

    def nodes(self, operation: str, inputs: list[str], n_outputs: int, **attributes: Any) -> list[str]:
        """Add a node with several outputs; return their names."""
        names = [f"{operation}_{len(self._nodes)}_{number}" for number in range(n_outputs)]
        self._nodes.append(self._helper.make_node(operation, inputs, names, **attributes))
        return names

    def constant(self, name: str, values: Any = None, dtype: Any = np.float32) -> str:
        """Add an array, by default the weights of that name; return its name. A name that is there stays as it is."""
        if name not in self._constants:
            array = np.asarray(self._weights[name] if values is None else values, dtype=dtype, order="C")
            self._constants[name] = self._numbers.from_array(array, name)
        return name

    def serialized(
        self, name: str, given: tuple[str, type, list[str | int]], output: tuple[str, list[str | int]]
    ) -> bytes:
        """Return the model from an input of that name, type and shape to the output of a node."""
        tensor, types = self._helper.make_tensor_value_info, self._types
        kind = types.INT64 if given[1] is int else types.FLOAT
        graph = self._helper.make_graph(
            self._nodes,
            name,
            [tensor(given[0], kind, given[2])],
            [tensor(output[0], types.FLOAT, output[1])],
            list(self._constants.values()),
        )
        opset = self._helper.make_opsetid("", _OPSET)
        return self._helper.make_model(graph, opset_imports=[opset], ir_version=_IR_VERSION).SerializeToString()


def onnx_session(model: Any, *, extra: str) -> Any:
    """Return a session of ONNX Runtime for a model or a file."""
    runtime = require("onnxruntime", extra=extra)
    options = runtime.SessionOptions()
    # Threads take whole items; inside of one, the order of additions stays fixed.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
