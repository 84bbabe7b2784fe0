"""Answers of the service, and the problems among them."""

from __future__ import annotations

import warnings
from typing import Any

import httpx

__all__ = ["ServiceProblem", "ServiceUnreachable", "checked_address", "read_answer", "unreachable"]


class ServiceProblem(RuntimeError):
    """The service refused a request.

    Attributes
    ----------
    status : int, of HTTP
    kind : str, such as "not-found"
    detail : str, what is wrong and what to do
    request_id : str, to find the request in the log of the service
    errors : list of dict, the parts of the request that are wrong
    """

    def __init__(self, status: int, problem: dict[str, Any]) -> None:
        self.status = status
        self.kind = str(problem.get("type", "")).rpartition("/")[2]
        self.detail = str(problem.get("detail", "The service gave no details."))
        self.request_id = str(problem.get("request_id", ""))
        self.errors = list(problem.get("errors", ()))
        super().__init__(f"{self.detail} (status {status}, request {self.request_id or 'unknown'})")


class ServiceUnreachable(ConnectionError):
    """No answer came from the service."""


def checked_address(address: str) -> str:
    """Return the address of a service, or say what it lacks."""
    if not address.startswith(("http://", "https://")):
        raise ValueError(
            f"The address is {address!r}; it must begin with http:// or https://, such as 'http://{address or 'host'}'."
        )
    return address


def unreachable(address: object, error: httpx.TransportError) -> ServiceUnreachable:
    """Return the error to raise if no attempt got an answer."""
    reason = "too late" if isinstance(error, httpx.TimeoutException) else str(error) or "no reason given"
    if not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return ServiceUnreachable(
            f"No answer came from the service at {address} ({reason}). It may have done what was asked: look before "
            "you ask again."
        )
    return ServiceUnreachable(
        f"The service at {address} cannot be reached ({reason}). Check the address, or start a service with: starshl "
        "serve COLLECTION."
    )


def read_answer(response: httpx.Response, *, as_json: bool = True) -> Any:
    """Return what an answer holds, or raise the problem in it; what the service notes becomes a warning.

    An answer that is not JSON is returned as it is.
    """
    if not response.is_success:
        raise ServiceProblem(response.status_code, _problem(response))
    if not as_json:
        return response
    answer = response.json() if response.content else None
    if isinstance(answer, dict):
        parts = [answer, *(answer.get("answers") or ())]
        for note in dict.fromkeys(note for part in parts for note in part.get("notes") or ()):
            # The caller of the method of a collection, which calls a client's send, which calls this.
            warnings.warn(note, UserWarning, stacklevel=4)
    return answer


def _problem(response: httpx.Response) -> dict[str, Any]:
    try:
        problem = response.json()
    except ValueError:
        return {}
    return problem if isinstance(problem, dict) else {}
