"""When to send a request again, and how long to wait before."""

from __future__ import annotations

import random
from dataclasses import dataclass

import httpx

__all__ = ["Retries"]

_REFUSED = 429
_MAY_HAVE_WORKED = frozenset({408, 502, 503, 504})
_LONGEST_WAIT = 30.0  # seconds, even if the service asks for more


@dataclass(frozen=True, slots=True)
class Retries:
    """Up to ``attempts`` attempts, with waits that double from ``first_wait`` seconds and vary at random.

    A request that may have reached the service is sent again only if that cannot do any harm: it is a question, or a
    write with an idempotency key, which the service stores once.
    """

    attempts: int = 5
    first_wait: float = 0.1

    def wait_after(
        self, attempt: int, outcome: httpx.Response | httpx.TransportError, *, harmless: bool
    ) -> float | None:
        """Return how many seconds to wait before another attempt, None if another attempt would not help."""
        if attempt >= self.attempts or not _is_worth_it(outcome, harmless):
            return None
        wait = self.first_wait * 2 ** (attempt - 1) * random.uniform(0.5, 1.5)
        if isinstance(outcome, httpx.Response):
            wait = max(wait, _asked_wait(outcome))
        return min(wait, _LONGEST_WAIT)


def _is_worth_it(outcome: httpx.Response | httpx.TransportError, harmless: bool) -> bool:
    if isinstance(outcome, httpx.Response):
        return outcome.status_code == _REFUSED or (harmless and outcome.status_code in _MAY_HAVE_WORKED)
    # Without a connection, nothing was sent.
    return harmless or isinstance(outcome, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)


def _asked_wait(response: httpx.Response) -> float:
    text = response.headers.get("retry-after", "")
    return float(text) if text.isdigit() else 0.0
