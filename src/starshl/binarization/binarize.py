"""Turn vectors into a collection of codes, with the comparison stored in it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from .._files import write_atomically
from .._metadata import check_metadata
from .._types import LabelsLike, Seed
from .._validation import check_labels
from ..base import BaseHasher
from ..codes import BinaryCodes
from ..collection.entries import reference_texts
from ..collection.filling import appearing_collection
from ..collection.labels import label_texts
from ..evaluation.items import codes_of_training_rows
from ..index.base import check_ids
from ..lengths import at_length
from .choice import choose_hasher
from .compare import compare_choice
from .comparison import Comparison
from .page import write_page
from .rows_shown import find_titles, guess_picture_shape
from .split import hold_out

__all__ = ["binarize", "codes_of_vectors"]


def binarize(
    folder: str | os.PathLike[str],
    X: ArrayLike,
    y: LabelsLike = None,
    *,
    hasher: BaseHasher | None = None,
    n_bits: int | Sequence[int] | None = None,
    ids: ArrayLike | None = None,
    metadata: Sequence[Mapping[str, Any]] | None = None,
    references: Sequence[str | None] | None = None,
    n_queries: int | None = None,
    random_state: Seed = 0,
    feature_names: Sequence[str] | None = None,
) -> Comparison:
    """Turn vectors into a searchable collection and compare its codes with the vectors themselves.

    The hasher is compared on held-out queries with float search and with the plain binarizers of the catalog at equal
    length (:func:`compare`), then fitted on all rows, and the collection of all rows is written, completely or not at
    all.

    Parameters
    ----------
    folder : path
        The new collection; it also holds the comparison, as ``comparison.html``, ``comparison.md`` and
        ``comparison.json``.
    X : array of shape (n_items, n_features)
    y : array of shape (n_items,), default=None
        Labels; -1, NaN, None or empty text where there is none.
    hasher : BaseHasher, default=None
        Not fitted. None is HybridHasher if a row has a label. Without labels it is HybridHasher with clusters or ITQ,
        whichever measures better on held-out rows; ``choice`` of the result says why.
    n_bits : int or sequence of int, default=None
        Length of the codes of all methods compared. With several lengths, all are compared, and the collection gets the
        shortest one that is good enough; ``length_choice`` says why. None is the length of the given hasher, or 32, or
        fewer if the rows do not allow that many.
    ids, metadata, references : as in :meth:`starshl.Collection.add`
    n_queries : int, default=None
        Rows to hold out: a tenth, at most 1,000, by default.
    random_state : int, default=0
        Which rows are held out.
    feature_names : sequence of str, default=None
        Names of the columns of X, kept with the hasher, so that later tables may have them in any order.
    """
    if Path(folder).exists():
        raise FileExistsError(f"{os.fspath(folder)!r} exists already. Choose another folder.")
    # Before fitting, which may take hours.
    n_items = np.shape(X)[0]
    if ids is not None:
        ids = check_ids(ids, n_items)
    check_metadata(metadata, n_items)
    reference_texts(references, n_items)
    label_texts(y, n_items)
    split = hold_out(X, y, n_queries, random_state)
    choice = choose_hasher(split, hasher, n_bits)
    comparison = compare_choice(split, choice)
    is_settled = len(choice.lengths) == 1
    chosen = choice.hasher if is_settled else at_length(choice.hasher, comparison.n_bits)
    fitted = _fit(chosen, X, y, feature_names)
    codes = codes_of_vectors(fitted, X, y)
    with appearing_collection(folder, fitted) as collection:
        # The codes of labels follow from the labels, which are stored.
        collection.add(codes=codes, labels=y, ids=ids, metadata=metadata, references=references)
        write_atomically(collection.folder / "comparison.md", comparison.page().encode())
        write_atomically(collection.folder / "comparison.json", json.dumps(comparison.as_dict(), indent=1).encode())
        titles = None if guess_picture_shape(split.X) else find_titles(metadata, references)
        write_page(collection.folder / "comparison.html", comparison, split.X, titles=titles)
    return comparison


def codes_of_vectors(fitted: BaseHasher, X: ArrayLike, y: LabelsLike) -> BinaryCodes:
    """Return the codes that the items have without their labels; unlabeled ones keep those of the fit."""
    alone = fitted.encode_database(X)
    labeled = check_labels(y, len(alone)).labeled
    packed = np.where(labeled[:, None], alone.packed, codes_of_training_rows(fitted, X, y).packed)
    return fitted.as_codes(packed)


def _fit(hasher: BaseHasher, X: ArrayLike, y: LabelsLike, feature_names: Sequence[str] | None) -> BaseHasher:
    """Return a copy of the hasher, fitted on all rows."""
    fitted = clone(hasher).fit(X, y)
    if feature_names is not None:
        fitted.feature_names_in_ = np.array(feature_names, dtype=object)
    return fitted
