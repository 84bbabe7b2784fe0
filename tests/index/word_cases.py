"""Indexes of words on data that is hard to order, and a plain sort of all scores to compare them with."""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from starshl.codes import BinaryCodes, EncodedQueries, HammingWords, ScoreRule, WordDictionary
from starshl.codes.codewords import binary_words
from starshl.index import HybridIndex, PosteriorIndex, Reconstruction, ResidualIndex

N_FEATURES = 9


def posteriors(n_rows, n_classes, rng, kind):
    """Sure ones, flat ones, and all between them."""
    if kind == "sure":
        return np.eye(n_classes, dtype=np.float32)[rng.integers(n_classes, size=n_rows)]
    if kind == "flat":
        return np.full((n_rows, n_classes), 1 / n_classes, np.float32)
    return rng.dirichlet(np.full(n_classes, 0.2 if kind == "doubtful" else 5.0), size=n_rows).astype(np.float32)


@dataclass
class Case:
    """An index with its codes, ids and queries."""

    index: PosteriorIndex | HybridIndex | ResidualIndex
    codes: BinaryCodes
    ids: np.ndarray
    queries: EncodedQueries

    def probabilities(self, codes=None):
        """Return P(same) of all queries and codes, as the definition says."""
        items = self.index.words.posteriors_of(self.codes if codes is None else codes)
        return np.clip(self.queries.posteriors.astype(float) @ items.astype(float).T, 0, 1)

    def distances(self, codes=None):
        """Return the distances of neighbors."""
        codes = self.codes if codes is None else codes
        n_word_bits = self.index.words.n_bits
        if isinstance(self.index, ResidualIndex):
            vectors = self.index.reconstruction.vectors(codes, self.index.words)
            return ((self.queries.vectors[:, None] - vectors) ** 2).sum(axis=2)
        unequal = self.queries.codes.to_signs()[:, None] != codes.to_signs()
        return unequal[..., n_word_bits:].sum(axis=2)

    def scores(self, codes=None):
        """Return the scores of all queries and codes, from the probabilities that the index gives."""
        codes = self.codes if codes is None else codes
        probabilities = self.index.probabilities(self.queries, np.tile(self.ids, (len(self.queries), 1)))
        return self.index.rule.scores(self.distances(codes), probabilities), probabilities


def make_case(kind, n_items=400, n_queries=9, n_classes=4, items="doubtful", asked="doubtful", seed=0, **settings):
    """Return a case; a third of the items have labels, and many have equal codes."""
    rng = np.random.default_rng(seed)
    labels = np.where(rng.random(n_items) < 0.3, rng.integers(n_classes, size=n_items), -1)
    of_items = posteriors(n_items, n_classes, rng, items)
    of_queries = posteriors(n_queries, n_classes, rng, asked)
    if kind == "hamming words":
        n_bits = settings.pop("n_bits", 12)
        words = HammingWords(different_signs(n_classes, n_bits, rng), 0.8)
        signs = np.where(labels[:, None] >= 0, words.codewords[labels], words.encode(of_items))
        codes = BinaryCodes(BinaryCodes.from_signs(signs).packed, n_bits, classes=labels)
        index = PosteriorIndex(n_bits, words, **settings)
        queries = BinaryCodes.from_signs(words.encode(of_queries))
    else:
        n_word_bits, n_neighbor_bits = (5, 0) if kind == "dictionary" else settings.pop("bits", (5, 7))
        words = WordDictionary.fitted(posteriors(300, n_classes, rng, "doubtful"), n_word_bits)
        numbers = np.where(labels >= 0, words.numbers_of_classes(np.maximum(labels, 0)), words.numbers_of(of_items))
        signs = binary_words(numbers, n_word_bits)
        asked_signs = binary_words(words.numbers_of(of_queries), n_word_bits)
        pool = rng.choice([-1, 1], size=(60, n_neighbor_bits))
        signs = np.hstack([signs, pool[rng.integers(60, size=n_items)]])
        asked_signs = np.hstack([asked_signs, pool[rng.integers(60, size=n_queries)]])
        n_bits, rule = n_word_bits + n_neighbor_bits, ScoreRule(settings.pop("class_weight", 1.0), 1.5, 2.5)
        if kind == "residual":
            # Whole numbers are exact in single precision, so that ties are ties.
            entries = rng.multinomial(4, words.entries / words.entries.sum(axis=1, keepdims=True, dtype=float)) / 4
            words = WordDictionary(entries, n_word_bits)
            centers = 4.0 * n_classes * rng.integers(-3, 4, size=(n_classes, N_FEATURES + n_neighbor_bits))
            components = np.eye(n_neighbor_bits, N_FEATURES + n_neighbor_bits)
            scales = rng.integers(1, 3, size=n_neighbor_bits).astype(float)
            index = ResidualIndex(n_bits, words, rule, Reconstruction(centers, components, scales), **settings)
        else:
            index = HybridIndex(n_bits, words, rule, **settings)
        codes, queries = BinaryCodes.from_signs(signs), BinaryCodes.from_signs(asked_signs)
    vectors = (
        rng.integers(-3, 4, size=(n_queries, index.reconstruction.centers.shape[1])) if kind == "residual" else None
    )
    ids = rng.permutation(3 * n_items)[:n_items] - 40
    return Case(index, codes, ids, EncodedQueries(queries, of_queries, vectors))


def different_signs(n_words, n_bits, rng):
    numbers = rng.choice(1 << n_bits, size=n_words, replace=False)
    return binary_words(numbers, n_bits)


def added(case, sizes=()):
    """Return the case after its items were added in batches of these sizes, and all others at once."""
    bounds = np.concatenate([[0], np.cumsum(sizes, dtype=int), [len(case.codes)]])
    for start, stop in pairwise(bounds):
        case.index.add(case.codes[slice(start, stop)], case.ids[start:stop])
    return case


def without_items(case, gone):
    """Return the case with items removed, and the index as it is."""
    kept = np.setdiff1d(np.arange(len(case.ids)), gone)
    return replace(case, codes=case.codes[kept], ids=case.ids[kept])
