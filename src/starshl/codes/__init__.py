"""Signs, bits and bytes: the one place where bit order, padding and the sign of zero are decided."""

from .binary import BinaryCodes, signs_of

__all__ = ["BinaryCodes", "signs_of"]
