"""Files on their way to and from a service, piece by piece, in both kinds of clients."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx

from .._files import replacing_file
from .problems import read_answer

__all__ = ["pieces", "save_answer", "save_answer_later"]

_PIECE = 1 << 20  # bytes in memory at a time


async def pieces(path: Path) -> AsyncIterator[bytes]:
    """Yield the content of a file, read by other threads."""
    with await asyncio.to_thread(path.open, "rb") as file:
        while piece := await asyncio.to_thread(file.read, _PIECE):
            yield piece


def save_answer(response: httpx.Response, path: Path) -> None:
    """Write the content of an answer to a file, which appears when it is complete."""
    if not response.is_success:
        response.read()
        read_answer(response)
    with replacing_file(path) as file:
        for piece in response.iter_bytes(_PIECE):
            file.write(piece)


async def save_answer_later(response: httpx.Response, path: Path) -> None:
    """Do the same for a client that can be awaited."""
    if not response.is_success:
        await response.aread()
        read_answer(response)
    with replacing_file(path) as file:
        async for piece in response.aiter_bytes(_PIECE):
            await asyncio.to_thread(file.write, piece)
