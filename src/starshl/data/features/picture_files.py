"""Picture files: read within limits that are checked before decoding, brought to one size, and made into previews."""

from __future__ import annotations

import io
import math
import os
import stat
import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeAlias, get_args

import numpy as np

from ..._common.extras import require
from ..._common.labels import LabelsLike
from ..._common.threads import run_all
from ..._common.validation import check_choice, check_integer
from ...exceptions import PictureError
from .step import Reader

if TYPE_CHECKING:
    from PIL.Image import Image

#: What becomes of pictures that are not square.
SquareShape: TypeAlias = Literal["whole", "center"]


class _Kind(NamedTuple):
    """What Pillow calls a kind of picture file, and what names and media types say."""

    decoder: str
    endings: tuple[str, ...]
    media_type: str


# Nothing else is decoded, whatever a file is called: Pillow has many more decoders, and few of them are looked after.
_KINDS = {
    "JPEG": _Kind("JPEG", (".jpg", ".jpeg"), "image/jpeg"),
    "PNG": _Kind("PNG", (".png",), "image/png"),
    "WebP": _Kind("WEBP", (".webp",), "image/webp"),
    "GIF": _Kind("GIF", (".gif",), "image/gif"),
    "BMP": _Kind("BMP", (".bmp",), "image/bmp"),
    "TIFF": _Kind("TIFF", (".tif", ".tiff"), "image/tiff"),
}
LARGEST = 100_000_000  # pixels of a picture
SMALLEST = 4  # pixels along its shorter side
PREVIEW_SIDE = 256  # pixels: enough to judge a picture on a card of the explorer, about 11 kB as WebP
#: The kinds of picture files that are read, in words, by the ends of their names, and as media types.
KINDS = f"{', '.join([*_KINDS][:-1])} or {[*_KINDS][-1]}"
ENDINGS = tuple(ending for kind in _KINDS.values() for ending in kind.endings)
MEDIA_TYPES = tuple(kind.media_type for kind in _KINDS.values())
_DECODERS = tuple(kind.decoder for kind in _KINDS.values())
_TILE_SIZE = (322, 323)  # tags of a TIFF file
_LOSSLESS_SIDE = 64  # up to which a preview keeps every pixel: it will be shown enlarged
_LARGEST_SIDE = 4096  # pixels: 48 MB per picture
_CHANNELS = 3
_WHITE = (255, 255, 255, 255)


def is_picture_file(path: Path) -> bool:
    """Return whether a file is a picture that is read here by its ending."""
    return path.suffix.lower() in ENDINGS


def open_picture(source: Any, *, side: int | None = None, max_pixels: int = LARGEST, name: str | None = None) -> Image:
    """Read a picture: upright as its EXIF tag says, in red, green and blue, on white where it is transparent.

    Parameters
    ----------
    source : path, bytes of a file, array of uint8 or Pillow picture
        Files are JPEG, PNG, WebP, GIF, BMP or TIFF; of several pictures in one file, the first counts. Arrays have the
        shape (height, width), or (height, width, 3) with red, green and blue.
    side : int, default=None
        Decode just enough of a JPEG for pictures of this side, which is much faster if it is large.
    max_pixels : int, default=100,000,000
        Larger pictures are refused before they are decoded.
    name : str, default=None
        What errors call the file; None is its path.
    """
    images = require("PIL.Image", extra="pictures")
    if isinstance(source, images.Image):
        _check_size(source.size, "The picture", max_pixels)
        return _upright_rgb(source, "The picture")
    if isinstance(source, np.ndarray):
        return images.fromarray(_checked_array(source, max_pixels)).convert("RGB")
    name = name or _name_of(source)
    if not isinstance(source, bytes):
        _check_regular(source, name)
    try:
        with warnings.catch_warnings():
            # Pillow warns from 89 megapixels on; the limit here is checked below.
            warnings.simplefilter("ignore")
            image = images.open(io.BytesIO(source) if isinstance(source, bytes) else source, formats=_DECODERS)
            _check_size(image.size, name, max_pixels)
            _check_tiles(image, name, max_pixels)
            if side is not None:
                image.draft(None, (2 * side, 2 * side))
            return _upright_rgb(image, name)
    except images.DecompressionBombError as error:
        raise PictureError(f"{name} is too large ({error}). {_allowed(max_pixels)}") from error
    except PictureError:
        raise
    except FileNotFoundError:
        raise
    except Exception as error:  # a file that anyone may have made can fail anywhere in a decoder
        raise PictureError(
            f"{name} is not a picture that can be read ({_reason(error)}). Give a complete {KINDS} file."
        ) from error


def _check_regular(source: Any, name: str) -> None:
    """Refuse a pipe, a socket or a device: to open one could wait for ever."""
    try:
        kind = stat.S_IFMT(os.stat(source).st_mode)
    except (OSError, TypeError, ValueError):
        return  # what cannot be opened says so itself
    if kind not in (stat.S_IFREG, stat.S_IFDIR):
        raise PictureError(f"{name} is a pipe, a socket or a device, not a file. Give a complete {KINDS} file.")


def preview_of(source: Any, side: int = PREVIEW_SIDE) -> bytes:
    """Return a picture that fits into ``side`` x ``side`` pixels, as the bytes of a WebP file.

    Small pictures are not enlarged, and keep every pixel as it is.
    """
    image = open_picture(source, side=side)
    image.thumbnail((side, side))
    file = io.BytesIO()
    image.save(file, "WEBP", quality=80, method=2, lossless=max(image.size) <= _LOSSLESS_SIDE)
    return file.getvalue()


class ReadPictures(Reader):
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
    >>> from starshl.data.features import ReadPictures
    >>> gray = np.full((30, 40), 128, dtype=np.uint8)
    >>> ReadPictures(side=8).fit().transform([gray]).shape
    (1, 8, 8, 3)
    """

    def __init__(self, side: int = 64, *, shape: SquareShape = "whole", max_pixels: int = LARGEST):
        self.side = side
        self.shape = shape
        self.max_pixels = max_pixels

    def fit(self, X: Any = None, y: LabelsLike = None) -> Self:
        """Check the settings."""
        side = check_integer(self.side, "side", low=1, high=_LARGEST_SIDE)
        check_choice(self.shape, "shape", get_args(SquareShape))
        check_integer(self.max_pixels, "max_pixels", low=1)
        self.n_features_in_, self.n_features_out_ = 1, side * side * _CHANNELS
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return an array of shape (n, side, side, 3) of uint8."""
        pictures = np.empty((len(X), self.side, self.side, _CHANNELS), dtype=np.uint8)

        def fill(position: int, source: Any) -> None:
            pictures[position] = self._resized(source)

        run_all([partial(fill, position, source) for position, source in enumerate(X)])
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
        self._require(self.shape in get_args(SquareShape), "shape")
        self._require(type(self.max_pixels) is int and self.max_pixels >= 1, "max_pixels")
        self._require(self.n_features_in_ == 1, "n_features_in_")
        self._require(self.n_features_out_ == self.side * self.side * _CHANNELS, "n_features_out_")


def _upright_rgb(image: Image, name: str) -> Image:
    """Return the first picture of a file, decoded, turned upright, without transparency, as RGB."""
    images, operations = require("PIL.Image", extra="pictures"), require("PIL.ImageOps", extra="pictures")
    image.load()
    try:
        image = operations.exif_transpose(image)
    except Exception:  # a damaged tag says nothing about which side is up
        image.getexif().clear()
    if image.mode == "F":
        raise PictureError(
            f"{name} holds floating-point numbers, of which nobody can say which is white. Colors are whole numbers of "
            "8 or 16 bits. Convert it."
        )
    if image.mode.startswith("I"):
        # Pillow would cut 16-bit gray levels off at 255.
        image = images.fromarray((np.asarray(image).clip(0, 65535) // 257).astype(np.uint8))
    if image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        clear = image.convert("RGBA")
        image = images.alpha_composite(images.new("RGBA", clear.size, _WHITE), clear)
    return image if image.mode == "RGB" else image.convert("RGB")


def _checked_array(array: np.ndarray, max_pixels: int) -> np.ndarray:
    if array.dtype != np.uint8 or array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] != 3):
        raise PictureError(
            f"The picture is an array of {array.dtype} of shape {array.shape}; it must be uint8, from 0 to 255, of "
            "shape (height, width) or (height, width, 3). Convert it."
        )
    _check_size((array.shape[1], array.shape[0]), "The picture", max_pixels)
    return np.ascontiguousarray(array)


def _check_size(size: tuple[int, int], name: str, max_pixels: int) -> None:
    width, height = size
    if min(size) < SMALLEST:
        raise PictureError(
            f"{name} has {width} x {height} pixels, too few to see anything. A picture needs at least {SMALLEST} x "
            f"{SMALLEST}. Give a larger one."
        )
    if width * height > max_pixels:
        raise PictureError(f"{name} has {width:,} x {height:,} pixels, which is too large. {_allowed(max_pixels)}")


def _check_tiles(image: Image, name: str, max_pixels: int) -> None:
    """Refuse a TIFF whose tiles are larger than a picture may be: a decoder makes room for a whole one."""
    tags = getattr(image, "tag_v2", {})
    tile = [tags.get(tag, 0) for tag in _TILE_SIZE]
    if math.prod(tile) > max_pixels:
        raise PictureError(f"{name} has tiles of {tile[0]:,} x {tile[1]:,} pixels. {_allowed(max_pixels)}")


def _allowed(max_pixels: int) -> str:
    return f"Up to {max_pixels / 1e6:g} megapixels are allowed. Make it smaller."


def _name_of(source: Any) -> str:
    if isinstance(source, bytes):
        return "The picture"
    if not isinstance(source, str | os.PathLike):
        raise TypeError(
            f"A picture is of type {type(source).__name__}; it must be a path, the bytes of a file, an array of uint8 "
            "or a Pillow picture."
        )
    return repr(os.fspath(source))


def _reason(error: Exception) -> str:
    # Pillow names the object in memory where it knows no file name, and the system a path that the caller may not use.
    if type(error).__name__ == "UnidentifiedImageError":
        return "it is of another kind"
    return (isinstance(error, OSError) and error.strerror) or str(error).rstrip(".")
