"""Codebook: which class has which codeword, and words in reserve for future ones."""

from __future__ import annotations

import os
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from .._common.bundle import pack_values, packable, read_bundle, unpack_values, write_bundle
from .._common.labels import Labels, as_label_array, check_labels
from .._common.lazy import library
from .._common.validation import Seed, check_integer
from .._common.words import counted
from ..exceptions import BundleFormatError, InputError
from .binary import BinaryCodes, check_space_id, make_space_id
from .codewords import binary_words, separated_codewords

sklearn_validation = library("sklearn.utils.validation")
_PREFIX = "codebook."


@packable
@dataclass(frozen=True, eq=False, repr=False)
class Codebook:
    """Codewords of classes, with words in reserve; hashers fitted to the same codebook make codes of the same space.

    The identity ``space_id`` is made once, from the words and the first classes, and kept from then on, in files, too.
    Assigning a reserved word to a new class and renaming a class keep it, so codes from before and after can be
    searched together.

    Parameters
    ----------
    words : array of shape (n_words, n_bits)
        Rows of -1 and +1: those of the classes first, then the reserved ones.
    classes : array of shape (n_classes,)
        The labels of the first words; numbers or strings.
    fit_digest : str, default=None
        For clusters, whose numbers mean nothing without the fit that found them: a digest of that fit.
    space_id : str, default=""
        The identity, if the codebook has one already; empty text makes one.

    Examples
    --------
    >>> from starshl import Codebook
    >>> codebook = Codebook.make(["cat", "dog"], n_bits=16, n_reserved=2, random_state=0)
    >>> larger = codebook.assign("horse")
    >>> larger.classes.tolist(), larger.n_reserved, larger.space_id == codebook.space_id
    (['cat', 'dog', 'horse'], 1, True)
    >>> codebook.rename("dog", "hound").space_id == codebook.space_id
    True
    """

    words: np.ndarray
    classes: np.ndarray
    _: KW_ONLY
    fit_digest: str | None = None
    space_id: str = ""

    def __post_init__(self) -> None:
        words, classes = _check_words(self.words), _check_classes(self.classes)
        if len(classes) > len(words):
            raise ValueError(
                f"There are {counted(len(classes), 'class', 'classes')} and {counted(len(words), 'word')}. Give every "
                "class a word."
            )
        if not isinstance(self.fit_digest, str | None):
            raise ValueError(
                f"fit_digest is {self.fit_digest!r}; it must be text or None. Leave it out unless classes are clusters."
            )
        space_id = check_space_id(self.space_id or None)
        if space_id is None:
            head = [words.shape[1], list(map(_plain, classes.tolist())), self.fit_digest]
            space_id = make_space_id(head, {"words": words})
        for name, value in {"words": words, "classes": classes, "space_id": space_id}.items():
            object.__setattr__(self, name, value)

    @classmethod
    def make(cls, classes: ArrayLike, n_bits: int, n_reserved: int = 0, random_state: Seed = None) -> Self:
        """Return a codebook of words that lie far apart.

        All words are different if there are enough bits. If not, classes share words; reserved words are then refused.

        Parameters
        ----------
        classes : array of shape (n_classes,)
        n_bits : int
        n_reserved : int, default=0
            Words to keep for classes that :meth:`assign` adds later.
        random_state : int, RandomState or None, default=None
            Chooses among equally good sets of words.
        """
        classes, n_bits = _check_classes(classes), check_integer(n_bits, "n_bits", low=1)
        n_words = len(classes) + check_integer(n_reserved, "n_reserved", low=0)
        _check_n_words(n_words, n_bits, n_reserved)
        return cls(separated_codewords(n_words, n_bits, sklearn_validation.check_random_state(random_state)), classes)

    @classmethod
    def numbered(cls, classes: ArrayLike, n_reserved: int = 0) -> Self:
        """Return a codebook of the shortest words: those of 0, 1, 2, ... in binary, lowest bit first.

        They have ceil(log2(n_classes + n_reserved)) bits.
        """
        classes = _check_classes(classes)
        n_words = len(classes) + check_integer(n_reserved, "n_reserved", low=0)
        return cls(binary_words(np.arange(n_words), max(1, (n_words - 1).bit_length())), classes)

    @property
    def n_bits(self) -> int:
        """Length of the words."""
        return int(self.words.shape[1])

    @property
    def n_reserved(self) -> int:
        """How many words have no class yet."""
        return len(self.words) - len(self.classes)

    def assign(self, label: Any) -> Self:
        """Return a codebook of the same identity, in which the next reserved word belongs to a new class."""
        if np.ndim(label) > 0:
            raise ValueError(f"label is {label!r}; it must be one label. Assign one class after the other.")
        given = _check_classes([label])
        if self.positions([label])[0] >= 0:
            raise ValueError(f"The class {given.tolist()[0]!r} has a word already. Assign words to new classes only.")
        if not self.n_reserved:
            raise ValueError(
                f"All {counted(len(self.words), 'word')} of this codebook are assigned, so there is none for "
                f"{given.tolist()[0]!r}. Make a codebook with reserved words (n_reserved) and encode items again."
            )
        return replace(self, classes=_joined(self.classes, given))

    def rename(self, label: Any, new: Any) -> Self:
        """Return a codebook of the same identity, in which a class has another name and the same word."""
        (position,), given = self.positions([label]), _check_classes([new])
        if position < 0:
            raise ValueError(f"There is no class {label!r} to rename. Name one of the classes of the codebook.")
        if self.positions([new])[0] not in (-1, position):
            raise ValueError(f"The class {given.tolist()[0]!r} exists already. Give the class another name.")
        classes = _joined(self.classes, given)
        return replace(
            self, classes=classes[[*range(position), len(classes) - 1, *range(position + 1, len(classes) - 1)]]
        )

    def resized(self, n_bits: int) -> Self:
        """Make a new codebook of the same classes and as many reserved words, of another length and identity.

        Keep it like any other, or the hasher that holds it: its identity names its words, which follow from this one's
        identity, so that all codebooks of this identity give equal ones.
        """
        if n_bits == self.n_bits:
            return self
        _check_n_words(len(self.words), check_integer(n_bits, "n_bits", low=1), self.n_reserved)
        rng = np.random.RandomState(int(self.space_id[:8], 16))
        words = separated_codewords(len(self.words), n_bits, rng)
        return replace(self, words=words, space_id=make_space_id([n_bits, self.space_id], {"words": words}))

    def positions(self, labels: ArrayLike) -> np.ndarray:
        """Return the row of ``words`` of each label, -1 where it is missing or has no word."""
        array = as_label_array(labels)
        if array.ndim != 1:
            raise ValueError(f"labels has shape {array.shape}; give a list of labels, such as ['cat', 'dog'].")
        return self.positions_of(check_labels(array, len(array)))

    def positions_of(self, labels: Labels) -> np.ndarray:
        """Return the row of ``words`` of each label, as :meth:`positions` does."""
        return labels.positions_in(self.classes)

    def word_of(self, labels: ArrayLike) -> np.ndarray:
        """Return the words of labels, int8 of -1 and +1 of shape (n_labels, n_bits); refuse labels without a word."""
        positions = self.positions(labels)
        if (positions < 0).any():
            first = as_label_array(labels)[positions < 0].tolist()[0]
            raise ValueError(f"The label {first!r} has no word. {self._what_to_do([first])}")
        return self.words[positions]

    def codes_of(self, labels: ArrayLike) -> BinaryCodes:
        """Return the words of labels as packed codes of this space."""
        return BinaryCodes.from_signs(self.word_of(labels), self.space_id)

    def words_for(self, classes: np.ndarray, n_bits: int) -> np.ndarray:
        """Return the words of the classes of a fit, or say why a hasher of ``n_bits`` bits cannot be fitted to them."""
        if n_bits != self.n_bits:
            raise InputError(
                "{parameter} is {value}",
                "the words of this codebook have {own}",
                "Set {parameter} to {own}.",
                parameter="n_bits",
                value=n_bits,
                own=self.n_bits,
            )
        positions = self.positions(classes)
        unknown = classes[positions < 0].tolist()
        if unknown:
            raise ValueError(
                f"y has {counted(len(unknown), 'class', 'classes')} without a word in this codebook, such as "
                f"{unknown[0]!r}. {self._what_to_do(unknown)}"
            )
        return self.words[positions]

    def holds(self, classes: np.ndarray, codewords: np.ndarray) -> bool:
        """Return whether these classes have these words."""
        positions = self.positions(classes)
        return bool((positions >= 0).all()) and np.array_equal(self.words[positions], codewords)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the codebook to one file; :meth:`load` reads it back."""
        plain, arrays = pack_values(self.pack(), _PREFIX)
        write_bundle(path, {"codebook": plain}, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a codebook written by :meth:`save`."""
        if not Path(path).is_file():
            raise FileNotFoundError(f"There is no codebook at {os.fspath(path)!r}.")
        header, arrays = read_bundle(path)
        if "codebook" not in header:
            raise BundleFormatError(
                "{file} does not hold a codebook", advice="Read models with starshl.load.", file=repr(os.fspath(path))
            )
        return cls.unpack(unpack_values(header["codebook"], arrays, _PREFIX))

    def pack(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("words", "classes", "fit_digest", "space_id")}

    @classmethod
    def unpack(cls, values: dict[str, Any]) -> Self:
        try:
            return cls(**values)
        except (KeyError, TypeError, ValueError) as error:
            raise BundleFormatError.damaged(f"its codebook cannot be rebuilt ({error})") from error

    def _what_to_do(self, unknown: list[Any]) -> str:
        state = (
            f"The codebook has {counted(len(self.classes), 'class', 'classes')} and "
            f"{counted(self.n_reserved, 'reserved word')}"
        )
        if self.n_reserved < len(unknown):
            return f"{state}, which is not enough. Make a codebook with all classes and encode items again."
        return f"{state}: use what codebook.assign({unknown[0]!r}) returns."

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Codebook)
            and self.space_id == other.space_id
            and self.classes.tolist() == other.classes.tolist()
        )

    def __hash__(self) -> int:
        return hash(self.space_id)

    def __deepcopy__(self, memo: object) -> Self:
        return self  # nothing in it can change

    def __repr__(self) -> str:
        words = f"{len(self.classes)} words of {self.n_bits} bits"
        return f"Codebook({words}, {self.n_reserved} reserved, space {self.space_id})"


CodewordsLike: TypeAlias = Literal["separated", "random"] | ArrayLike | Codebook
"""What users pass as codewords: how to choose them, rows of -1 and +1, or a codebook."""


def _check_words(words: ArrayLike) -> np.ndarray:
    try:
        signs = np.asarray(words)
    except ValueError as error:
        raise ValueError(f"words has rows of different lengths ({error}). Give words of equal length.") from error
    is_signs = bool(np.isin(signs, (-1, 1)).all())
    if signs.ndim != 2 or 0 in signs.shape or not is_signs:
        other = "" if is_signs else " and entries other than -1 and +1"
        raise ValueError(
            f"words has shape {signs.shape}{other}; it must be an array of -1 and +1 of shape (n_words, n_bits). Let "
            "Codebook.make find words, or give one row per class."
        )
    return _frozen(signs.astype(np.int8))


def _check_classes(classes: ArrayLike) -> np.ndarray:
    labels = as_label_array(classes)
    if labels.ndim != 1:
        raise ValueError(
            f"classes is {classes!r}; it must be a list of labels. Give one label per class, such as ['cat', 'dog']."
        )
    read = check_labels(labels, len(labels))
    if not read.labeled.all():
        raise ValueError(
            f"{labels[~read.labeled].tolist()[0]!r} marks a row without a label, so it cannot be a class. Give the "
            "class another name."
        )
    if len(read.classes) < len(labels):
        twice = read.classes[np.bincount(read.index) > 1].tolist()[0]
        raise ValueError(f"The class {twice!r} appears more than once. Give every class one word.")
    return _frozen(labels.copy())


def _check_n_words(n_words: int, n_bits: int, n_reserved: int) -> None:
    if n_words < 1:
        raise ValueError(
            "There are no classes and no reserved words; a codebook needs at least one of either. Name the classes, or "
            "set n_reserved."
        )
    if n_reserved and n_bits < 63 and n_words > 2**n_bits:
        raise ValueError(
            f"{counted(n_bits, 'bit')} can tell {2**n_bits} words apart, but you asked for {n_words}, {n_reserved} of "
            f"them in reserve. Use at least {(n_words - 1).bit_length()} bits."
        )


def _joined(classes: np.ndarray, new: np.ndarray) -> np.ndarray:
    if not len(classes):
        return new
    kinds = {type(_plain(label)) for label in (classes.tolist()[0], new.tolist()[0])}
    if len(kinds) > 1:
        raise ValueError(
            f"The label {new.tolist()[0]!r} has another type than the classes, such as {classes.tolist()[0]!r}. Give a "
            "label of the same type."
        )
    if classes.dtype.kind in "iu" and new.dtype.kind == "f":
        new = new.astype(np.int64)
    return np.concatenate([classes, new])


def _plain(label: object) -> str | int:
    """Return a label as JSON holds it; 3 and 3.0 are one class, because gaps turn integers to floats."""
    value = label.item() if isinstance(label, np.generic) else label
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return int(value)
    return str(value) if isinstance(value, str) else repr(value)


def _frozen(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array
