"""PictureFeatures: pixels, shapes and colors of pictures in one matrix, and which columns are which."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Self

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from ..._common.labels import LabelsLike
from ..._common.threads import run_all, tiles
from ..._common.validation import SamplesLike, check_choice, check_integer, check_n_jobs
from ._picture_loops import fill_color, fill_hog
from .step import Step

COLOR_BINS = (8, 4, 4)  # of hue, saturation and value; by leave-one-out on training pictures of CIFAR-10
GRAY_BINS = 16  # not tuned: gray levels are off by default
CELLS_PER_BLOCK = 2  # with nine orientations of half a circle, what Dalal and Triggs 2005 found best
_DEGREES = 20  # per orientation
# Cells along the shorter side. By leave-one-out on training pictures of MNIST and CIFAR-10, both together beat each
# alone, and signs help in the coarse cells only.
_GRIDS = (7, 4)
_SMALLEST_CELL = 2  # pixels
_PARTS = ("pixels", "hog", "color")
_WHITES = (1, 255, 65535)  # of floats, bytes and 16-bit pictures
_GRAY, _COLORS = 1, 3  # channels
_TILE = 256  # pictures that one thread does at a time


class PictureFeatures(Step):
    """Turn pictures into one row of features each: pixels, histograms of oriented gradients, and colors.

    ``views`` says which columns belong together, for the parameter of that name of :class:`starshl.StarRidge` and
    :class:`starshl.StarSHL`; :func:`starshl.hashers.picture_hasher` puts both together.

    Parameters
    ----------
    shape : (height, width) or (height, width, 3), default=None
        Of one picture, gray or with red, green and blue. Needed where pictures come as flat rows; None takes it from
        arrays of shape (n, height, width) or (n, height, width, 3).
    parts : sequence of {"pixels", "hog", "color"}, default=None
        "pixels": all values, from 0 (black) to 1 (white); "hog": histograms of oriented gradients, which see shapes
        whatever the brightness; "color": shares of colors, or of gray levels in gray pictures. None is all three for
        color pictures and the first two for gray ones.
    cells : sequence of int, default=None
        Sides of the cells of "hog" in pixels, each of which is a separate view; the largest of several also tells
        bright on dark from dark on bright. None takes a seventh and a quarter of the shorter side of a picture.
    n_jobs : int, default=None
        Number of threads; None means one, -1 means all. Results do not depend on it.

    Attributes
    ----------
    shape_ : array of three integers, the height, width and number of channels of a picture
    white_ : the value of white in the pictures of the fit: 1, 255 or 65,535

    Examples
    --------
    >>> from starshl.data.features import PictureFeatures
    >>> step = PictureFeatures((28, 28))
    >>> step.views
    {'pixels': slice(0, 784, None), 'hog_4': slice(784, 2080, None), 'hog_7': slice(2080, 2728, None)}
    """

    shape_: np.ndarray
    white_: int

    def __init__(
        self,
        shape: Sequence[int] | None = None,
        *,
        parts: Sequence[str] | None = None,
        cells: Sequence[int] | None = None,
        n_jobs: int | None = None,
    ):
        self.shape = shape
        self.parts = parts
        self.cells = cells
        self.n_jobs = n_jobs

    @property
    def views(self) -> dict[str, slice]:
        """The columns of each part of the features; known before ``fit`` if ``shape`` is given."""
        if not hasattr(self, "shape_") and self.shape is None:
            raise ValueError(
                "The views of pictures depend on their shape. Give it, for example PictureFeatures((32, 32, 3)), or "
                "call fit first."
            )
        height, width, n_channels = self.shape_.tolist() if hasattr(self, "shape_") else _check_shape(self.shape)
        sizes: dict[str, int] = {}
        for part in self._checked_parts(n_channels):
            if part == "pixels":
                sizes["pixels"] = height * width * n_channels
            elif part == "color":
                sizes["color"] = GRAY_BINS if n_channels == _GRAY else int(np.prod(COLOR_BINS))
            else:
                cells = self._checked_cells(height, width)
                sizes |= {f"hog_{c}": n_hog_features(height, width, c, signed=_is_signed(c, cells)) for c in cells}
        ends = np.cumsum(list(sizes.values())).tolist()
        return {name: slice(end - size, end) for (name, size), end in zip(sizes.items(), ends, strict=True)}

    def fit(self, X: SamplesLike, y: LabelsLike = None) -> Self:
        """Learn the shape of the pictures and the value of white."""
        check_n_jobs(self.n_jobs)
        pictures = self._read(X, fitting=True)
        self.shape_ = np.array(pictures.shape[1:], dtype=np.int64)
        self.white_ = next(white for white in _WHITES if pictures.max() <= white)
        self.n_features_out_ = max(view.stop for view in self.views.values())
        return self

    def transform(self, X: SamplesLike) -> np.ndarray:
        """Return the features of pictures, shape (n, n_features_out_), float32."""
        check_is_fitted(self)
        pictures = self._read(X, fitting=False)
        features = np.empty((len(pictures), self.n_features_out_), dtype=np.float32)
        scaled = pictures.astype(np.float32) / np.float32(self.white_)
        for name, columns in self.views.items():
            features[:, columns] = self._part(name, scaled)
        return features

    def _part(self, name: str, pictures: np.ndarray) -> np.ndarray:
        if name == "pixels":
            return pictures.reshape(len(pictures), -1)
        if name == "color":
            features = gray_features if pictures.shape[-1] == _GRAY else color_features
            return features(pictures, self.n_jobs)
        cell, is_signed = self.cell_of(name)
        return hog_features(pictures, cell, self.n_jobs, signed=is_signed)

    def cell_of(self, view: str) -> tuple[int, bool]:
        """Return the side of the cells of a view "hog_...", and whether it tells bright on dark from the opposite."""
        cell, cells = int(view.removeprefix("hog_")), self._checked_cells(*self.shape_.tolist()[:2])
        return cell, _is_signed(cell, cells)

    def _read(self, X: SamplesLike, *, fitting: bool) -> np.ndarray:
        """Return pictures as an array of shape (n, height, width, n_channels) of numbers from 0 on."""
        shape = self._shape_of(X, fitting=fitting)
        if np.ndim(X) != 2:
            X = np.asarray(X).reshape(len(np.asarray(X)), -1)
        rows = validate_data(self, X, reset=fitting, dtype="numeric", ensure_min_samples=1)
        if rows.shape[1] != np.prod(shape):
            raise ValueError(
                f"X has {rows.shape[1]} columns, and pictures of shape {shape} have {int(np.prod(shape))} values. Give "
                "the shape of the pictures."
            )
        least, largest = rows.min(), rows.max()
        limit = max(_WHITES) if fitting else self.white_
        if least < 0 or largest > limit:
            raise ValueError(
                f"X has values from {least:g} to {largest:g}; those of pictures go from 0 for black to at most "
                f"{limit:,} for white, on one scale for all pictures. Rescale them."
            )
        return rows.reshape(len(rows), *shape)

    def _shape_of(self, X: SamplesLike, *, fitting: bool) -> tuple[int, int, int]:
        """Return the height, width and number of channels of pictures, or say how they must come."""
        known = None if self.shape is None else _check_shape(self.shape)
        if not fitting:
            known = tuple(self.shape_.tolist())
        own = np.shape(X)[1:]
        if len(own) == 1 and known is None:
            raise ValueError(
                f"X has flat rows of {own[0]} values, whose shape is not known. Give shape=(height, width) or "
                "(height, width, 3)."
            )
        if len(own) == 1:
            assert known is not None
            return known
        if len(own) not in (2, 3):
            raise ValueError(
                f"X has shape {np.shape(X)}; give flat rows, or pictures of shape (n, height, width) or "
                "(n, height, width, 3)."
            )
        given = _check_shape(own)
        if known is not None and given != known:
            raise ValueError(f"X has pictures of shape {given}, and {known} is expected. Resize them.")
        return given

    def _checked_parts(self, n_channels: int) -> tuple[str, ...]:
        if self.parts is None:
            return _PARTS if n_channels == _COLORS else _PARTS[:-1]
        parts = tuple(self.parts) if not isinstance(self.parts, str) else (self.parts,)
        unknown = [part for part in parts if part not in _PARTS]
        if unknown or len(set(parts)) < len(parts) or not parts:
            raise ValueError(
                f"parts is {self.parts!r}; choose one or more of {', '.join(map(repr, _PARTS))}, once each."
            )
        return parts

    def _checked_cells(self, height: int, width: int) -> list[int]:
        shorter = min(height, width)
        if self.cells is None:
            cells = sorted({max(_SMALLEST_CELL, shorter // grid) for grid in _GRIDS})
        else:
            cells = [check_integer(cell, "cells", low=1) for cell in self.cells]
        if not cells or len(set(cells)) < len(cells) or any(n_hog_features(height, width, cell) == 0 for cell in cells):
            raise ValueError(
                f"A picture of {height} x {width} pixels cannot have cells of {cells} pixels: 'hog' needs 2 x 2 cells "
                "or more, and sizes that differ. Give smaller cells, larger pictures, or parts without 'hog'."
            )
        return cells

    def _check_restored(self) -> None:
        self._require_counts()
        shape = getattr(self, "shape_", None)
        self._require(isinstance(shape, np.ndarray) and shape.dtype == np.int64 and shape.shape == (3,), "shape_")
        self._require(bool(np.all(self.shape_ >= 1)) and int(self.shape_[2]) in (_GRAY, _COLORS), "shape_")
        self._require(int(np.prod(self.shape_.astype(object))) == self.n_features_in_, "shape_")
        self._require(type(self.white_) is int and self.white_ in _WHITES, "white_")
        try:
            n_features = max(view.stop for view in self.views.values())
        except (TypeError, ValueError):
            n_features = None
        self._require(n_features == self.n_features_out_, "n_features_out_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.positive_only = True
        return tags


def _is_signed(cell: int, cells: list[int]) -> bool:
    return len(cells) > 1 and cell == max(cells)


def _check_shape(shape: Sequence[int] | None) -> tuple[int, int, int]:
    sides = tuple(check_integer(side, "shape", low=1) for side in shape or ())
    if len(sides) == 2:
        return sides[0], sides[1], _GRAY
    if len(sides) != 3 or sides[2] not in (_GRAY, _COLORS):
        raise ValueError(
            f"shape is {shape}; give (height, width) of gray pictures, or (height, width, 3) of pictures with red, "
            "green and blue."
        )
    return sides[0], sides[1], sides[2]


# Histograms of oriented gradients: the shapes in a picture, whatever its brightness and contrast.


def hog_features(
    pictures: np.ndarray, cell: int, n_jobs: int | None = None, *, signed: bool = False, votes: str = "shared"
) -> np.ndarray:
    r"""Return histograms of oriented gradients, shape (n, n_features), float32 (Dalal and Triggs 2005).

    The gradient of a pixel, :math:`(I_{i+1,j} - I_{i-1,j}, I_{i,j+1} - I_{i,j-1})`, adds its length to the histogram
    of its cell of ``cell`` x ``cell`` pixels, over orientations of 20 degrees; of several channels, the longest
    gradient counts. All blocks of 2 x 2 cells are divided by their length, cut off at .2, and divided by their length
    again.

    Parameters
    ----------
    pictures : array of shape (n, height, width, n_channels), from 0 to 1
    cell : int
    n_jobs : number of threads
    signed : bool, default=False
        Tell bright on dark from dark on bright: 18 orientations instead of nine.
    votes : {"shared", "whole"}, default="shared"
        Where the length of a gradient goes. "shared": to the nearest two orientations in the nearest four cells, in
        proportion to how near they are, as in the paper; on MNIST this leaves a fifth fewer training rows in the wrong
        class by leave-one-out, and on CIFAR-10 a twelfth fewer. "whole": to one cell and orientation; pixels beyond the
        last whole cell are left out. This equals ``skimage.feature.hog``.
    """
    check_choice(votes, "votes", ("shared", "whole"))
    n_pictures, height, width, _ = pictures.shape
    features = np.empty((n_pictures, n_hog_features(height, width, cell, signed=signed)), dtype=np.float32)
    turn = 2 * np.pi if signed else np.pi

    def fill(tile: slice) -> None:
        block = np.ascontiguousarray(pictures[tile], dtype=np.float64)
        fill_hog(block, n_orientations(signed), turn, cell, CELLS_PER_BLOCK, votes == "shared", features[tile])

    run_all([partial(fill, tile) for tile in tiles(n_pictures, _TILE)], n_jobs)
    return features


def n_hog_features(height: int, width: int, cell: int, *, signed: bool = False) -> int:
    """Return how many features a picture has in cells of this size; none if it has fewer than 2 x 2 cells.

    Examples
    --------
    >>> n_hog_features(28, 28, 7)  # 3 x 3 blocks of 2 x 2 cells of 9 orientations
    324
    """
    blocks = [max(0, side // cell - CELLS_PER_BLOCK + 1) for side in (height, width)]
    return blocks[0] * blocks[1] * CELLS_PER_BLOCK**2 * n_orientations(signed)


def n_orientations(signed: bool) -> int:
    """Return the number of orientations in half a circle, or in a whole one if bright on dark is told apart."""
    return (360 if signed else 180) // _DEGREES


# Color histograms: which colors a picture has, wherever they are.


def color_features(pictures: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
    """Return the roots of the shares of pixels in 8 x 4 x 4 bins of hue, saturation and value, (n, 128), float32.

    Between the roots of histograms, Euclidean distances are Hellinger distances, which suit shares better.

    Parameters
    ----------
    pictures : array of shape (n, height, width, 3), red, green and blue from 0 to 1
    n_jobs : number of threads
    """

    def read(block: np.ndarray) -> np.ndarray:
        return to_hsv(block.reshape(len(block), -1, 3))

    return _histograms(pictures, read, COLOR_BINS, n_jobs)


def gray_features(pictures: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
    """Return the roots of the shares of pixels in 16 bins of gray, (n, 16), float32; see :func:`color_features`."""

    def read(block: np.ndarray) -> np.ndarray:
        flat = block.reshape(len(block), -1)
        return np.stack([np.zeros_like(flat), np.zeros_like(flat), flat], axis=-1)

    return _histograms(pictures, read, (1, 1, GRAY_BINS), n_jobs)


def _histograms(
    pictures: np.ndarray, read: Callable[[np.ndarray], np.ndarray], bins: tuple[int, int, int], n_jobs: int | None
) -> np.ndarray:
    counts = np.zeros((len(pictures), int(np.prod(bins))), dtype=np.float64)

    def fill(tile: slice) -> None:
        fill_color(read(np.ascontiguousarray(pictures[tile], dtype=np.float64)), bins, counts[tile])

    run_all([partial(fill, tile) for tile in tiles(len(pictures), _TILE)], n_jobs)
    return np.sqrt(counts).astype(np.float32)


def to_hsv(pictures: np.ndarray) -> np.ndarray:
    """Return hue, saturation and value of RGB pictures, (..., 3), all from 0 to 1 as in ``skimage.color.rgb2hsv``.

    Examples
    --------
    >>> to_hsv(np.array([0.0, 0.5, 0.0])).round(2).tolist()  # dark green
    [0.33, 1.0, 0.5]
    """
    value, least = pictures.max(axis=-1), pictures.min(axis=-1)
    spread = value - least
    saturation = np.divide(spread, value, out=np.zeros_like(value), where=value > 0)
    red, green, blue = np.moveaxis(pictures, -1, 0)
    # The largest channel tells the third of the color circle, the other two where in it.
    turns = np.select([value == red, value == green], [green - blue, blue - red], red - green)
    turns = np.divide(turns, spread, out=np.zeros_like(value), where=spread > 0)
    thirds = np.select([value == red, value == green], [0.0, 2.0], 4.0)
    hue = np.where(spread > 0, (turns + thirds) / 6.0 % 1.0, 0.0)
    return np.stack([hue, saturation, value], axis=-1)
