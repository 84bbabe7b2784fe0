"""Text: TF-IDF weights of words, reduced by a singular value decomposition."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ..._common.labels import LabelsLike
from ..._common.threads import single_threaded_blas
from ..._common.validation import SamplesLike, check_integer, check_number
from .numeric import is_missing
from .step import Step


class Text(Step):
    """Turn texts into vectors: TF-IDF weights of their words, projected on the main directions of the training texts.

    The same as scikit-learn's TfidfVectorizer followed by TruncatedSVD (latent semantic analysis), but for
    ``idf_power``.

    Parameters
    ----------
    n_components : int, default=100
        Number of features, fewer if there are fewer texts or words.
    max_words : int, default=20000
        Keep only this many of the most frequent words.
    min_count : int, default=1
        Leave out words that occur in fewer texts.
    idf_power : float, default=1.0
        The power of the inverse document frequency by which a word counts. With 2, frequent words such as "in" and
        "the" count much less than rare ones, in whatever language: better for searches of short texts.
    random_state : int, default=0
        Seeds the decomposition.

    Attributes
    ----------
    words_ : array of shape (n_words,), the vocabulary
    idf_ : array of shape (n_words,), the weight of each word, in the power of ``idf_power``
    components_ : array of shape (n_features_out, n_words)

    Examples
    --------
    >>> from starshl.data.features import Text
    >>> step = Text(n_components=2).fit(["a red car", "a blue car", "fresh bread"])
    >>> step.transform(["the red car", "bread"]).round(1).tolist()
    [[0.8, 0.0], [0.0, 0.7]]
    """

    words_: np.ndarray
    idf_: np.ndarray
    components_: np.ndarray

    def __init__(
        self,
        n_components: int = 100,
        max_words: int = 20_000,
        min_count: int = 1,
        random_state: int = 0,
        idf_power: float = 1.0,
    ):
        self.n_components = n_components
        self.max_words = max_words
        self.min_count = min_count
        self.random_state = random_state
        self.idf_power = idf_power

    def fit(self, X: SamplesLike, y: LabelsLike = None) -> Self:
        """Learn the words, their weights and the main directions."""
        n_components = check_integer(self.n_components, "n_components", low=1)
        max_words = check_integer(self.max_words, "max_words", low=1)
        min_count = check_integer(self.min_count, "min_count", low=1)
        power = check_number(self.idf_power, "idf_power", low=0)
        texts = texts_of(X)
        vectorizer = TfidfVectorizer(sublinear_tf=True, max_features=max_words, min_df=min_count)
        try:
            vectorizer.fit(texts)
        except ValueError as error:
            raise ValueError(
                f"The {len(texts)} texts have no word of two or more letters that occurs in at least {min_count} of "
                "them. Give texts with words, or lower min_count."
            ) from error
        vectorizer.idf_ = vectorizer.idf_**power
        weights = vectorizer.transform(texts)
        self.components_ = _main_directions(weights, min(n_components, *weights.shape), self.random_state)
        self.words_ = vectorizer.get_feature_names_out().astype(object)
        self.idf_ = vectorizer.idf_
        self.n_features_in_, self.n_features_out_ = 1, len(self.components_)
        return self

    def transform(self, X: SamplesLike) -> np.ndarray:
        """Return one vector per text; a text without known words gives zeros."""
        check_is_fitted(self)
        vectorizer = TfidfVectorizer(sublinear_tf=True, vocabulary=self.words_.tolist())
        vectorizer.idf_ = self.idf_
        return np.asarray(vectorizer.transform(texts_of(X)) @ self.components_.T)

    def _check_restored(self) -> None:
        self._require_counts()
        self._require(_are_words(getattr(self, "words_", None)), "words_")
        self._require_numbers("idf_", (len(self.words_),))
        self._require_numbers("components_", (self.n_features_out_, len(self.words_)))
        self._require(self.n_features_in_ == 1, "n_features_in_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = True
        return tags


def _main_directions(weights: sparse.csr_matrix, n_components: int, random_state: int) -> np.ndarray:
    if weights.shape[1] == 1:
        return np.ones((1, 1))
    # It also divides by the variance, which nobody reads here, and which is zero if all texts are the same.
    with single_threaded_blas(), np.errstate(invalid="ignore"):
        return TruncatedSVD(n_components, random_state=random_state).fit(weights).components_


def _are_words(words: Any) -> bool:
    if not isinstance(words, np.ndarray) or words.dtype != object or words.ndim != 1 or len(words) == 0:
        return False
    return all(isinstance(word, str) for word in words) and len(set(words.tolist())) == len(words)


def texts_of(X: SamplesLike) -> list[str]:
    """Return texts given as a list, or as a table of one column; a missing text is an empty one."""
    cells = np.asarray(X, dtype=object)
    if cells.ndim == 2 and cells.shape[1] == 1:
        cells = cells[:, 0]
    if cells.ndim != 1 or len(cells) == 0:
        raise ValueError(f"X has shape {cells.shape}; give a list of texts, or a table with one column of texts.")
    cells = np.where(is_missing(cells), "", cells)
    other = {type(cell).__name__ for cell in cells if not isinstance(cell, str)}
    if other:
        raise ValueError(f"X holds values of type {', '.join(sorted(other))}; texts are strings. Convert them first.")
    return cells.tolist()
