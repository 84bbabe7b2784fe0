"""The search for a Hamming word of least loss as a loop of a graph; see :class:`starshl.codes.HammingWords`."""

from __future__ import annotations

import numpy as np

from ..codes._word_loops import LEAST_GAIN, LEAST_SHARE
from ..codes.hamming_words import SHARPENING, HammingWords
from .graph import Graph, Value, helper, onnx_type

_NEVER = 1.0  # a change of the loss that is no gain


def query_words(words: HammingWords, posteriors: Value) -> Value:
    """Return the words of queries, -1 and +1 of shape (n, n_bits), as ``words.encode_queries`` does."""
    shares = posteriors.cast(np.float32)
    sharper = (shares / shares.max(axis=1)).apply("Pow", float(SHARPENING))
    return _encoded(words, sharper / sharper.sum(axis=1))


def _encoded(words: HammingWords, posteriors: Value) -> Value:
    """Flip single bits of all rows until no flip of any gains more; rows that are done stay as they are."""
    graph, codewords = posteriors.graph, words.codewords.astype(np.float32)
    top = posteriors.apply("ArgMax", axis=1, keepdims=1, dtype=np.int64)
    is_top = top.equals(graph.constant(np.arange(words.n_classes))).cast(np.float32)
    first = is_top @ codewords
    distances = (float(words.n_bits) - first @ codewords.T) * 0.5
    wanted = (posteriors @ codewords) / posteriors.sum(axis=1)
    state = [first, distances]
    body = _body(words, wanted, is_top, first)
    rounds = graph.constant(2 * words.n_bits, np.int64)
    begins = graph.constant(True)
    types = [np.dtype(np.float32)] * 2
    return graph.apply_many("Loop", (rounds, begins, *state), types, {"body": body})[0]


def _body(words: HammingWords, wanted: Value, is_top: Value, top_word: Value) -> object:
    """Return one round: the flip of the bit that gains most in each row, if one gains."""
    graph, codewords, a = Graph("round_"), words.codewords.astype(np.float32), float(words.sharpness)
    word, distances = Value(graph, "round_word", np.float32), Value(graph, "round_distances", np.float32)
    wanted, is_top, top_word = (Value(graph, each.name, np.float32) for each in (wanted, is_top, top_word))
    shares = ((distances - distances.min(axis=1)) * -a).apply("Exp")
    shares = (shares > float(LEAST_SHARE)).where(shares, 0.0)
    expected = (shares @ codewords) / shares.sum(axis=1)
    factor = (1.0 - word * expected) * float(np.sinh(a)) + float(np.exp(-a))
    change = word * wanted * a + factor.apply("Log")
    # The codeword of the likeliest class must stay nearer than all others.
    limit = (distances * is_top).sum(axis=1) + 1.5
    near = (distances - 1.0 < limit).cast(np.float32) * (1.0 - is_top)
    is_set = word > 0.0
    approached = is_set.where(near @ (codewords < 0).astype(np.float32), near @ (codewords > 0).astype(np.float32))
    is_forbidden = (word * top_word * approached) > 0.5
    change = is_forbidden.where(change * 0.0 + _NEVER, change)
    gains = change.min(axis=1) < -float(LEAST_GAIN)
    best = change.apply("ArgMin", axis=1, keepdims=1, dtype=np.int64)
    is_flipped = best.equals(graph.constant(np.arange(words.n_bits))).cast(np.float32) * gains.cast(np.float32)
    flipped = is_flipped * word
    results = [
        gains.cast(np.float32).apply("ReduceMax", keepdims=0) > 0.5,
        word - flipped * 2.0,
        distances + flipped @ codewords.T,
    ]
    inputs = [
        helper.make_tensor_value_info("round_number", onnx_type(np.int64), []),
        helper.make_tensor_value_info("round_goes_on", onnx_type(np.bool_), []),
        *(helper.make_tensor_value_info(each.name, onnx_type(np.float32), ["N", None]) for each in (word, distances)),
    ]
    outputs = [helper.make_tensor_value_info(each.name, onnx_type(each.dtype), None) for each in results]
    return helper.make_graph(graph.nodes, "round", inputs, outputs, list(graph.initializers.values()))
