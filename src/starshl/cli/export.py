"""``starshl export``: a model for any ONNX runtime."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import AsJson, load_model, print_json, split_names
from .outputs import check_output

if TYPE_CHECKING:
    from ..base import BaseHasher

__all__ = ["export", "export_onnx"]

Source = Annotated[
    Path, typer.Argument(metavar="MODEL|COLLECTION", help="A model file, or the folder of a collection.")
]
Onnx = Annotated[
    Path | None,
    typer.Option("--onnx", metavar="FILE", help="Write an .onnx file: rows X in, packed codes out, as in `encode`."),
]
Outputs = Annotated[
    list[str] | None,
    typer.Option(
        "--outputs",
        metavar="NAME,...",
        help="Of the .onnx file: codes (default), scores, label, probabilities; separated by commas.",
    ),
]
Precision = Annotated[
    str,
    typer.Option(
        "--precision", metavar="WORD", help="Of the rows and the arithmetic of the .onnx file: float64 or float32."
    ),
]


def export(
    source: Source,
    onnx: Onnx = None,
    outputs: Outputs = None,
    precision: Precision = "float64",
    as_json: AsJson = False,
) -> None:
    """Write a model, preprocessing included, for other runtimes; say how long one row takes there and here."""
    if onnx is None:
        raise ValueError("Nothing to write: say --onnx FILE.")
    summary = export_onnx(source, onnx, split_names(outputs) or None, precision)
    if as_json:
        print_json(summary)
        return
    typer.echo(
        f"{summary['method']}, {summary['n_bits']} bits, {summary['file_bytes']:,} bytes in {precision}: "
        f"{summary['onnx']} (outputs {', '.join(summary['outputs'])})\n"
        f"One row takes {summary['onnx_ms']:.3f} ms in onnxruntime on one thread, {summary['encode_ms']:.3f} ms in "
        "`encode`."
    )


def export_onnx(source: Path, path: Path, outputs: tuple[str, ...] | None, precision: str) -> dict[str, Any]:
    """Write one ONNX file; return what `--json` prints."""
    check_output(path, _files_of(source), suffixes=(".onnx",))
    from ..export import to_onnx
    from ..export.latency import single_row_latency

    hasher = _hasher_of(source)
    names = list(outputs or ("codes",))
    model = to_onnx(hasher, path, outputs=names, precision=precision)
    timed = model if "codes" in names else to_onnx(hasher, precision=precision)
    latency = single_row_latency(timed, hasher)
    return {
        "onnx": str(path),
        "method": type(hasher).__name__,
        "n_bits": hasher.n_bits_,
        "n_features": hasher.n_features_in_,
        "outputs": names,
        "precision": precision,
        "file_bytes": path.stat().st_size,
        "onnx_ms": latency.onnx,
        "encode_ms": latency.encode,
    }


def _files_of(source: Path) -> list[Path]:
    return [source, *source.iterdir()] if source.is_dir() else [source]


def _hasher_of(source: Path) -> BaseHasher:
    """Return the hasher of a model file, or that of a collection."""
    if not source.is_dir():
        return load_model(source)
    from .index.common import opened

    with opened(source, read_only=True) as collection:
        return collection.hasher
