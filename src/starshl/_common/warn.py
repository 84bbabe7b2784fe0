"""Warnings that point to the line of the user, however deep inside the package they arise."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from pathlib import Path

# A context manager of the package runs below a frame of contextlib.
_PASSED_OVER = (str(Path(__file__).parents[1]) + os.sep, contextlib.__file__)


def warn_caller(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost line outside of the package: the one that called it.

    In Python 3.12 and later, ``skip_file_prefixes`` of ``warnings.warn`` does the same.
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PASSED_OVER):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
