"""``starshl demo``: retrieval on the digits inside scikit-learn, with all labels, with five per class and with none."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import AsJson, Jobs, check_output_folder, print_json, print_table

if TYPE_CHECKING:
    import numpy as np

    from ..reproduction.demo import Demonstration

N_DRAWN = 4
_SHADES, _ASCII_SHADES = " ░▒▓█", " .:+#"
_BYTES_PER_IMAGE = 64
Bits = Annotated[int, typer.Option("--bits", "-b", metavar="N", min=1, help="Length of the codes.")]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Draws queries, hidden labels and starts.")]
Output = Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for the page.")]


def demo(
    bits: Bits = 16,
    seed: Seed = 0,
    output: Output = Path("starshl-demo"),
    jobs: Jobs = -1,
    as_json: AsJson = False,
) -> None:
    """Show what codes find among handwritten digits.

    They are learned with all labels, with five per class and with none. Takes about a minute and downloads nothing.
    """
    from ..reproduction.demo import demonstrate, write_demo_page

    check_output_folder(output)
    typer.echo(f"The page will be in the folder {output.absolute()}.", err=True)
    found = demonstrate(bits, seed=seed, jobs=jobs, announce=lambda text: typer.echo(text, err=True))
    comparison = _as_plain_values(found) | {"report": str(write_demo_page(found, output))}
    if as_json:
        print_json(comparison)
    else:
        _print_results(comparison)


def _as_plain_values(found: Demonstration) -> dict[str, Any]:
    # Positions in scikit-learn's digits.
    query, nearest = int(found.queries[0]), found.shown[0].nearest[0, :N_DRAWN].tolist()
    curves = [
        {"labels": labels, "method": title, "precision_at_10": {str(n_bits): p for n_bits, p in by_length.items()}}
        for (labels, title), by_length in found.curves.items()
    ]
    return {
        "data": "digits",
        "n_bits": found.n_bits,
        "n_queries": len(found.queries),
        "n_database": len(found.database),
        "bytes_per_image_raw": _BYTES_PER_IMAGE,
        "seed": found.seed,
        "results": found.results,
        "curves": curves,
        "query": query,
        "nearest": nearest,
    }


# Title of a column -> its cell.
_COLUMNS: dict[str, Callable[[dict[str, Any]], str]] = {
    "labels": lambda result: result["labels"],
    "method": lambda result: result["method"],
    "P@10": lambda result: _share(result["precision_at_10"]),
    "accuracy": lambda result: _share(result["accuracy"]),
    "bytes": lambda result: str(result["bytes_per_image"]),
    "fit [s]": lambda result: f"{result['fit_seconds']:.1f}",
}
_COLUMNS_OF_FEW: dict[str, Callable[[dict[str, Any]], str]] = {
    "method": _COLUMNS["method"],
    "unlabeled": lambda result: _share(result["accuracy_unlabeled"]),
    "new": _COLUMNS["accuracy"],
    "P@10": _COLUMNS["P@10"],
    "fit [s]": _COLUMNS["fit [s]"],
}


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _print_figures(
    results: list[dict[str, Any]], columns: dict[str, Callable[[dict[str, Any]], str]], title: str | None
) -> None:
    rows = [[cell(result) for cell in columns.values()] for result in results]
    right = tuple(name for name in columns if name not in ("labels", "method"))
    print_table(list(columns), rows, right=right, title=title)


def _print_results(comparison: dict[str, Any]) -> None:
    from sklearn.datasets import load_digits

    from ..reproduction.demo import LABELS_PER_CLASS, NEXT_STEPS, SOME_LABELS

    typer.echo(
        f"Digits: {comparison['n_queries']} queries among {comparison['n_database']} images, "
        f"codes of {comparison['n_bits']} bits; "
        f"an image itself takes {comparison['bytes_per_image_raw']} bytes.\n"
        "P@10: share of the ten nearest codes whose images show the digit of the query."
    )
    results = comparison["results"]
    few = [result for result in results if result["labels"] == SOME_LABELS]
    _print_figures([result for result in results if result not in few], _COLUMNS, title=None)
    _print_figures(
        few,
        _COLUMNS_OF_FEW,
        title=f"{LABELS_PER_CLASS} labels per class: accuracy on unlabeled and on new images, P@10 of new images",
    )
    for result in few:
        if result["choice"] and "labeled rows only" not in result["method"]:
            typer.echo(f"{result['method']} chose: {result['choice']}")
    typer.echo()
    digits = load_digits()
    shown = [comparison["query"], *comparison["nearest"]]
    right = sum(digits.target[row] == digits.target[shown[0]] for row in shown[1:])
    captions = [
        f"query: {digits.target[shown[0]]}",
        *("nearest: " + str(digits.target[row]) for row in comparison["nearest"]),
    ]
    typer.echo("A query and its nearest images, by the codes of StarRidge with all labels:\n")
    typer.echo(draw_side_by_side(digits.images[shown] / 16, captions))
    typer.echo(
        f"\n{right} of these {N_DRAWN} show the digit of the query. Codes that labels have taught find the digit that "
        "they take the query for:\nnearly all is right or, if they mistake it, nearly all is wrong. The page has more "
        "examples, and says of each what happened."
    )
    typer.echo(f"\nMore pictures, tables and curves, to open in a browser: {comparison['report']}")
    typer.echo("\nNext, on your own data:")
    width = max(len(command) for command, _ in NEXT_STEPS)
    for command, what in NEXT_STEPS:
        typer.echo(f"  {command:<{width}}  # {what}")


def draw_side_by_side(images: np.ndarray, captions: Sequence[str], *, blocks: bool | None = None) -> str:
    """Draw images of shape (n, height, width) with values from 0 to 1, each under its caption.

    ``blocks`` asks for block characters, by default where standard output can print them.

    Examples
    --------
    >>> import numpy as np
    >>> print(draw_side_by_side(np.eye(2)[None], ["unit"], blocks=False))
    unit
    ##
      ##
    """
    import numpy as np

    if blocks is None:
        blocks = _can_print_blocks()
    shades = np.array(list(_SHADES if blocks else _ASCII_SHADES))
    levels = np.clip((images * len(shades)).astype(int), 0, len(shades) - 1)
    # A character is about twice as high as wide, so a pixel takes two.
    drawings = [["".join(np.repeat(shades[row], 2)) for row in image] for image in levels]
    width = 2 * images.shape[2]
    columns = [[caption, *drawing] for caption, drawing in zip(captions, drawings, strict=True)]
    lines = (" ".join(cell[:width].ljust(width) for cell in line) for line in zip(*columns, strict=True))
    return "\n".join(line.rstrip() for line in lines)


def _can_print_blocks() -> bool:
    try:
        _SHADES.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True
