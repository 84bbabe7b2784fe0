"""The codes under which rows are stored as items, with the labels that are known and without them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._types import LabelsLike, SamplesLike
from ..codes import BinaryCodes
from .splits import SplitData

__all__ = ["codes_of_training_rows", "database_codes"]


def codes_of_training_rows(fitted: Any, X: SamplesLike, y: LabelsLike) -> BinaryCodes:
    """Return the codes of the rows that a hasher was fitted on.

    A hasher has seen these rows, so its scores of them are too sure. One that knows better keeps codes for them in
    ``training_codes_``: codewords of labels, and leave-one-out codes of unlabeled rows.
    """
    kept = getattr(fitted, "training_codes_", None)
    # A large fit may keep the codes of some rows only.
    return fitted.encode_database(X, y) if kept is None or len(kept) != np.shape(X)[0] else kept


def database_codes(fitted: Any, data: SplitData, fit_on: str) -> BinaryCodes:
    """Return the codes of the database, whose rows may be the first ones of the fit."""
    if data.X_database is not data.X_train or fit_on == "labeled":
        return fitted.encode_database(data.X_database, data.y_database_known)
    return codes_of_training_rows(fitted, data.X_database, data.y_database_known)[np.arange(len(data.X_train))]
