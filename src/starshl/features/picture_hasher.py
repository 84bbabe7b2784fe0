"""A hasher of pictures in one line: features, views and hash functions."""

from __future__ import annotations

from collections.abc import Sequence

from sklearn.base import clone

from ..base import BaseHasher
from ..models import StarRidge
from .pictures import PictureFeatures
from .prepared import PreparedHasher

__all__ = ["picture_hasher"]


def picture_hasher(
    shape: Sequence[int], hasher: BaseHasher | None = None, *, parts: Sequence[str] | None = None
) -> PreparedHasher:
    """Return a hasher that takes pictures: their features are computed first, and each kind of them is a view.

    Parameters
    ----------
    shape : (height, width) or (height, width, 3)
    hasher : BaseHasher, default=None
        None is ``StarRidge()``. Hashers without views get all features side by side.
    parts : sequence of {"pixels", "hog", "color"}, default=None
        See :class:`PictureFeatures`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from starshl import StarRidge
    >>> from starshl.features import picture_hasher
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = picture_hasher((8, 8), StarRidge(16, random_state=0)).fit(X[:500], y[:500])
    >>> sorted(hasher.view_weights_)
    ['hog_2', 'pixels']
    >>> hasher.score(X[500:], y[500:]) > 0.95
    True
    """
    features = PictureFeatures(shape, parts=parts)
    inner: BaseHasher = StarRidge() if hasher is None else clone(hasher)
    if "views" in inner.get_params(deep=False):
        inner.set_params(views=features.views)
    return PreparedHasher([features], inner)
