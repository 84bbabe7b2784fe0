"""Signs, bits and bytes: the one place where bit order, padding and the sign of zero are decided."""

from ._sizes import n_bytes
from .binary import BinaryCodes, signs_of

__all__ = ["BinaryCodes", "n_bytes", "signs_of"]
