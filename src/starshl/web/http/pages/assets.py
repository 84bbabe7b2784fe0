"""Style sheets and scripts, kept in memory and cached by browsers for as long as they stay the same."""

from __future__ import annotations

import hashlib
from importlib.resources import files

from fastapi import APIRouter, Response
from starlette.exceptions import HTTPException

__all__ = ["FOREVER", "asset_address", "routes"]

FOREVER = "public, max-age=31536000, immutable"
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

routes = APIRouter(include_in_schema=False)


def _read() -> dict[str, bytes]:
    folder = files(__package__).joinpath("static")
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name.endswith(tuple(_TYPES))}


_CONTENTS = _read()
# One digest for all files: scripts import each other by relative names, which then have it, too.
_DIGEST = hashlib.sha256(b"".join(name.encode() + _CONTENTS[name] for name in sorted(_CONTENTS))).hexdigest()[:16]


def asset_address(name: str) -> str:
    """Return the address of a file in ``static``, which changes whenever one of the files does."""
    if name not in _CONTENTS:
        raise KeyError(name)
    return f"/static/{_DIGEST}/{name}"


@routes.get("/static/{digest}/{name}")
async def asset(digest: str, name: str) -> Response:
    """Return a style sheet or a script."""
    if name not in _CONTENTS:
        raise HTTPException(404)
    kind = _TYPES[name[name.rindex(".") :]]
    # A page of an older version may still ask for its files: it gets the present ones, which must not stay.
    cache = FOREVER if digest == _DIGEST else "no-store"
    return Response(_CONTENTS[name], media_type=kind, headers={"Cache-Control": cache})
