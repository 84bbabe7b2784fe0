# What this package uses of scikit-learn's base classes, which come without types. Without these lines every hasher
# would derive from Any, and no attribute of a hasher would be checked.

from typing import Any, Self, TypeVar

import numpy as np
from sklearn.utils import Tags

_Estimator = TypeVar("_Estimator")

def clone(estimator: _Estimator, *, safe: bool = True) -> _Estimator: ...

class BaseEstimator:
    def get_params(self, deep: bool = True) -> dict[str, Any]: ...
    def set_params(self, **params: Any) -> Self: ...
    def __sklearn_tags__(self) -> Tags: ...

class TransformerMixin:
    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any: ...

class ClassNamePrefixFeaturesOutMixin:
    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray: ...
