"""Fitted scikit-learn classifiers as parts of a graph, converted by skl2onnx."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._common.extras import require
from ..exceptions import NotExpressibleError
from .graph import OPSET, OPSETS, Value, onnx, renamed


def classifier_probabilities(classifier: Any, rows: Value, n_features: int) -> Value:
    """Return what ``classifier.predict_proba`` returns."""
    model = _converted(classifier, rows.dtype, n_features)
    graph, content = rows.graph, model.graph
    names = {content.input[0].name: rows.name}
    first = f"{graph.prefix}classifier_{len(graph.nodes)}_"

    def own(name: str) -> str:
        return names.setdefault(name, f"{first}{len(names)}")

    for tensor in content.initializer:
        held = onnx.TensorProto()
        held.CopyFrom(tensor)
        held.name = own(tensor.name)
        graph.initializers[held.name] = held
    for node in content.node:
        graph.nodes.append(renamed(node, own))
    result = content.output[1]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(result.type.tensor_type.elem_type)
    return Value(graph, own(result.name), dtype)


def _converted(classifier: Any, dtype: np.dtype, n_features: int) -> Any:
    skl2onnx = require("skl2onnx", extra="onnx")
    types = require("skl2onnx.common.data_types", extra="onnx")
    kind = types.DoubleTensorType if dtype == np.float64 else types.FloatTensorType
    try:
        model = skl2onnx.convert_sklearn(
            classifier,
            initial_types=[("X", kind([None, n_features]))],
            options={id(classifier): {"zipmap": False}},
            target_opset=OPSETS,
        )
    except Exception as error:  # of many types, also for classifiers of other libraries
        raise _unknown(classifier, f"skl2onnx cannot convert it ({type(error).__name__})") from error
    versions = {each.domain: each.version for each in model.opset_import}
    unknown = sorted(versions.keys() - OPSETS.keys())
    if unknown or versions.get("", OPSET) > OPSET:
        raise _unknown(classifier, f"its graph has operators of {unknown or 'a later opset'}")
    return model


def _unknown(classifier: Any, reason: str) -> NotExpressibleError:
    return NotExpressibleError(
        f"There is no ONNX graph for the probabilities of a {type(classifier).__name__}: {reason}. Use a classifier "
        "that skl2onnx converts, such as LogisticRegression(), or encode with the hasher itself."
    )
