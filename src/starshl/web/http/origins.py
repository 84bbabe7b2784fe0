"""Where a browser's request comes from: this service's own pages, or a page of another site."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from ..settings import is_loopback

__all__ = ["foreign_page", "is_addressed_locally", "is_own_page"]


def is_addressed_locally(headers: Mapping[str, str]) -> bool:
    """Return whether a request names this machine as its host.

    A page of another site can give its own name this machine's address, and its requests then carry that name.
    """
    try:
        host = urlsplit(f"//{headers.get('host', '')}").hostname
    except ValueError:
        return False
    return host is not None and is_loopback(host)


def foreign_page(method: str, headers: Mapping[str, str]) -> bool:
    """Return whether a page of another origin makes a browser send this; programs send none of these headers.

    A link from elsewhere may open a page here: whoever set it cannot see what it shows.
    """
    if "origin" in headers:
        return not _has_own_origin(headers)
    if headers.get("sec-fetch-site") not in ("cross-site", "same-site"):
        return False
    opens = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    return not (opens and method in ("GET", "HEAD"))


def is_own_page(headers: Mapping[str, str]) -> bool:
    """Return whether a page of this service makes a browser send this, as far as the browser says anything."""
    return headers.get("sec-fetch-site") == "same-origin" or _has_own_origin(headers)


def _has_own_origin(headers: Mapping[str, str]) -> bool:
    try:
        return bool(headers.get("host")) and urlsplit(headers.get("origin", "")).netloc == headers.get("host")
    except ValueError:
        return False
