"""Texts as words, and the step Text on words as part of a graph.

ONNX has operators that count words, and none that splits texts as Python does: ``StringNormalizer`` converts letters to
lowercase by the language of the machine, ``StringSplit`` knows no patterns. So a graph takes words, and the caller
splits texts: lowercase, then all matches of ``[\\p{L}\\p{N}_]{2,}`` (letters, digits and underscores, two or more).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import DTypeLike
from sklearn.feature_extraction.text import TfidfVectorizer

from ..features import Text
from .graph import Value
from .vectors import squared_norms

__all__ = ["SPLITTING", "text_features", "words_of"]

SPLITTING = r"words of a text: its matches of [\p{L}\p{N}_]{2,} in lowercase; shorter rows end in empty strings"


def words_of(texts: Sequence[str]) -> np.ndarray:
    """Return the words of texts as an ONNX model of texts takes them, shape (n_texts, n_words).

    Examples
    --------
    >>> from starshl.export import words_of
    >>> words_of(["A red car", "bread"]).tolist()
    [['red', 'car'], ['bread', '']]
    """
    split = TfidfVectorizer().build_analyzer()
    found = [split(text) for text in texts]
    words = np.full((len(found), max(map(len, found), default=0) or 1), "", dtype=object)
    for row, own in zip(words, found, strict=True):
        row[: len(own)] = own
    return words


def text_features(step: Text, words: Value, dtype: DTypeLike) -> Value:
    """Return TF-IDF weights along the main directions; see :class:`starshl.features.Text`."""
    vocabulary = step.words_.tolist()
    counting = {"mode": "TF", "min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 0, "ngram_counts": [0]}
    places = {"ngram_indexes": list(range(len(vocabulary))), "pool_strings": vocabulary}
    counts = words.apply("TfIdfVectorizer", dtype=np.float32, **counting, **places).cast(dtype)
    weights = (counts > 0.0).where((counts.apply("Max", 1.0).apply("Log") + 1.0) * step.idf_, 0.0)
    lengths = squared_norms(weights).apply("Sqrt")
    return (weights / (lengths > 0.0).where(lengths, 1.0)) @ step.components_.T
