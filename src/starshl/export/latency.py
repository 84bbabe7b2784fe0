"""How long one row takes, in an ONNX runtime and in ``encode``."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from .._extras import require
from .texts import words_of

__all__ = ["Latency", "open_session", "single_row_latency"]

_REPEATS, _LONGEST = 200, 1.0  # calls, and seconds after which no further one begins


class Latency(NamedTuple):
    """Median milliseconds of one row."""

    onnx: float
    encode: float


def open_session(model: Any, *, n_threads: int = 1) -> Any:
    """Return an onnxruntime session on the processor, with this many threads (0: all)."""
    runtime = require("onnxruntime", extra="onnx")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = n_threads
    content = model if isinstance(model, bytes) else model.SerializeToString()
    return runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def single_row_latency(model: Any, hasher: Any, row: np.ndarray | str | None = None) -> Latency:
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
        texts = [" ".join(hasher.steps_[0].words_[:20]) if row is None else str(row)]
        words = words_of(texts)
        return Latency(
            _median(lambda: session.run(["codes"], {takes.name: words})), _median(lambda: hasher.encode(texts))
        )
    row = np.zeros(hasher.n_features_in_) if row is None else np.asarray(row)
    rows = row.reshape(1, -1).astype(np.float64 if takes.type == "tensor(double)" else np.float32)
    return Latency(_median(lambda: session.run(["codes"], {takes.name: rows})), _median(lambda: hasher.encode(rows)))


def _median(call: Callable[[], object]) -> float:
    call()
    times: list[float] = []
    while len(times) < _REPEATS and sum(times) < _LONGEST:
        start = perf_counter()
        call()
        times.append(perf_counter() - start)
    return 1000 * float(np.median(times))
