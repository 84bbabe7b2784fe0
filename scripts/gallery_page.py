"""The text of docs/gallery.md, written from the figures that scripts/gallery.py measured."""

from __future__ import annotations

from typing import Any

__all__ = ["page"]

TITLES = {"digits": "Digits", "mnist": "MNIST"}

HEAD = """# Gallery: every method side by side

<!-- Written by scripts/gallery.py; change that, not this page. -->

Each method learns codes of {n_bits} bits from the same training rows. The codes of held-out rows then search the codes
of the training rows. A good code retrieves rows of the same class. Below is what one handwritten digit retrieves,
method by method; wrong results are red. Every number and picture on this page was measured by one script with default
settings and one seed:

    python scripts/gallery.py

![The ten nearest digits by the codes of each method](gallery_retrieved.svg)

The query was chosen by a rule: on it, the share of right results came nearest to the mean precision of all methods
when all were measured together.
Codes at equal distance are shown in the order of the database; the tables average over all orders.

![Precision against time to fit](gallery_map.svg)

## How to read the tables

- **labels**: what `fit` does with y. "required": every row needs a label. "some": some rows need one, the others may
  have one. "optional": all, some or none of the rows may have one. "ignored": y is not read. Here, all rows have one.
- **labels used**: how many of these labels the fit read. Some methods learn from a sample of the labeled rows; compare
  methods that read the same number.
- **P@10**: the share of the ten nearest training rows that are of the query's class. StarRidge stores a labeled row
  under the codeword of its label; all other methods code the rows by their vectors. **mAP**: the same idea over the
  whole ranking. Both are averages over all orders of ties.
- **fit** and **encode**: processor seconds of all threads together, after a fit on a few rows that loads the
  compiled loops. On idle cores the wait is shorter; encode is for 1,000 rows.
- **model**: the size of the saved file. A code takes {code_bytes} bytes per row, except where a row of
  the table says otherwise.
"""

TAIL = """
## What to make of it

- Labels help a method that can use them. On {dataset}, {with_labels} of 100 retrieved rows are right for the best
  method with labels, and {without_labels} for the best without. But {n_below} methods with labels stay below that.
- Among methods with labels, fixed codewords with one regression or SVM per bit (HC-SDH, CodewordSVM) are hard to beat
  where the classes of the queries are those of the training rows. Any comparison without them proves little. StarRidge
  is such a regression too, with kernels and a ridge that it chooses itself.
- Some methods cannot use this many bits. Directions by variance (PCAHash, SSH orthogonal) and by class differences
  (LDAHash, DIF) run out of good ones; there, shorter codes are better.
- SignBinarizer and RaBitQ are made for embeddings, where every feature carries information. They get one bit per
  feature here, because the leading pixels of a picture are its empty margin. Bit sampling also uses single
  features.
- One split and one seed: differences below .02 mean nothing.

Measured with {versions} on {cores} cores ({processor}).
"""


def page(figures: dict[str, Any]) -> str:
    """Return the page in Markdown."""
    n_bits = figures["datasets"][0]["n_bits"]
    summary = _summary(figures["datasets"][-1])
    versions = ", ".join(f"{name} {number}" for name, number in figures["versions"].items())
    return (
        HEAD.format(n_bits=n_bits, code_bytes=-(-n_bits // 8))
        + "".join(_section(measured) for measured in figures["datasets"])
        + TAIL.format(versions=versions, cores=figures["cores"], processor=figures["processor"], **summary)
    )


def _summary(measured: dict[str, Any]) -> dict[str, Any]:
    without, with_labels = (
        sorted(line["precision"] for line in measured["methods"] if (line["labels"] == "ignored") == wanted)
        for wanted in (True, False)
    )
    return {
        "dataset": TITLES[measured["name"]],
        "with_labels": round(100 * with_labels[-1]),
        "without_labels": round(100 * without[-1]),
        "n_below": sum(precision < without[-1] for precision in with_labels),
    }


def _section(measured: dict[str, Any]) -> str:
    euclidean = measured["euclidean"]
    lines = [
        f"\n## {TITLES[measured['name']]}",
        "",
        f"{measured['n_train']:,} training rows of {measured['n_features']} features and unit length, which are the "
        f"database; {measured['n_queries']:,} queries.",
        f"The rows themselves, {euclidean['row_bytes']:,} bytes each in single precision, ranked by Euclidean "
        f"distance: P@10 {_share(euclidean['precision'])}, mAP {_share(euclidean['average_precision'])}.",
    ]
    by_precision = sorted(measured["methods"], key=lambda line: -line["precision"])
    for title, wanted in (("Without labels", True), ("With labels", False)):
        lines += [
            "",
            f"### {TITLES[measured['name']]}: {title.lower()}",
            "",
            "| method | labels | labels used | P@10 | mAP | fit, s | encode 1,000, ms | model, kB |",
            "|---|---|---:|---:|---:|---:|---:|---:|",
            *(_row(line, measured["n_bits"]) for line in by_precision if (line["labels"] == "ignored") == wanted),
        ]
    return "\n".join(lines) + "\n"


def _row(line: dict[str, Any], n_bits: int) -> str:
    name = line["title"] if line["variant"] == line["method"] else f"{line['title']} (`{line['method']}`)"
    if line["n_bits"] != n_bits:
        name += f", {line['n_bits']} bits"
    milliseconds = line["encode_seconds_per_row"] * 1e6
    cells = [
        name,
        line["labels"],
        f"{line['labels_used']:,}",
        _share(line["precision"]),
        _share(line["average_precision"]),
        f"{line['fit_seconds']:.2f}",
        f"{milliseconds:.1f}",
        f"{line['model_bytes'] / 1000:,.0f}",
    ]
    return f"| {' | '.join(cells)} |"


def _share(value: float) -> str:
    return f"{value:.3f}"
