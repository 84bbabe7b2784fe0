"""``starshl report``: score what was recorded and write it up."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from .options import AsJson, Jobs, print_json

__all__ = ["report", "tell_damaged"]

EXIT_DAMAGED_RECORDS = 1

Records = Annotated[Path, typer.Argument(metavar="RECORDS", help="A folder of run records, from `starshl reproduce`.")]
Output = Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for the report.")]
Markdown = Annotated[
    Path | None, typer.Option("--markdown", metavar="FILE", help="Write the Markdown twin to this file, too.")
]


def report(
    records: Records = Path("starshl-records"),
    output: Output = Path("starshl-report"),
    markdown: Markdown = None,
    jobs: Jobs = -1,
    as_json: AsJson = False,
) -> None:
    """Write a report of all records: report.html (one file, no network needed), report.md and CSV tables.

    Exit code 1 tells that a record could not be read; the report is made of the others.
    """
    from .._files import write_atomically
    from ..reports import check_claims, write_report

    written = write_report(records, output, n_jobs=jobs)
    if markdown is not None:
        write_atomically(markdown, written.markdown.read_bytes())
    verdicts = check_claims(written.results)
    if as_json:
        print_json(
            {
                "page": str(written.page),
                "markdown": str(written.markdown),
                "tables": [str(path) for path in written.tables],
                "n_runs": sum(len(found.runs) for found in written.results.protocols),
                "n_failed": len(written.results.failures),
                "damaged": written.results.damaged,
                "claims": [{"claim": v.claim, "protocol": v.protocol, "verdict": v.word} for v in verdicts],
            }
        )
    else:
        counts = ", ".join(f"{word}: {n}" for word, n in sorted(Counter(v.word for v in verdicts).items()))
        typer.echo(f"The paper's claims, counted by protocol: {counts}.")
        typer.echo(f"Report: {written.page}")
    if written.results.damaged:
        tell_damaged(written.results.damaged, records)
        raise typer.Exit(EXIT_DAMAGED_RECORDS)


def tell_damaged(damaged: list[str], records: Path) -> None:
    """Name on standard error the records that could not be read."""
    for name in damaged:
        typer.echo(
            f"Left out: {records / name} is not a readable run record. Delete it to have the run repeated.", err=True
        )
