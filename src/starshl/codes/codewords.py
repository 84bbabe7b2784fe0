"""Codewords that lie far apart in Hamming distance.

A nearest-codeword decoder corrects floor((d - 1) / 2) wrong bits, where d is the smallest distance between
two codewords, so d is what a codebook is built for. No codebook of G words and n bits has d above
n / 2 * G / (G - 1) (Plotkin); rows of a Hadamard matrix attain it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .._common.threads import single_threaded_blas

_ALL_WORDS_MAX_BITS = 12  # 4,096 words, few enough to look at all of them
_ALL_SPLITS_MAX_CODEWORDS = 7  # 63 ways to split them in two
_RANDOM_WORDS = 4096  # to choose the farthest from
_MAX_DISTANCES = 4_000_000  # that the search over one pool may compute


def separated_codewords(n_codewords: int, n_bits: int, rng: np.random.RandomState) -> np.ndarray:
    """Return (n_codewords, n_bits) codewords of -1 and +1 that lie far apart, as int8.

    The best of several constructions: Hadamard rows and their complements with columns left out, greedy
    codes over all words (up to 12 bits), farthest-first choice from random words, and for few codewords
    all their dichotomies. Best means the fewest useless columns (equal or complementary to another: they
    repeat a bit and cannot correct it), then the largest smallest distance, then the most balanced columns.
    With 2**n_bits < n_codewords every word is used, as evenly as possible.
    """
    if n_bits < 30 and 2**n_bits <= n_codewords:
        words = rng.permutation(np.arange(n_codewords) % 2**n_bits)
        return binary_words(words, n_bits)
    pools = [
        *_hadamard_pools(n_codewords, n_bits),
        *_greedy_pools(n_codewords, n_bits, rng),
        *_dichotomy_pools(n_codewords, n_bits),
    ]
    # Thousands of small products: handing each to several threads costs far more than it saves.
    with single_threaded_blas():
        candidates = [_best_subset(pool, n_codewords, n_bits, rng) for pool in pools]
        return max(candidates, key=_quality)


def random_codewords(n_codewords: int, n_bits: int, rng: np.random.RandomState, *, distinct: bool = True) -> np.ndarray:
    """Return i.i.d. signs, redrawn until no column is constant and, if ``distinct``, no two rows are equal.

    Either is left out where it is impossible: a single codeword has constant columns, and more than 2**n_bits
    codewords cannot be distinct.
    """
    distinct = distinct and (n_bits >= 30 or 2**n_bits >= n_codewords)
    for _ in range(100):
        signs = _random_signs(n_codewords, n_bits, rng)
        while n_codewords > 1 and (constant := _constant_columns(signs)).any():
            signs[:, constant] = _random_signs(n_codewords, int(constant.sum()), rng)
        if not distinct or len(np.unique(signs, axis=0)) == n_codewords:
            return signs
    # Nearly every word is needed, so draw without replacement instead of waiting for luck.
    while True:
        signs = binary_words(rng.permutation(2**n_bits)[:n_codewords], n_bits)
        if not _constant_columns(signs).any():
            return signs


def binary_words(numbers: np.ndarray, n_bits: int) -> np.ndarray:
    """Return numbers in binary, lowest bit first, as int8 of -1 and +1 of shape (n_numbers, n_bits).

    Examples
    --------
    >>> binary_words(np.array([1, 2]), 2).tolist()
    [[1, -1], [-1, 1]]
    """
    return (2 * (numbers[:, None] >> np.arange(n_bits) & 1) - 1).astype(np.int8)


def minimum_distance(codewords: np.ndarray) -> int:
    """Return the smallest Hamming distance between two rows (n_bits for a single row)."""
    n_codewords, n_bits = codewords.shape
    if n_codewords < 2:
        return n_bits
    products = codewords.astype(np.float32) @ codewords.T.astype(np.float32)
    return int(n_bits - products[~np.eye(n_codewords, dtype=bool)].max()) // 2


def hadamard_matrix(order: int) -> np.ndarray:
    """Return a Hadamard matrix (mutually orthogonal rows of signs) whose first column is all +1.

    By doubling (Sylvester) from orders 1, 2 and q + 1 or 2 (q + 1) for a prime q (Paley).
    """
    matrix = _hadamard_or_none(order)
    if matrix is None:
        raise ValueError(
            f"No Hadamard matrix of order {order} is built here; orders are 1, 2 and multiples of 4 of the form "
            "2**k, 2**k (q + 1) or 2**k * 2 (q + 1) with q prime. Take the next such order."
        )
    return matrix * matrix[:, :1]


def _hadamard_or_none(order: int) -> np.ndarray | None:
    if order in (1, 2):
        return np.array([[1, 1], [1, -1]], dtype=np.int8)[:order, :order]
    if order < 4 or order % 4:
        return None
    if _is_prime(order - 1):
        return _paley_first(order - 1)
    if order // 2 % 2 == 0 and (half := _hadamard_or_none(order // 2)) is not None:
        return np.block([[half, half], [half, -half]])
    if _is_prime(order // 2 - 1) and (order // 2 - 1) % 4 == 1:
        return _paley_second(order // 2 - 1)
    return None


def _paley_first(q: int) -> np.ndarray:
    """Order q + 1 for a prime q = 3 mod 4, from the quadratic residues mod q."""
    skew = np.block([[np.zeros((1, 1)), np.ones((1, q))], [-np.ones((q, 1)), _residue_matrix(q)]])
    return (skew + np.eye(q + 1)).astype(np.int8)


def _paley_second(q: int) -> np.ndarray:
    """Order 2 (q + 1) for a prime q = 1 mod 4."""
    conference = np.block([[np.zeros((1, 1)), np.ones((1, q))], [np.ones((q, 1)), _residue_matrix(q)]])
    off_diagonal = np.kron(conference, [[1, 1], [1, -1]])
    return (off_diagonal + np.kron(np.eye(q + 1), [[1, -1], [-1, -1]])).astype(np.int8)


def _residue_matrix(q: int) -> np.ndarray:
    character = np.full(q, -1.0)
    character[np.arange(1, q) ** 2 % q] = 1.0
    character[0] = 0.0
    return character[(np.arange(q)[:, None] - np.arange(q)[None, :]) % q]


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, int(number**0.5) + 1))


def _hadamard_pools(n_codewords: int, n_bits: int) -> Iterator[np.ndarray]:
    """Yield sets of codewords cut from the first few Hadamard matrices that are large enough."""
    order, n_pools = max(4, -(-n_bits // 4) * 4), 0
    while n_pools < 3 and order <= 4 * (n_bits + n_codewords):
        matrix = _hadamard_or_none(order)
        if matrix is not None:
            matrix = matrix * matrix[:, :1]
            if order > n_bits and order >= n_codewords:
                yield matrix[:, 1:]  # the constant column adds no distance between rows
                n_pools += 1
            if 2 * order >= n_codewords:
                yield np.vstack([matrix, -matrix])
                n_pools += 1
        order += 4


def _greedy_pools(n_codewords: int, n_bits: int, rng: np.random.RandomState) -> Iterator[np.ndarray]:
    """Yield codebooks chosen word by word: lexicographic codes, and farthest-first from random words."""
    if n_bits <= _ALL_WORDS_MAX_BITS:
        words = binary_words(np.arange(2**n_bits), n_bits)
        for distance in range(n_bits, 0, -1):
            code = _lexicographic_code(words, distance)
            if len(code) >= n_codewords:
                yield code
                break
        yield _farthest_first(words[rng.permutation(len(words))], n_codewords)
    else:
        yield _farthest_first(_random_signs(max(_RANDOM_WORDS, 4 * n_codewords), n_bits, rng), n_codewords)


def _dichotomy_pools(n_codewords: int, n_bits: int) -> Iterator[np.ndarray]:
    """Yield every way to split few codewords in two, most balanced first, repeated as often as n_bits asks."""
    if not 2 <= n_codewords <= _ALL_SPLITS_MAX_CODEWORDS:
        return
    # Fixing the sign of the last codeword leaves out complements.
    words = binary_words(np.arange(1, 2 ** (n_codewords - 1)), n_codewords)
    splits = words[np.argsort(np.abs(words.sum(axis=1)), kind="stable")].T
    yield splits if n_bits <= splits.shape[1] else np.resize(splits.T, (n_bits, n_codewords)).T


def _lexicographic_code(words: np.ndarray, distance: int) -> np.ndarray:
    """Take words in order whenever they keep the distance to all words taken before."""
    largest_product = words.shape[1] - 2 * distance
    allowed = np.ones(len(words), dtype=bool)
    taken = []
    while allowed.any():
        taken.append(int(np.argmax(allowed)))
        allowed &= words.astype(np.int32) @ words[taken[-1]] <= largest_product
        allowed[taken[-1]] = False
    return words[taken]


def _farthest_first(pool: np.ndarray, n_codewords: int) -> np.ndarray:
    """Add the word farthest from those taken; among equals the one that balances the columns best."""
    n_bits = pool.shape[1]
    pool_products = pool.astype(np.float32)
    taken = [0]
    nearest = np.full(len(pool), np.inf)
    balance = np.zeros(n_bits, dtype=np.float32)
    while len(taken) < n_codewords:
        last = pool_products[taken[-1]]
        nearest = np.minimum(nearest, (n_bits - pool_products @ last) / 2)
        balance += last
        # A balance score is below 1/2 in size, so it only decides between equal integer distances.
        score = nearest - (pool_products @ balance) / (4 * n_bits * len(taken))
        taken.append(int(np.argmax(score)))
    return pool[taken]


def _best_subset(pool: np.ndarray, n_codewords: int, n_bits: int, rng: np.random.RandomState) -> np.ndarray:
    """Try random rows and columns of a pool; return the best codebook."""
    exact = pool.shape == (n_codewords, n_bits)
    n_tries = 1 if exact else max(8, min(200, _MAX_DISTANCES // n_codewords**2))

    def draw() -> np.ndarray:
        rows = rng.permutation(len(pool))[:n_codewords]
        columns = np.sort(rng.permutation(pool.shape[1])[:n_bits])
        return pool[rows[:, None], columns]

    drawn = np.stack([draw() for _ in range(n_tries)])
    qualities = _qualities(drawn)
    return drawn[max(range(n_tries), key=qualities.__getitem__)]


def _quality(codewords: np.ndarray) -> tuple[int, int, int, int]:
    """Rank codebooks: no constant columns, then distinct columns, then distance, then balance."""
    return _qualities(codewords[None])[0]


def _qualities(codebooks: np.ndarray) -> list[tuple[int, int, int, int]]:
    """Return the qualities of many codebooks at once, shape (n, n_codewords, n_bits); one by one is far slower."""
    n_codewords, n_bits = codebooks.shape[1:]
    sums = np.abs(codebooks.sum(axis=1, dtype=np.int64))
    n_constant = np.sum(sums == n_codewords, axis=1) if n_codewords > 1 else np.zeros(len(codebooks), dtype=np.int64)
    distances = np.full(len(codebooks), n_bits)
    if n_codewords > 1:
        signs = codebooks.astype(np.float32)
        products = signs @ signs.transpose(0, 2, 1)
        products[:, np.eye(n_codewords, dtype=bool)] = -np.inf
        distances = (n_bits - products.max(axis=(1, 2)).astype(np.int64)) // 2
    figures = -n_constant, _count_distinct_columns(codebooks), distances, -sums.sum(axis=1)
    return list(zip(*(each.tolist() for each in figures), strict=True))


def _count_distinct_columns(codebooks: np.ndarray) -> np.ndarray:
    """Return how many columns of each codebook are neither equal nor complementary to an earlier one."""
    # Columns relative to their first sign, as bytes: comparing the columns themselves takes fifty times as long.
    packed = np.packbits(codebooks != codebooks[:, :1], axis=1).transpose(0, 2, 1)
    if packed.shape[2] > 8:
        return np.array([len(set(map(bytes, columns))) for columns in packed])
    words = np.zeros((*packed.shape[:2], 8), dtype=np.uint8)
    words[:, :, : packed.shape[2]] = packed
    ordered = np.sort(words.view(np.uint64)[:, :, 0], axis=1)
    return 1 + np.sum(ordered[:, 1:] != ordered[:, :-1], axis=1)


def _constant_columns(signs: np.ndarray) -> np.ndarray:
    return np.abs(signs.sum(axis=0, dtype=np.int64)) == len(signs)


def _random_signs(n_rows: int, n_columns: int, rng: np.random.RandomState) -> np.ndarray:
    return (2 * rng.randint(0, 2, size=(n_rows, n_columns)) - 1).astype(np.int8)
