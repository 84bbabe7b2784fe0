"""ReadPictures: picture files of any size and color mode as arrays of one size."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils import Tags

from .._extras import require
from .._types import LabelsLike
from .._validation import check_choice, check_integer
from .picture_files import LARGEST, open_picture
from .step import Step

__all__ = ["ReadPictures"]

_CHANNELS = 3
_SHAPES = ("whole", "center")
_LARGEST_SIDE = 4096  # pixels: 48 MB per picture


class ReadPictures(Step):
    """Read pictures and bring them to one size, in red, green and blue.

    A picture is a path, the bytes of a JPEG, PNG, WebP, GIF, BMP or TIFF file, an array of uint8, or a Pillow picture.
    There is nothing to learn: ``fit`` only checks the settings.

    Parameters
    ----------
    side : int, default=64
        Height and width of all pictures.
    shape : {"whole", "center"}, default="whole"
        What becomes of pictures that are not square. "whole": everything stays, squeezed; "center": the largest square
        in the middle stays.
    max_pixels : int, default=100,000,000
        Larger pictures are refused before they are decoded.

    Examples
    --------
    >>> import numpy as np
    >>> from starshl.features import ReadPictures
    >>> gray = np.full((30, 40), 128, dtype=np.uint8)
    >>> ReadPictures(side=8).fit().transform([gray]).shape
    (1, 8, 8, 3)
    """

    def __init__(self, side: int = 64, *, shape: str = "whole", max_pixels: int = LARGEST):
        self.side = side
        self.shape = shape
        self.max_pixels = max_pixels

    def fit(self, X: Any = None, y: LabelsLike = None) -> Self:
        """Check the settings."""
        side = check_integer(self.side, "side", low=1, high=_LARGEST_SIDE)
        check_choice(self.shape, "shape", _SHAPES)
        check_integer(self.max_pixels, "max_pixels", low=1)
        self.n_features_in_, self.n_features_out_ = 1, side * side * _CHANNELS
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return an array of shape (n, side, side, 3) of uint8."""
        pictures = np.empty((len(X), self.side, self.side, _CHANNELS), dtype=np.uint8)
        for position, source in enumerate(X):
            pictures[position] = self._resized(source)
        return pictures

    def _resized(self, source: Any) -> np.ndarray:
        image = open_picture(source, side=self.side, max_pixels=self.max_pixels)
        resampling = require("PIL.Image", extra="pictures").Resampling.BICUBIC
        return np.asarray(image.resize((self.side, self.side), resampling, box=self._box(*image.size)))

    def _box(self, width: int, height: int) -> tuple[float, float, float, float]:
        """Return the left, upper, right and lower border of what is kept."""
        if self.shape == "whole":
            return 0, 0, width, height
        shorter = min(width, height)
        left, top = (width - shorter) / 2, (height - shorter) / 2
        return left, top, left + shorter, top + shorter

    def _check_restored(self) -> None:
        self._require_counts()
        self._require(type(self.side) is int and 1 <= self.side <= _LARGEST_SIDE, "side")
        self._require(self.shape in _SHAPES, "shape")
        self._require(type(self.max_pixels) is int and self.max_pixels >= 1, "max_pixels")
        self._require(self.n_features_in_ == 1, "n_features_in_")
        self._require(self.n_features_out_ == self.side * self.side * _CHANNELS, "n_features_out_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.requires_fit = False
        return tags
