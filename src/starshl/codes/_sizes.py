"""How many bytes packed codes take."""

__all__ = ["n_bytes"]


def n_bytes(n_bits: int) -> int:
    """Return the whole bytes that a packed code of ``n_bits`` bits fills.

    >>> [n_bytes(n_bits) for n_bits in (1, 8, 9, 64)]
    [1, 1, 2, 8]
    """
    return -(-n_bits // 8)
