"""What can go wrong in a service besides bad values and damaged files (HTTP gives each a status), and its wording."""

from __future__ import annotations

from ..exceptions import InputError, InputWarning

#: Parameters and methods of the library, and what clients of the service call them.
HTTP_NAMES = {
    "declare_fields": "PUT .../fields, or declare_fields of the client",
    "X": "a query with a vector",
}


class ServiceError(Exception):
    """A request that cannot be answered now or as it is."""


class UnknownError(ServiceError):
    """There is no collection, job, snapshot or file of that name."""


class BusyError(ServiceError):
    """Too many requests wait already, or the service is about to stop."""


class ConflictError(ServiceError):
    """The request does not fit the current state."""


class NotWritableError(ServiceError):
    """The collection is served for reading only."""


class NotInstalledError(ServiceError):
    """The service lacks a library that the request needs."""


class KeyReusedError(ServiceError):
    """An idempotency key was used for another request before."""


class TooLargeError(ServiceError):
    """More was sent, or asked for, than the service takes at once."""


def worded(error: Exception) -> str:
    """Return the message of an error or a warning, with the names that clients of the service know."""
    return error.worded(HTTP_NAMES) if isinstance(error, InputError | InputWarning) else str(error)
