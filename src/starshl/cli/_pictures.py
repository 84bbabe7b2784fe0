"""Small gray images as text."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

__all__ = ["draw_side_by_side"]

_BLOCKS, _ASCII = " ░▒▓█", " .:+#"


def draw_side_by_side(images: np.ndarray, captions: Sequence[str], *, blocks: bool | None = None) -> str:
    """Draw images of shape (n, height, width) with values from 0 to 1, each under its caption.

    ``blocks`` asks for block characters, by default where standard output can print them.

    Examples
    --------
    >>> import numpy as np
    >>> print(draw_side_by_side(np.eye(2)[None], ["unit"], blocks=False))
    unit
    ##
      ##
    """
    if blocks is None:
        blocks = _can_print_blocks()
    shades = np.array(list(_BLOCKS if blocks else _ASCII))
    levels = np.clip((images * len(shades)).astype(int), 0, len(shades) - 1)
    # A character is about twice as high as wide, so a pixel takes two.
    drawings = [["".join(np.repeat(shades[row], 2)) for row in image] for image in levels]
    width = 2 * images.shape[2]
    columns = [[caption, *drawing] for caption, drawing in zip(captions, drawings, strict=True)]
    lines = (" ".join(cell[:width].ljust(width) for cell in line) for line in zip(*columns, strict=True))
    return "\n".join(line.rstrip() for line in lines)


def _can_print_blocks() -> bool:
    try:
        _BLOCKS.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True
