"""Embedder: from raw pictures or texts to the vectors that a hasher takes, as a file that holds no code."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from scipy import sparse
from sklearn.exceptions import NotFittedError

from ..._common.bundle import read_bundle, write_bundle
from ..._common.validation import check_choice
from ...exceptions import BundleFormatError
from .step_files import check_arrays_have_owners, is_built_in, pack_steps, take_probes, unpack_steps

#: What an embedder takes.
RawKind: TypeAlias = Literal["pictures", "texts"]
RAW_KINDS: tuple[str, ...] = get_args(RawKind)


class Embedder:
    """Fitted steps that turn raw pictures or texts into vectors, one after the other.

    A :class:`starshl.Collection` keeps it together with its hasher, so that you can search with a picture or a text.

    Parameters
    ----------
    kind : {"pictures", "texts"}
        What the first step takes: pictures as files, bytes or arrays, or texts as strings.
    steps : list of fitted transformers
        Steps of :mod:`starshl.data.features` are saved as data. Any other object with a ``transform`` method works
        too, but a file holds no code: pass it again to :meth:`load`.
    examples : list of raw pictures or texts, default=None
        A few of them identify transformers that are not in the file when they are passed again.

    Examples
    --------
    >>> from starshl.data.features import Embedder, Text
    >>> texts = ["a red car", "a blue car", "fresh bread"]
    >>> embedder = Embedder("texts", [Text(n_components=2).fit(texts)])
    >>> embedder.transform(["the red car"]).round(1).tolist()
    [[0.8, 0.0]]
    """

    def __init__(self, kind: RawKind, steps: Sequence[Any], examples: Sequence[Any] | None = None) -> None:
        self.kind = check_choice(kind, "kind", RAW_KINDS)
        self.steps = _checked_steps(steps)
        self._probes = take_probes(self.steps, examples)

    @property
    def n_features_out_(self) -> int | None:
        """The number of features of a vector, None if the last step does not say."""
        number = getattr(self.steps[-1], "n_features_out_", None)
        return None if number is None else int(number)

    @property
    def given_steps(self) -> list[Any] | None:
        """The steps that a file cannot hold at their positions, as :meth:`load` takes them; None if it holds all."""
        given = [None if is_built_in(step) else step for step in self.steps]
        return given if any(step is not None for step in given) else None

    def transform(self, raw: Any) -> np.ndarray:
        """Return one vector per picture or text."""
        rows = raw
        for step in self.steps:
            rows = step.transform(rows)
        return np.asarray(rows.toarray() if sparse.issparse(rows) else rows)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the embedder to a file; equal ones make equal files."""
        arrays: dict[str, np.ndarray] = {}
        specs = pack_steps(self.steps, self._probes, arrays)
        write_bundle(path, {"kind": "Embedder", "takes": self.kind, "steps": specs}, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str], steps: Sequence[Any] | None = None) -> Embedder:
        """Read an embedder that :meth:`save` has written.

        Parameters
        ----------
        path : path of the file
        steps : list, default=None
            One entry per step: the transformers that the file cannot hold at their positions, None for the others.
        """
        header, arrays = read_bundle(path)
        if header.get("kind") != "Embedder":
            raise BundleFormatError(
                "{file} does not hold an embedder",
                advice="Read a hasher with starshl.load.",
                file=repr(os.fspath(path)),
            )
        try:
            check_arrays_have_owners(header["steps"], arrays)
            loaded, probes = unpack_steps(header["steps"], arrays, steps, "steps=[...]")
            embedder = cls(header["takes"], loaded)
        except ValueError:
            raise
        except Exception as error:  # a header that anyone may have written can lack or misplace anything
            raise BundleFormatError.damaged(f"it does not hold a complete embedder ({error!r})", path) from error
        embedder._probes = probes
        return embedder


def _checked_steps(steps: Sequence[Any]) -> list[Any]:
    """Return the steps, if each takes what the one before it gives."""
    if isinstance(steps, str) or not isinstance(steps, Sequence) or not steps:
        raise ValueError(f"steps is {steps!r}; give a list of one or more fitted transformers.")
    n_features: int | None = None
    for position, step in enumerate(steps):
        if not hasattr(step, "transform"):
            raise ValueError(f"steps[{position}] is of type {type(step).__name__}; it must have transform.")
        if is_built_in(step) and not step.__sklearn_is_fitted__():
            raise NotFittedError(f"steps[{position}], a {type(step).__name__}, is not fitted yet. Call fit first.")
        taken = getattr(step, "n_features_in_", None)
        if n_features is not None and taken is not None and taken != n_features:
            raise ValueError(
                f"steps[{position}], a {type(step).__name__}, takes {taken} features and gets {n_features}. Fit the "
                "steps one after the other."
            )
        n_features = getattr(step, "n_features_out_", None)
    return list(steps)
