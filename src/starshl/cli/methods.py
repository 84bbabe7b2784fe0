"""``starshl methods``: the hashing methods that ``fit`` knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from .options import AsJson, print_json, print_table

if TYPE_CHECKING:
    from ..catalog import Method

__all__ = ["methods"]


def methods(as_json: AsJson = False) -> None:
    """List the hashing methods: the labels each needs, what it takes and costs, its variants."""
    from dataclasses import asdict

    from ..catalog import METHODS, SUPERVISION

    if as_json:
        print_json([asdict(method) for method in METHODS])
        return
    rows = [[method.name, method.supervision, _description(method)] for method in METHODS]
    print_table(["method", "labels", "paper, what fit takes, what it costs"], rows)
    for word, meaning in SUPERVISION.items():
        typer.echo(f"{word}: {meaning}")


def _description(method: Method) -> str:
    lines = [f"{method.paper} ({method.year})", f"takes {method.needs}; costs {method.cost}"]
    for variant in method.variants:
        settings = ", ".join(f"{name}={value!r}" for name, value in variant.params.items())
        lines.append(f"{variant.name}: {settings}; {variant.supervision}")
    return "\n".join(lines)
