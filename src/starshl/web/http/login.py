"""Where a browser gives its token: a page that keeps it in a cookie that no script can read."""

from __future__ import annotations

import re
from html import escape
from typing import Annotated
from urllib.parse import parse_qs

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from ..tokens import Tokens
from .guard import COOKIE, LOGIN, LOGOUT, LONGEST_TARGET
from .origins import foreign_page

__all__ = ["routes"]

routes = APIRouter(include_in_schema=False)
# A path here: "//other.example" would be an address of another site.
_PATH = re.compile(r"/(?![/\\])[!-~]*")
_SECONDS = 30 * 24 * 3600  # 30 days; the token in the cookie may expire sooner
# Bytes: anyone may send one, and to read a long one takes seconds.
_LONGEST_FORM = 20_000
_PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Token needed - starshl</title>
<meta name="viewport" content="width=device-width, initial-scale=1"></head>
<body><main>
<h1>This service needs a token</h1>
<p role="alert">{message}</p>
<form method="post" action="/login">
<label for="token">Token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
<input type="hidden" name="next" value="{target}">
<button>Continue</button>
</form>
<p>Whoever started the service can give you one. It is kept in a cookie of this browser for up to 30 days.</p>
</main></body></html>
"""


@routes.get(LOGIN)
async def show_login(
    request: Request, target: Annotated[str, Query(alias="next", max_length=LONGEST_TARGET)] = "/"
) -> Response:
    """Show a form for a token, unless no token is needed."""
    if not request.app.state.has_tokens:
        return RedirectResponse(_checked(target), 303)
    return _page(target)


@routes.post(LOGIN)
async def log_in(request: Request) -> Response:
    """Keep a token that is valid in a cookie, and go on to where the browser wanted to go."""
    body = await request.body()
    if len(body) > _LONGEST_FORM:
        return _page("/", "The form is too long. Give a token only.", 413)
    form = parse_qs(body.decode("latin-1"))
    target, text = form.get("next", ["/"])[0], form.get("token", [""])[0].strip()
    if foreign_page(request.method, request.headers):
        return _page(target, "The form came from a page of another site. Use this one.", 403)
    tokens: Tokens = request.app.state.tokens
    token = tokens.find(text)
    if token is None:
        return _page(target, "This token is not known here. Look for a typo, or ask for a new one.", 401)
    if token.is_expired():
        return _page(target, f"This token expired on {token.expires}. Ask for a new one.", 401)
    answer = RedirectResponse(_checked(target), 303)
    # Anyone may send this header; all it does is to keep the cookie from plain HTTP.
    is_encrypted = request.url.scheme == "https" or request.headers.get("x-forwarded-proto") == "https"
    answer.set_cookie(COOKIE, text, max_age=_SECONDS, httponly=True, samesite="strict", secure=is_encrypted)
    return answer


@routes.post(LOGOUT)
async def log_out(request: Request) -> Response:
    """Forget the token of this browser."""
    if foreign_page(request.method, request.headers):
        raise HTTPException(403, "The request came from a page of another site. Log out on a page of this service.")
    answer = RedirectResponse(LOGIN, 303)
    answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return answer


def _page(target: str, message: str = "", status: int = 200) -> HTMLResponse:
    return HTMLResponse(_PAGE.format(message=escape(message), target=escape(_checked(target))), status)


def _checked(target: str) -> str:
    return target if _PATH.fullmatch(target) else "/"
