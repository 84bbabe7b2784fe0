"""Settings of a service: tokens and what they allow, limits, and where it listens."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

READ, WRITE = "read", "write"
_SHORTEST = 16  # characters, so that nobody guesses one
_VARIABLES = {"STARSHL_READ_TOKEN": READ, "STARSHL_WRITE_TOKEN": WRITE}


@dataclass(frozen=True, slots=True)
class Token:
    """The digest of a token, what it allows, and when it expires; the token itself is not kept."""

    digest: bytes
    right: str
    expires: datetime | None = None

    @classmethod
    def of(cls, text: str, right: str, expires: datetime | None = None) -> Token:
        """Check a token and forget its text."""
        if len(text) < _SHORTEST or not text.isascii() or not text.isprintable() or " " in text:
            raise ValueError(
                f"A token has {len(text)} characters or unusual ones. Use {_SHORTEST} or more letters and digits, such "
                'as from: python -c "import secrets; print(secrets.token_urlsafe(32))"'
            )
        return cls(_digest(text), right, expires)

    def allows(self, right: str) -> bool:
        """Return whether this token is enough; a write token may also read."""
        return self.right in (right, WRITE)

    @property
    def name(self) -> str:
        """A name for logs, which does not reveal the token."""
        return f"{self.right}:{self.digest.hex()[:8]}"

    def is_expired(self) -> bool:
        return self.expires is not None and datetime.now(UTC) >= self.expires


class Tokens:
    """All tokens of a service; none at all means that everyone who reaches it may do everything."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens

    def __len__(self) -> int:
        return len(self._tokens)

    def find(self, text: str) -> Token | None:
        """Return the token with this text; the time does not tell how much of it was right, or which one it is."""
        given, found = _digest(text), None
        for token in self._tokens:
            if hmac.compare_digest(token.digest, given):
                found = token
        return found


def read_tokens(path: str | Path | None = None, environment: Mapping[str, str] | None = None) -> Tokens:
    """Return the tokens of a file and of the environment.

    A line of the file is ``read TOKEN`` or ``write TOKEN``, perhaps followed by the time when it expires, such as
    2027-01-31 or 2027-01-31T12:00:00+00:00. ``#`` begins a comment. The variables of the environment are
    STARSHL_READ_TOKEN and STARSHL_WRITE_TOKEN.
    """
    environment = os.environ if environment is None else environment
    found = [Token.of(environment[name], right) for name, right in _VARIABLES.items() if environment.get(name)]
    if path is not None:
        found += [_parsed(line, number, path) for number, line in _lines(Path(path))]
        if not found:
            raise ValueError(f"There is no token in {str(path)!r}. Write lines such as: read TOKEN")
    digests = [token.digest for token in found]
    if len(set(digests)) < len(digests):
        raise ValueError("A token is given twice. Use different ones for reading and writing.")
    return Tokens(found)


def _lines(path: Path) -> list[tuple[int, str]]:
    mode = path.stat().st_mode
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise ValueError(f"Others may write to {str(path)!r}, so they could add tokens. Run: chmod go-w {path}")
    if mode & stat.S_IROTH:
        raise ValueError(f"Everybody on this machine may read the tokens in {str(path)!r}. Run: chmod o-r {path}")
    lines = (line.partition("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [(number, line) for number, line in enumerate(lines, 1) if line]


def _parsed(line: str, number: int, path: str | Path) -> Token:
    words = line.split()
    where = f"Line {number} of {str(path)!r}"  # the line itself may hold a secret
    if len(words) not in (2, 3) or words[0] not in (READ, WRITE):
        raise ValueError(
            f"{where} is not a token. Write: read TOKEN, or: write TOKEN, with a date after it if you like."
        )
    try:
        expires = _expiry(words[2]) if len(words) == 3 else None
    except ValueError as error:
        raise ValueError(
            f"{where} has something after its token that is not a date. Write a date as 2027-01-31."
        ) from error
    try:
        return Token.of(words[1], words[0], expires)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error


def _expiry(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


@dataclass(frozen=True, slots=True)
class Limits:
    """What a service takes from clients: sizes in bytes, times in seconds.

    A body may take ``body_seconds``, and more if it arrives at ``body_bytes_per_second`` or faster. ``rate`` is the
    requests per second of one client; ``burst`` of them may come at once. A connection is closed after ``idle_seconds``
    without a request, which must be more than clients keep theirs, or a request may meet one that is being closed.

    Whoever has shown no token, where tokens are needed, is a stranger. All that strangers can do is to log in, so they
    share a few places, and their bodies are small and quick.
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
    strangers_at_once: int = 16
    strangers_per_address: int = 4
    login_bytes: int = 20_000
    login_seconds: float = 3.0


@dataclass(frozen=True, slots=True)
class Settings:
    """Where a service listens, who may use it, and how much of it.

    ``in_frames`` lets pages of this machine, such as notebooks, show those of the service in a frame.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    tokens: Tokens = field(default_factory=lambda: Tokens([]))
    limits: Limits = field(default_factory=Limits)
    in_frames: bool = False

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
