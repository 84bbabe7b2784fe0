"""From class scores to codes: bits are expected codeword bits under the posterior of the classes."""

from __future__ import annotations

import numpy as np

# How many times sharper than the posterior the codes of queries are. A query then gets nearly the codeword of its most
# probable class, and no code between two codewords that may be nearest to a third. On CIFAR-10 this gains .012 of
# precision at 10 with 32 bits and .025 with 8, on AG News and Letter .001 to .005, and nothing is lost in mean average
# precision.
QUERY_SHARPENING = 10.0
# How many times softer the codes of unlabeled items may be than those of queries.
_SOFTENINGS = tuple(2.0 ** (step / 4) for step in range(14))
_N_QUERIES, _N_ITEMS = 500, 2000  # rows on which they are compared
_FEWEST_ROWS = 200  # that can tell which of them is best
_NEGLIGIBLE = 0.002  # difference of precision for which items are not softened further
# What is best or nearly so with fewer labels, from 1 to 20 per class on six data sets: a quarter of the temperature of
# queries, but not less than 1.3. Below, posteriors are so flat that items of different classes share a code.
_USUAL_SOFTENING, _SOFTEST = 4.0, 1.3
_N_NEAREST = 10  # precision at 10


def posterior(scores: np.ndarray, temperature: float) -> np.ndarray:
    """Return softmax(temperature * scores) of each row, in the precision of the scores."""
    values = scores - scores.max(axis=1, keepdims=True)
    values *= values.dtype.type(temperature)
    np.exp(values, out=values)
    values /= values.sum(axis=1, keepdims=True)
    return values


def bit_scores(scores: np.ndarray, codewords: np.ndarray, temperature: float) -> np.ndarray:
    r"""Return the expected codeword bits :math:`\sum_g \mathrm{softmax}(T z)_g\, \mu_{gb}`, shape (n, n_bits)."""
    return linear_bit_scores(posterior(scores, temperature), codewords)


def linear_bit_scores(scores: np.ndarray, codewords: np.ndarray) -> np.ndarray:
    r"""Return :math:`\sum_g h_g \mu_{gb}`, shape (n, n_bits): of ridge scores, ridge regression onto codewords."""
    return scores @ codewords.astype(scores.dtype)


def choose_database_temperature(
    scores: np.ndarray, index: np.ndarray, labeled: np.ndarray, codewords: np.ndarray, temperature: float, seed: int
) -> float:
    """Return the temperature for codes of unlabeled items, at most that of the posterior.

    Queries are sharp. Sharp codes on both sides make every wrong item as near as a right one, so items
    are softened: by the factor whose precision at 10 is largest when training rows, scored without themselves, are
    both queries and items. Too soft, all items of a class lose their codeword at once; a factor therefore counts as
    much as the worst of it and its two neighbors. Where classes are unknown, precision is expected under the posterior,
    and labeled items have their codewords. With too few rows or no label it is a usual factor.

    Parameters
    ----------
    scores : array of shape (n_rows, n_classes), of the training rows
    index, labeled : arrays of shape (n_rows,), their classes, and whether these were given
    """
    if len(codewords) < 2:
        return temperature
    if len(scores) < _FEWEST_ROWS or not labeled.any():
        return min(temperature, max(temperature / _USUAL_SOFTENING, _SOFTEST))
    order = np.random.RandomState(seed).permutation(len(scores))[:_N_ITEMS]
    order = order[np.argsort(labeled[order], kind="stable")]  # queries are like unlabeled rows
    scores, index, labeled = scores[order], index[order], labeled[order]
    shares = posterior(scores, temperature)
    shares[labeled] = np.eye(len(codewords))[index[labeled]]
    queries = bit_scores(scores[:_N_QUERIES], codewords, QUERY_SHARPENING * temperature) >= 0
    has_codeword = labeled & (not labeled.all())
    softest = 0.0 if labeled.all() else _SOFTEST
    softenings = [each for each in _SOFTENINGS if each == 1.0 or temperature / each >= softest]
    precisions = []
    for softening in softenings:
        items = bit_scores(scores, codewords, temperature / softening) >= 0
        items[has_codeword] = codewords[index[has_codeword]] > 0
        precisions.append(precision_among(queries, items, shares))
    worst = np.array([min(precisions[max(0, place - 1) : place + 2]) for place in range(len(precisions))])
    return temperature / softenings[int(np.argmax(worst >= worst.max() - _NEGLIGIBLE))]


def precision_among(queries: np.ndarray, items: np.ndarray, shares: np.ndarray) -> float:
    """Return the expected precision at 10, over orders of ties and classes, where query n is item n and does not count.

    Parameters
    ----------
    queries, items : bool arrays of shape (n_queries, n_bits) and (n_items, n_bits)
    shares : array of shape (n_items, n_classes), the probabilities of the classes of each item
    """
    n_queries, n_bits = queries.shape
    own = np.arange(n_queries)
    codes, group = _distinct_codes(items)
    by_code = np.zeros((len(codes), shares.shape[1]))
    np.add.at(by_code, group, shares)
    n_items = np.bincount(group).astype(np.float64)
    bits = queries.astype(np.float32)
    # |q - c| = |q| + |c| - 2 q.c for bits of 0 and 1.
    distances = (bits.sum(axis=1)[:, None] + codes.sum(axis=1) - 2 * bits @ codes.T).astype(np.int64)
    cells = (own[:, None] * (n_bits + 1) + distances).ravel()
    shape = n_queries, n_bits + 1

    def per_distance(counts: np.ndarray, of_query: np.ndarray | float) -> np.ndarray:
        table = np.bincount(cells, counts.ravel(), minlength=shape[0] * shape[1]).reshape(shape)
        table[own, distances[own, group[:n_queries]]] -= of_query
        return table

    asked = shares[:n_queries]
    found = per_distance(np.broadcast_to(n_items, distances.shape), 1.0)
    relevant = per_distance(asked @ by_code.T, np.sum(asked**2, axis=1))
    taken = np.clip(_N_NEAREST - (np.cumsum(found, axis=1) - found), 0.0, found)
    hits = np.divide(relevant * taken, found, out=np.zeros(shape), where=found > 0)
    return float(hits.sum(axis=1).mean() / min(_N_NEAREST, len(items) - 1))


def _distinct_codes(items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the different rows of bits as float32, and for each row which of them it is."""
    packed = np.packbits(items, axis=1)
    if packed.shape[1] <= 8:
        # As one number each: sorting rows of bytes takes ten times as long.
        words = np.zeros((len(packed), 8), dtype=np.uint8)
        words[:, : packed.shape[1]] = packed
        _, first, group = np.unique(words.view(np.uint64)[:, 0], return_index=True, return_inverse=True)
    else:
        _, first, group = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    return items[first].astype(np.float32), group.ravel()
