"""Preprocessing that travels with a model: steps that a model file holds as data, and the hasher that carries them."""

from .impute import Impute
from .one_hot import OneHot
from .prepared import PreparedHasher
from .scale import Scale
from .step import Step
from .table import TableFeatures
from .text import Text

__all__ = ["Impute", "OneHot", "PreparedHasher", "Scale", "Step", "TableFeatures", "Text"]
