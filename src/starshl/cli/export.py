"""``starshl export``: a model for any ONNX runtime, and a page that searches in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._common.words import counted
from .options import AsJson, Progress, check_output, load_model, print_json, progress_shown, split_names

if TYPE_CHECKING:
    from ..hashers.base import BaseHasher

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
        help="Outputs of the .onnx file: codes (default), scores, label, probabilities; separated by commas.",
    ),
]
Precision = Annotated[
    str,
    typer.Option(
        "--precision",
        metavar="WORD",
        help="Precision of the rows and the arithmetic of the .onnx file: float64 or float32.",
    ),
]
Page = Annotated[
    Path | None,
    typer.Option(
        "--page",
        metavar="FILE",
        help="Write an .html file that encodes queries and searches the collection in a browser, without a network. "
        "The first time, npm installs onnxruntime-web into your cache.",
    ),
]
Title = Annotated[
    str | None, typer.Option("--title", metavar="TEXT", help="Title of the page; by default, the name of the folder.")
]
Picture = Annotated[
    str | None,
    typer.Option(
        "--picture",
        metavar="HxW[x3]",
        help="The vectors of the collection are the pixels of pictures of this size, so that queries can be drawn.",
    ),
]
Runtime = Annotated[
    Path | None,
    typer.Option("--runtime", metavar="FOLDER", help="The folder `dist` of onnxruntime-web, on machines without npm."),
]


def export(
    source: Source,
    onnx: Onnx = None,
    outputs: Outputs = None,
    precision: Precision = "float64",
    page: Page = None,
    title: Title = None,
    picture: Picture = None,
    runtime: Runtime = None,
    progress: Progress = None,
    as_json: AsJson = False,
) -> None:
    """Write an ONNX model, or a web page that searches offline.

    The ONNX model includes the preprocessing. The page holds a collection and searches it in a browser.
    """
    if onnx is None and page is None:
        raise ValueError("There is nothing to write. Give --onnx FILE or --page FILE.")
    if page is not None:
        check_output(page, _files_of(source), suffixes=(".html",))
    shape = None if picture is None else _parse_shape(picture)
    summary: dict[str, Any] = {}
    if onnx is not None:
        summary |= export_onnx(source, onnx, split_names(outputs) or None, precision)
    if page is not None:
        summary["page"] = export_page(source, page, title, shape, runtime, progress)
    if as_json:
        print_json(summary)
        return
    if onnx is not None:
        typer.echo(_onnx_sentences(summary))
    if page is not None:
        typer.echo(_page_sentences(summary["page"]))


def _onnx_sentences(summary: dict[str, Any]) -> str:
    parts = ", ".join([*summary["steps"], summary["method"]])
    return (
        f"{parts}, {summary['n_bits']} bits, {summary['file_bytes']:,} bytes in {summary['precision']}: "
        f"{summary['onnx']} (outputs {', '.join(summary['outputs'])})\n"
        f"One row takes {summary['onnx_ms']:.3f} ms in onnxruntime on one thread, {summary['encode_ms']:.3f} ms in "
        "`encode`."
    )


def _page_sentences(page: dict[str, Any]) -> str:
    previews = f", {counted(page['n_previews'], 'preview')}" if page["n_previews"] else ""
    written = f"{counted(page['n_items'], 'item')}{previews}, {page['file_bytes']:,} bytes: {page['file']}"
    return written if page["encodes"] else f"{written}\nIt only finds items similar to a given one. {page['why_not']}"


def export_page(
    source: Path,
    path: Path,
    title: str | None,
    picture: tuple[int, ...] | None,
    runtime: Path | None,
    progress: bool | None,
) -> dict[str, Any]:
    """Write one page of a collection; return what `--json` prints."""
    if not source.is_dir():
        raise ValueError(
            f"{str(source)!r} is not the folder of a collection, and --page shows the items of a collection. Make one "
            "with `starshl index build`."
        )
    from ..export.search_page import write_search_page
    from .index.common import open_collection

    shown = progress_shown(progress)
    with open_collection(source, read_only=True) as collection:
        contents = write_search_page(collection, path, title=title, picture=picture, runtime=runtime, progress=shown)
    fields = ("n_items", "n_bits", "n_previews", "encodes", "why_not", "picture", "file_bytes")
    return {"file": str(path), **{name: contents[name] for name in fields if name in contents}}


def _parse_shape(text: str) -> tuple[int, ...]:
    sides = text.lower().split("x")
    is_shape = len(sides) in (2, 3) and all(side.isdecimal() and int(side) > 0 for side in sides)
    if not is_shape or (len(sides) == 3 and sides[2] not in ("1", "3")):
        raise ValueError(f"--picture got {text!r}; give height and width, such as 28x28, or 32x32x3 for colors.")
    return tuple(int(side) for side in sides)


def export_onnx(source: Path, path: Path, outputs: tuple[str, ...] | None, precision: Any) -> dict[str, Any]:
    """Write one ONNX file; return what `--json` prints."""
    check_output(path, _files_of(source), suffixes=(".onnx",))
    from ..export.onnx_model import single_row_latency, to_onnx

    hasher = _hasher_of(source)
    names = list(outputs or ("codes",))
    model = to_onnx(hasher, path, outputs=names, precision=precision)
    timed = model if "codes" in names else to_onnx(hasher, precision=precision)
    latency = single_row_latency(timed, hasher)
    return {
        "onnx": str(path),
        "method": hasher.method_name,
        "steps": [type(step).__name__ for step in hasher.fitted_steps],
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
    from .index.common import open_collection

    with open_collection(source, read_only=True) as collection:
        return collection.hasher
