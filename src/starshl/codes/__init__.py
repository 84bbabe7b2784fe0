"""Signs, bits and bytes: the one place where bit order, padding and the sign of zero are decided."""

from ._sizes import n_bytes
from .binary import BinaryCodes, signs_of
from .space import check_space_id, make_space_id

__all__ = ["BinaryCodes", "check_space_id", "make_space_id", "n_bytes", "signs_of"]
