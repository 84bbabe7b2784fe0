"""A fitted hasher as an ONNX model: rows in, packed codes out; and how long a row takes there."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._common.extras import require
from .._common.files import write_atomically
from .._common.validation import check_choice
from .._version import __version__
from ..codes.binary import BIT_ORDER, n_bytes
from ..codes.hamming_words import HammingWords
from ..data.features.text import Text
from ..hashers.base import BaseHasher
from .graph import IR_VERSION, OPSETS, Graph, Value, helper, onnx, onnx_type
from .hamming_words import query_words
from .scores import bit_scores, class_index, probabilities
from .steps import SPLITTING, prepare, text_features, words_of

Precision: TypeAlias = Literal["float64", "float32"]
_REPEATS, _LONGEST = 200, 1.0  # calls, and seconds after which no further one begins


def to_onnx(
    hasher: BaseHasher,
    path: str | os.PathLike[str] | None = None,
    *,
    outputs: Sequence[str] | None = None,
    precision: Precision = "float64",
) -> Any:
    """Return a fitted hasher as an ONNX model, including its preprocessing, and write it to a file if you give a path.

    The model has one input, ``X``: rows of numbers of shape (N, n_features), as ``encode`` takes them; pictures are
    flat rows. If the first step is :class:`starshl.data.features.Text`, the input is ``words``, strings of shape (N,
    n_words), as :func:`starshl.export.words_of` makes them from texts. The outputs, whose first dimension is N, are

    - ``codes``: uint8 of shape (N, ceil(n_bits / 8)), the bytes of ``hasher.encode(X).packed``;
    - ``scores``: of shape (N, n_bits), what ``decision_function`` returns;
    - ``label``: of shape (N,), what ``predict`` returns, if the hasher predicts;
    - ``probabilities``: of shape (N, n_classes), what ``predict_proba`` returns, if it estimates them.

    Bytes are those of ``encode`` for rows of the same precision, except where a score is so near zero that the order of
    a sum decides its sign, or two words stand for the posterior of a query nearly as well. NaN among the inputs, which
    ``encode`` refuses, is not noticed.

    Parameters
    ----------
    hasher : fitted hasher
        Of any method of the catalog, a :class:`starshl.HybridHasher`, a :class:`starshl.hashers.PreparedHasher`, or a
        :class:`starshl.hashers.ClassifierHasher` whose classifier skl2onnx converts.
    path : path, default=None
        Where to write the model, completely or not at all.
    outputs : sequence of {"codes", "scores", "label", "probabilities"}, default=None
        None is "codes".
    precision : {"float64", "float32"}, default="float64"
        Of the rows and the arithmetic. "float32" makes files of half the size, for browsers and accelerators.

    Returns
    -------
    model : onnx.ModelProto

    Examples
    --------
    >>> import onnxruntime
    >>> from sklearn.datasets import load_digits
    >>> from starshl.hashers.baselines import LSHash
    >>> from starshl.export import to_onnx
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = LSHash(16, random_state=0).fit(X)
    >>> session = onnxruntime.InferenceSession(to_onnx(hasher).SerializeToString())
    >>> packed, = session.run(["codes"], {"X": X})
    >>> bool((packed == hasher.encode(X).packed).all())
    True
    """
    check_is_fitted(hasher)
    check_choice(precision, "precision", get_args(Precision))
    # Samples without columns are refused with the kernel named.
    model = model_of(hasher, [], hasher.row_width or 0, _check_outputs(hasher, outputs), precision)
    if path is not None:
        write_atomically(path, model.SerializeToString())
    return model


def _check_outputs(hasher: BaseHasher, outputs: Sequence[str] | None) -> list[str]:
    names = ["codes"] if outputs is None else [outputs] if isinstance(outputs, str) else list(outputs)
    if not names or len(set(names)) < len(names) or not set(names) <= set(OUTPUTS):
        raise ValueError(f"outputs is {outputs!r}; choose one or more of {', '.join(OUTPUTS)}, once each.")
    if "label" in names:
        hasher.require("predict")
    if "probabilities" in names:
        hasher.require("predict", "predict_proba")
    return names


def model_of(
    hasher: BaseHasher, steps: Sequence[Any], n_features: int, outputs: Sequence[str], precision: Precision
) -> Any:
    """Return the model of a hasher after further steps, which take words, or rows of ``n_features`` numbers."""
    steps = [*steps, *hasher.fitted_steps]
    if steps and isinstance(steps[0], Text):
        given = Value(Graph(), "words", object)
        rows, steps = text_features(steps[0], given, precision), steps[1:]
    else:
        given = rows = Value(Graph(), "X", precision)
    results = build_outputs(hasher.inner, prepare(steps, rows), outputs)
    return _assemble(hasher, given, n_features, results)


def build_outputs(hasher: BaseHasher, rows: Value, names: Sequence[str]) -> dict[str, Value]:
    """Add a fitted hasher to a graph; return the outputs of these names."""
    rows = prepare(hasher.fitted_steps, rows)
    return {name: _OUTPUT_OF[name](hasher.inner, rows) for name in names}


def _codes(hasher: BaseHasher, rows: Value) -> Value:
    """Return codes of queries as bytes: bit j is bit ``j % 8`` of byte ``j // 8``."""
    graph, n_bits, width = rows.graph, hasher.n_bits_, n_bytes(hasher.n_bits_)
    if isinstance(hasher.words, HammingWords):
        scores = query_words(hasher.words, probabilities(hasher, rows))
    else:
        scores = bit_scores(hasher, rows)
    bits = (scores >= 0.0).cast(np.float32)
    if 8 * width > n_bits:
        bits = graph.apply("Pad", bits, graph.constant([0, 0, 0, 8 * width - n_bits], np.int64))
    return (bits.reshape(-1, width, 8) * 2.0 ** np.arange(8)).sum(axis=2).reshape(-1, width).cast(np.uint8)


def _labels(hasher: BaseHasher, rows: Value) -> Value:
    classes = np.asarray(hasher.classes_)
    if classes.dtype.kind not in "biuf":
        classes = np.array([str(label) for label in classes.tolist()], dtype=object)
    return rows.graph.rows_of(rows.graph.constant(classes), class_index(hasher, rows))


_OUTPUT_OF: dict[str, Callable[[Any, Value], Value]] = {
    "codes": _codes,
    "scores": bit_scores,
    "label": _labels,
    "probabilities": probabilities,
}
OUTPUTS = tuple(_OUTPUT_OF)


def _assemble(hasher: BaseHasher, given: Value, n_features: int, results: dict[str, Value]) -> Any:
    """Return the model with named inputs, outputs and a description of itself."""
    graph, takes_words = given.graph, given.dtype == object
    named = [helper.make_node("Identity", [value.name], [name]) for name, value in results.items()]
    columns = "n_words" if takes_words else n_features
    inputs = [helper.make_tensor_value_info(given.name, onnx_type(given.dtype), ["N", columns])]
    outputs = [
        helper.make_tensor_value_info(name, onnx_type(value.dtype), _shape(name, hasher))
        for name, value in results.items()
    ]
    constants = list(graph.initializers.values())
    body = helper.make_graph([*graph.nodes, *named], type(hasher).__name__, inputs, outputs, constants)
    domains = {"", *(node.domain for node in graph.nodes)}
    model = helper.make_model(
        body,
        opset_imports=[helper.make_opsetid(domain, OPSETS[domain]) for domain in sorted(domains)],
        ir_version=IR_VERSION,
        producer_name="starshl",
    )
    model.producer_version = __version__
    model.doc_string = f"{hasher.method_name}, {hasher.n_bits_} bits; packed codes of {given.name}"
    properties: dict[str, str | None] = {"splitting": SPLITTING} if takes_words else {}
    properties |= {
        "n_bits": str(hasher.n_bits_),
        "bit_order": BIT_ORDER,
        "space_id": hasher.space_id_,
    }
    helper.set_model_props(model, {f"starshl.{name}": text for name, text in properties.items() if text})
    onnx.checker.check_model(model)
    return model


def _shape(name: str, hasher: BaseHasher) -> list[str | int]:
    n_columns = {"codes": n_bytes(hasher.n_bits_), "scores": hasher.n_bits_}
    if name == "label":
        return ["N"]
    return ["N", n_columns[name] if name in n_columns else len(hasher.classes_)]


class Latency(NamedTuple):
    """Median milliseconds of one row."""

    onnx: float
    encode: float


def single_row_latency(model: Any, hasher: BaseHasher, row: np.ndarray | str | None = None) -> Latency:
    """Return the median time of one row in onnxruntime, on one thread, and that of ``hasher.encode``.

    Parameters
    ----------
    model : onnx.ModelProto that :func:`starshl.export.to_onnx` returned for the hasher
    hasher : fitted hasher
    row : array of shape (n_features,), or text, default=None
        None is a row of zeros, in the precision of the model, or a text of twenty words.
    """
    session = open_session(model)
    (takes,) = session.get_inputs()
    if takes.type == "tensor(string)":
        texts = [" ".join(hasher.fitted_steps[0].words_[:20]) if row is None else str(row)]
        words = words_of(texts)
        return Latency(
            _median(lambda: session.run(["codes"], {takes.name: words})), _median(lambda: hasher.encode(texts))
        )
    row = np.zeros(hasher.n_features_in_) if row is None else np.asarray(row)
    rows = row.reshape(1, -1).astype(np.float64 if takes.type == "tensor(double)" else np.float32)
    return Latency(_median(lambda: session.run(["codes"], {takes.name: rows})), _median(lambda: hasher.encode(rows)))


def open_session(model: Any, *, n_threads: int = 1) -> Any:
    """Return an onnxruntime session on the processor, with this many threads (0: all)."""
    runtime = require("onnxruntime", extra="onnx")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = n_threads
    content = model if isinstance(model, bytes) else model.SerializeToString()
    return runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def _median(call: Callable[[], object]) -> float:
    call()
    times: list[float] = []
    while len(times) < _REPEATS and sum(times) < _LONGEST:
        start = perf_counter()
        call()
        times.append(perf_counter() - start)
    return 1000 * float(np.median(times))
