"""Embedder: from raw texts or pictures to the vectors that a hasher takes, as a file that holds no code."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Any, Self, TypeAlias, cast

import numpy as np
from scipy import sparse
from sklearn.exceptions import NotFittedError

from ..._common.bundle import read_bundle, write_bundle
from ..._common.files import array_digest
from ..._common.threads import tiles
from ..._common.validation import check_choice
from ...exceptions import BundleFormatError, ChecksumError
from .function import PROBED, Function
from .kinds import RAW_KINDS, RawKind
from .reading import cut_note, read_items, through
from .registry import named_steps, wrong_kind
from .step import Reader
from .step_files import check_arrays_have_owners, is_built_in, pack_steps, take_probes, unpack_steps

#: A step that a file cannot hold, passed again: a function or a transformer, an embedder that has it, or a list of all.
Given: TypeAlias = "Embedder | Callable[[list[Any]], Any] | Sequence[Any] | Any"
_PORTION = 1024  # rows that steps after the reading ones take at a time


class Embedder:
    """A name, and the steps that turn raw texts, pictures or rows into vectors, one after the other.

    The first steps read items: they are networks and readers of picture files, and learn nothing. Those after them may
    learn from the items, as the words of ``tfidf``. :func:`make_embedder` makes those that have a name. A
    :class:`starshl.Collection` keeps its embedder beside its hasher, so that you can search with a picture or a text.

    Parameters
    ----------
    takes : {"texts", "pictures", "rows"}, or several in a sequence
        What items are: texts as strings, pictures as files, bytes, arrays or Pillow pictures, rows as a matrix.
    steps : list
        Steps of :mod:`starshl.data.features`, which are saved as data; other transformers; and functions from a list of
        texts or Pillow pictures, or from a matrix of rows, to a matrix with one row for each. A file holds no code:
        pass such transformers and functions again to :meth:`load`.
    examples : list of raw items, default=None
        A few of them identify transformers that are not in the file when they are passed again; functions of texts or
        pictures need none.
    name : str, default=None
        None is the names of the steps.

    Attributes
    ----------
    takes : tuple of what it takes
    name : str

    Examples
    --------
    >>> from starshl.data.features import Embedder, Text
    >>> texts = ["a red car", "a blue car", "fresh bread"]
    >>> embedder = Embedder("texts", [Text(n_components=2)]).fit(texts)
    >>> embedder.embed(["the red car"]).round(1).tolist()
    [[0.8, 0.0]]
    """

    def __init__(
        self,
        takes: RawKind | Sequence[RawKind],
        steps: Sequence[Any],
        examples: Sequence[Any] | None = None,
        *,
        name: str | None = None,
    ) -> None:
        given: tuple[Any, ...] = (takes,) if isinstance(takes, str) else tuple(takes)
        self.takes = tuple(check_choice(kind, "takes", RAW_KINDS) for kind in given)
        if not self.takes:
            raise ValueError(f"takes is empty; it must be one or more of {', '.join(RAW_KINDS)}.")
        self.steps = _checked_steps(steps, self.takes)
        self.name = name or " + ".join(_name_of(step) for step in self.steps)
        if examples is None and isinstance(self.steps[0], Function):
            examples = PROBED.get(self.takes[0])
        self._probes = take_probes(self.steps, examples if self.is_fitted else None)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, takes {' and '.join(self.takes)})"

    @property
    def is_fitted(self) -> bool:
        """Whether all steps have learned what they need."""
        return all(not is_built_in(step) or step.__sklearn_is_fitted__() for step in self.steps)

    @property
    def dimension(self) -> int | None:
        """How many numbers a vector has, None if the last step does not say."""
        number = getattr(self.steps[-1], "n_features_out_", None)
        return None if number is None else int(number)

    @property
    def digest(self) -> str | None:
        """The SHA-256 of the weights of its network, or else of what its steps learned; None if a file cannot hold it.

        The weights of a network that reads items are not in the file. Where it is opened, they must have this digest.
        """
        weights = [step.weights_ for step in self.steps if isinstance(step, Reader) and hasattr(step, "weights_")]
        if weights:
            return str(weights[-1])
        if not self.is_fitted or self.given_steps is not None:
            return None
        arrays: dict[str, np.ndarray] = {}
        pack_steps(self.steps, self._probes, arrays)
        return array_digest(arrays)

    @property
    def settings(self) -> dict[str, dict[str, Any]]:
        """The parameters of each step, by the name of its class."""
        return {_name_of(step): step.get_params(deep=False) for step in self.steps if is_built_in(step)}

    @property
    def given_steps(self) -> list[Any] | None:
        """The steps that a file cannot hold at their positions, as :meth:`load` takes them; None if it holds all."""
        given = [None if is_built_in(step) else step for step in self.steps]
        return given if any(step is not None for step in given) else None

    def fit(self, items: Sequence[Any]) -> Self:
        """Let the steps that have something to learn learn it from items."""
        self.fit_embed(items)
        return self

    def fit_embed(self, items: Sequence[Any], *, n_jobs: int | None = None, progress: bool = False) -> np.ndarray:
        """Learn from items, as :meth:`fit` does, and return their vectors; options as in :meth:`embed`."""
        return self.learn(self.read(items, n_jobs=n_jobs, progress=progress))

    def embed(self, items: Sequence[Any], *, n_jobs: int | None = None, progress: bool = False) -> np.ndarray:
        """Return one vector per item, the same for an item whatever others there are.

        What networks made of items is kept in the user's cache and found there again.

        Parameters
        ----------
        items : list of texts or pictures
        n_jobs : int, default=None
            Number of threads; None means one, -1 means all.
        progress : bool, default=False
            Show a bar on standard error.
        """
        self.require_fitted()
        return self.finish(self.read(items, n_jobs=n_jobs, progress=progress))

    def read(self, items: Sequence[Any], *, n_jobs: int | None = None, progress: bool = False) -> Any:
        """Return what the steps that read items make of them: the rows from which the others learn."""
        return read_items(items, self.takes, self.readers, n_jobs=n_jobs, progress=progress)

    def learn(self, rows: Any) -> np.ndarray:
        """Fit the steps that are not fitted yet to what :meth:`read` returned, and return the vectors."""
        learning = [step for step in self._others if is_built_in(step) and not step.__sklearn_is_fitted__()]
        most = [step.max_rows for step in learning if hasattr(step, "max_rows")]
        sample = rows
        if most and len(rows) > min(most):
            sample = rows[np.linspace(0, len(rows) - 1, min(most)).astype(int)]
        for step in self._others if learning else ():
            if any(step is each for each in learning):
                step.fit(sample)
            sample = step.transform(sample)
        return self.finish(rows)

    def finish(self, rows: Any) -> np.ndarray:
        """Return the vectors of what :meth:`read` returned."""
        parts = [_dense(through(self._others, rows[portion])) for portion in tiles(len(rows), _PORTION)]
        return np.concatenate(parts) if parts else _dense(through(self._others, rows))

    @property
    def readers(self) -> list[Any]:
        """The first steps, which read items and learn nothing."""
        return list(takewhile(lambda step: isinstance(step, Reader | Function), self.steps))

    @property
    def _others(self) -> list[Any]:
        return self.steps[len(self.readers) :]

    def require_fitted(self) -> None:
        """Refuse to work before the steps have learned."""
        if not self.is_fitted:
            raise NotFittedError(
                f"The embedder {self.name!r} learns from items, and has not seen any. Call fit with some first."
            )

    def cut_note(self, texts: Sequence[Any]) -> str | None:
        """Say how many texts are longer than a network reads, None if there are none."""
        return cut_note(self.name, self.readers, texts)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the embedder to a file; equal ones make equal files."""
        self.require_fitted()
        arrays: dict[str, np.ndarray] = {}
        specs = pack_steps(self.steps, self._probes, arrays)
        header = {"kind": "Embedder", "name": self.name, "takes": list(self.takes), "digest": self.digest}
        write_bundle(path, {**header, "steps": specs}, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str], given: Given = None) -> Embedder:
        """Read an embedder that :meth:`save` has written.

        Parameters
        ----------
        path : path of the file
        given : transformer, function, Embedder or list, default=None
            What the file cannot hold: the transformer or function, if there is one, or a list with one entry per step,
            None for those in the file. An embedder with the same weights, which may be in another folder now, takes the
            place of the one in the file.
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
            specs = header["steps"]
            loaded, probes = unpack_steps(specs, arrays, _at_positions(header, given), "embedder=...")
            embedder = cls(header["takes"], loaded, name=header["name"])
        except ValueError:
            raise
        except Exception as error:  # a header that anyone may have written can lack or misplace anything
            raise BundleFormatError.damaged(f"it does not hold a complete embedder ({error!r})", path) from error
        embedder._probes = probes
        if embedder.given_steps is None and embedder.digest != header["digest"]:
            raise BundleFormatError.damaged("its steps do not have the digest that it names", path)
        return embedder._moved_to(given) if isinstance(given, Embedder) else embedder

    def _moved_to(self, given: Embedder) -> Embedder:
        """Return this embedder with the networks of another one, which must have the same weights."""
        if given.digest != self.digest:
            raise ChecksumError(
                f"The embedder {given.name!r} has weights of digest {str(given.digest)[:16]}; this file was made with "
                f"{self.name!r}, digest {str(self.digest)[:16]}. Pass an embedder with the same weights, or make the "
                "collection again with the new one."
            )
        self.steps = [*given.readers, *self._others]
        return self


def make_embedder(name: str) -> Embedder:
    """Return the embedder of a name.

    Parameters
    ----------
    name : str
        "tfidf" : weights of the words of texts; learns from texts
        "minilm" or "minilm:FOLDER" : all-MiniLM-L6-v2, for sentences (:class:`starshl.data.features.MiniLM`)
        "pixels" : pixels, gradients and colors of pictures; learns from pictures
        "efficientnet-lite0" : a network trained on photographs, reduced to what differs among pictures; learns from
        pictures
        "onnx:FOLDER" : any network in an ONNX file (:class:`starshl.data.features.OnnxModel`)
        "sentence-transformers:NAME" : a model of that package, or a folder with one

    Examples
    --------
    >>> from starshl.data.features import make_embedder
    >>> embedder = make_embedder("tfidf").fit(["a red car", "a blue car", "fresh bread"])
    >>> embedder.takes, embedder.dimension
    (('texts',), 3)
    """
    made = named_steps(name)
    return Embedder(made.takes, made.steps, name=made.name)


def as_embedder(given: Any, takes: RawKind | Sequence[RawKind] | None) -> Embedder:
    """Return what a caller passes as an embedder as one: an embedder, a name, a transformer or a function."""
    if isinstance(given, Embedder):
        embedder = given
    elif isinstance(given, str):
        embedder = make_embedder(given)
    elif callable(given) or hasattr(given, "transform"):
        if takes is None:
            raise ValueError(
                f"embedder is a {type(given).__name__}, and it is not clear what it takes. Say so: "
                "Embedder('texts', [function]) or Embedder('pictures', [function])."
            )
        embedder = Embedder(takes, [given])
    else:
        raise ValueError(
            f"embedder is of type {type(given).__name__}; it must be a name such as 'minilm', an Embedder, or a "
            "function from a list of items to a matrix."
        )
    if isinstance(takes, str) and takes not in embedder.takes:
        raise ValueError(wrong_kind(embedder.name, embedder.takes, takes))
    return embedder


def _at_positions(header: dict[str, Any], given: Given) -> list[Any] | None:
    """Return one entry per step of a file, as :func:`unpack_steps` wants them."""
    specs = header["steps"]
    absent = [position for position, spec in enumerate(specs) if spec["name"] is None]
    if isinstance(given, list) or given is None or not absent:
        return given if isinstance(given, list) else None
    if isinstance(given, Embedder):
        others = given.given_steps or []
        return others if len(others) == len(specs) else None
    steps: list[Any] = [None] * len(specs)
    steps[absent[0]] = given if hasattr(given, "transform") else Function(cast(Any, given), header["takes"])
    return steps


def _dense(rows: Any) -> np.ndarray:
    return np.asarray(rows.toarray() if sparse.issparse(rows) else rows)


def _name_of(step: Any) -> str:
    return step.name if isinstance(step, Function) else type(step).__name__


def _checked_steps(steps: Sequence[Any], takes: Sequence[str]) -> list[Any]:
    """Return the steps, if each takes what the one before it gives; a function becomes a step."""
    if isinstance(steps, str) or not isinstance(steps, Sequence) or not steps:
        raise ValueError(f"steps is {steps!r}; give a list of one or more transformers or functions.")
    checked: list[Any] = []
    n_features: int | None = None
    for position, given in enumerate(steps):
        step = given if hasattr(given, "transform") or not callable(given) else Function(given, takes)
        if not hasattr(step, "transform"):
            raise ValueError(f"steps[{position}] is of type {type(step).__name__}; it must have transform.")
        if isinstance(step, Function) and position:
            raise ValueError(
                f"steps[{position}] is a function; functions take raw items, so it must be the first step."
            )
        taken = getattr(step, "n_features_in_", None)
        if n_features is not None and taken is not None and taken != n_features:
            raise ValueError(
                f"steps[{position}], a {type(step).__name__}, takes {taken} features and gets {n_features}. Fit the "
                "steps one after the other."
            )
        n_features = getattr(step, "n_features_out_", None)
        checked.append(step)
    return checked
