"""The class of a hybrid code for systems that compare bits alone: how long its words have to be."""

from __future__ import annotations

import numpy as np

from ..codes.codewords import separated_codewords
from ..codes.hamming_words import HammingWords
from ..codes.score_rule import ScoreRule
from ..codes.word_dictionary import WordDictionary
from .supervision import TrainingRows

_LENGTHS = (8, 12, 16, 24, 32, 48, 64, 96, 128)
_REPEATS = (1, 2, 3, 4, 6, 8)  # of the words of a given codebook
# Of average precision and shared items together, for which words are not made longer.
_NEARLY = 0.02
_MAX_QUERIES, _MAX_ITEMS = 150, 1500
_N_FIRST, _FIRST_SHARE = 100, 1 / 20
_N_FOR_SHARPNESS = 100


def choose_hamming_words(
    training: TrainingRows,
    neighbor_signs: np.ndarray,
    dictionary: WordDictionary,
    rule: ScoreRule,
    codewords: np.ndarray | None,
    seed: int,
) -> HammingWords:
    """Return words which, beside neighbor bits, bring items into nearly the order of the rule by counting bits.

    The longer the words, the more the class counts: in the whole list, more items of the right class come first, but
    fewer of the nearest. Training rows are queries and items without labels. Of all lengths, the shortest is taken for
    which the mean average precision and the share of the first hundred items that the rule finds, too, are together
    nearly as large as for any.

    Parameters
    ----------
    training : TrainingRows
    neighbor_signs : array of shape (n, n_neighbor_bits), of -1 and +1
    dictionary, rule : what searches by the rule use
    codewords : array of shape (n_classes, n_bits), default=None
        Repeated, instead of words of any length.
    seed : int
    """
    order = np.random.RandomState(seed).permutation(len(neighbor_signs))[:_MAX_ITEMS]
    asked, own = training.posteriors[order[:_MAX_QUERIES]], training.own[order]
    stored = dictionary.decode(dictionary.numbers_of(training.posteriors[order]))
    neighbors = neighbor_signs[order].astype(np.float32)
    distances = (neighbors.shape[1] - neighbors[: len(asked)] @ neighbors.T) / 2
    n_first = max(1, min(_N_FIRST, int(len(order) * _FIRST_SHARE)))
    wanted = np.zeros(distances.shape, np.bool_)
    np.put_along_axis(wanted, _order(rule.scores(distances, asked @ stored.T))[:, :n_first], True, axis=1)
    found: list[tuple[float, HammingWords]] = []
    for words in _candidates(codewords, dictionary.n_classes, training.posteriors[order[:_N_FOR_SHARPNESS]], seed):
        products = words.encode_queries(asked).astype(np.float32) @ words.encode(stored).astype(np.float32).T
        listed = _order(distances + (words.n_bits - products) / 2)
        shared = float(np.take_along_axis(wanted, listed[:, :n_first], axis=1).mean())
        found.append((shared + _average_precision(own[listed] == own[: len(asked), None]), words))
    best = max(value for value, _ in found)
    return next(words for value, words in found if value >= best - _NEARLY)


def _candidates(codewords: np.ndarray | None, n_classes: int, posteriors: np.ndarray, seed: int) -> list[HammingWords]:
    if codewords is None:
        rng = np.random.RandomState(seed)
        sets = [separated_codewords(n_classes, n_bits, rng) for n_bits in _LENGTHS if 1 << n_bits >= n_classes]
    else:
        sets = [np.tile(codewords, repeats) for repeats in _REPEATS]
    return [HammingWords.fitted(each, posteriors) for each in sets]


def _order(scores: np.ndarray) -> np.ndarray:
    """Return the items of each query, which is the item of its own number and comes last, by ascending scores."""
    others = scores.copy()
    np.fill_diagonal(others, np.inf)
    return np.argsort(others, axis=1, kind="stable")


def _average_precision(relevant: np.ndarray) -> float:
    """Return the mean average precision of ordered items without the last, over queries that have relevant ones."""
    found = np.cumsum(relevant[:, :-1], axis=1)
    n_relevant = found[:, -1] if found.shape[1] else np.zeros(len(found))
    asked = n_relevant > 0
    if not asked.any():
        return 0.0
    precisions = found / np.arange(1, found.shape[1] + 1)
    return float(np.mean((precisions * relevant[:, :-1]).sum(axis=1)[asked] / n_relevant[asked]))
