"""Errors that starshl raises in addition to ValueError and scikit-learn's own."""

__all__ = [
    "AdapterError",
    "BundleFormatError",
    "ChecksumError",
    "CollectionError",
    "CollectionFormatError",
    "DatasetUnavailableError",
    "DownloadError",
    "IndexFormatError",
    "MissingExtraError",
    "RecordFormatError",
]


class AdapterError(RuntimeError):
    """Another system (a database, a file of another program) failed or refused."""


class BundleFormatError(ValueError):
    """A model file is damaged, of a newer format, or not a model file at all."""


class CollectionError(RuntimeError):
    """A collection cannot be changed or opened: another writer, a full disk, no permission."""


class CollectionFormatError(ValueError):
    """A collection's file is damaged, of a newer format, or not a collection at all."""


class IndexFormatError(ValueError):
    """An index file is damaged, of a newer format, or not an index file at all."""


class MissingExtraError(ImportError):
    """An optional library is needed and not installed."""


class DatasetUnavailableError(FileNotFoundError):
    """A data set is not on this machine and cannot be downloaded."""


class DownloadError(OSError):
    """A file could not be downloaded."""


class ChecksumError(ValueError):
    """The contents of a file differ from the expected ones."""


class RecordFormatError(ValueError):
    """A folder or file of run records is damaged, of another format, or not a record at all."""
