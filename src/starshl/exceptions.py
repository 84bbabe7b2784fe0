"""Errors and warnings of starshl, in addition to ValueError and scikit-learn's own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from string import Formatter
from types import MappingProxyType
from typing import Any, ClassVar, Self

PYTHON_NAMES: Mapping[str, str] = MappingProxyType({})
"""How Python calls parameters and operations: by their own names."""


class _Worded(Exception):
    """What errors about input and about files share: texts with fields, which each surface words itself."""

    def __init__(
        self,
        arrived: str,
        allowed: str = "",
        advice: str = "",
        _copied: Mapping[str, Any] = MappingProxyType({}),
        **fields: Any,
    ) -> None:
        # Fields are among the arguments, because some libraries copy an exception as type(error)(*error.args).
        self.fields = {**_copied, **fields}
        super().__init__(arrived, allowed, advice, self.fields)

    @property
    def parameter(self) -> str | None:
        """The name of the parameter at fault, None if it is not a single one."""
        return self.fields.get("parameter")

    @property
    def value(self) -> Any:
        """What arrived."""
        return self.fields.get("value")

    def texts(self, names: Mapping[str, str] = PYTHON_NAMES) -> tuple[str, str, str]:
        """Return what arrived, what is allowed and what to do, for a surface that uses these names."""
        wording = _Wording(self.fields, names)
        arrived, allowed, advice = (wording.format(text) for text in self.args[:3])
        return arrived, allowed, advice

    def worded(self, names: Mapping[str, str] = PYTHON_NAMES) -> str:
        """Return the message of a surface that calls parameters and methods by these names."""
        arrived, allowed, advice = self.texts(names)
        problem = f"{arrived}; {allowed}." if allowed else f"{arrived}."
        return f"{problem} {advice}".rstrip()

    def __str__(self) -> str:
        return self.worded()

    def __reduce__(self) -> tuple[Any, ...]:
        """Let an error that another process raised arrive with its fields."""
        return _rebuilt, (type(self), self.args)


def _rebuilt(kind: type[_Worded], arguments: tuple[Any, ...]) -> _Worded:
    error = kind.__new__(kind, *arguments)
    _Worded.__init__(error, *arguments)  # a class below may have a constructor of its own
    return error


class _Wording(Formatter):
    """Fills a text with fields and with the names of a surface."""

    def __init__(self, fields: Mapping[str, Any], names: Mapping[str, str]) -> None:
        self._fields, self._names = fields, names

    def get_value(self, key: int | str, args: Any, kwargs: Any) -> Any:
        name = str(key)
        if name == "parameter":
            name = self._fields[name]
        elif name in self._fields:
            return self._fields[name]
        return self._names.get(name, name)


class InputError(_Worded, ValueError):
    """Input that cannot be used: what arrived, what is allowed, and what to do.

    The three texts are templates. A name in braces stands for one of the ``fields`` or, if there is none of that name,
    for a parameter or a method of the library, which every surface calls by its own name: :meth:`worded` gets these
    names, and ``str(error)`` uses those of Python. So no surface has to rewrite a sentence.

    Parameters
    ----------
    arrived : str
        What is wrong, without a period at the end.
    allowed : str, default=""
        What would have been right, without a period at the end.
    advice : str, default=""
        What to do: whole sentences.
    **fields
        What the texts mention. ``parameter`` is the name of the parameter at fault, ``value`` what it was set to.

    Examples
    --------
    >>> error = InputError("{parameter} is {value!r}", "it must be at least {low}", parameter="n_bits", value=0, low=1)
    >>> str(error)
    'n_bits is 0; it must be at least 1.'
    >>> error.worded({"n_bits": "--bits"})
    '--bits is 0; it must be at least 1.'
    >>> error.parameter, error.value
    ('n_bits', 0)
    """


class MissingFunctionError(InputError):
    """A model was fitted with functions or transformers that its file cannot hold, and they were not passed again."""


class MissingCapabilityError(InputError):
    """A hasher was asked for something that it does not declare in ``supports``.

    Its fields are ``method``, the name of the method, and ``capability``, the word that is not in ``supports``.
    """


class InputWarning(_Worded, UserWarning):
    """Input that can be used, but probably not as it was meant; its texts are those of an :class:`InputError`."""


class _FormatError(_Worded, ValueError):
    """What errors about the contents of files share; their texts are those of an :class:`InputError`.

    The field ``file`` is what the texts call the file.
    """

    _kind: ClassVar[str]
    _advice: ClassVar[str]

    @classmethod
    def damaged(cls, finding: str, file: str | os.PathLike[str] | None = None) -> Self:
        """Return the error of a file that was read, given what is wrong with it: "it lacks its entry 'model'"."""
        name = f"The {cls._kind}" if file is None else repr(os.fspath(file))
        return cls("{file} is damaged: {finding}", advice=cls._advice, file=name, finding=finding)

    @classmethod
    def unreadable(cls, file: str | os.PathLike[str], reason: str) -> Self:
        """Return the error of a file that may be of another kind."""
        return cls(
            "{file} is not a readable {kind} ({reason}): it is truncated, damaged or of another kind",
            advice=cls._advice,
            file=repr(os.fspath(file)),
            kind=cls._kind,
            reason=reason,
        )

    @classmethod
    def of_format(cls, file: str | os.PathLike[str], given: int, known: int) -> Self:
        """Return the error of a file of another format than the known one."""
        return cls(
            "{file} has format {given}",
            "this version of starshl reads format {known}",
            "Install a newer starshl." if given > known else cls._advice,
            file=repr(os.fspath(file)),
            given=given,
            known=known,
        )

    def about(self, name: str) -> Self:
        """Return the same error for somebody who knows the file by another name, such as "The body"."""
        return type(self)(*self.args[:3], **(self.fields | {"file": name}))


class BundleFormatError(_FormatError):
    """A model file is damaged, of a newer format, or not a model file at all."""

    _kind = "model file"
    _advice = "Save the model again, or fetch a fresh copy."


class CollectionFormatError(_FormatError):
    """A collection's file is damaged, of a newer format, or not a collection at all."""

    _kind = "collection"
    _advice = "Restore its whole folder from a copy."

    @classmethod
    def derived(cls, finding: str, file: str | os.PathLike[str]) -> Self:
        """Return the error of a part that can be made anew."""
        return cls(
            "{file} is damaged: {finding}",
            advice="This part is derived. If the items are intact, Collection.rebuild(folder), or `starshl "
            "index rebuild FOLDER` in the shell, makes it anew; otherwise restore the whole folder from a copy.",
            file=repr(os.fspath(file)),
            finding=finding,
        )

    @classmethod
    def foreign(cls, file: str | os.PathLike[str], kind: str, allowed: str, advice: str) -> Self:
        """Return the error of something in the folder that no collection has made; nothing was opened yet."""
        return cls("{file} is {kind}", allowed, f"Nothing was opened. {advice}", file=repr(os.fspath(file)), kind=kind)


class IndexFormatError(_FormatError):
    """An index file is damaged, of a newer format, or not an index file at all."""

    _kind = "index file"
    _advice = "Save the index again, or fetch a fresh copy."


class RecordFormatError(_FormatError):
    """A folder or file of run records is damaged, of another format, or not a record at all."""

    _kind = "run record"
    _advice = "Delete it to have the run repeated."


class AdapterError(RuntimeError):
    """Another system (a database, a file of another program) failed or refused."""


class ClusterError(ConnectionError):
    """A Dask cluster cannot be reached, is gone, or gave up."""


class CollectionError(RuntimeError):
    """A collection cannot be changed or opened: another writer, a full disk, no permission."""


class CollectionInUseError(CollectionError):
    """Another process is writing to the collection in a ``folder``."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        super().__init__(folder)
        self.folder = os.fspath(folder)

    def __str__(self) -> str:
        return f"Another process is writing to {self.folder!r}. Close it there first, or open this one read-only."


class MissingCollectionError(FileNotFoundError):
    """There is no collection in a ``folder``."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        super().__init__(folder)
        self.folder = os.fspath(folder)

    def __str__(self) -> str:
        return f"There is no collection in {self.folder!r}. Make one with Collection.create."


class UnknownIdError(KeyError):
    """No item has this ``id``."""

    def __init__(self, id: int, where: str = "in the collection") -> None:
        super().__init__(id, where)
        self.id = id

    def __str__(self) -> str:
        return f"The id {self.id} is not {self.args[1]}."


class MissingExtraError(ImportError):
    """An optional library is needed and not installed."""


class NotExpressibleError(ValueError):
    """A hasher, a kernel or a step of preprocessing cannot be written as an ONNX graph."""


class DatasetUnavailableError(FileNotFoundError):
    """A data set is not on this machine and cannot be downloaded."""


class DownloadError(OSError):
    """A file could not be downloaded."""


class ChecksumError(ValueError):
    """The contents of a file differ from the expected ones."""


class PictureError(ValueError):
    """A picture is broken, of another kind, too small or too large."""


class SpaceMismatchError(ValueError):
    """Codes of one space met codes of another one; see ``BinaryCodes.space_id``."""


class UnknownSpaceWarning(UserWarning):
    """Codes of an unknown space were compared with codes of a known one; they may not belong together."""


class UnsupportedOperationError(NotImplementedError):
    """An index was asked for something that its class does not declare in ``supports``."""
