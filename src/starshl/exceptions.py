"""Errors that starshl raises beside ValueError and scikit-learn's own."""

__all__ = [
    "BundleFormatError",
    "ChecksumError",
    "DatasetUnavailableError",
    "DownloadError",
    "MissingExtraError",
    "RecordFormatError",
]


class BundleFormatError(ValueError):
    """A model file is damaged, of a newer format, or not a model file at all."""


class MissingExtraError(ImportError):
    """An optional library is needed and not installed."""


class DatasetUnavailableError(FileNotFoundError):
    """A data set is neither on this machine nor to be downloaded."""


class DownloadError(OSError):
    """A file could not be downloaded."""


class ChecksumError(ValueError):
    """The contents of a file are not those that were expected."""


class RecordFormatError(ValueError):
    """A folder or file of run records is damaged, of another format, or no such thing."""
