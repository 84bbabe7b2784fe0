"""Preprocessing that travels with a model: steps that a model file holds as data, and the hasher that carries them."""

from .impute import Impute
from .one_hot import OneHot
from .picture_hasher import picture_hasher
from .pictures import PictureFeatures
from .prepared import PreparedHasher
from .scale import Scale
from .step import Step
from .table import TableFeatures
from .text import Text

__all__ = [
    "Impute",
    "OneHot",
    "PictureFeatures",
    "PreparedHasher",
    "Scale",
    "Step",
    "TableFeatures",
    "Text",
    "picture_hasher",
]
