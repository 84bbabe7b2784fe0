"""``starshl compress``: a model file that encodes faster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .options import AsJson, Model, Seed, load_model, print_json
from .outputs import check_output

__all__ = ["compress", "compress_model"]

Output = Annotated[Path, typer.Option("--output", "-o", metavar="MODEL", help="Where to write the smaller model.")]
Support = Annotated[
    int | None,
    typer.Option("--support", "-s", metavar="N", min=1, help="Support rows to keep; by default, a tenth of them."),
]


def compress(model: Model, output: Output, support: Support = None, seed: Seed = 0, as_json: AsJson = False) -> None:
    """Write a smaller model that encodes faster.

    It keeps fewer support rows. Its codes differ from those of the larger model, so encode your database again.
    """
    summary = compress_model(model, output, support, seed)
    if as_json:
        print_json(summary)
    else:
        typer.echo(
            f"{summary['n_support']:,} support rows instead of {summary['n_support_before']:,}, "
            f"{summary['agreement']:.1%} of the code bits stay the same: {output}"
        )


def compress_model(model: Path, output: Path, support: int | None, seed: int) -> dict[str, Any]:
    """Compress one model file into another; return what `--json` prints."""
    from ..features import inner_hasher

    check_output(output, [model])
    hasher: Any = load_model(model)
    if not hasattr(hasher, "compress"):
        name = type(inner_hasher(hasher)).__name__
        raise ValueError(
            f"{str(model)!r} holds a {name}; only StarRidge and StarSHL can be compressed, because they keep training "
            "rows to encode with. Use the model as it is."
        )
    small = hasher.compress(support, random_state=seed)
    small.save(output)
    before: Any = inner_hasher(hasher)
    after: Any = inner_hasher(small)
    return {
        "output": str(output),
        "n_support": len(after.support_),
        "n_support_before": len(before.support_),
        "agreement": after.agreement_,
    }
