"""Preprocessing that travels with a model: steps that a model file holds as data, and the hasher that carries them."""

from .extractor import Extractor
from .impute import Impute
from .network import NetworkFeatures
from .one_hot import OneHot
from .picture_files import open_picture, preview_of
from .picture_hasher import picture_hasher
from .pictures import PictureFeatures
from .prepared import PreparedHasher, inner_hasher
from .read_pictures import ReadPictures
from .reduce import Reduce
from .scale import Scale
from .step import Step
from .table import TableFeatures
from .text import Text
from .unit_length import UnitLength

__all__ = [
    "Extractor",
    "Impute",
    "NetworkFeatures",
    "OneHot",
    "PictureFeatures",
    "PreparedHasher",
    "ReadPictures",
    "Reduce",
    "Scale",
    "Step",
    "TableFeatures",
    "Text",
    "UnitLength",
    "inner_hasher",
    "open_picture",
    "picture_hasher",
    "preview_of",
]
