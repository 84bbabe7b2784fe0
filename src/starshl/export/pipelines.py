"""Hashers inside scikit-learn pipelines that skl2onnx converts."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._common.extras import require
from ..codes.binary import n_bytes
from ..hashers.base import BaseHasher
from ..hashers.catalog import METHODS, WRAPPERS, get_class
from .graph import OPSET, OPSETS, Graph, Value, numpy_helper, onnx, renamed
from .onnx_model import build_outputs

# skl2onnx asks every classifier whether to turn probabilities into dictionaries. A hasher has none among its outputs.
_OPTIONS = {"zipmap": [True, False]}


def register_converters(*classes: type[BaseHasher]) -> None:
    """Let skl2onnx convert scikit-learn pipelines that end in a hasher; their output is ``codes``.

    Parameters
    ----------
    classes : further classes of hashers, derived from :class:`starshl.hashers.LinearHasher` or from a method of the
        catalog, which are all registered

    Examples
    --------
    >>> import numpy as np
    >>> import skl2onnx
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from starshl import StarRidge
    >>> from starshl.export import register_converters
    >>> X, y = load_wine(return_X_y=True)
    >>> pipeline = make_pipeline(StandardScaler(), StarRidge(16, random_state=0)).fit(X, y)
    >>> register_converters()
    >>> model = skl2onnx.to_onnx(pipeline, X[:1])
    >>> [output.name for output in model.graph.output]
    ['codes']
    """
    skl2onnx = require("skl2onnx", extra="onnx")
    for hasher_class in [*map(get_class, METHODS | WRAPPERS), *classes]:
        alias = f"Starshl{hasher_class.__name__}"
        given = {"parser": _declare_output, "options": _OPTIONS}
        skl2onnx.update_registered_converter(hasher_class, alias, _set_shape, _convert, **given)


def _declare_output(scope: Any, model: BaseHasher, inputs: list[Any], custom_parsers: Any = None) -> list[Any]:
    types = require("skl2onnx.common.data_types", extra="onnx")
    operator = scope.declare_local_operator(f"Starshl{type(model).__name__}", model)
    operator.inputs = inputs
    operator.outputs.append(scope.declare_local_variable("codes", types.UInt8TensorType()))
    return operator.outputs


def _set_shape(operator: Any) -> None:
    n_rows = operator.inputs[0].type.shape[0]
    operator.outputs[0].type.shape = [n_rows, n_bytes(operator.raw_operator.n_bits_)]


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the nodes of a hasher to those of the pipeline, under names that are free there."""
    if container.target_opset < OPSET:
        raise ValueError(f"Codes need opset {OPSET}, but target_opset is {container.target_opset}. Raise target_opset.")
    types = require("skl2onnx.common.data_types", extra="onnx")
    source = operator.inputs[0]
    is_double = isinstance(source.type, types.DoubleTensorType)
    rows = Value(Graph(), source.full_name, np.float64 if is_double else np.float32)
    given = (
        rows
        if isinstance(source.type, types.DoubleTensorType | types.FloatTensorType)
        else rows.apply("Cast", to=onnx.TensorProto.FLOAT)
    )
    codes = build_outputs(operator.raw_operator, given, ["codes"])["codes"]
    names = {rows.name: rows.name, codes.name: operator.outputs[0].full_name}

    def free(name: str) -> str:
        if name not in names:
            names[name] = scope.get_unique_variable_name(f"starshl_{name}")
        return names[name]

    for name, tensor in rows.graph.initializers.items():
        content = numpy_helper.to_array(tensor)
        container.add_initializer(free(name), tensor.data_type, list(content.shape), content.ravel())
    for node in rows.graph.nodes:
        own = renamed(node, free)
        container.add_node(
            own.op_type,
            list(own.input),
            list(own.output),
            op_domain=own.domain,
            op_version=OPSETS[own.domain],
            name=scope.get_unique_operator_name(f"starshl_{own.op_type}"),
            **{each.name: onnx.helper.get_attribute_value(each) for each in own.attribute},
        )
