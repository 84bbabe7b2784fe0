"""Graph and Value: ONNX computations written like NumPy expressions, and distances and features that methods share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from .._common.extras import require
from .._common.files import array_digest
from ..exceptions import NotExpressibleError

onnx = require("onnx", extra="onnx")
helper = require("onnx.helper", extra="onnx")
numpy_helper = require("onnx.numpy_helper", extra="onnx")
OPSET = 18
OPSETS = {"": OPSET, "ai.onnx.ml": 3}  # the second one has the operators of classifiers
IR_VERSION = 8
# A protocol buffer, which an ONNX file is, has at most two gigabytes; names and nodes take a little of them.
MAX_MODEL_BYTES = 2**31 - 2**20
Operand: TypeAlias = "Value | ArrayLike"


class Graph:
    """Nodes and constants in the order in which they were asked for; equal ones are stored once.

    A graph inside another one, the body of a loop, has names that begin differently, and may use values of the other.
    """

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self.nodes: list[Any] = []
        self.initializers: dict[str, Any] = {}
        self.n_constant_bytes = 0
        self._constants: dict[str, Value] = {}
        self._results: dict[tuple[Any, ...], Value] = {}

    def constant(self, values: ArrayLike, dtype: DTypeLike | None = None) -> Value:
        """Return an array as a value of the graph."""
        array = np.ascontiguousarray(np.asarray(values, dtype=dtype)).reshape(np.shape(values))
        key = repr(array.tolist()) if array.dtype == object else array_digest({"": array})
        if key not in self._constants:
            self.n_constant_bytes += array.nbytes
            if self.n_constant_bytes > MAX_MODEL_BYTES:
                raise NotExpressibleError(
                    f"The numbers of this hasher take more than {MAX_MODEL_BYTES / 2**30:.1f} GiB, and an ONNX file "
                    "holds no more. Compress the hasher first (hasher.compress), or write single precision."
                )
            name = f"{self.prefix}constant_{len(self.initializers)}"
            self.initializers[name] = numpy_helper.from_array(array, name)
            self._constants[key] = Value(self, name, array.dtype)
        return self._constants[key]

    def apply(self, operator: str, *inputs: Value, dtype: DTypeLike | None = None, **attributes: Any) -> Value:
        """Return the result of an operator, which has the type of its first input if no other is given."""
        return self.apply_many(operator, inputs, [inputs[0].dtype if dtype is None else np.dtype(dtype)], attributes)[0]

    def apply_many(
        self, operator: str, inputs: tuple[Value, ...], dtypes: list[np.dtype], attributes: dict[str, Any]
    ) -> list[Value]:
        """Return the results of an operator that has several."""
        key = (operator, tuple(value.name for value in inputs), repr(sorted(attributes.items())))
        if key in self._results:
            return [self._results[*key, place] for place in range(len(dtypes))]
        names = [f"{self.prefix}value_{len(self.nodes)}_{place}" for place in range(len(dtypes))]
        self.nodes.append(helper.make_node(operator, [value.name for value in inputs], names, **attributes))
        values = [Value(self, name, dtype) for name, dtype in zip(names, dtypes, strict=True)]
        self._results[key] = values[0]
        for place, value in enumerate(values):
            self._results[*key, place] = value
        return values

    def concat(self, values: list[Value]) -> Value:
        """Return the columns of all values side by side."""
        return values[0] if len(values) == 1 else self.apply("Concat", *values, axis=1)

    def rows_of(self, table: Value, indices: Value) -> Value:
        """Return the entries of a vector, or the rows of a matrix, at computed indices."""
        return self.apply("Gather", table, indices, axis=0)


class Value:
    """The result of a node, with the operators of NumPy; numbers and arrays combined with it take its type."""

    __array_ufunc__ = None  # or an array before an operator would take a value for a number

    def __init__(self, graph: Graph, name: str, dtype: DTypeLike):
        self.graph = graph
        self.name = name
        self.dtype = np.dtype(dtype)

    def apply(self, operator: str, *others: Operand, dtype: DTypeLike | None = None, **attributes: Any) -> Value:
        """Return the result of an operator on this value and others."""
        return self.graph.apply(operator, self, *map(self._operand, others), dtype=dtype, **attributes)

    def cosine(self) -> Value:
        """Return the cosine. In double precision, ONNX Runtime up to 1.28 knows only the sine."""
        return self.apply("Cos") if self.dtype == np.float32 else (self + np.pi / 2).apply("Sin")

    def _operand(self, other: Operand) -> Value:
        return other if isinstance(other, Value) else self.graph.constant(other, self.dtype)

    def __add__(self, other: Operand) -> Value:
        return self.apply("Add", other)

    def __sub__(self, other: Operand) -> Value:
        return self.apply("Sub", other)

    def __rsub__(self, other: ArrayLike) -> Value:
        return self._operand(other).apply("Sub", self)

    def __mul__(self, other: Operand) -> Value:
        return self.apply("Mul", other)

    def __truediv__(self, other: Operand) -> Value:
        return self.apply("Div", other)

    def __rtruediv__(self, other: ArrayLike) -> Value:
        return self._operand(other).apply("Div", self)

    def __matmul__(self, other: Operand) -> Value:
        return self.apply("MatMul", other)

    def __neg__(self) -> Value:
        return self.apply("Neg")

    def __ge__(self, other: Operand) -> Value:
        return self.apply("GreaterOrEqual", other, dtype=np.bool_)

    def __gt__(self, other: Operand) -> Value:
        return self.apply("Greater", other, dtype=np.bool_)

    def __lt__(self, other: Operand) -> Value:
        return self.apply("Less", other, dtype=np.bool_)

    def equals(self, other: Operand) -> Value:
        """Return where both are equal."""
        return self.apply("Equal", other, dtype=np.bool_)

    def where(self, first: Value, second: Operand) -> Value:
        """Return ``first`` where this condition holds, ``second`` elsewhere."""
        return self.graph.apply("Where", self, first, first._operand(second), dtype=first.dtype)

    def cast(self, dtype: DTypeLike) -> Value:
        """Return the value in another type."""
        if np.dtype(dtype) == self.dtype:
            return self
        return self.apply("Cast", dtype=dtype, to=onnx_type(dtype))

    def sum(self, axis: int) -> Value:
        """Return sums along an axis, which stays with length one."""
        return self._reduce("ReduceSum", axis)

    def max(self, axis: int) -> Value:
        """Return the largest entries along an axis, which stays with length one."""
        return self._reduce("ReduceMax", axis)

    def min(self, axis: int) -> Value:
        """Return the smallest entries along an axis, which stays with length one."""
        return self._reduce("ReduceMin", axis)

    def _reduce(self, operator: str, axis: int) -> Value:
        return self.graph.apply(operator, self, self.graph.constant([axis], np.int64), keepdims=1)

    def take(self, indices: ArrayLike) -> Value:
        """Return some of the columns, by their indices."""
        return self.graph.apply("Gather", self, self.graph.constant(indices, np.int64), axis=1)

    def columns(self, start: int, stop: int, axis: int = 1) -> Value:
        """Return the columns from ``start`` to before ``stop``."""
        bounds = (self.graph.constant([number], np.int64) for number in (start, stop, axis))
        return self.graph.apply("Slice", self, *bounds)

    def reshape(self, *shape: int) -> Value:
        """Return the value in another shape; one side may be -1."""
        return self.graph.apply("Reshape", self, self.graph.constant(shape, np.int64))

    def transpose(self, *axes: int) -> Value:
        """Return the value with its axes in another order."""
        return self.apply("Transpose", perm=list(axes))

    def clip(self, low: float, high: float) -> Value:
        """Return the value, cut off at both ends."""
        return self.apply("Clip", low, high)


def onnx_type(dtype: DTypeLike) -> int:
    """Return the number that ONNX has for a type of arrays."""
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def project(rows: Value, components: np.ndarray, intercept: np.ndarray | float = 0.0) -> Value:
    """Return ``rows @ components.T + intercept``; see :func:`starshl.learning.linalg.project`."""
    products = rows @ np.asarray(components).T
    return products + intercept if np.any(intercept) else products


def squared_norms(rows: Value) -> Value:
    """Return the squared norm of each row, shape (n, 1)."""
    return (rows * rows).sum(axis=1)


def squared_distances(rows: Value, others: np.ndarray) -> Value:
    """Return all squared distances from rows to fixed ones; see :func:`starshl.learning.linalg.squared_distances`."""
    others = np.asarray(others, dtype=np.float64)
    origin = others.mean(axis=0)
    centered, others = rows - origin, others - origin
    distances = centered @ (-2.0 * others.T) + squared_norms(centered) + np.einsum("ij,ij->i", others, others)
    return distances.apply("Max", 0.0)


def gaussian_expansion(
    rows: Value, anchors: np.ndarray, scale: float, coefficients: np.ndarray, intercept: np.ndarray | float
) -> Value:
    r"""Return :math:`\sum_a c_{ba} \exp(-\|x - a\|^2 / scale) + \beta_b`, shape (n, n_bits)."""
    features = (squared_distances(rows, anchors) * (-1.0 / scale)).apply("Exp")
    return project(features, coefficients, intercept)


def renamed(node: Any, name_of: Callable[[str], str]) -> Any:
    """Return a node whose values have other names, also those inside its attributes, which may be bodies of loops."""
    other = onnx.NodeProto()
    other.CopyFrom(node)
    other.name = ""
    # An input that is left out has no name.
    other.input[:] = [name_of(name) if name else "" for name in node.input]
    other.output[:] = [name_of(name) if name else "" for name in node.output]
    for attribute in other.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            body = attribute.g
            for value in [*body.input, *body.output, *body.initializer]:
                value.name = name_of(value.name)
            nodes = [renamed(each, name_of) for each in body.node]
            del body.node[:]
            body.node.extend(nodes)
    return other
