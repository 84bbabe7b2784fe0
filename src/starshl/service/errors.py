"""What can go wrong in a service besides bad values and damaged files; HTTP gives each a status."""

from __future__ import annotations


class ServiceError(Exception):
    """A request that cannot be answered now or as it is."""


class UnknownError(ServiceError):
    """There is no collection, item, job or snapshot of that name."""


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
