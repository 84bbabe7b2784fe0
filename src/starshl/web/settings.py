"""Limits of a service, and where it may listen."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field

from .tokens import Tokens

__all__ = ["Limits", "Settings", "is_loopback"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What a service takes from clients: sizes in bytes, times in seconds.

    A body may take ``body_seconds``, and more if it arrives at ``body_bytes_per_second`` or faster. ``rate`` is the
    requests per second of one client; ``burst`` of them may come at once. A connection is closed after ``idle_seconds``
    without a request, which must be more than clients keep theirs, or a request may meet one that is being closed.
    """

    body_bytes: int = 16 << 20
    upload_bytes: int = 4 << 30
    head_seconds: float = 10.0
    idle_seconds: int = 30
    body_seconds: float = 30.0
    body_bytes_per_second: int = 64 << 10
    request_seconds: float = 60.0
    rate: float = 1000.0
    burst: int = 2000
    requests_at_once: int = 256


@dataclass(frozen=True, slots=True)
class Settings:
    """Where a service listens, who may use it, and how much of it."""

    host: str = "127.0.0.1"
    port: int = 8000
    tokens: Tokens = field(default_factory=lambda: Tokens([]))
    limits: Limits = field(default_factory=Limits)

    def check(self) -> None:
        """Refuse to listen to other machines without tokens."""
        if not is_loopback(self.host) and not len(self.tokens):
            raise ValueError(
                f"{self.host!r} can be reached from other machines, and there are no tokens: anyone could read and "
                "change everything. Give tokens, in a file or in STARSHL_READ_TOKEN and STARSHL_WRITE_TOKEN, or listen "
                "on 127.0.0.1."
            )


def is_loopback(host: str) -> bool:
    """Return whether an address, or localhost, is reached from this machine only."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
