"""Errors and warnings of starshl, in addition to ValueError and scikit-learn's own."""

from __future__ import annotations


class AdapterError(RuntimeError):
    """Another system (a database, a file of another program) failed or refused."""


class BundleFormatError(ValueError):
    """A model file is damaged, of a newer format, or not a model file at all."""


class ClusterError(ConnectionError):
    """A Dask cluster cannot be reached, is gone, or gave up."""


class CollectionError(RuntimeError):
    """A collection cannot be changed or opened: another writer, a full disk, no permission."""


class CollectionFormatError(ValueError):
    """A collection's file is damaged, of a newer format, or not a collection at all."""


class IndexFormatError(ValueError):
    """An index file is damaged, of a newer format, or not an index file at all."""


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


class RecordFormatError(ValueError):
    """A folder or file of run records is damaged, of another format, or not a record at all."""


class SpaceMismatchError(ValueError):
    """Codes of one space met codes of another one; see ``BinaryCodes.space_id``."""


class UnknownSpaceWarning(UserWarning):
    """Codes of an unknown space were compared with codes of a known one; they may not belong together."""


class UnsupportedOperationError(NotImplementedError):
    """An index was asked for something that its class does not declare in ``supports``."""
