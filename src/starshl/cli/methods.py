"""``starshl methods``: the hashing methods that ``fit`` knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from .options import AsJson, print_json, print_table

if TYPE_CHECKING:
    from ..base import BaseHasher

__all__ = ["methods"]


def methods(as_json: AsJson = False) -> None:
    """List the hashing methods: labels, input, cost, variants."""
    from ..catalog import METHODS, get_class
    from ..facts import LABEL_USES

    classes = [get_class(name) for name in METHODS]
    if as_json:
        print_json([_as_dict(hasher_class) for hasher_class in classes])
        return
    rows = [[each.__name__, each.facts.labels, _description(each)] for each in classes]
    print_table(["method", "labels", "paper, what fit takes, what it costs"], rows)
    for word, meaning in LABEL_USES.items():
        typer.echo(f"{word}: {meaning}")


def _as_dict(hasher_class: type[BaseHasher]) -> dict[str, Any]:
    from dataclasses import asdict

    variants = [
        {"name": variant.name, "params": variant.params, **asdict(variant.facts(hasher_class.facts))}
        for variant in hasher_class.variants
    ]
    return {"name": hasher_class.__name__, **asdict(hasher_class.facts), "variants": variants}


def _description(hasher_class: type[BaseHasher]) -> str:
    facts = hasher_class.facts
    lines = [f"{facts.paper} ({facts.year})", f"takes {facts.samples}; costs {facts.cost}"]
    for variant in hasher_class.variants:
        settings = ", ".join(f"{name}={value!r}" for name, value in variant.params.items())
        lines.append(f"{variant.name}: {settings}; labels {variant.facts(facts).labels}")
    return "\n".join(lines)
