"""What comes back from the service: an answer, a problem, or nothing; and when to send a request again."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import httpx

from .._common.warn import warn_caller

_TOO_MANY_REQUESTS = 429  # refused, so nothing was done
_MAY_HAVE_WORKED = frozenset({408, 502, 503, 504})
_LONGEST_WAIT = 30.0  # seconds, even if the service asks for more


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
            warn_caller(note)
    return answer


def _problem(response: httpx.Response) -> dict[str, Any]:
    try:
        problem = response.json()
    except ValueError:
        return {}
    return problem if isinstance(problem, dict) else {}


@dataclass(frozen=True, slots=True)
class Retries:
    """Up to ``attempts`` attempts, with waits that double from ``first_wait`` seconds and vary at random.

    A request that may have reached the service is sent again only if that cannot do any harm: it is a question, or a
    write with an idempotency key, which the service stores once.
    """

    attempts: int = 5
    first_wait: float = 0.1

    def wait_after(
        self, attempt: int, outcome: httpx.Response | httpx.TransportError, *, idempotent: bool
    ) -> float | None:
        """Return how many seconds to wait before another attempt, None if another attempt would not help."""
        if attempt >= self.attempts or not _is_worth_it(outcome, idempotent):
            return None
        wait = self.first_wait * 2 ** (attempt - 1) * random.uniform(0.5, 1.5)
        if isinstance(outcome, httpx.Response):
            wait = max(wait, _retry_after(outcome))
        return min(wait, _LONGEST_WAIT)


def _is_worth_it(outcome: httpx.Response | httpx.TransportError, idempotent: bool) -> bool:
    if isinstance(outcome, httpx.Response):
        return outcome.status_code == _TOO_MANY_REQUESTS or (idempotent and outcome.status_code in _MAY_HAVE_WORKED)
    # Without a connection, nothing was sent.
    return idempotent or isinstance(outcome, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)


def _retry_after(response: httpx.Response) -> float:
    text = response.headers.get("retry-after", "")
    return float(text) if text.isdigit() else 0.0
