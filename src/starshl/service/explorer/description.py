"""The API on a page, from the same description that programs read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from ..http.dependencies import in_thread
from .rendering import render

routes = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class _Operation:
    """What can be sent to an address, and an example of a body, empty where there is none."""

    method: str
    path: str
    purpose: str
    right: str
    query: str
    example: str


@routes.get("/api/v1/docs")
async def describe(request: Request) -> Response:
    """Show what the API offers; it loads nothing from other sites."""
    description = await in_thread(request.app.openapi)
    return render("description.html", request, operations=list(_operations(description)))


def _operations(description: dict[str, Any]) -> Iterator[_Operation]:
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            query = [each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"]
            purpose = operation.get("description") or operation["summary"]
            example = _example(description, operation)
            yield _Operation(method.upper(), path, purpose, operation["x-right"], ", ".join(query), example)


def _example(description: dict[str, Any], operation: dict[str, Any]) -> str:
    schema = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    name = schema.get("$ref", "").rpartition("/")[2]
    examples = description["components"]["schemas"].get(name, {}).get("examples", ())
    return json.dumps(examples[0]) if examples else ""
